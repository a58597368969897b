"""The ids of a file: checked, found once each, and replaced where a copy is wanted.

Ids become file names, keys and JSON, so nothing else about a file is looked at before they are known to be
harmless. `Names` says what each id is called in the store: the same, unless the copy gets ids of its own.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema.ids import Mint
from holdfast.store.batch import scope_of
from holdfast.store.check import check_id, check_session
from holdfast.store.exchange.portable.envelope import Located, decode, line
from holdfast.store.parents_first import parents_first


class _Id(msgspec.Struct, frozen=True):
    id: str


class _SessionId(msgspec.Struct, frozen=True):
    id: str
    parentID: str | None = None  # noqa: N815 - the wire's name


class SessionNames(msgspec.Struct):
    """One session of the file: its id and parent there, and the names of what it holds."""

    where: str
    id: str
    parent: str | None
    messages: dict[str, str]
    parts: dict[str, str]


class Names(msgspec.Struct):
    """Every session of the file; `sessions` maps their ids to those in the store."""

    entries: list[SessionNames]
    sessions: dict[str, str]


def collect(located: Iterable[Located], mint: Mint | None) -> Names:
    """Read all ids, with the place of each entry in the file; with a mint, each gets a new one.

    New ids rise in the order of the file, because real clients insert by binary search on them.
    """
    found: list[SessionNames] = []
    sessions: dict[str, str] = {}
    for each in located:
        head = decode(_SessionId, each.entry.session, each.head)
        id = session_id(head.id, f"{each.head}.id")
        parent = None if head.parentID is None else session_id(head.parentID, f"{each.head}.parentID")
        if id in sessions:
            raise InvalidInput(f"{each.head}.id: session {id} stands in the file twice")
        sessions[id] = id if mint is None else mint.descending("ses")
        messages: dict[str, str] = {}
        parts: dict[str, str] = {}
        for m, message in enumerate(each.entry.messages):
            at = f"{each.where}.messages[{m}]"
            _take(messages, "msg", message.info, f"{at}.info", mint)
            for p, part in enumerate(message.parts):
                _take(parts, "prt", part, f"{at}.parts[{p}]", mint)
        found.append(SessionNames(each.head, id, parent, messages, parts))
    return Names(found, sessions)


def session_id(id: str, where: str) -> str:
    """The id of a session, if it can be one."""
    try:
        check_session(id)
    except InvalidInput as error:
        raise InvalidInput(line(f"{where}: {error}")) from error
    if scope_of(id) != "session":
        raise InvalidInput(f"{where}: {id[:40]!r} is not a session id: it does not start with 'ses'")
    return id


def record_id(id: str, where: str, prefix: str = "") -> str:
    """The id of a record, if it can be one."""
    try:
        check_id(id)
    except InvalidInput as error:
        raise InvalidInput(line(f"{where}: {error}")) from error
    if not id.startswith(prefix):
        raise InvalidInput(f"{where}: {id[:40]!r} does not start with {prefix!r}")
    return id


def in_order(names: Names) -> list[int]:
    """The file's sessions with every parent before its children; a circle of parents is refused."""

    def refuse(place: int) -> None:
        circle = names.entries[place]
        raise InvalidInput(f"{circle.where}.parentID: session {circle.id} is its own ancestor")

    entries = names.entries
    return parents_first([each.id for each in entries], [each.parent for each in entries], refuse)


def _take(
    names: dict[str, str], prefix: Literal["msg", "prt"], raw: msgspec.Raw, where: str, mint: Mint | None
) -> None:
    id = record_id(decode(_Id, raw, where).id, f"{where}.id", prefix)
    if id in names:
        kind = "message" if prefix == "msg" else "part"
        raise InvalidInput(f"{where}.id: {kind} {id} stands in the session twice")
    names[id] = id if mint is None else mint.ascending(prefix)
