"""Sessions to be exported, and the few steps that every test of this folder takes."""

from pathlib import Path
from typing import Any

import msgspec

from holdfast.schema import stored
from holdfast.schema.ids import Mint
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Put
from holdfast.store.exchange.portable.export import export_session
from holdfast.store.exchange.portable.import_file import import_portable
from holdfast.store.exchange.portable.opencode_file import export_opencode
from holdfast.store.exchange.portable.report import ImportReport
from holdfast.store.record import Changes
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost

PARENT = "ses_000000000001AAAAAAAAAAAAAA"
CHILD = "ses_000000000002AAAAAAAAAAAAAA"
GRANDCHILD = "ses_000000000003AAAAAAAAAAAAAA"

MINT = Mint(FakeClock())


async def opened(place: Path) -> Store:
    return await SqliteStore.open(place.with_suffix(".db"), clock=FakeClock(), host=FakeHost())


async def exported(store: Store, session: str = PARENT, *, descendants: bool = False) -> bytes:
    return b"".join([piece async for piece in export_session(store, session, descendants=descendants)])


async def for_opencode(store: Store, session: str = PARENT, *, sanitize: bool = False) -> bytes:
    return b"".join([piece async for piece in export_opencode(store, session, sanitize=sanitize)])


async def taken(store: Store, data: Any, **more: Any) -> ImportReport:
    return await import_portable(store, data, mint=MINT, **more)


async def everything(store: Store) -> list[Any]:
    """All that a store holds, without its numbers: equal before and after means nothing was written."""
    page = await store.changes(None)
    assert isinstance(page, Changes)
    records = [each.record for each in page.records]
    return [(record.session, record.kind, record.id, record.data) for record in records]


def msg(n: int) -> str:
    return f"msg_{n:012x}AAAAAAAAAAAAAA"


def prt(n: int) -> str:
    return f"prt_{n:012x}AAAAAAAAAAAAAA"


def session(id: str = PARENT, *, parent: str | None = None, **more: Any) -> dict[str, Any]:
    made = {
        "id": id,
        "slug": "calm-otter",
        "projectID": "p1",
        "directory": "/work/app",
        "title": "A session",
        "version": "1",
        "time": {"created": 1000, "updated": 2000},
        "placement": "here",
        **more,
    }
    return made if parent is None else {**made, "parentID": parent}


def user(n: int, id: str = PARENT) -> dict[str, Any]:
    return {
        "id": msg(n),
        "sessionID": id,
        "role": "user",
        "time": {"created": 1000 + n},
        "agent": "build",
        "model": {"providerID": "p", "modelID": "m"},
    }


def assistant(n: int, parent: int, id: str = PARENT, **more: Any) -> dict[str, Any]:
    return {
        "id": msg(n),
        "sessionID": id,
        "role": "assistant",
        "time": {"created": 1000 + n, "completed": 1001 + n},
        "parentID": msg(parent),
        "modelID": "m",
        "providerID": "p",
        "mode": "build",
        "agent": "build",
        "path": {"cwd": "/work/app", "root": "/work"},
        "cost": 0.5,
        "tokens": {"input": 1, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        **more,
    }


def text(n: int, message: int, words: str = "hello", id: str = PARENT) -> dict[str, Any]:
    return {"id": prt(n), "sessionID": id, "messageID": msg(message), "type": "text", "text": words}


def put(kind: stored.Kind, value: Any, session: str = PARENT) -> Put:
    """The change that writes a record given as JSON."""
    typed = msgspec.convert(value, stored.type_of(kind)) if isinstance(value, list) else decoded(kind, value)
    if isinstance(typed, list):
        return Put(session, kind, session, stored.strip(kind, typed))
    session = value["id"] if kind == "session" else value["sessionID"]
    return Put(
        session, kind, value["id"], stored.strip(kind, typed), value.get("messageID"), stored.mark(typed)
    )


def decoded(kind: stored.Kind, value: dict[str, Any]) -> Any:
    from holdfast.schema import wire

    return wire.decode(stored.type_of(kind), msgspec.json.encode(value))


async def commit(store: Store, *puts: Put) -> None:
    await store.commit(Batch(puts))


def document(*sessions: dict[str, Any]) -> dict[str, Any]:
    """A portable file."""
    return {"holdfast": 1, "sessions": list(sessions)}


def entry(id: str = PARENT, *, parent: str | None = None, **more: Any) -> dict[str, Any]:
    """A session of a portable file, with one exchange."""
    messages = [
        {"info": user(1, id), "parts": [text(2, 1, id=id)]},
        {"info": assistant(3, 1, id), "parts": [text(4, 3, "hi", id=id)]},
    ]
    return {"session": session(id, parent=parent), "messages": messages, **more}
