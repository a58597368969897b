"""The seeds' own migrations of the tree, numbered by the `migration` marker.

They run on a tree that is about to be adopted. Each one makes a copy of what it will change first, verifies
what it wrote, and is followed by the marker; one that fails stops the sequence and is tried again next time.
"""

from collections.abc import Callable
from pathlib import Path
from subprocess import SubprocessError

import msgspec

from holdfast import git
from holdfast.errors import StoreError, StoreTooNew
from holdfast.schema import typed
from holdfast.store.files import layout
from holdfast.store.files.disk import Disk

_Json = dict[str, msgspec.Raw]
_object = msgspec.json.Decoder(_Json)


def migrate(root: Path, disk: Disk) -> None:
    """Apply what the marker says is missing."""
    done = marker(disk)
    if done > len(MIGRATIONS):
        raise StoreTooNew(
            f"{root} is at migration {done}, this Holdfast knows up to {len(MIGRATIONS)}; use a newer one"
        )
    for number, step in enumerate(MIGRATIONS[done:], done):
        try:
            step(root, disk)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise StoreError(
                f"migration {number} → {number + 1} of {root} failed ({error}); nothing was lost, it is "
                "tried again next time"
            ) from error
        disk.replace(layout.MIGRATION, str(number + 1).encode())


def marker(disk: Disk) -> int:
    """How many migrations were applied; a marker that is no number counts as none."""
    try:
        return max(0, int(disk.read(layout.MIGRATION)))
    except (OSError, ValueError):
        return 0


def old_projects(root: Path) -> list[Path]:
    """The folders of the first layout, which had a tree for each project beside the present one."""
    beside = root.parent / "project"
    if not beside.is_dir():
        return []
    return sorted(each for each in beside.iterdir() if (each / "storage" / "session" / "info").is_dir())


def gather_projects(root: Path, disk: Disk) -> None:
    """0 → 1: a tree for each project becomes one tree, under the id of the project's first commit."""
    for old in old_projects(root):
        if old.name == "global":
            continue
        worktree = _worktree(old)
        project = worktree and _root_commit(worktree)
        if worktree is None or not project:
            continue  # Its folder stays where it is.
        disk.replace_all(_gathered(old, worktree, project))


def _gathered(old: Path, worktree: Path, project: str) -> dict[str, bytes]:
    now = int((old / "storage").stat().st_mtime * 1000)
    info = {"id": project, "worktree": str(worktree), "vcs": "git", "time": {"created": now, "updated": now}}
    files = {f"project/{project}.json": _pretty(msgspec.json.encode({**info, "sandboxes": []}))}
    storage = old / "storage" / "session"
    for path in sorted(storage.glob("info/*.json")):
        session = _object.decode(path.read_bytes())
        session["projectID"] = msgspec.Raw(msgspec.json.encode(project))
        session.setdefault("directory", msgspec.Raw(msgspec.json.encode(str(worktree))))
        files[f"session/{project}/{path.name}"] = _pretty(msgspec.json.encode(session))
        for message in sorted(storage.glob(f"message/{path.stem}/*.json")):
            files[f"message/{path.stem}/{message.name}"] = _pretty(message.read_bytes())
            for part in sorted(storage.glob(f"part/{path.stem}/{message.stem}/*.json")):
                files[f"part/{message.stem}/{part.name}"] = _pretty(part.read_bytes())
    return files


class _Path(msgspec.Struct):
    root: str = ""


class _Message(msgspec.Struct):
    path: _Path | None = None


def _worktree(old: Path) -> Path | None:
    """Where the project was worked on, as any of its messages says; None when that is gone."""
    for message in sorted(old.glob("storage/session/message/*/*.json")):
        try:
            found = typed.decode(message.read_bytes(), _Message)
        except (OSError, msgspec.MsgspecError):
            continue
        if found.path is not None and found.path.root:
            worktree = Path(found.path.root)
            return worktree if worktree.is_dir() else None
    return None


def _root_commit(worktree: Path) -> str:
    """The id of a project: the first of its root commits, sorted; empty when it has none."""
    try:
        asked = git.run(["rev-list", "--max-parents=0", "--all"], cwd=worktree, timeout_s=60)
    except (OSError, SubprocessError):
        return ""
    return min(asked.stdout.decode("ascii", "replace").split(), default="") if asked.returncode == 0 else ""


def extract_diffs(root: Path, disk: Disk) -> None:
    """1 → 2: the diffs in a session's summary move to a file of their own; the summary keeps their sums."""
    before: dict[str, bytes] = {}
    diffs: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    for path in disk.walk("session"):
        raw = disk.read(path)
        try:
            session = _object.decode(raw)
            summary = msgspec.json.decode(
                session.get("summary", msgspec.Raw(b"null")), type=dict[str, object] | None
            )
        except msgspec.MsgspecError:
            continue  # A damaged file stays what it is; `examine` names it.
        listed = None if summary is None else summary.get("diffs")
        if not isinstance(listed, list):
            continue
        sums = {name: sum(_count(diff, name) for diff in listed) for name in ("additions", "deletions")}
        session["summary"] = msgspec.Raw(msgspec.json.encode({**sums, "files": len(listed)}))
        before[f"{layout.MIGRATION}-1.backup/{path}"] = raw
        diffs[f"session_diff/{path.rpartition('/')[2]}"] = _pretty(msgspec.json.encode(listed))
        after[path] = _pretty(msgspec.json.encode(session))
    if not before:
        return
    disk.replace_all(before)
    disk.replace_all(diffs)
    for path, content in diffs.items():
        if disk.read(path) != content:
            raise StoreError(
                f"{root / path} was not written as it should be; the copy is in {layout.MIGRATION}-1.backup"
            )
    disk.replace_all(after)


def _count(diff: object, name: str) -> int | float:
    found = diff.get(name, 0) if isinstance(diff, dict) else 0
    return found if isinstance(found, (int, float)) else 0


def _pretty(raw: bytes) -> bytes:
    return msgspec.json.format(raw, indent=2)


MIGRATIONS: tuple[Callable[[Path, Disk], None], ...] = (gather_projects, extract_diffs)
