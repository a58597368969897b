"""Makes a session of ours, with everything in it, of what a reader found; what cannot be made is reported.

Order: messages by (time of creation, id), parts by id, which is how OpenCode shows them. What OpenCode may
still be writing is left for the next import, so that whatever came over once is final.
"""

from itertools import islice
from typing import Any, Final

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import usage
from holdfast.schema.message import AssistantMessage, Message, UserMessage
from holdfast.schema.part import Part, StepFinishPart
from holdfast.schema.session import Session
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import Num
from holdfast.store.exchange.opencode import close, mend_message, mend_part, mend_session
from holdfast.store.exchange.opencode.mend_message import Around
from holdfast.store.exchange.opencode.shape import mapping, whole
from holdfast.store.exchange.opencode.source import RawMessage, RawRecord, RawSession
from holdfast.store.exchange.portable.names import record_id
from holdfast.store.exchange.portable.report import Tally

LIVE_MS: Final = 15 * 60 * 1000
"""How long after its last change an unfinished answer may still be being written."""


class Turn(msgspec.Struct, frozen=True):
    """A message with its parts."""

    message: Message
    parts: list[Part]

    def usage(self) -> tuple[Num, Tokens]:
        """What it cost: the sum of its steps, or what the message says where no step was recorded."""
        cost: Num = 0
        tokens = usage.ZERO
        steps = [part for part in self.parts if isinstance(part, StepFinishPart)]
        for step in steps:
            cost, tokens = cost + step.cost, usage.add(tokens, step.tokens)
        if not steps and isinstance(self.message, AssistantMessage):
            cost, tokens = self.message.cost, usage.add(tokens, self.message.tokens)
        return cost, tokens


class Draft(msgspec.Struct, frozen=True):
    """A session as it will be written."""

    session: Session
    turns: list[Turn]
    todos: list[Todo] | None
    diffs: list[FileDiff] | None


def draft(raw: RawSession, *, now_ms: int, placement: str, tally: Tally) -> Draft | None:
    """The session; None, and a line in the report, when there is none to be had."""
    id = raw.info.id
    try:
        record_id(raw.project, "its project")
        if not isinstance(raw.info.value, dict):
            raise InvalidInput(raw.info.problem or "it is no JSON object")
        info, dropped = mend_session.session(
            raw.info.value, id=id, project=raw.project, now_ms=now_ms, placement=placement
        )
    except InvalidInput as error:
        tally.skip("session", f"session {id[:60]}", raw.info.where, str(error))
        return None
    _report(tally, f"session {id}", raw.info.where, dropped)
    if raw.shared or raw.info.value.get("share") is not None:
        tally.skip("share", f"the share of session {id}", raw.info.where, "the secrets of shares stay behind")
    turns = _turns(raw, info, now_ms, tally)
    return Draft(_with_totals(info, turns), turns, _todos(raw.todos, id, tally), _diffs(raw, id, tally))


def _turns(raw: RawSession, session: Session, now_ms: int, tally: Tally) -> list[Turn]:
    messages = raw.messages if raw.ordered else sorted(raw.messages, key=_when)
    around = Around(session.id, session.directory)
    turns: list[Turn] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        around.model = _model_after(messages, number, session)
        turn = _turn(message, around, seen, tally)
        if turn is None:
            continue
        if _is_live(message, turn.message, session, now_ms):
            why = "OpenCode may still be writing it; import again when it has finished"
            tally.skip("message", f"message {turn.message.id} and what follows", message.info.where, why)
            break
        turns.append(Turn(*close.close(turn.message, turn.parts)))
        if isinstance(turn.message, UserMessage):
            around.asked = turn.message.id
    return turns


def _turn(raw: RawMessage, around: Around, seen: set[str], tally: Tally) -> Turn | None:
    id = raw.info.id
    try:
        record_id(id, "its id", "msg")
        if id in seen:
            raise InvalidInput("the session has another message with this id")
        if raw.info.problem is not None:
            raise InvalidInput(raw.info.problem)
        created = raw.info.created or 0
        message, dropped = mend_message.message(raw.info.value, id=id, created=created, around=around)
    except InvalidInput as error:
        tally.skip("message", f"message {id[:60]} with {len(raw.parts)} parts", raw.info.where, str(error))
        return None
    seen.add(id)
    _report(tally, f"message {id}", raw.info.where, dropped)
    parts: list[Part] = []
    for part in sorted(raw.parts, key=lambda part: part.id):
        try:
            parts.append(_part(part, message, seen, tally))
        except InvalidInput as error:
            tally.skip("part", f"part {part.id[:60]}", part.where, str(error))
    return Turn(message, parts)


