"""The form of a file: the whole wire object, pretty, with our numbers as its last key. Pure.

The key `holdfast` stands last on purpose: it is cut off by bytes, without a decode, and a file whose end is
missing shows it. A file that a user wrote with an editor, in any layout, is read too, by decoding.
"""

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import stored, typed
from holdfast.schema.stored import HEADS, Kind
from holdfast.store.files.layout import ARRAYS

KEY = "holdfast"
_KEY = b'\n  "holdfast": {'
_END = b"\n  }\n}"
_TAIL_MAX = 1024

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
Damaged = (msgspec.MsgspecError, ValueError, RecursionError)
"""What reading a damaged file raises."""

_valid = msgspec.json.Decoder(msgspec.Raw)
_encode = msgspec.json.Encoder().encode
_compact = msgspec.json.format
_COMMA = 0x2C


class Numbers(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the store knows about a record beside its content."""

    position: int
    seq: int
    place: int | None = None
    mark: int = 0
    at: int | None = None
    """When its former life was removed, if its id was made again."""


class Claim(msgspec.Struct, frozen=True):
    """Who runs a session, and the number of the claim; the number stays when the owner has gone."""

    owner: str | None
    number: int


class SessionNumbers(msgspec.Struct, frozen=True, omit_defaults=True):
    """The same of a session, a scope or a removed session. `number` names it in the index."""

    position: int
    seq: int
    number: int
    head: int
    top: str = ""
    claim: Claim | None = None
    at: int | None = None


class Grave(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a tombstone file says of a removed record."""

    position: int
    seq: int
    at: int
    parent: str | None = None


def body(kind: Kind, data: bytes, *, id: str, session: str, parent: str | None) -> bytes:
    """A record's content as its file shows it, still without numbers."""
    try:
        pretty = msgspec.json.format(
            stored.whole(kind, data, id=id, session=session, parent=parent), indent=2
        )
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"{kind} {id} is not valid JSON: {error}") from error
    if pretty[:1] != b"{" and (pretty[:1] != b"[" or kind not in ARRAYS):
        raise InvalidInput(f"{kind} {id} must be a JSON object{' or array' if kind in ARRAYS else ''}")
    return pretty


def sealed(body: bytes, numbers: msgspec.Struct) -> bytes:
    """An object's file: its content, and the numbers as its last key."""
    tail = (
        b'  "holdfast": ' + msgspec.json.format(_encode(numbers), indent=2).replace(b"\n", b"\n  ") + b"\n}"
    )
    return b"{\n" + tail if body == b"{}" else body[:-2] + b",\n" + tail


def record_sealed(
    body: bytes, position: int, seq: int, place: int, mark: int, *, at: int | None = None
) -> bytes:
    """`sealed` for the common case, without building the numbers first."""
    more = b"" if place == position else b',\n    "place": %d' % place
    if mark:
        more += b',\n    "mark": %d' % mark
    if at is not None:
        more += b',\n    "at": %d' % at
    return b'%b,\n  "holdfast": {\n    "position": %d,\n    "seq": %d%b\n  }\n}' % (
        body[:-2],
        position,
        seq,
        more,
    )


def wire(raw: bytes) -> bytes:
    """The whole wire JSON in a file, numbers cut off; `Damaged` when it is no JSON object."""
    at = _tail(raw)
    if at is None:
        return _loosely(raw, ())
    _check(raw)
    return raw[: at - 1] + b"\n}" if at > 1 else b"{}"


def data_of(kind: Kind, raw: bytes, *, id: str, session: str, parent: str | None) -> bytes:
    """A record's JSON without numbers and head fields, byte for byte what was put, if that was compact;
    `Damaged` when the file is.
    """
    str(raw, "utf-8")
    return _compact(_data(kind, raw, id, session, parent), indent=-1)


