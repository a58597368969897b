"""Whether a batch is well formed, before any backend sees it. Ids become file names, keys and JSON."""

import re
from operator import ge

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema.ids import body
from holdfast.schema.stored import KINDS, SINGLE
from holdfast.store.batch import Batch, Copies, Put, Settled, Unchanged, scope_of

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_IDS = re.compile(r"[A-Za-z0-9_-]{1,128}(?: [A-Za-z0-9_-]{1,128})*")
_SESSION = re.compile(r"(?:ses[a-z]*|project|host)_[A-Za-z0-9_-]{1,128}")
_SCOPED = frozenset(("project", "approval", "trust", "cache"))
_KINDS = frozenset(KINDS)
_json = msgspec.json.Decoder(msgspec.Raw)

INT_MAX = (1 << 53) - 1
"""The greatest whole number that JSON and every engine agree on."""


def is_id(id: str) -> bool:
    """Whether this can be the id of a record."""
    return _ID.fullmatch(id) is not None


def is_session(id: str) -> bool:
    """Whether this can name a session or a scope."""
    return _SESSION.fullmatch(id) is not None


def check_id(id: str) -> str:
    """The id itself, if it can be one: letters, digits, `_` and `-`, at most 128 of them."""
    if not is_id(id):
        raise InvalidInput(f"{id[:40]!r} is not an id: letters, digits, '_' and '-' only, at most 128")
    return id


def check_session(id: str) -> str:
    """The id itself, if it can name a session or a scope."""
    if not is_session(id):
        raise InvalidInput(f"{id[:40]!r} is not a session id: 'ses_', then letters, digits, '_' and '-'")
    return id


def check_kind(kind: str) -> None:
    """Refuse a kind that no record has."""
    if kind not in _KINDS:
        raise InvalidInput(f"{str(kind)[:40]!r} is not a kind of record")


def check_int(number: int) -> int:
    """The number itself, if every engine can hold it."""
    if not -INT_MAX <= number <= INT_MAX:
        raise InvalidInput(f"a number may have 53 bits; this one has {number.bit_length()}")
    return number


def check_batch(batch: Batch) -> None:
    """Refuse ids, kinds and parents that cannot be, and a release without a fence."""
    for change in batch.changes:
        if isinstance(change, Copies):
            _check_copies(change)
            continue
        check_session(change.session)
        check_id(change.id)
        check_kind(change.kind)
        if (change.kind in _SCOPED) == (scope_of(change.session) == "session"):
            raise InvalidInput(f"a {change.kind} record does not belong into {change.session}")
        if change.kind in SINGLE and change.id != change.session:
            raise InvalidInput(f"a session has one {change.kind}, under its own id, not {change.id[:40]}")
        if isinstance(change, Put):
            _check_put(change)
        elif change.kind == "session":
            raise InvalidInput("a session is removed with erase, which takes its children along")
    for expectation in batch.expect:
        check_session(expectation.session)
        if isinstance(expectation, Unchanged):
            check_id(expectation.id)
        if isinstance(expectation, (Unchanged, Settled)):
            check_kind(expectation.kind)
    if batch.release and batch.fence is None:
        raise InvalidInput("a release needs the fence of the session it gives back")


def _check_put(put: Put) -> None:
    if (put.kind == "part") != (put.parent is not None):
        raise InvalidInput(f"{put.kind} {put.id}: parts, and only parts, have a parent message")
    if put.parent is not None:
        check_id(put.parent)
    if put.kind == "session" and put.id != put.session:
        raise InvalidInput(f"session {put.id} was put under the name {put.session}")
    _check_data(put.kind, put.id, put.data)


def _check_copies(copies: Copies) -> None:
    check_session(copies.session)
    check_session(copies.source)
    if not copies.originals or len(copies.originals) != len(copies.ids):
        raise InvalidInput("copies need an id for each original, and one original at least")
    if _IDS.fullmatch(" ".join(copies.ids)) is None:
        for id in copies.ids:
            check_id(id)
    message, bodies = None, [body(id) for id in copies.ids]
    for original in copies.originals:
        if original.kind == "message":
            message = original.id
        elif original.kind != "part" or original.parent != message:
            raise InvalidInput(f"{original.kind} {original.id} is not copied right after its message")
    if any(map(ge, bodies, bodies[1:])):
        raise InvalidInput("the ids of copies must rise")
    for original in copies.originals:
        data = copies.changed.get(original.position)
        if data is not None:
            _check_data(original.kind, original.id, data)


def _check_data(kind: str, id: str, data: bytes) -> None:
    if not data:
        raise InvalidInput(f"{kind} {id} has no content")
    try:
        data.decode()
        _json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{kind} {id} is not JSON: {error}") from error
