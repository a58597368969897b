"""Writes sessions as one portable file (docs/format-portable.md). Stored JSON is passed on undecoded."""

from collections.abc import AsyncIterator, Iterable, Iterator

from holdfast.errors import RecordCorrupt
from holdfast.schema import stored, wire
from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.store.exchange.portable.content import BESIDE, LISTS, Content, Losses, family, gather

VERSION = 1
"""The version of the file format. A reader refuses what is newer than it knows."""

LIST_NAMES = {"todo": "todos", "diff": "diffs"}
"""How the file calls the records of which a session has one."""

PIECE_BYTES = 256 * 1024


async def export_session(
    store: Store, session: str, *, descendants: bool = False, losses: Losses | None = None
) -> AsyncIterator[bytes]:
    """The pieces of the file, in order; `NotFound` before the first of them.

    A record that cannot be read ends it with `RecordCorrupt`; with `losses` it is left out and noted there.
    The session itself must be readable; of those below it, one that is not is left out and noted too.
    """
    ids = await family(store, session) if descendants else [session]
    losses = losses if losses is not None else Losses(strict=True)
    lead = b'{"holdfast":%d,"sessions":[\n' % VERSION
    for id in ids:
        try:
            content = await gather(store, id, losses)
        except RecordCorrupt as error:
            if id == session or error.kind != "session":
                raise
            losses.note(error)
            continue
        yield lead
        for piece in _bunched(_session(content)):
            yield piece
        lead = b",\n"
    yield b"\n]}\n"


def _session(content: Content) -> Iterator[bytes]:
    yield b'{"session":' + wire.encode(content.session) + b',\n"messages":['
    yield from _messages(content)
    yield b'],\n"records":['
    yield from _records(content)
    yield b"]"
    for put in content.changes:
        if put.kind in LISTS:
            yield b',\n"%b":%b' % (LIST_NAMES[put.kind].encode(), put.data)
    yield b"}"


def _messages(content: Content) -> Iterator[bytes]:
    """`{info, parts}` for each message, in the order of creation, one a line."""
    close = b""
    comma = b""
    for put in content.changes:
        if put.kind == "message" and not put.placed:
            yield close + b'\n{"info":' + _json(put) + b',"parts":['
            close, comma = b"]},", b""
        elif put.kind == "part":
            yield comma + _json(put)
            comma = b","
    if close:
        yield b"]}\n"


def _records(content: Content) -> Iterator[bytes]:
    """What stands between the messages, each with the number of messages that were there before it."""
    after = 0
    comma = b"\n"
    for put in content.changes:
        if put.kind == "message" and not put.placed:
            after += 1
        elif put.placed or put.kind in BESIDE:
            kind = "placed" if put.placed else put.kind
            value = wire.encode(put.id) if put.placed else _json(put)
            yield comma + b'{"after":%d,"kind":"%b","value":%b}' % (after, kind.encode(), value)
            comma = b",\n"


def _json(put: Put) -> bytes:
    return stored.whole(put.kind, put.data, id=put.id, session=put.session, parent=put.parent)


def _bunched(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that are worth a write: about `PIECE_BYTES` each."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