def _data(kind: Kind, raw: bytes, id: str, session: str, parent: str | None) -> bytes:
    """The same in the layout of the file. Whether it is JSON is seen when it is made compact."""
    if kind in ARRAYS and raw[:1] == b"[":
        return raw
    at = _tail(raw)
    heads = HEADS[kind]
    if at is None or at == 1:
        return _loosely(raw, heads)
    if not heads:
        return raw[: at - 1] + b"\n}"
    head = b'{\n  "id": "%b"' % id.encode()
    if len(heads) > 1:
        head += b',\n  "sessionID": "%b"' % session.encode()
        if len(heads) > 2:
            head += b',\n  "messageID": "%b"' % (parent or "").encode()
    begin = len(head)
    if not raw.startswith(head):
        return _loosely(raw, heads)
    if begin == at - 1:
        return b"{}"
    return b"{" + raw[begin + 1 : at - 1] + b"\n}" if raw[begin] == _COMMA else _loosely(raw, heads)


def _check(raw: bytes) -> None:
    """Whether it is JSON at all: both looks together cost less than reading the file does."""
    str(raw, "utf-8")
    _valid.decode(raw)


def _tail(raw: bytes) -> int | None:
    """Where our key begins, if the file ends with it in the layout that we write."""
    at = raw.rfind(_KEY, -_TAIL_MAX)
    if at < 1 or not raw.endswith(_END) or raw.find(b'\n  "', at + 1) >= 0:
        return None
    return at if raw[at - 1] == _COMMA or at == 1 else None


def _loosely(raw: bytes, heads: tuple[str, ...]) -> bytes:
    str(raw, "utf-8")
    fields = _fields.decode(raw)
    fields.pop(KEY, None)
    for head in heads:
        fields.pop(head, None)
    return _encode(fields)


class _Numbered(msgspec.Struct):
    holdfast: Numbers | None = None
    sessionID: str = ""  # noqa: N815 - the wire's name


class Names(msgspec.Struct, frozen=True):
    """Whom a file's content is about, by its own words."""

    id: str = ""
    sessionID: str = ""  # noqa: N815 - the wire's name
    messageID: str = ""  # noqa: N815 - the wire's name


class _SessionNumbered(msgspec.Struct):
    holdfast: SessionNumbers | None = None


class _Marker(msgspec.Struct):
    holdfast: Grave


_numbered = typed.decoder(_Numbered)
_names = typed.decoder(Names)
_session_numbered = typed.decoder(_SessionNumbered)
_grave = typed.decoder(_Marker)
_numbers = typed.decoder(Numbers)


def numbers_of(raw: bytes) -> tuple[Numbers | None, str]:
    """A record file's numbers, and the session that its content names; `Damaged` when it is damaged."""
    found = _numbered.decode(raw)
    return found.holdfast, found.sessionID


def wrong_names(kind: Kind, raw: bytes, *, id: str, session: str, parent: str | None) -> set[str]:
    """The head fields of a file that say something else than its path; `Damaged` when it is damaged."""
    if not HEADS[kind]:
        return set()
    found = _names.decode(raw)
    wanted = Names(id, session, parent or "")
    return {head for head in HEADS[kind] if getattr(found, head) not in ("", getattr(wanted, head))}


def renamed(kind: Kind, raw: bytes, *, id: str, session: str, parent: str | None) -> bytes:
    """A file that says what its path says, its numbers as they are."""
    numbers = session_numbers(raw) if kind == "session" else numbers_of(raw)[0]
    assert numbers is not None, "only a numbered file keeps its place"
    data = data_of(kind, raw, id=id, session=session, parent=parent)
    return sealed(body(kind, data, id=id, session=session, parent=parent), numbers)


def sidecar_numbers(raw: bytes) -> Numbers:
    """The numbers in an array's sidecar."""
    return _numbers.decode(raw)


def session_numbers(raw: bytes) -> SessionNumbers | None:
    """A session file's numbers."""
    return _session_numbered.decode(raw).holdfast


def grave_of(raw: bytes) -> Grave:
    """A record's tombstone."""
    return _grave.decode(raw).holdfast
