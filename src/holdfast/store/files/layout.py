"""Where in the tree a record lies, and what a path in the tree stands for. Pure.

The folders of the seeds hold what the seeds know (`session/<project>/<session>.json` and so on); the other
kinds have folders of their own. Ids are letters, digits, `_` and `-`, so `.` and `~` are ours to use:
`<name>.holdfast.json` is the sidecar of an array, `~<session>` a folder for records whose natural place
another session's record has already (ids are names within a session only).
"""

import re

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema.stored import KINDS, SINGLE, Kind
from holdfast.store.batch import project_scope

FOLDER: dict[Kind, str] = {kind: "session_diff" if kind == "diff" else kind for kind in KINDS}
_KIND = {folder: kind for kind, folder in FOLDER.items()}

ARRAYS: frozenset[Kind] = frozenset(("todo", "diff"))
"""Kinds whose JSON may be an array: its numbers then stand in a sidecar."""

SEEDS = ("project", "session", "message", "part", "session_diff", "todo", "share")
"""The folders that the seeds name."""

SCOPE, TOMBSTONE, OWNER = "scope", "tombstone", "owner"
JOURNAL, QUARANTINE = "journal", "quarantine"
FOLDERS = (*FOLDER.values(), SCOPE, TOMBSTONE, OWNER, JOURNAL, QUARANTINE)
MARKER = "holdfast.json"
"""The sign that a tree is ours, with its format and its incarnation. Never rewritten."""
HORIZON = "horizon.json"
"""Up to which number removals have been forgotten; there once something was."""
MIGRATION = "migration"
"""The seeds' own marker: how many migrations of the tree were applied."""

SIDECAR = ".holdfast.json"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,160}")


def component(name: str, what: str) -> str:
    """The name itself, if it can be one of a file or folder of the tree."""
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"{what} {name[:40]!r} cannot name a file: letters, digits, '_' and '-' only, at most 160"
        )
    return name


def session_path(project: str, id: str) -> str:
    """The file of a session."""
    return f"session/{project}/{id}.json"


def record_path(kind: Kind, session: str, id: str, parent: str | None, *, aside: bool = False) -> str:
    """The file of a record that is no session."""
    if kind == "message":
        return f"message/{session}/{id}.json"
    if kind == "part":
        return f"part/~{session}/{parent}/{id}.json" if aside else f"part/{parent}/{id}.json"
    folder = FOLDER[kind]
    if kind in SINGLE:
        return f"{folder}/{session}.json"
    if kind == "project":
        return f"project/{id}.json" if session == project_scope(id) else f"project/~{session}/{id}.json"
    return f"{folder}/{session}/{id}.json"


def sidecar(path: str) -> str:
    """The file beside an array that carries its numbers."""
    return path.removesuffix(".json") + SIDECAR


def tombstone_path(session: str, kind: Kind, id: str) -> str:
    """The file that remembers a removal."""
    return f"tombstone/{session}.json" if kind == "session" else f"tombstone/{session}/{kind}.{id}.json"


class TreePlace(msgspec.Struct, frozen=True):
    """What a path says about the record in it. Empty strings where only the file itself can tell."""

    kind: Kind
    session: str
    id: str
    parent: str | None = None
    project: str | None = None
    aside: bool = False


def place_of(path: str) -> TreePlace | None:
    """The record that a path is for; None for anything else, an array's sidecar included."""
    if not path.endswith(".json") or path.endswith(SIDECAR):
        return None
    folder, *names = path.removesuffix(".json").split("/")
    kind = _KIND.get(folder)
    if kind is None or not names or not all(_NAME.fullmatch(name.removeprefix("~")) for name in names):
        return None
    aside = names[0].startswith("~")
    if any(name.startswith("~") for name in names[1:]):
        return None
    owner = names.pop(0)[1:] if aside else ""
    match kind, names:
        case "session", [project, id] if not aside:
            return TreePlace("session", id, id, project=project)
        case "part", [parent, id]:
            return TreePlace("part", owner, id, parent, aside=aside)
        case "project", [id]:
            return TreePlace("project", owner or project_scope(id), id)
        case (("todo" | "diff" | "share"), [name]) if not aside:
            return TreePlace(kind, name, name)
        case _, [session, id] if kind not in ("session", "part", "project", *SINGLE) and not aside:
            return TreePlace(kind, session, id)
    return None


def tombstone_of(path: str) -> tuple[str, Kind, str] | None:
    """The session, kind and id whose removal a tombstone file remembers."""
    folder, *names = path.removesuffix(".json").split("/")
    if folder != TOMBSTONE or not path.endswith(".json"):
        return None
    if len(names) == 1:
        return names[0], "session", names[0]
    kind, _, id = names[1].partition(".")
    return (names[0], _KINDS[kind], id) if len(names) == 2 and kind in _KINDS else None


_KINDS: dict[str, Kind] = {str(kind): kind for kind in KINDS}
