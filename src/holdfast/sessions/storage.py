"""The seeds' storage: read, write, update, remove and list by key, on every engine.

There is no second store: keys are another way to name records (`storage_key.py`), values are their JSON.
Each write is the same commit that the calls of `hf.sessions` make, with the same checks: the schema, the ids,
the parents, a session that runs, and what an edit changes for the model. Records of the engine's own (the
inbox, epochs, requests) have no key.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.errors import Conflict, NotFound, RecordCorrupt, Refused
from holdfast.schema import ids, stored
from holdfast.schema.stored import Kind
from holdfast.sessions import edit, update
from holdfast.sessions.access import StoreAccess, put_session, require_session
from holdfast.sessions.storage_key import (
    FOLDERS,
    KINDS,
    Key,
    key_of,
    parse_key,
    parse_prefix,
    plain_value,
    typed_value,
)
from holdfast.store.batch import Batch, Put, Remove, Unchanged
from holdfast.store.on_conflict import on_conflict
from holdfast.store.query import LIMIT_MAX, MessageQuery, SessionQuery
from holdfast.store.record import Changes, SessionRecord, StoredRecord

HOMES_MAX = 1_000

Keys = list[list[str]]

Edit = Callable[[Any], Any]
"""Returns the new value of plain JSON; in `update` it may also change the value that it is given."""


class Storage:
    """The records of a store by key."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access
        self._store = access.store
        self._homes: dict[str, str] = {}
        """The sessions of messages whose parts were read last, by message."""

    async def read(self, key: Sequence[str]) -> Any:
        """The value of a key as plain JSON data; `NotFound` if there is none."""
        record = await self._require(parse_key(key))
        try:
            return msgspec.json.decode(record.json())
        except msgspec.DecodeError as error:
            raise RecordCorrupt(record.session, record.kind, record.id, str(error)) from error

    async def write(self, key: Sequence[str], value: Any) -> None:
        """Make or replace a value; what it leaves out of its own ids is taken from the key."""
        parsed = parse_key(key)
        if await self._find(parsed) is None:
            try:
                await self._add(parsed, value)
            except (Conflict, Refused):
                if await self._find(parsed) is None:
                    raise
            else:
                return
        await self._change(parsed, lambda _: value)  # It was there, or another writer has made it meanwhile.

    async def update(self, key: Sequence[str], editor: Edit) -> Any:
        """Change a value by a function, atomically; return the new one. `NotFound` if there is none.

        The function changes the value that it is given, or returns another. It is called again if another
        writer was quicker.
        """

        def edited(value: Any) -> Any:
            returned = editor(value)
            return value if returned is None else returned

        return await self._change(parse_key(key), edited)

    async def remove(self, key: Sequence[str]) -> None:
        """Remove a value with what is below it: the messages of a session, the parts of a message.

        What is absent is removed already. A session that runs is refused, and so are its messages and parts;
        a project that has sessions is refused too.
        """
        parsed = parse_key(key)
        record = await self._find(parsed)
        if record is None:
            return
        match parsed.kind:
            case "session":
                await self._store.erase(record.id)
            case "message":
                await edit.remove_message(self._access, record.session, record.id)
            case "part":
                await edit.remove_part(self._access, record.session, record.id)
            case kind:
                if kind == "project" and await self._has_sessions(record.id):
                    raise Refused(f"project {record.id} has sessions; remove them first")
                await self._store.commit(Batch((Remove(record.session, kind, record.id),)))

    async def list(self, prefix: Sequence[str] = ()) -> Keys:
        """The keys below a prefix, sorted; none if nothing is below it."""
        names = parse_prefix(prefix)
        if len(names) >= (FOLDERS[names[0]][1] if names else 1):
            return []
        match names:
            case "session", *project:
                found = await self._session_keys(project[0] if project else None)
            case "message", session:
                records = await self._store.select("message", session=session)
                found = [key_of(each) for each in records]
            case "part", message:
                found = await self._part_keys(message)
            case _:
                found = await self._all_keys({FOLDERS[name][0] for name in names} or set(KINDS))
        return sorted(found)

    async def _session_keys(self, project: str | None) -> Keys:
        query = SessionQuery(project=project, archived=None, agent_runs=None, limit=LIMIT_MAX)
        found: Keys = []
        cursor: str | None = None
        while True:
            page = await self._store.sessions(replace(query, cursor=cursor))
            found += [key for each in page.sessions if (key := _session_key(each)) is not None]
            if (cursor := page.next) is None:
                return found

    async def _all_keys(self, kinds: Collection[Kind]) -> Keys:
        """The keys of some kinds in the whole store: one walk over its records, a page in memory."""
        found: Keys = []
        if "session" in kinds:
            found += await self._session_keys(None)
        cursor: str | None = None
        while True:
            page = await self._store.changes(cursor)
            assert isinstance(page, Changes), "a walk from the beginning is never too late"
            living = (each.record for each in page.records if not each.removed)
            found += [key_of(each) for each in living if each.kind in kinds and each.kind != "session"]
            if page.complete:
                return found
            cursor = page.cursor

    async def _part_keys(self, message: str) -> Keys:
        """The keys of a message's parts. Of several sessions with such a message, the first made counts."""
        holders = await self._store.holders("message", message)
        if not holders:
            return []
        page = await self._store.messages(MessageQuery(holders[0], only=message))
        return [key_of(part) for each in page.messages for part in each.parts]

    async def _has_sessions(self, project: str) -> bool:
        query = SessionQuery(project=project, archived=None, agent_runs=None, limit=1)
        page = await self._store.sessions(query)
        return bool(page.sessions or page.damaged)

    async def _find(self, key: Key) -> StoredRecord | None:
        """The record of a key."""
        if key.kind == "part":
            return await self._find_part(key, key.parent or "")
        assert key.session is not None
        record = await self._store.get(key.session, key.kind, key.id)
        if record is not None and key.project is not None and record.value().project_id != key.project:
            return None
        return record

    async def _find_part(self, key: Key, message: str) -> StoredRecord | None:
        """The part, in the first session that has its message; which one that was is kept for the next."""
        known = self._homes.pop(message, None)
        record = None if known is None else await self._part_in(known, key)
        if record is None:
            holders = await self._store.holders("message", message)
            found = [part for each in holders if (part := await self._part_in(each, key)) is not None]
            record = found[0] if found else None
        if record is not None:
            self._homes[message] = record.session
            if len(self._homes) > HOMES_MAX:
                del self._homes[next(iter(self._homes))]
        return record

    async def _part_in(self, session: str, key: Key) -> StoredRecord | None:
        record = await self._store.get(session, "part", key.id)
        return record if record is not None and record.parent == key.parent else None

    async def _require(self, key: Key) -> StoredRecord:
        record = await self._find(key)
        if record is None:
            raise NotFound(f"the storage has no {key}; `list` shows the keys below a prefix")
        return record

    async def _add(self, key: Key, value: Any) -> None:
        """Write a new value."""
        match key.kind:
            case "session":
                await self._add_session(key, value)
            case "message":
                assert key.session is not None
                await edit.add_message(self._access, typed_value(key, key.session, value))
            case "part":
                session = await self._session_of_part(key, value)
                await edit.add_part(self._access, typed_value(key, session, value))
            case _:
                await self._put(key, value, seq=0)

    async def _add_session(self, key: Key, value: Any) -> None:
        taken = await self._store.session(key.id)
        if taken is not None:
            raise Conflict(f"{key}: the session belongs to project {taken.value().project_id}")
        session = typed_value(key, key.id, value)
        ids.check("ses", key.id)
        await self._store.commit(Batch((put_session(session),), (Unchanged(key.id, "session", key.id, 0),)))

    async def _session_of_part(self, key: Key, value: Any) -> str:
        """The session of a new part: as it says itself, else the one that has its message."""
        named = value.get("sessionID") if isinstance(value, dict) else None
        holders = await self._store.holders("message", key.parent or "")
        found = [session for session in holders if named in (None, session)]
        if not found:
            raise NotFound(f"{key}: message {key.parent} does not exist; write it first")
        return found[0]

    async def _change(self, key: Key, editor: Edit) -> Any:
        """Replace a value that is there, by the rules of its kind, with what the editor returns."""
        record = await self._require(key)
        session = record.session

        def edited(before: Any) -> Any:
            return typed_value(key, session, editor(plain_value(before)))

        match key.kind:
            case "session":
                return plain_value(await update.update(self._access, key.id, edited))
            case "message":
                return plain_value(await edit.update_message(self._access, session, key.id, edited))
            case "part":
                return plain_value(await edit.update_part(self._access, session, key.id, edited))
            case _:

                async def once() -> Any:
                    now = await self._require(key)
                    after = plain_value(edited(now.value()))
                    await self._put(key, after, seq=now.seq)
                    return after

                return await on_conflict(once)

    async def _put(self, key: Key, value: Any, *, seq: int) -> None:
        """Write a value that is alone of its kind, if it is as it was read."""
        assert key.session is not None
        if key.kind != "project":
            await require_session(self._access, key.session)
        data = stored.strip(key.kind, typed_value(key, key.session, value))
        expect = Unchanged(key.session, key.kind, key.id, seq)
        await self._store.commit(Batch((Put(key.session, key.kind, key.id, data),), (expect,)))


def _session_key(record: SessionRecord) -> list[str] | None:
    """The key of a session; None for one that cannot be read, which lists leave out."""
    try:
        return ["session", record.value().project_id, record.id]
    except RecordCorrupt:
        return None
