"""Where OpenCode keeps its data, and which of its formats a place holds."""

import os
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import InvalidInput, NotFound
from holdfast.store.exchange.opencode.folders import Folders
from holdfast.store.exchange.opencode.json_file import names
from holdfast.store.exchange.opencode.rows import Rows
from holdfast.store.exchange.opencode.source import Source
from holdfast.store.exchange.opencode.tree import ProjectOf, Tree


def find_opencode(environment: Mapping[str, str] | None = None) -> Path:
    """The place that OpenCode itself would use: `OPENCODE_DB`, else its data directory. It need not exist."""
    given = os.environ if environment is None else environment
    home = given.get("OPENCODE_TEST_HOME") or given.get("HOME") or str(Path.home())
    share = given.get("XDG_DATA_HOME") or str(Path(home) / ".local" / "share")
    data = Path(share) / "opencode"
    database = given.get("OPENCODE_DB")
    if database and database != ":memory:":
        return data / database  # an absolute path stays what it is
    return data


def sources(path: Path, project_of: ProjectOf | None = None) -> list[Source]:
    """Everything that OpenCode kept in a place, the newest format first; `InvalidInput` if nothing."""
    if "\0" in str(path):
        raise InvalidInput("the path of OpenCode's data holds a NUL; give another")
    if not path.exists():
        raise NotFound(f"{path} does not exist; name the folder where OpenCode keeps its data")
    if path.is_file():
        return [Rows(path, _tree(path.parent / "storage"))]
    if (path / "holdfast.json").is_file():
        raise InvalidInput(f"{path} is a store of Holdfast's own, not OpenCode's; open it as file://{path}")
    found: list[Source] = []
    beside = _tree(path / "storage")
    try:
        found.extend(Rows(database, beside) for database in _databases(path))
        found.extend(_trees(path, beside, project_of))
    except BaseException:
        for source in found:
            source.close()
        raise
    if not found:
        raise InvalidInput(
            f"{path} holds nothing of OpenCode's: no opencode.db, no storage folder, no sessions"
        )
    return found


def _databases(path: Path) -> list[Path]:
    """The release's own first, then those of other channels."""
    found = [name for name in names(path, ".db") if name == "opencode" or name.startswith("opencode-")]
    found = [name for name in found if (path / f"{name}.db").stat().st_size]  # an empty one was never used
    return [path / f"{name}.db" for name in sorted(found, key=lambda name: (name != "opencode", name))]


def _trees(path: Path, beside: Tree | None, project_of: ProjectOf | None) -> list[Source]:
    found: list[Source] = [] if beside is None else [beside]
    found.extend(filter(None, [_tree(path)]))
    old = [path / "project" / name / "storage" for name in names(path / "project")]
    found.extend(Tree(root, "A", project_of) for root in (path, *old) if (root / "session" / "info").is_dir())
    found.extend(Folders(root) for root in (path / "session", path) if _has_meta(root))
    return found


def _tree(root: Path) -> Tree | None:
    """The JSON tree of generation B in a folder, if it is one."""
    if (root / "session" / "info").is_dir():
        return None
    sessions = root / "session"
    has_sessions = any(
        name.startswith("ses") for project in names(sessions) for name in names(sessions / project, ".json")
    )
    known = any((root / name).is_dir() for name in ("message", "part", "session_diff"))
    return Tree(root) if has_sessions or known else None


def _has_meta(root: Path) -> bool:
    return any((root / name / "meta.json").is_file() for name in names(root))
