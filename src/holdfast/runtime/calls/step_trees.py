"""The files around the calls of one step: a tree before the first that can write, another after the last.

What must stay true: a step that only reads asks git for nothing; a call that can write begins after its tree
was taken, or after the bound on the wait; no step fails because of a tree. What no tool noted by itself and
differs between the two trees was *observed*: a command did it, or the user meanwhile. In a step whose tools
all note what they write it was the user, and is not recorded as the agent's.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from holdfast.errors import ContextError, HoldfastError, StoreBusy
from holdfast.location.shadow import place
from holdfast.location.shadow.listing import TreeChange
from holdfast.location.shadow.repository import Shadow, Tree
from holdfast.location.shadow.shadows import Worker
from holdfast.runtime.calls import other_sessions
from holdfast.runtime.engine.run import Run
from holdfast.schema.file_change import FileChange
from holdfast.schema.ids import PartID
from holdfast.schema.part import PatchPart, StepStartPart
from holdfast.store.put import put

BEGIN_S: Final = 60.0
END_S: Final = 60.0
INTERRUPTED_S: Final = 5.0
ASKED_S: Final = 0.5
"""After so long a question the user may have changed files."""
OBSERVED_MAX: Final = 10_000
"""So many observed changes are recorded of one step; a checkout of another branch may change more."""


class StepTrees:
    """The trees of one step. `worker` is None where no snapshots are taken.

    A step may be gone on with by another run, after a reply of the user or a crash: then what happened in
    between is nobody's, and a step that was cut off stays one.
    """

    def __init__(self, run: Run, worker: Worker | None, step: StepStartPart | None) -> None:
        self._run = run
        self._worker = None if worker is None or worker.refused is not None else worker
        self._step = step
        self._cut_off = step is not None and step.snapshot is not None and step.left is None
        self._begun: asyncio.Task[Tree | None] | None = None
        self._calls = 0
        self._observes = False
        self._since_ms = 0

    async def begin(self, *, observe: bool = True) -> None:
        """Take the tree before the first call that can write; further calls wait for the same one.

        `observe`: the call may change files without a note of them.
        """
        self._observes = self._observes or observe
        if self._worker is None or self._step is None or self._run.recorder.lost:
            return
        self._calls += 1
        if self._begun is None:
            self._since_ms = self._run.engine.clock.now_ms()
            self._begun = asyncio.create_task(self._take(self._worker, BEGIN_S))
        await self._wait(self._begun)

    async def asked(self, seconds: float) -> None:
        """A call has waited for the user: take the tree again, unless another call may have written."""
        if self._begun is None or self._worker is None or self._calls > 1 or seconds < ASKED_S:
            return
        self._begun = asyncio.create_task(self._take(self._worker, BEGIN_S))
        await self._wait(self._begun)

    async def _wait(self, begun: "asyncio.Task[Tree | None]") -> None:
        tree = await asyncio.shield(begun)
        if tree is not None and self._step is not None and not self._cut_off and self._step.left is None:
            self._step = replace(self._step, snapshot=tree.id)
            self._run.recorder.hold(put(self._step))

    async def end(self, noted: Sequence[FileChange]) -> str | None:
        """Take the tree after the last call, and record what changed between the two: the tree's id.

        `noted` are the changes that the tools of the step noted by themselves.
        """
        if self._begun is None or self._worker is None or self._step is None or self._run.recorder.lost:
            return None
        within_s = INTERRUPTED_S if self._run.interrupted else END_S
        done, _ = await asyncio.wait({self._begun}, timeout=within_s)
        first = self._begun.result() if done else None
        last = None if first is None else await self._take(self._worker, within_s)
        if first is None or last is None:
            return None
        changes = await self._between(first.id, last.id)
        if changes is not None:
            await self._record(self._worker.shadow.worktree, first, last, changes, noted)
        return last.id

    async def _record(
        self,
        top: Path,
        first: Tree,
        last: Tree,
        changes: Sequence[TreeChange],
        noted: Sequence[FileChange],
    ) -> None:
        step = self._step
        assert step is not None
        observed: list[FileChange] = []
        if self._observes:
            observed = observed_changes(top, changes, noted)
            if observed:
                observed = observed_changes(top, changes, [*noted, *await self._others(step.session_id)])
            observed += _too_large(top, first, last)

        def patch(id: PartID) -> PatchPart:
            return PatchPart(
                id=id,
                session_id=step.session_id,
                message_id=step.message_id,
                hash=first.id,
                files=[_named(top, each.path)[0] for each in changes[:OBSERVED_MAX]],
                changes=observed[:OBSERVED_MAX] or None,
            )

        if not self._cut_off:
            self._run.recorder.hold(put(replace(step, left=last.id)))
        if changes or observed:
            self._run.changed_files = True
            await self._run.recorder.add_parts(patch)

    async def _others(self, session: str) -> list[FileChange]:
        try:
            return await other_sessions.changes(self._run.engine.store, session, self._since_ms)
        except HoldfastError as error:
            self._run.engine.warn(f"what other sessions changed meanwhile is not known: {error}")
            return []

    async def _take(self, worker: Worker, within_s: float) -> Tree | None:
        folder = place.folder_of(self._run.recorder.session)
        try:
            return await worker.take(folder, within_s=within_s)
        except (ContextError, StoreBusy, OSError) as error:
            self._run.engine.warn(f"no snapshot of the files was taken: {error}")
            return None

    async def _between(self, first: str, last: str) -> list[TreeChange] | None:
        assert self._worker is not None

        def ask(shadow: Shadow) -> list[TreeChange]:
            return shadow.changes(first, last)

        try:
            return await self._worker.run(ask, within_s=END_S, ends=True)
        except (ContextError, OSError) as error:
            self._run.engine.warn(f"what a step changed is not known: {error}")
            return None


def observed_changes(
    top: Path, changes: Sequence[TreeChange], noted: Iterable[FileChange]
) -> list[FileChange]:
    """What the trees tell of files beyond what tools noted, those of the step and those of other sessions.
    Pure.
    """
    told: dict[str, list[FileChange]] = {}
    for each in noted:
        told.setdefault(each.path, []).append(each)
    found = []
    for change in changes:
        path, is_written = _named(top, change.path)
        seen = FileChange(
            path=path,
            before=None if change.status == "added" else change.old,
            after=None if change.status == "deleted" else change.new,
            before_mode=int(change.old_mode, 8) or None,
            after_mode=int(change.new_mode, 8) or None,
            observed=True,
            covered=is_written,
        )
        if not _is_told(seen, told.get(path, [])):
            found.append(seen)
    return found


def _is_told(seen: FileChange, noted: Sequence[FileChange]) -> bool:
    """Whether changes that were noted lead from the one content to the other, in whatever order."""
    reached: set[str | None] = set()
    left = list(noted)
    while nexts := [each for each in left if each.before == seen.before or each.before in reached]:
        reached |= {each.after for each in nexts}
        left = [each for each in left if each not in nexts]
    return seen.after in reached


def _too_large(top: Path, first: Tree, last: Tree) -> list[FileChange]:
    """New files that are too large to be kept in a tree."""
    new = sorted(set(last.left_out) - set(first.left_out))
    return [FileChange(path=_named(top, path)[0], observed=True, covered=False) for path in new]


def _named(top: Path, path: str) -> tuple[str, bool]:
    """A file by its absolute path, and whether a record can hold that: a name may be any bytes, and JSON has
    no place for those that are no UTF-8. Such a file is named as well as can be, and never put back.
    """
    whole = str(top / path)
    named = os.fsencode(whole).decode("utf-8", "replace")
    return named, named == whole
