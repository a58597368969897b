"""Snapshots of a session's files, and what differs between them, or was changed by the agent."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from holdfast.errors import InvalidInput, NotFound, Refused
from holdfast.location.shadow import file_diffs, place
from holdfast.location.shadow.change_diffs import change_diffs, name_of
from holdfast.location.shadow.file_diffs import Difference, differences
from holdfast.location.shadow.repository import Shadow
from holdfast.location.shadow.shadows import Worker
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.side_calls import session_diffs
from holdfast.schema.file_change import FileChange
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.part import PatchPart, SnapshotPart, StepFinishPart, StepStartPart
from holdfast.schema.session import SessionSummary
from holdfast.schema.session_lists import FileDiff
from holdfast.schema.snapshot import Snapshot
from holdfast.sessions import read
from holdfast.sessions.access import StoreAccess, require_session
from holdfast.store.batch import Batch
from holdfast.store.put import put
from holdfast.store.query import MessageQuery
from holdfast.store.record import StoredMessage

T = TypeVar("T")

WITHIN_S: Final = 120.0
CHARS_MAX: Final = 20_000_000
_TREES: Final = (b'"snapshot"', b'"patch"')


async def take(access: StoreAccess, engine: Engine, session: str, message: str | None) -> Snapshot:
    """Take the files of a session as they are now, recorded with a message; without one, with the last."""
    worker = await _worker(access, engine, session)
    if worker.refused is not None:
        raise Refused(worker.refused)
    page = await access.store.messages(MessageQuery(session, limit=1, only=message, system=False))
    if not page.messages:
        raise NotFound(
            f"message {message[:60]} does not exist in session {session}"
            if message is not None
            else f"session {session} has no message yet that a snapshot could belong to"
        )
    stored = page.messages[0]
    folder = place.folder_of(session)
    tree = await worker.take(folder, within_s=WITHIN_S)
    part = SnapshotPart(
        id=PartID(access.mint.ascending("prt")),
        session_id=SessionID(session),
        message_id=MessageID(stored.info.id),
        snapshot=tree.id,
    )
    # The model is shown nothing of it, so it changes no prefix.
    await access.store.commit(Batch((put(part),)))
    return Snapshot(id=tree.id, message_id=part.message_id, time=access.clock.now_ms())


async def list_(access: StoreAccess, session: str) -> list[Snapshot]:
    """The snapshots of a session, the oldest first."""
    await require_session(access, session)
    page = await access.store.messages(MessageQuery(session))
    ordered = sorted(page.messages, key=lambda each: each.info.place)
    return in_order(_telling(each) for each in ordered)


def _telling(message: StoredMessage) -> MessageWithParts:
    """The message with the parts that tell of trees."""
    telling = [part.value() for part in message.parts if any(each in part.data for each in _TREES)]
    return MessageWithParts(message.info.value(), tuple(telling))


def in_order(messages: Iterable[MessageWithParts]) -> list[Snapshot]:
    """The snapshots that some messages tell of, each once where the files stayed as they were."""
    found: list[Snapshot] = []
    for message in messages:
        for each in _snapshots(message):
            if not found or found[-1].id != each.id:
                found.append(each)
    return found


def _snapshots(message: MessageWithParts) -> Iterator[Snapshot]:
    info = message.info
    files = tuple(path for part in message.parts if isinstance(part, PatchPart) for path in part.files)
    end_ms = (info.time.completed if isinstance(info, AssistantMessage) else None) or info.time.created
    for part in message.parts:
        if isinstance(part, StepStartPart) and part.snapshot is not None:
            yield Snapshot(id=part.snapshot, message_id=info.id, time=info.time.created)
            if part.left is not None:
                yield Snapshot(id=part.left, message_id=info.id, time=end_ms, files=files)
        elif isinstance(part, StepFinishPart | SnapshotPart) and part.snapshot is not None:
            yield Snapshot(id=part.snapshot, message_id=info.id, time=end_ms)


async def diff(
    access: StoreAccess,
    engine: Engine,
    session: str,
    *,
    start: str | None = None,
    end: str | None = None,
    message: str | None = None,
) -> SessionSummary:
    """What differs between two snapshots, or from one to the files as they are now; without any, what the
    agent changed, in the whole session or for the prompt `message`.
    """
    worker = await _worker(access, engine, session)
    if start is None and end is None:
        changes = await _changes(access, session, message)
        return await _told(
            worker,
            lambda shadow: change_diffs(
                shadow, changes, context=file_diffs.CONTEXT, renames=True, chars_max=CHARS_MAX
            ),
            [name_of(each.path, worker.shadow.worktree) for each in changes if not each.covered],
        )
    if start is None or message is not None:
        raise InvalidInput("a diff of snapshots needs a start, and names no message")

    def ask(shadow: Shadow) -> list[Difference]:
        last = end or shadow.take().id
        for tree in (start, last):
            if not tree.isalnum() or not shadow.holds(tree):
                raise NotFound(
                    f"snapshot {tree[:60]} is not kept (any more); `snapshots` lists those that are"
                )
        return differences(shadow, start, last, renames=True, chars_max=CHARS_MAX)

    return await _told(worker, ask)


async def _changes(access: StoreAccess, session: str, message: str | None) -> list[FileChange]:
    if message is not None:
        asked = (await read.message(access, session, message)).info
        message = asked.parent_id if isinstance(asked, AssistantMessage) else asked.id
    page = await access.store.messages(MessageQuery(session))
    turns = session_diffs.by_prompt(sorted(page.messages, key=lambda each: each.info.place))
    chosen = turns.values() if message is None else [turns.get(message, [])]
    return [change for changes in chosen for change in changes]


async def _told(
    worker: Worker, ask: Callable[[Shadow], list[Difference]], uncovered: Iterable[str] = ()
) -> SessionSummary:
    found = await worker.run(ask, within_s=WITHIN_S)
    diffs = [
        FileDiff(
            file=each.path,
            patch=each.patch,
            additions=each.additions,
            deletions=each.deletions,
            status=each.status,
        )
        for each in found
    ]
    # Of these nothing was kept: that they were changed is all that is known.
    diffs += [
        FileDiff(file=path, patch="", additions=0, deletions=0, status="modified")
        for path in dict.fromkeys(uncovered)
    ]
    return SessionSummary(
        additions=sum(each.additions for each in found),
        deletions=sum(each.deletions for each in found),
        files=len(diffs),
        diffs=diffs,
    )


async def _worker(access: StoreAccess, engine: Engine, session: str) -> Worker:
    record = (await require_session(access, session)).value()
    workspace = await engine.workspace(record)
    workspace.check_here(session)
    worker = engine.shadow(record, workspace)
    if worker is None:
        raise Refused(f"no snapshots are taken in {record.directory}: the settings say `snapshot: false`")
    return worker
