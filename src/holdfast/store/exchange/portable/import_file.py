"""Takes the sessions of a file into a store: all of them in one commit, or none.

Our own file brings sessions as they were. One that is already there and holds the same is left alone;
one that differs is a conflict, unless the caller wants a copy with ids of its own. OpenCode's file is taken
as OpenCode takes it: what is missing is added, what is there stays, and where it differs that is counted.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from holdfast.errors import Conflict
from holdfast.schema.ids import Mint, ProjectID
from holdfast.schema.session import Session
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Change, Expectation, Put, Unchanged, Unclaimed
from holdfast.store.exchange.portable import content as contents
from holdfast.store.exchange.portable.content import Content
from holdfast.store.exchange.portable.decode import Reading, content_of
from holdfast.store.exchange.portable.envelope import FILE_BYTES_MAX, Data, OpenCodeFile, located, parse, read
from holdfast.store.exchange.portable.names import collect, in_order
from holdfast.store.exchange.portable.new_ids import Renaming
from holdfast.store.exchange.portable.report import ImportReport, Tally
from holdfast.store.put import put

_WHERE = ("directory", "path", "projectID", "placement", "time", "version", "slug")
"""What may differ in a session without its content being another."""


class Into(msgspec.Struct, frozen=True):
    """Where the sessions shall live here. What is None stays as the file has it."""

    project: str | None = None
    directory: str | None = None
    path: str | None = None
    placement: str | None = None


class _Parsed(msgspec.Struct, frozen=True):
    name: str
    contents: list[Content]
    foreign: bool


async def import_portable(
    store: Store,
    data: Data,
    *,
    mint: Mint,
    into: Into | None = None,
    into_homeless: Into | None = None,
    as_new: bool = False,
    file_bytes_max: int = FILE_BYTES_MAX,
) -> ImportReport:
    """Import a file in either format. `InvalidInput` or `Conflict`, and nothing written, if it cannot be.

    `into_homeless` is for new sessions of OpenCode's file whose directory is not on this machine.
    """
    parsed = await anyio.to_thread.run_sync(_parsed, data, mint if as_new else None, file_bytes_max)
    tally = Tally(parsed.name)
    batch = _Writing(store, tally)
    for content in parsed.contents:
        tally.session(content.session.id)
        is_new = await store.session(content.session.id) is None
        placed = _placed(content.session, into)
        if parsed.foreign and is_new and not await anyio.Path(placed.directory).is_dir():
            placed = _placed(placed, into_homeless)
        taken = await batch.with_parent(Content(placed, content.changes))
        await batch.take(taken, foreign=parsed.foreign, into=into)
    await batch.commit()
    return tally.report()


def _parsed(data: Data, mint: Mint | None, file_bytes_max: int) -> _Parsed:
    """Everything that can be wrong with a file is found here, before the store is asked anything."""
    content, name = read(data, file_bytes_max)
    file = parse(content, name)
    foreign = isinstance(file, OpenCodeFile)
    entries = located(file, name)
    names = collect(entries, mint)
    made: list[Content] = []
    for number in in_order(names):
        own = names.entries[number]
        renaming = Renaming(names.sessions, own.messages, own.parts, mint)
        made.append(content_of(entries[number], Reading(own, renaming, foreign)))
    return _Parsed(name, made, foreign)


def _placed(session: Session, into: Into | None) -> Session:
    if into is None:
        return session
    return replace(
        session,
        project_id=session.project_id if into.project is None else ProjectID(into.project),
        directory=session.directory if into.directory is None else into.directory,
        path=session.path if into.path is None else into.path,
        placement=session.placement if into.placement is None else into.placement,
    )


class _Writing:
    """The one batch in the making."""

    def __init__(self, store: Store, tally: Tally) -> None:
        self._store = store
        self._tally = tally
        self._changes: list[Change] = []
        self._expect: list[Expectation] = []
        self._coming: set[str] = set()
        self._differ: list[str] = []

    async def with_parent(self, content: Content) -> Content:
        """The content, its parent in the metadata if neither the store nor the file has that session."""
        parent = content.session.parent_id
        if parent is None or parent in self._coming or await self._store.session(parent) is not None:
            return content
        self._tally.note(
            f"session {content.session.id}: its parent {parent} is not here; "
            "it stands in metadata.parent and the session has none"
        )
        return Content(without_parent(content.session), content.changes)

    async def take(self, content: Content, *, foreign: bool, into: Into | None) -> None:
        """Add what a session needs to the batch."""
        id = content.session.id
        if await self._store.session(id) is None:
            self._expect.append(Unchanged(id, "session", id, 0))
            self._add([content.head(), *content.changes])
            self._coming.add(id)
            return
        here = await contents.gather(self._store, id)
        if foreign:
            await self._merge(content, here, into)
        elif contents.same(here, content):
            self._unchanged([content.head(), *content.changes])
        else:
            self._differ.append(id)

    async def commit(self) -> None:
        """Write, or refuse the whole file when a session in it is another than the one we have."""
        if self._differ:
            more = f" (and {len(self._differ) - 1} more)" if len(self._differ) > 1 else ""
            raise Conflict(
                f"session {self._differ[0]}{more} is already here with other content; nothing was imported: "
                "import it as new, or delete the one that is here"
            )
        if self._changes:
            await self._store.commit(Batch(tuple(self._changes), tuple(self._expect)))

    async def _merge(self, content: Content, here: Content, into: Into | None) -> None:
        """Insert or ignore, as OpenCode does: what is missing is added. Where it lives changes on request."""
        id = content.session.id
        had: dict[tuple[str, str], Put] = {
            (change.kind, change.id): change for change in here.changes if not change.placed
        }
        missing = [change for change in content.changes if (change.kind, change.id) not in had]
        for change in content.changes:
            known = had.get((change.kind, change.id))
            if change.kind == "part" and known is not None and known.parent != change.parent:
                raise Conflict(f"part {change.id} of session {id} belongs to another message here")
        moved = _placed(here.session, into)
        if missing and (missing[0].kind, missing[0].id) != _next(content.changes, had):
            self._tally.note(f"session {id}: messages from before its end were added at the end")
        for change in content.changes:
            if not change.placed and (known := had.get((change.kind, change.id))) is not None:
                self._stays(change.kind, change.data, known.data)
        if moved == here.session and not missing:
            self._stays("session", content.head().data, here.head().data, but=_WHERE)
            return
        self._tally.updated("session")
        self._expect.append(Unclaimed(id))
        self._add(missing)
        if moved != here.session:
            record = await self._store.get(id, "session", id)
            assert record is not None
            whole = record.value()
            self._expect.append(Unchanged(id, "session", id, record.seq))
            self._changes.append(put(_placed(whole, into)))

    def _add(self, puts: Sequence[Put]) -> None:
        self._changes.extend(puts)
        for change in puts:
            if not change.placed:
                self._tally.new(change.kind)

    def _stays(self, kind: str, theirs: bytes, ours: bytes, *, but: Collection[str] = ()) -> None:
        """Count a record that is here already, and whether the file has another."""
        given = msgspec.json.decode(theirs)
        named = {key: value for key, value in given.items() if key not in but} if but else given
        is_held = _holds(msgspec.json.decode(ours), named)
        (self._tally.unchanged if is_held else self._tally.different)(kind)

    def _unchanged(self, puts: Sequence[Put]) -> None:
        for change in puts:
            if not change.placed:
                self._tally.unchanged(change.kind)


def _holds(ours: Any, theirs: Any) -> bool:
    """Whether a value holds all that another says. OpenCode's file does not know everything that we keep."""
    match theirs, ours:
        case dict(), dict():
            return all(key in ours and _holds(ours[key], value) for key, value in theirs.items())
        case list(), list():
            return len(ours) == len(theirs) and all(map(_holds, ours, theirs))
        case _:
            return bool(ours == theirs)


def _next(changes: Sequence[Put], had: Mapping[tuple[str, str], Put]) -> tuple[str, str] | None:
    """The first change after the last one that is already there."""
    following: tuple[str, str] | None = None
    for change in reversed(changes):
        if (change.kind, change.id) in had:
            break
        following = (change.kind, change.id)
    return following


def without_parent(session: Session) -> Session:
    """A session whose parent is not there: it remembers its name, and stands alone."""
    metadata = {**(session.metadata or {}), "parent": {"sessionID": session.parent_id}}
    return replace(session, parent_id=None, metadata=metadata)
