"""The keys of the seeds' storage, and the records that they name. Pure.

["project", project]              ["session", project, session]
["message", session, message]     ["part", message, part]
["todo", session]                 ["session_diff", session]        ["share", session]
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import stored
from holdfast.schema.stored import HEADS, Kind
from holdfast.schema.wire import decode, encode
from holdfast.store.batch import project_scope
from holdfast.store.record import StoredRecord

FOLDERS: Final[dict[str, tuple[Kind, int]]] = {
    "project": ("project", 2),
    "session": ("session", 3),
    "message": ("message", 3),
    "part": ("part", 3),
    "todo": ("todo", 2),
    "session_diff": ("diff", 2),
    "share": ("share", 2),
}
"""The first name of a key, with the kind of its records and the number of its names."""

KINDS: Final[tuple[Kind, ...]] = tuple(kind for kind, _ in FOLDERS.values())

NAME_MAX: Final = 200


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What a key says about its record. A part's key does not name the session."""

    names: tuple[str, ...]
    kind: Kind
    session: str | None
    id: str
    parent: str | None = None
    project: str | None = None

    def __str__(self) -> str:
        return "/".join(self.names)


def parse_key(key: Sequence[str]) -> Key:
    """The record that a key names; `InvalidInput` for what can be none."""
    names = parse_prefix(key)
    if not names:
        raise InvalidInput(f"a key has names; the first is one of {', '.join(FOLDERS)}")
    kind, length = FOLDERS[names[0]]
    if len(names) != length:
        raise InvalidInput(f"{'/'.join(names)[:80]!r} is no key: one of {names[0]} has {length} names")
    last = names[-1]
    match kind:
        case "session":
            return Key(names=names, kind=kind, session=last, id=last, project=names[1])
        case "message":
            return Key(names=names, kind=kind, session=names[1], id=last)
        case "part":
            return Key(names=names, kind=kind, session=None, id=last, parent=names[1])
        case "project":
            return Key(names=names, kind=kind, session=project_scope(last), id=last)
        case _:
            return Key(names=names, kind=kind, session=last, id=last)


def parse_prefix(prefix: Sequence[str]) -> tuple[str, ...]:
    """The names of a key or of its beginning."""
    if isinstance(prefix, str) or not all(isinstance(name, str) for name in prefix):
        raise InvalidInput("a key is a list of names, for example ['message', session, id]")
    names = tuple(prefix)
    if names and names[0] not in FOLDERS:
        raise InvalidInput(f"{names[0][:40]!a} is no kind of key; those are {', '.join(FOLDERS)}")
    for name in names:
        if not 0 < len(name) <= NAME_MAX or "/" in name or not (name.isascii() and name.isprintable()):
            raise InvalidInput(f"{name[:40]!a} cannot be a name of a key")
    return names


def key_of(record: StoredRecord) -> list[str]:
    """The key of a record that is no session."""
    match record.kind:
        case "part":
            return ["part", record.parent or "", record.id]
        case "message":
            return ["message", record.session, record.id]
        case "diff":
            return ["session_diff", record.id]
        case kind:
            return [kind, record.id]


def typed_value(key: Key, session: str, value: Any) -> Any:
    """The record that plain JSON stands for. What it says of its own ids must agree with the key."""
    heads = {"id": key.id, "sessionID": session, "messageID": key.parent}
    wanted = {name: heads[name] for name in HEADS[key.kind]}
    if key.project is not None:
        wanted["projectID"] = key.project
    if wanted and isinstance(value, dict):
        for name, id in wanted.items():
            if value.get(name, id) != id:
                raise InvalidInput(f"{key}: its {name} is not {id}, as the key says")
        value = {**wanted, **value}
    try:
        return decode(stored.type_of(key.kind), encode(value))
    except InvalidInput as error:
        raise InvalidInput(f"{key} is not valid: {error}") from error


def plain_value(value: Any) -> Any:
    """A record as plain JSON data, which the caller may change."""
    return msgspec.json.decode(encode(value))
