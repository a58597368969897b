"""Writes what the work changed in files, beside the work: per prompt (`summary.diffs`) and for the whole
session (its list of diffs, and the numbers of its summary).

What must stay true: it never delays or fails a turn; a prompt whose answers changed files, and that a crash
left without its diffs, gets them the next time.
"""

from collections.abc import Sequence
from typing import Final

import anyio
from msgspec.structs import replace

from holdfast.errors import HoldfastError
from holdfast.location.shadow import file_diffs
from holdfast.location.shadow.change_diffs import change_diffs
from holdfast.location.shadow.file_diffs import Difference
from holdfast.location.shadow.repository import Shadow
from holdfast.location.shadow.shadows import Worker
from holdfast.log import event
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.history import file_changes
from holdfast.schema.file_change import FileChange
from holdfast.schema.message import AssistantMessage, UserMessage, UserSummary
from holdfast.schema.session import Session, SessionSummary
from holdfast.schema.session_lists import FileDiff
from holdfast.schema.wire import encode
from holdfast.store.batch import Batch, Unchanged
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put, put_list
from holdfast.store.query import MessageQuery
from holdfast.store.record import StoredMessage

WAIT_S: Final = 10.0
PROMPT_CHARS_MAX: Final = 200_000
"""All patches of one prompt: they stand in its message, and in every event about it."""
SESSION_CHARS_MAX: Final = 1_000_000
KNOWN_MAX: Final = 1_000
_TELLING: Final = (f'"{file_changes.FILES}"'.encode(), b'"patch"')


class Due:
    """Which sessions need it after a run: those whose files were changed, or a revert of which was committed,
    and each one that this process runs for the first time, since a crash may have left it without.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def after(self, session: str, *, changed: bool, reverted_ms: int) -> bool:
        """Whether the diffs of a session may be out of date; `reverted_ms`: when its last revert was
        committed.
        """
        is_new = self._known.get(session) != reverted_ms
        self._known[session] = reverted_ms
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        return changed or is_new

    def forget(self, session: str) -> None:
        """The diffs of a session could not be written: they are due after its next run."""
        self._known.pop(session, None)


async def write(engine: Engine, session: str) -> bool:
    """Bring the diffs of a session up to date; False if that failed."""
    try:
        # The process may be about to end: this is worth a moment.
        with anyio.CancelScope(shield=True), anyio.move_on_after(WAIT_S) as bound:
            await _write(engine, session)
    except (HoldfastError, OSError) as error:
        event.warn("runtime", "diffs.failed", session=session, error=type(error).__name__)
        return False
    return not bound.cancelled_caught


async def _write(engine: Engine, id: str) -> None:
    record = await engine.store.session(id)
    if record is None:
        return
    session = record.value()
    worker = engine.shadow(session, await engine.workspace(session))
    if worker is None:
        return
    page = await engine.store.messages(MessageQuery(id))
    history = sorted(page.messages, key=lambda each: each.info.place)
    turns = by_prompt(history)
    prompts = {each.info.id: each for each in history if each.info.id in turns}
    newest = list(prompts)[-1:]
    for prompt, stored in prompts.items():
        info = stored.info.value()
        if isinstance(info, UserMessage) and (prompt in newest or not (info.summary and info.summary.diffs)):
            found = await _diffs(worker, turns[prompt], PROMPT_CHARS_MAX)
            await _put_prompt(engine, stored, found)
    every = [change for changes in turns.values() for change in changes]
    if every or (session.summary is not None and session.summary.files):
        await _put_session(engine, session, await _diffs(worker, every, SESSION_CHARS_MAX))
        await worker.check()


def by_prompt(history: Sequence[StoredMessage]) -> dict[str, list[FileChange]]:
    """What the answers to each prompt changed, by the id of the prompt, the oldest first. Records that tell
    nothing of files are not decoded.
    """
    turns: dict[str, list[FileChange]] = {}
    for message in history:
        telling = [part for part in message.parts if any(each in part.data for each in _TELLING)]
        changes = file_changes.of_parts(part.value() for part in telling)
        info = message.info.value() if changes else None
        if isinstance(info, AssistantMessage):
            turns.setdefault(info.parent_id, []).extend(changes)
    return turns


async def _diffs(worker: Worker, changes: Sequence[FileChange], chars_max: int) -> list[FileDiff]:
    def ask(shadow: Shadow) -> list[Difference]:
        return change_diffs(shadow, changes, context=file_diffs.WHOLE, chars_max=chars_max)

    found = await worker.run(ask, within_s=WAIT_S, ends=True)
    return [
        FileDiff(
            file=each.path,
            patch="" if each.is_binary else each.patch,
            additions=each.additions,
            deletions=each.deletions,
            status=each.status,
        )
        for each in found
    ]


async def _put_prompt(engine: Engine, stored: StoredMessage, diffs: list[FileDiff]) -> None:
    async def once() -> None:
        record = await engine.store.get(stored.info.session, "message", stored.info.id)
        info = None if record is None else record.value()
        if record is None or not isinstance(info, UserMessage):
            return
        made = replace(info, summary=replace(info.summary or UserSummary(diffs=[]), diffs=diffs))
        if made != info:
            unchanged = Unchanged(info.session_id, "message", info.id, record.seq)
            await engine.store.commit(Batch((put(made),), (unchanged,)))

    await on_conflict(once)


async def _put_session(engine: Engine, session: Session, diffs: list[FileDiff]) -> None:
    summary = SessionSummary(
        additions=sum(each.additions for each in diffs),
        deletions=sum(each.deletions for each in diffs),
        files=len(diffs),
    )

    async def once() -> None:
        record = await engine.store.session(session.id)
        known = await engine.store.get(session.id, "diff", session.id)
        if record is None:
            return
        changes = []
        if known is None or known.data != encode(diffs):
            changes.append(put_list(session.id, "diff", diffs))
        if record.value().summary != summary:
            changes.append(put(replace(record.value(), summary=summary)))
        if changes:
            unchanged = Unchanged(session.id, "session", session.id, record.seq)
            await engine.store.commit(Batch(tuple(changes), (unchanged,)))

    await on_conflict(once)
