"""Keeps what undo replaces and writes in the shadow repository, under names of its own, before it writes.

A revert names its lists by their ids; the folder of references is named by the same id, so that all of one
revert is dropped at once. Waits for the disk: run it in a thread.
"""

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.errors import InvalidInput
from holdfast.location.shadow import place
from holdfast.location.shadow.objects import blob_id
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
    lists = [encode(list(each)) for each in (kept, writes_of(made.written)) if each]
    named = {blob_id(each) for each in lists}
    changes = blob_id(encode(list(kept))) if kept else None
    writes = blob_id(encode(writes_of(made.written))) if made.written else None
    if named:
        shadow.keep_contents(folder(session, changes or writes or ""), [*made.contents.values(), *lists])
    return Kept(changes, writes)


def folder(session: str, kept: str) -> str:
    """The folder of references of one revert."""
    return f"{place.folder_of(session)}/undo/{kept}"


def changes(shadow: Shadow, id: str | None) -> list[FileChange] | None:
    """A list that was kept; None if it no longer is."""
    if id is None:
        return []
    data = contents.contents(shadow, [id]).get(id)
    try:
        return None if data is None else decode(list[FileChange], data)
    except InvalidInput:
        return None


def drop(shadow: Shadow, session: str, ids: Iterable[str | None]) -> None:
    """Keep nothing any more for these reverts."""
    for id in ids:
        if id is not None:
            shadow.drop(folder(session, id))
