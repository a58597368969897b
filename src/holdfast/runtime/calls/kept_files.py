"""Keeps what files held before a call changes them, and notes it in the call's record."""

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.errors import ContextError, StoreBusy
from holdfast.location.shadow import place
from holdfast.location.shadow.repository import Shadow
from holdfast.location.shadow.shadows import Worker
from holdfast.runtime.history.file_changes import FILES
from holdfast.schema.file_change import FileChange
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.file_edit import FileEdit

BYTES_MAX: Final = 64 << 20
"""A file that is larger is not kept."""
WITHIN_S: Final = 30.0


class KeptFiles:
    """The changes of one call. `note` puts them into its record, durably."""

    def __init__(
        self,
        worker: Worker | None,
        session: str,
        note: Callable[[JsonMap], Awaitable[None]],
        warn: Callable[[str], None],
    ) -> None:
        self._worker = worker
        self._folder = place.folder_of(session)
        self._note = note
        self._warn = warn
        self._changes: dict[str, FileChange] = {}

    @property
    def changes(self) -> list[FileChange]:
        """What the call has changed, or is about to."""
        return list(self._changes.values())

    async def keep(self, edits: Sequence[FileEdit]) -> None:
        """Keep the contents of some files, then note the changes."""
        worker = self._worker
        if worker is None or not edits:
            return
        try:
            found = await worker.run(
                lambda shadow: [_kept(shadow, self._folder, each) for each in edits], within_s=WITHIN_S
            )
        except (ContextError, StoreBusy, OSError) as error:
            self._warn(f"a change of files cannot be undone, since what they hold could not be kept: {error}")
            found = [_uncovered(each) for each in edits]
        for change in found:
            self._join(change)
        await self._note({FILES: [msgspec.to_builtins(each) for each in self._changes.values()]})

    def _join(self, change: FileChange) -> None:
        """What the file held before the call began is what counts, and what it holds in the end."""
        first = self._changes.pop(change.path, change)
        joined = replace(
            change,
            before=first.before,
            before_mode=first.before_mode,
            covered=first.covered and change.covered,
        )
        if joined.before != joined.after or not joined.covered:
            self._changes[change.path] = joined


def _kept(shadow: Shadow, folder: str, edit: FileEdit) -> FileChange:
    contents = [data for data in (edit.before, edit.after) if data is not None]
    if any(len(data) > BYTES_MAX for data in contents):
        return _uncovered(edit)
    ids = iter(shadow.keep_contents(folder, contents))
    mode = _mode(edit)
    return FileChange(
        path=str(edit.path),
        before=None if edit.before is None else next(ids),
        after=None if edit.after is None else next(ids),
        before_mode=mode,
        after_mode=mode if edit.after is not None else None,
    )


def _mode(edit: FileEdit) -> int | None:
    if edit.before is None:
        return None
    try:
        return os.lstat(edit.path).st_mode
    except OSError:
        return None  # It is gone: the change will find that, too.


def _uncovered(edit: FileEdit) -> FileChange:
    return FileChange(path=str(edit.path), covered=edit.before == edit.after)
