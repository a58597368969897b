"""The answer that is being written while its session is forked, as the fork has it.

It comes along once a call of it has begun: the fork's model must not be asked to go on without knowing what
it did. In the fork it is over, and each open call says what is known of it there; the source goes on.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.errors import RecordCorrupt
from holdfast.runtime.answer import ending
from holdfast.runtime.engine.recorder import Ids
from holdfast.runtime.history import work
from holdfast.schema.ids import MessageID, Mint, PartID, SessionID
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import ToolPart
from holdfast.schema.request import Request
from holdfast.schema.stored import Mark
from holdfast.schema.tool_state import ToolPending
from holdfast.store.batch import Put
from holdfast.store.put import put
from holdfast.store.record import StoredMessage, StoredRecord
from holdfast.tools import execute
from holdfast.tools.builtin import question
from holdfast.tools.execute import Settlement

AT_WORK: Final = (
    "This call was at work when the conversation was copied, so its result is not here. Whether it took "
    "effect is unknown: look at the actual state before you do it again."
)
WAITED: Final = "This call waited for the user when the conversation was copied. Here it did not run."
UNSAID: Final = "This call was still being written when the conversation was copied. Here it did not run."


def find(messages: Sequence[StoredMessage]) -> StoredMessage | None:
    """The answer that is open, or has an open call, if a call of our tools has begun in it."""
    marked = [each for each in messages if any(one.mark is Mark.OPEN for one in (each.info, *each.parts))]
    for message in sorted(marked, key=lambda each: each.info.place, reverse=True):
        if isinstance(_readable(message.info), AssistantMessage):
            calls = [part for each in message.parts if isinstance(part := _readable(each), ToolPart)]
            is_open = message.info.mark is Mark.OPEN or not all(work.is_settled(call) for call in calls)
            return message if is_open and any(map(_has_begun, calls)) else None
    return None


def _readable(record: StoredRecord) -> object:
    """The value of a record. What is damaged is no reason to copy less than without it."""
    try:
        return record.value()
    except RecordCorrupt:
        return None


def _has_begun(call: ToolPart) -> bool:
    return not isinstance(call.state, ToolPending) and not (call.metadata or {}).get("providerExecuted")


def settled(
    opened: StoredMessage,
    others: Sequence[StoredMessage],
    session: SessionID,
    names: Mapping[str, str],
    requests: Iterable[Request],
    *,
    now_ms: int,
    mint: Mint,
) -> list[Put]:
    """The records of the answer in the fork, each in the place of the source's. `names`: the new id of each
    record; `requests`: what the source has asked the user.
    """
    answer = MessageWithParts(opened.info.value(), tuple(part.value() for part in opened.parts))
    info = answer.info
    assert isinstance(info, AssistantMessage)
    waiting = work.waiting(answer, requests)

    def settles(call: ToolPart) -> Settlement:
        if isinstance(call.state, ToolPending):
            return execute.failed(UNSAID, outcome="interrupted")
        # Other tools that put questions have begun their work by then.
        if call.call_id in waiting and (not waiting[call.call_id] or call.tool == question.NAME):
            return execute.failed(WAITED, outcome="interrupted")
        return execute.failed(AT_WORK, outcome="unknown")

    prompt = next((each.info.value() for each in others if each.info.id == info.parent_id), None)
    info = replace(
        info,
        id=MessageID(names[info.id]),
        session_id=session,
        parent_id=MessageID(names.get(info.parent_id, info.parent_id)),
    )
    parts = tuple(
        replace(part, id=PartID(names[part.id]), session_id=session, message_id=info.id)
        for part in answer.parts
    )
    answer = MessageWithParts(info, parts)
    how = ending.cut_off(answer, settles)  # Its error stays.
    if isinstance(prompt, UserMessage) and prompt.no_reply and info.finish is None:
        how = replace(how, finish=work.COMMAND)  # A command of the user's own: the model owes nothing.
    closed = {each.id: each for each in ending.closed(answer, how, Ids(mint.ascending), now_ms, mint)}
    return [closed.get(value.id) or put(value) for value in (info, *parts)]
