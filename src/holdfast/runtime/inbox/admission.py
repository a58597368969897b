"""Admission: commits a prompt to the session's inbox; a boundary promotes it later.

An admitted prompt is visible to every client at once as its user message, with the same id; its promotion
gives it a place in the model's history. What must stay true: an admitted prompt is never lost, and admitting
the same prompt twice is admitting it once.
"""

from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from holdfast.errors import Conflict, InvalidInput, NotFound, Refused
from holdfast.provider.request import lowering
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.inbox import attached_files
from holdfast.runtime.inbox import choice as choosing
from holdfast.runtime.inbox.choice import Choice, Wish
from holdfast.runtime.inbox.promotion import pending
from holdfast.runtime.undo.commit import committed
from holdfast.schema import ids
from holdfast.schema.file_part import FilePart, FileRead
from holdfast.schema.ids import MessageID, PartID
from holdfast.schema.message import UserMessage
from holdfast.schema.model import ModelRef, SessionModel
from holdfast.schema.output_format import JsonSchemaFormat, OutputFormat
from holdfast.schema.part import AgentPart, CompactionPart, Part, SubtaskPart, TextPart
from holdfast.schema.prompt import (
    AdmittedPrompt,
    AgentPartInput,
    CompactionPartInput,
    Delivery,
    FilePartInput,
    PartInput,
    SubtaskPartInput,
    TextPartInput,
)
from holdfast.schema.session import Session
from holdfast.schema.times import Created
from holdfast.schema.wire import checked
from holdfast.store.batch import Batch, Expectation, Rising, Unchanged, Unclaimed
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put
from holdfast.store.query import MessageQuery
from holdfast.store.record import SessionRecord
from holdfast.tools import structured

_TRIES = 200


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller sends to a session."""

    parts: list[PartInput]
    id: str | None = None
    delivery: Delivery = "steer"
    agent: str | None = None
    model: ModelRef | None = None
    variant: str | None = None
    system: str | None = None
    tools: dict[str, bool] | None = None
    format: OutputFormat | None = None
    no_reply: bool = False


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt. `fresh` is False for a prompt that had been admitted before."""

    prompt: AdmittedPrompt
    fresh: bool


async def admit(engine: Engine, session: str, prompt: Prompt, *, runs: bool = True) -> Admitted:
    """Admit a prompt durably. The same id with other content is a `Conflict`, a full inbox is `Refused`.

    A staged revert is committed with it.

    If the prompt is to be run (`runs`) and this process does not offer the session's placement, the receipt
    names that placement.
    """
    prompt = checked(prompt, "the prompt")
    if prompt.id is not None:
        ids.check("msg", prompt.id)
    _check_parts(prompt)
    if isinstance(prompt.format, JsonSchemaFormat):
        await structured.check_schema(prompt.format.schema)

    async def once() -> Admitted:
        record = await engine.store.session(session)
        if record is None:
            raise NotFound(f"session {session[:60]} does not exist")
        known = None if prompt.id is None else await _known(engine, session, prompt)
        return known or await _write(engine, record, prompt, runs=runs)

    # Another writer may change the session, use a greater id, or admit this very prompt.
    return await on_conflict(once, tries=_TRIES)


def _check_parts(prompt: Prompt) -> None:
    """Refuse what the model would never be shown: no part of a prompt may vanish silently."""
    if not prompt.parts:
        raise InvalidInput("a prompt needs at least one part")
    if len(prompt.parts) > 1 and any(isinstance(part, CompactionPartInput) for part in prompt.parts):
        raise InvalidInput("a compaction stands alone in its prompt; say the rest in another one")
    expanded = any(isinstance(part, TextPartInput) and part.synthetic for part in prompt.parts)
    for part in prompt.parts:
        if isinstance(part, SubtaskPartInput):
            raise InvalidInput("a subtask in a prompt cannot be run yet; ask for the work in words")
        if isinstance(part, FilePartInput) and part.mime in lowering.SHOWN_AS_TEXT and not expanded:
            raise InvalidInput(
                f"{part.filename or part.url[:60]}: text files and folders in a prompt are not expanded yet; "
                "put the text into the prompt, or name the path and let the model read it"
            )
    if not any(_is_shown(part, note=prompt.no_reply) for part in prompt.parts):
        raise InvalidInput("a prompt needs a text that is not empty, or a file, for the model to see")


def _is_shown(part: PartInput, *, note: bool) -> bool:
    """Whether the model sees the part. A prompt without reply may also be for the user alone."""
    match part:
        case TextPartInput():
            return bool(part.text.strip()) and (note or not part.ignored)
        case FilePartInput() | CompactionPartInput():
            return True
        case AgentPartInput() | SubtaskPartInput():
            return False
        case _:
            assert_never(part)


async def _known(engine: Engine, session: str, prompt: Prompt) -> Admitted | None:
    assert prompt.id is not None
    found = await engine.store.get(session, "prompt", prompt.id)
    if found is None:
        if await engine.store.get(session, "message", prompt.id) is None:
            return None
        # Both are one commit: this very prompt may have been admitted between the two reads.
        found = await engine.store.get(session, "prompt", prompt.id)
    if found is None:
        raise Conflict(f"message {prompt.id} exists already; give the prompt another id")
    value = found.value()
    assert isinstance(value, AdmittedPrompt)
    if _content(value) != _content(_record(session, prompt, prompt.id, value.time.created, None)):
        raise Conflict(f"prompt {prompt.id} was admitted before with other content; give it another id")
    return Admitted(prompt=value, fresh=False)


