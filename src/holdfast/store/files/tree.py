"""The seeds' own operations on the tree: write, read, update, remove and list by key.

A key is a list of names: `["message", session, id]` is the file `message/<session>/<id>.json`. Each write is
a commit of one record, so it is durable, numbered and delivered to followers; reads hold the store shared,
writes alone, across processes. A kind of file that the store does not know is refused.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.schema import stored, typed
from holdfast.schema.stored import HEADS
from holdfast.schema.wire import decode, encode
from holdfast.store.batch import Batch, Put, Remove, Unchanged
from holdfast.store.files import layout
from holdfast.store.files.connections import ReadConnection
from holdfast.store.files.layout import TreePlace
from holdfast.store.files.store import FilesStore
from holdfast.store.record import StoredRecord

UPDATES_MAX = 100
"""How often an update begins again because another writer wrote the record meanwhile."""

_NAMES = {"id": "id", "sessionID": "session", "messageID": "parent"}


class Tree:
    """A files store by its keys."""

    def __init__(self, store: FilesStore) -> None:
        self._store = store

    async def write(self, key: Sequence[str], value: Any) -> None:
        """Write a file. What its content says about its own ids must agree with the key."""
        place = _place(key)
        await self._put(place, value, ())

    async def read(self, key: Sequence[str]) -> Any:
        """The content of a file; `NotFound` when there is none."""
        place = _place(key)
        return msgspec.json.decode((await self._found(place)).json())

    async def update(self, key: Sequence[str], edit: Callable[[Any], Any]) -> Any:
        """Change a file by a function that edits the value, or answers another; answer the new content."""
        place = _place(key)
        for _ in range(UPDATES_MAX):
            record = await self._found(place)
            value = msgspec.json.decode(record.json())
            edited = edit(value)
            value = value if edited is None else edited
            try:
                await self._put(
                    place, value, (Unchanged(record.session, record.kind, record.id, record.seq),)
                )
            except Conflict:
                continue
            return value
        raise Conflict(f"{self._path(place)} changed {UPDATES_MAX} times during its update; try again later")

    async def remove(self, key: Sequence[str]) -> None:
        """Remove a file and what lies below it: a session's messages, a message's parts. Missing is fine."""
        place = await self._at_home(_place(key))
        if place is None:
            return
        if place.kind != "session":
            await self._store.commit(Batch((Remove(place.session, place.kind, place.id),)))
        elif await self._store.session(place.id) is not None:
            await self._store.erase(place.id)

    async def list(self, prefix: Sequence[str]) -> list[list[str]]:
        """The keys below a prefix, sorted; none when there is no such folder."""
        names = [_name(name) for name in prefix]
        if names and names[0] not in layout.FOLDER.values():
            raise InvalidInput(f"{names[0][:40]!r} is not a kind of file that the store keeps")
        folders = ["/".join(names)] if names else sorted(layout.FOLDER.values())
        return await self._store.read(lambda connection: _listed(connection, folders))

    def path(self, key: Sequence[str]) -> str:
        """The file that a key names; it need not be there."""
        return self._path(_place(key))

    def _path(self, place: TreePlace) -> str:
        relative = (
            layout.session_path(place.project or "", place.id)
            if place.kind == "session"
            else layout.record_path(place.kind, place.session, place.id, place.parent)
        )
        return str(self._store.root.path / relative)

    async def _at_home(self, place: TreePlace) -> TreePlace | None:
        """The place with its session: a part's key names only its message."""
        if place.session:
            return place
        session = await self._store.read(lambda connection: _session_of(connection, place))
        return None if session is None else msgspec.structs.replace(place, session=session)

    async def _found(self, place: TreePlace) -> StoredRecord:
        home = await self._at_home(place)
        record = None if home is None else await self._store.get(home.session, home.kind, home.id)
        if record is not None and place.project is not None:
            data = typed.decode(record.data, _Project)
            record = record if data.projectID == place.project else None
        if record is None or record.parent != place.parent:
            raise NotFound(f"Resource not found: {self._path(place)}")
        return record

    async def _put(self, place: TreePlace, value: Any, expect: tuple[Unchanged, ...]) -> None:
        if place.kind == "part" and isinstance(value, dict) and not place.session:
            named = value.get("sessionID")
            home = await self._at_home(place) if not isinstance(named, str) else None
            session = home.session if home is not None else named
            if not isinstance(session, str):
                raise NotFound(f"message {place.parent} of part {place.id} does not exist")
            place = msgspec.structs.replace(place, session=session)
        typed = decode(stored.type_of(place.kind), encode(_with_heads(place, value)))
        data = stored.strip(place.kind, typed)
        put = Put(place.session, place.kind, place.id, data, place.parent, stored.mark(typed))
        await self._store.commit(Batch((put,), expect))


class _Project(msgspec.Struct):
    projectID: str = ""  # noqa: N815 - the wire's name


def _place(key: Sequence[str]) -> TreePlace:
    names = [_name(name) for name in key]
    place = layout.place_of("/".join(names) + ".json")
    if place is None:
        raise InvalidInput(f"{'/'.join(names)[:80]!r} is not a file that the store keeps")
    return place


def _name(name: str) -> str:
    return layout.component(name, "the key")


def _with_heads(place: TreePlace, value: Any) -> Any:
    """The content with the ids that its key gives it."""
    if not isinstance(value, dict) or not HEADS[place.kind]:
        return value
    wanted = {head: getattr(place, _NAMES[head]) for head in HEADS[place.kind]}
    if place.project is not None:
        wanted["projectID"] = place.project
    for name, id in wanted.items():
        if value.get(name, id) != id:
            raise InvalidInput(f"{place.kind} {place.id}: its {name} is not {id}, as its key says")
    return {**wanted, **value}


def _session_of(connection: ReadConnection, place: TreePlace) -> str | None:
    """The session of a part, through its natural file."""
    path = layout.record_path("part", "", place.id, place.parent)
    for name in (path, *connection.disk.walk(f"part/{place.parent}")):
        try:
            return typed.decode(connection.disk.read(name), _Session).sessionID
        except (OSError, msgspec.MsgspecError):
            continue
    return None


class _Session(msgspec.Struct):
    sessionID: str  # noqa: N815 - the wire's name


def _listed(connection: ReadConnection, folders: Sequence[str]) -> list[list[str]]:
    paths = (path for folder in folders for path in connection.disk.walk(folder))
    return sorted(
        path.removesuffix(".json").split("/")
        for path in paths
        if "~" not in path and layout.place_of(path) is not None
    )
