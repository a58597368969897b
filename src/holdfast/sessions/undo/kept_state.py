"""Keeps what undo replaces and writes in the shadow repository, before it writes.

While a revert is staged, nothing of it is pruned. Once it is committed, it is kept like everything else of
its session, within the budget. Waits for the disk: run it in a thread.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.errors import ContextError, InvalidInput
from holdfast.location.shadow import place
from holdfast.location.shadow.objects import content_id
from holdfast.location.shadow.repository import Shadow
from holdfast.schema.file_change import FileChange
from holdfast.schema.wire import decode, encode
from holdfast.sessions.undo import contents
from holdfast.sessions.undo.draft import Draft, writes_of


class Kept(msgspec.Struct, frozen=True):
    """The ids of the lists of a revert; None where a list is empty."""

    changes: str | None
    writes: str | None


def keep(shadow: Shadow, session: str, made: Draft, kept: Sequence[FileChange]) -> Kept:
    """Keep a draft: its contents, what `unrevert` needs (`kept`), and what is to be written."""
    lists = [encode(list(each)) if each else None for each in (kept, writes_of(made.written))]
    data = [*made.contents.values(), *(each for each in lists if each is not None)]
    keep_contents(shadow, place.staged_of(session), data)
    return Kept(*(None if each is None else content_id(each) for each in lists))


def keep_contents(shadow: Shadow, folder: str, data: Sequence[bytes]) -> None:
    """Keep contents before anything is written; `ContextError` where they cannot be kept."""
    if not data:
        return
    try:
        shadow.keep_contents(folder, data)
    except (OSError, ContextError) as error:
        why = str(error) if isinstance(error, ContextError) else error.strerror or type(error).__name__
        raise ContextError(f"nothing was changed: what the files hold could not be kept: {why}") from error


def changes(shadow: Shadow, id: str | None) -> list[FileChange] | None:
    """A list that was kept; None if it no longer is."""
    if id is None:
        return []
    data = contents.contents(shadow, [id]).get(id)
    try:
        return None if data is None else decode(list[FileChange], data)
    except InvalidInput:
        return None


def staged(shadow: Shadow) -> list[str]:
    """The sessions for which something is kept that is not pruned."""
    return _names(_folder(shadow, "any").parent)


def release(shadow: Shadow, session: str) -> None:
    """Keep what a committed revert of a session replaced, but only within the budget from now on."""
    ids = [name for name in _names(_folder(shadow, session)) if contents.is_id(name)]
    shadow.keep(place.folder_of(session), ids)
    shadow.drop(place.staged_of(session))


def _folder(shadow: Shadow, session: str) -> Path:
    return shadow.git_dir / "refs" / place.staged_of(session)


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