def _part(raw: RawRecord, message: Message, seen: set[str], tally: Tally) -> Part:
    record_id(raw.id, "its id", "prt")
    if raw.problem is not None:
        raise InvalidInput(raw.problem)
    if raw.id in seen:
        raise InvalidInput("the session has another part with this id")
    created = message.time.created
    part, dropped = mend_part.part(
        raw.value, id=raw.id, session=message.session_id, message=message.id, created=created
    )
    seen.add(raw.id)
    _report(tally, f"part {raw.id}", raw.where, dropped)
    return part


def _when(message: RawMessage) -> tuple[int, str]:
    time = mapping(mapping(message.info.value).get("time"))
    created = message.info.created
    return (whole(time.get("created"), 0) if created is None else created), message.info.id


def _model_after(messages: list[RawMessage], number: int, session: Session) -> dict[str, Any] | None:
    """The model that answers a message, for one that does not say whom it was written to."""
    info = mapping(messages[number].info.value)
    if info.get("role") != "user" or isinstance(info.get("model"), dict):
        return None
    for later in islice(messages, number + 1, None):
        answer = mapping(later.info.value)
        if answer.get("role") == "assistant":
            return {name: answer.get(name) for name in ("providerID", "modelID")}
        if answer.get("role") == "user":
            break
    if session.model is not None:
        return {"providerID": session.model.provider_id, "modelID": session.model.id}
    return None


def _is_live(raw: RawMessage, message: Message, session: Session, now_ms: int) -> bool:
    """Whether it is an answer that is not finished and was written to a short while ago."""
    if not isinstance(message, AssistantMessage) or message.time.completed is not None:
        return False
    known = [raw.info.touched, *(part.touched for part in raw.parts)]
    latest = max([session.time.updated, *(time for time in known if time is not None)])
    return abs(now_ms - latest) < LIVE_MS


def _with_totals(session: Session, turns: list[Turn]) -> Session:
    """The totals that the session's row has; where it has none, the sum of what its messages cost."""
    if session.cost is not None and session.tokens is not None:
        return session
    cost, tokens = total(turns)
    return msgspec.structs.replace(session, cost=cost, tokens=tokens)


def total(turns: list[Turn]) -> tuple[Num, Tokens]:
    """What all of them cost together."""
    cost: Num = 0
    tokens = usage.ZERO
    for turn in turns:
        more, used = turn.usage()
        cost, tokens = cost + more, usage.add(tokens, used)
    return cost, msgspec.structs.replace(tokens, total=None)


def _todos(raw: RawRecord | None, session: str, tally: Tally) -> list[Todo] | None:
    entries = _entries(raw, "todo", session, tally)
    if raw is None or entries is None:
        return None
    made: list[Todo] = []
    for number, entry in enumerate(entries):
        try:
            made.append(mend_session.todo(entry))
        except InvalidInput as error:
            tally.skip("todo", f"todo {number} of session {session}", raw.where, str(error))
    return made


def _diffs(raw: RawSession, session: str, tally: Tally) -> list[FileDiff] | None:
    found = raw.diffs
    if found is None:
        inside = mapping(mapping(raw.info.value).get("summary")).get("diffs")
        if not inside:
            return None
        found = RawRecord(session, raw.info.where, inside)
    entries = _entries(found, "diff", session, tally)
    if entries is None:
        return None
    made: list[FileDiff] = []
    for number, entry in enumerate(entries):
        try:
            made.append(mend_session.diff(entry))
        except InvalidInput as error:
            tally.skip("diff", f"diff {number} of session {session}", found.where, str(error))
    return made


def _entries(raw: RawRecord | None, kind: str, session: str, tally: Tally) -> list[Any] | None:
    if raw is None or (raw.problem is None and isinstance(raw.value, list)):
        return None if raw is None else raw.value
    tally.skip(kind, f"the {kind} list of session {session}", raw.where, raw.problem or "it is no JSON array")
    return None


def _report(tally: Tally, what: str, where: str, dropped: list[str]) -> None:
    for name in dropped:
        tally.skip(
            "field", f"field {name} of {what}", where, "it does not have the shape that it should have"
        )