def _content(prompt: AdmittedPrompt) -> AdmittedPrompt:
    return replace(prompt, promoted=None, placement=None, extra=None)


def elsewhere(engine: Engine, session: Session) -> str | None:
    """The session's placement, if this process does not offer it."""
    return None if session.placement in (None, engine.host.id) else session.placement


async def _write(engine: Engine, record: SessionRecord, prompt: Prompt, *, runs: bool) -> Admitted:
    now_ms = engine.clock.now_ms()
    revert = await committed(engine.store, record, now_ms)
    session = revert.session
    waiting = await pending(engine, session.id)
    if len(waiting) >= engine.limits.backlog_max:
        raise Refused(
            f"session {session.id} has {len(waiting)} prompts waiting already; let it work or interrupt it"
        )
    workspace = await engine.workspace(session)
    if not prompt.no_reply:
        workspace.check_here(session.id)
    wish = Wish(agent=prompt.agent, model=prompt.model, variant=prompt.variant)
    choice = choosing.choose(wish, session, workspace, last=await _last_model(engine, session))
    id = prompt.id or engine.mint.above("msg", record.top)
    # No process runs the session, and none will for this: promote the prompt at once.
    at_once = prompt.no_reply and not record.busy
    admitted = _record(session.id, prompt, id, now_ms, now_ms if at_once else None)
    if runs and not at_once:
        admitted = replace(admitted, placement=elsewhere(engine, session))
    message = _message(session, prompt, choice, id, now_ms)
    here = elsewhere(engine, session) is None
    read = await attached_files.find_read(session.directory, prompt.parts) if here else {}
    parts = _parts(engine, session, prompt, id, record.top, read=read)
    expect: list[Expectation] = [
        Unchanged(session.id, "prompt", id, 0),
        Unchanged(session.id, "message", id, 0),
        Unchanged(session.id, "session", session.id, record.seq),
    ]
    if prompt.id is None and all(part.id is None for part in prompt.parts):
        expect.append(Rising(session.id))
    if at_once:
        expect.append(Unclaimed(session.id))
    changes = (
        *revert.changes,
        put(_chosen(session, choice, now_ms)),
        put(admitted),
        put(message),
        *map(put, parts),
    )
    await engine.store.commit(Batch(changes, tuple(expect)))
    return Admitted(prompt=admitted, fresh=True)


def _record(session: str, prompt: Prompt, id: str, now_ms: int, promoted: int | None) -> AdmittedPrompt:
    fields: dict[str, Any] = {"session_id": session, "id": MessageID(id)}
    return AdmittedPrompt(
        **fields,
        parts=prompt.parts,
        delivery=prompt.delivery,
        agent=prompt.agent,
        model=prompt.model,
        variant=prompt.variant,
        system=prompt.system,
        tools=prompt.tools,
        format=prompt.format,
        no_reply=prompt.no_reply or None,
        time=Created(created=now_ms),
        promoted=promoted,
    )


def _message(session: Session, prompt: Prompt, choice: Choice, id: str, now_ms: int) -> UserMessage:
    return UserMessage(
        id=MessageID(id),
        session_id=session.id,
        time=Created(created=now_ms),
        agent=choice.agent.name,
        model=choice.model,
        format=prompt.format,
        system=prompt.system,
        tools=prompt.tools,
        no_reply=prompt.no_reply or None,
    )


def _chosen(session: Session, choice: Choice, now_ms: int) -> Session:
    model = SessionModel(
        id=choice.model.model_id,
        provider_id=choice.model.provider_id,
        variant=choice.model.variant or "default",
    )
    time = replace(session.time, updated=max(now_ms, session.time.updated))
    return replace(session, agent=choice.agent.name, model=model, time=time)


def _parts(
    engine: Engine, session: Session, prompt: Prompt, message: str, top: str, *, read: dict[int, FileRead]
) -> list[Part]:
    made: list[Part] = []
    floor = max(top, ids.body(message))
    for number, given in enumerate(prompt.parts):
        id = given.id or PartID(engine.mint.above("prt", floor))
        floor = max(floor, ids.body(id))
        head: dict[str, Any] = {"id": id, "session_id": session.id, "message_id": MessageID(message)}
        match given:
            case TextPartInput():
                made.append(
                    TextPart(
                        **head,
                        text=given.text,
                        synthetic=given.synthetic,
                        ignored=given.ignored,
                        time=given.time,
                        metadata=given.metadata,
                    )
                )
            case FilePartInput():
                made.append(
                    FilePart(
                        **head,
                        mime=given.mime,
                        filename=given.filename,
                        url=given.url,
                        source=given.source,
                        read=read.get(number),
                    )
                )
            case CompactionPartInput():
                made.append(CompactionPart(**head, auto=given.auto))
            case AgentPartInput():
                made.append(AgentPart(**head, name=given.name, source=given.source))
            case SubtaskPartInput():
                made.append(
                    SubtaskPart(
                        **head,
                        prompt=given.prompt,
                        description=given.description,
                        agent=given.agent,
                        model=given.model,
                        command=given.command,
                    )
                )
    return made


async def _last_model(engine: Engine, session: Session) -> ModelRef | None:
    """The model of the latest prompt, for an imported session that names none."""
    if session.model is not None:
        return None
    page = await engine.store.messages(MessageQuery(session.id, limit=20, system=False))
    for message in reversed(page.messages):
        value = message.info.value()
        if isinstance(value, UserMessage):
            return value.model
    return None
