"""Changes the content of a session: messages, parts, todos, diffs. Refused while the session runs.

The session's totals are the sum over its step-finish parts: a change that adds, edits or removes one of them
changes the totals in the same commit.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from holdfast.errors import Conflict, InvalidInput, NotFound, Refused
from holdfast.runtime.budget.totals import with_usage
from holdfast.runtime.epoch import prefix_change
from holdfast.schema import ids, tool_state
from holdfast.schema.epoch import ContextEpoch, SentRequest
from holdfast.schema.ids import MessageID
from holdfast.schema.message import Message, MessageWithParts
from holdfast.schema.part import CompactionPart, Part, StepFinishPart, StepStartPart, ToolPart
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.schema.stored import Kind, Mark
from holdfast.schema.wire import checked
from holdfast.sessions.access import StoreAccess, put_session, require_idle, require_session
from holdfast.sessions.read import stored_message
from holdfast.store.batch import Batch, Change, Expectation, Put, Remove, Unchanged, Unclaimed
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put, put_list
from holdfast.store.query import MessageQuery
from holdfast.store.record import SessionRecord, StoredMessage, StoredRecord

_LOOK_MESSAGES: Final = 50
"""How many messages at a time are looked through, from the end, for one that is edited."""

MessageEditor = Callable[[Message], Message]
PartEditor = Callable[[Part], Part]


async def add_message(access: StoreAccess, message: Message) -> None:
    """Write a new message. It comes after everything that was sent, so it changes no prefix."""
    message = checked(message, "the message")
    ids.check("msg", message.id)
    await require_idle(access, message.session_id)
    new = Unchanged(message.session_id, "message", message.id, 0)
    try:
        await access.store.commit(Batch((put(message),), (new, Unclaimed(message.session_id))))
    except Conflict:
        await _refuse_known(access, message.session_id, "message", message.id)
        raise


async def add_part(access: StoreAccess, part: Part) -> None:
    """Write a new part."""
    part = checked(part, "the part")
    ids.check("prt", part.id)

    async def once() -> None:
        session = await require_idle(access, part.session_id)
        await _refuse_known(access, part.session_id, "part", part.id)
        edited = await _note_edit(access, session.id, part.message_id)
        added = [part] if isinstance(part, StepFinishPart) else []
        new = Unchanged(part.session_id, "part", part.id, 0)
        await _commit(access, session, [put(part), *edited], [new], added=added)

    await on_conflict(once)


async def _refuse_known(access: StoreAccess, session: str, kind: Literal["message", "part"], id: str) -> None:
    if await access.store.get(session, kind, id) is not None:
        raise Refused(f"{kind} {id} exists already; change it with update_{kind}")


async def update_message(access: StoreAccess, session: str, id: str, editor: MessageEditor) -> Message:
    """Replace a message with the value that the editor returns.

    The editor is called again if another writer changed the message meanwhile. It cannot change the message's
    id, session or role.
    """

    async def once() -> Message:
        await require_idle(access, session)
        before, seq = await _read_record(access, session, "message", id)
        after = editor(before)
        if type(after) is not type(before) or (after.id, after.session_id) != (before.id, before.session_id):
            raise InvalidInput(f"message {id} cannot change its id, its session or its role")
        after = checked(after, f"message {id}")
        if after != before:
            edited = await _note_edit(access, session, id)
            expect = (Unchanged(session, "message", id, seq), Unclaimed(session))
            await access.store.commit(Batch((put(after), *edited), expect))
        return after

    return await on_conflict(once)


async def update_part(access: StoreAccess, session: str, id: str, editor: PartEditor) -> Part:
    """Replace a part with the value that the editor returns.

    The editor is called again if another writer changed the part meanwhile. It cannot change the part's ids
    or type, and a tool call may only move to a state that can follow its own.
    """

    async def once() -> Part:
        record = await require_idle(access, session)
        before, seq = await _read_record(access, session, "part", id)
        after = _advanced(before, editor(before))
        if after != before:
            added = [after] if isinstance(after, StepFinishPart) else []
            gone = [before] if isinstance(before, StepFinishPart) else []
            edited = await _note_edit(access, session, before.message_id)
            expect = [Unchanged(session, "part", id, seq)]
            await _commit(access, record, [put(after), *edited], expect, added=added, gone=gone)
        return after

    return await on_conflict(once)


async def _read_record(
    access: StoreAccess, session: str, kind: Literal["message", "part"], id: str
) -> tuple[Any, int]:
    record = await access.store.get(session, kind, id)
    if record is None:
        raise NotFound(f"{kind} {id[:60]} does not exist in session {session}")
    return record.value(), record.seq


def _advanced(before: Part, after: Part) -> Part:
    if type(after) is not type(before):
        raise InvalidInput(f"part {before.id} is a {type(before).__name__}; its type cannot change")
    after = checked(after, f"part {before.id}")
    if isinstance(before, ToolPart) and isinstance(after, ToolPart):
        try:
            tool_state.advance(before.state, after.state)
        except Conflict as error:  # Not a conflict with another writer: a retry would not help.
            raise InvalidInput(str(error)) from error
    ids_before = before.id, before.session_id, before.message_id
    if (after.id, after.session_id, after.message_id) != ids_before:
        raise InvalidInput(f"part {before.id} cannot change its id, its message or its session")
    if isinstance(before, StepStartPart) and isinstance(after, StepStartPart):
        return replace(after, prefix=before.prefix)  # The record of law 7 is not the caller's to change.
    return after


async def remove_message(access: StoreAccess, session: str, id: str) -> None:
    """Remove a message with its parts."""

    async def once() -> None:
        record = await require_idle(access, session)
        message = await stored_message(access, session, id)
        gone = _steps(message)
        expect = [Unchanged(session, "message", id, message.info.seq)]
        # A prompt that still waits is removed with its message: there is nothing left to promote.
        removals = [Remove(session, "message", id), Remove(session, "prompt", id)]
        summaries, tails = await _compactions(access, session, id)
        gone += [step for summary in summaries for step in _steps(summary)]
        removals += [Remove(session, "message", summary.info.id) for summary in summaries]
        edited = await _note_edit(access, session, id, [each.id for each in removals])
        await _commit(access, record, [*removals, *tails, *edited], expect, gone=gone)

    await on_conflict(once)


async def _compactions(access: StoreAccess, session: str, id: str) -> tuple[list[StoredMessage], list[Put]]:
    """What a message's removal changes in compactions: the summaries that it requested, which are removed
    with it, and the tails that begin with it, which begin with the next message instead.
    """
    page = await access.store.messages(MessageQuery(session, since_compaction=True))
    ordered = sorted(page.messages, key=lambda each: each.info.place)
    names = [each.info.id for each in ordered]
    summaries = [
        each for each in ordered if each.info.mark is Mark.SUMMARY and each.info.value().parent_id == id
    ]
    tails = []
    for message in ordered:
        for part in message.parts:
            value = part.value() if b'"tail_start_id"' in part.data else None
            if isinstance(value, CompactionPart) and value.tail_start_id == id and id in names:
                after = names[names.index(id) + 1]
                tail = None if after == message.info.id else MessageID(after)
                tails.append(put(replace(value, tail_start_id=tail)))
    return summaries, tails


def _steps(message: StoredMessage) -> list[StepFinishPart]:
    values = [part.value() for part in message.parts if b'"step-finish"' in part.data]
    return [value for value in values if isinstance(value, StepFinishPart)]


async def remove_part(access: StoreAccess, session: str, id: str) -> None:
    """Remove one part."""

    async def once() -> None:
        record = await require_idle(access, session)
        part = await access.store.get(session, "part", id)
        if part is None:
            raise NotFound(f"part {id[:60]} does not exist in session {session}")
        value = part.value()
        gone = [value] if isinstance(value, StepFinishPart) else []
        expect = [Unchanged(session, "part", id, part.seq)]
        edited = await _note_edit(access, session, value.message_id, [id])
        await _commit(access, record, [Remove(session, "part", id), *edited], expect, gone=gone)

    await on_conflict(once)


async def _commit(
    access: StoreAccess,
    record: SessionRecord,
    changes: Sequence[Change],
    expect: Sequence[Expectation],
    *,
    added: Sequence[StepFinishPart] = (),
    gone: Sequence[StepFinishPart] = (),
) -> None:
    every: list[Change] = list(changes)
    expectations: list[Expectation] = [*expect, Unclaimed(record.id)]
    if added or gone:
        every.append(put_session(with_usage(record.value(), added=added, gone=gone)))
        expectations.append(Unchanged(record.id, "session", record.id, record.seq))
    await access.store.commit(Batch(tuple(every), tuple(expectations)))


async def _note_edit(
    access: StoreAccess, session: str, message: str, gone: Collection[str] = ()
) -> list[Put]:
    """Record an edit of `message` in each epoch that sent it to the model.

    The next request of such an epoch begins differently, and this is the recorded reason; so does that of a
    fork from before it. `gone`: ids of the messages and parts that are removed.
    """
    epochs = await access.store.select("epoch", session=session)
    if not epochs or not (gone or await _was_sent(access, session, message, epochs)):
        return []
    # The whole history: an epoch may have sent messages that a compaction has since taken out of the model
    # view.
    history = (await access.store.messages(MessageQuery(session, reverted=True))).messages
    place = next((each.info.place for each in history if each.info.id == message), None)
    requests = _requests(history, gone)
    asked = _steps_of(history) if gone else []
    puts = []
    for record in epochs:
        value = record.value()
        sent = [at for epoch, at in requests if epoch == value.id]
        puts += [put(step) for step in prefix_change.named_whole(asked, value.id, gone)]
        shown = place is not None and _was_shown(value, sent, place)
        if record.mark is Mark.OPEN and gone:
            value = replace(value, sent=_last_sent(history, asked, value))
        elif not shown:
            continue
        if shown and record.mark is Mark.OPEN:
            reasons = (*(each for each in value.reasons if each != prefix_change.EDIT), prefix_change.EDIT)
            value = replace(value, reasons=reasons)
        if shown:
            value = replace(value, edited_at=len(sent) + 1)
        puts.append(put(value))
    return puts


async def _was_sent(access: StoreAccess, session: str, message: str, epochs: Sequence[StoredRecord]) -> bool:
    """Whether a request of any epoch had the message in it.

    Looks from the end, and no further than the message: whoever writes a conversation part by part pays for
    the end of it each time, not for all of it.
    """
    behind: list[StoredMessage] = []
    before: str | None = None
    while True:
        page = await access.store.messages(
            MessageQuery(session, limit=_LOOK_MESSAGES, before=before, reverted=True)
        )
        behind += page.messages
        place = next((each.info.place for each in page.messages if each.info.id == message), None)
        if place is not None:
            sent = _requests(behind, ())
            values = [each.value() for each in epochs]
            return any(_was_shown(each, [at for id, at in sent if id == each.id], place) for each in values)
        if (before := page.older) is None:
            return False  # A new message was sent nowhere.


def _was_shown(epoch: ContextEpoch, sent: Sequence[int], place: int) -> bool:
    """Whether a request of the epoch had the message at this place in it.

    It had if its answer (`sent` holds the places of those that are left) comes after the message. The last
    answer itself has not been sent yet.
    """
    removed = epoch.sent is not None and (epoch.sent.at is None or epoch.sent.at > place)
    return removed or any(at > place for at in sent)


def _last_sent(
    history: Sequence[StoredMessage], asked: Sequence[MessageWithParts], epoch: ContextEpoch
) -> SentRequest | None:
    """The last request of an epoch, stored in the epoch when the step that names it may be removed."""
    last = prefix_change.before(asked, epoch)
    if last is None or last is epoch.sent:
        return last
    return replace(last, at=max(at for id, at in _requests(history, ()) if id == epoch.id))


def _steps_of(history: Sequence[StoredMessage]) -> list[MessageWithParts]:
    # Imported here: it loads the context sources, which takes time.
    from holdfast.runtime.epoch import restored_epoch

    return restored_epoch.steps(history)


def _requests(history: Sequence[StoredMessage], gone: Collection[str]) -> list[tuple[str, int]]:
    """The epoch of each request that still has its step, and the place of its answer."""
    starts = [
        (message.info.place, part.value())
        for message in history
        if message.info.id not in gone
        for part in message.parts
        if b'"step-start"' in part.data and part.id not in gone
    ]
    return [
        (start.prefix.epoch, place)
        for place, start in starts
        if isinstance(start, StepStartPart) and start.prefix is not None
    ]


async def set_todos(access: StoreAccess, session: str, todos: Sequence[Todo]) -> None:
    """Replace the todo list."""
    await _put_list(access, session, "todo", list(todos))


async def set_diffs(access: StoreAccess, session: str, diffs: Sequence[FileDiff]) -> None:
    """Replace the session's file changes."""
    await _put_list(access, session, "diff", list(diffs))


async def _put_list(
    access: StoreAccess, session: str, kind: Kind, items: list[Todo] | list[FileDiff]
) -> None:
    await require_session(access, session)
    await access.store.commit(Batch((put_list(session, kind, items),)))
