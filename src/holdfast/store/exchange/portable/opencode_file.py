"""Writes a session as OpenCode's own export does: `{info, messages: [{info, parts}]}`, pretty-printed.

Only what OpenCode knows: it refuses a file with a system message, so those stay out, and so do the placement
and the epochs. The address of a share stays out as well: its holder may read the session's future.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from holdfast.schema import extra, stored, wire
from holdfast.schema.message import SystemMessage
from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.store.exchange.portable import redact
from holdfast.store.exchange.portable.content import Content, Losses, gather

_SYSTEM: Final = b'{"role":"system"'
Redact = Callable[[dict[str, Any]], dict[str, Any]]


async def export_opencode(
    store: Store, session: str, *, sanitize: bool = False, losses: Losses | None = None
) -> AsyncIterator[bytes]:
    """The pieces of the file, the messages in the order of the model's history; `NotFound` first.

    A record that cannot be read ends it with `RecordCorrupt`; with `losses` it is left out and noted there.
    """
    content = await gather(store, session, losses if losses is not None else Losses(strict=True))
    info = wire.encode(replace(content.session, placement=None))
    if sanitize:
        info = _redacted(replace(content.session, placement=None), redact.session)
    yield b'{\n  "info": ' + _pretty(info, 1) + b',\n  "messages": ['
    lead = b"\n    "
    for message, parts in _by_place(content):
        made = b'{"info":' + _json(message, sanitize, redact.message) + b',"parts":['
        made += b",".join(_json(part, sanitize, redact.part) for part in parts) + b"]}"
        yield lead + _pretty(made, 2)
        lead = b",\n    "
    yield (b"]\n}\n" if lead == b"\n    " else b"\n  ]\n}\n")


def _by_place(content: Content) -> list[tuple[Put, list[Put]]]:
    """The messages of users and models with their parts; a promoted one stands where it was promoted."""
    turns: dict[str, tuple[Put, list[Put]]] = {}
    for put in content.changes:
        if put.placed:
            turns[put.id] = turns.pop(put.id)  # a dict keeps the order of insertion
        elif put.kind == "message":
            turns[put.id] = (put, [])
        elif put.kind == "part" and put.parent is not None:
            turns[put.parent][1].append(put)
    return [turn for turn in turns.values() if not _is_system(turn[0])]


def _is_system(put: Put) -> bool:
    # Our encoder puts the tag first; only foreign layouts need the decode.
    if put.data.startswith((b'{"role":"user"', b'{"role":"assistant"')):
        return False
    return put.data.startswith(_SYSTEM) or isinstance(_value(put), SystemMessage)


def _json(put: Put, sanitize: bool, redact: Redact) -> bytes:  # noqa: FBT001 - private, named by its callers
    if sanitize:
        return _redacted(_value(put), redact)
    return stored.whole(put.kind, put.data, id=put.id, session=put.session, parent=put.parent)


def _redacted(value: Any, redact: Redact) -> bytes:
    known = replace(value, **{extra.EXTRA_FIELD: None})
    return msgspec.json.encode(redact(msgspec.json.decode(wire.encode(known))))


def _value(put: Put) -> Any:
    return stored.load(put.kind, put.data, id=put.id, session=put.session, parent=put.parent)


def _pretty(data: bytes, depth: int) -> bytes:
    """Indented by two, as a value at some depth of the file. A line break inside JSON is never content."""
    return msgspec.json.format(data, indent=2).replace(b"\n", b"\n" + b"  " * depth)
