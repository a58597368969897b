"""The levels of the house: which room may import which, and who really does."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.house.parsing import parsed

SRC = Path(__file__).parents[2] / "src" / "holdfast"

LEVELS = [
    {
        "schema",
        "errors",
        "clock",
        "closing",
        "file_lock",
        "flags",
        "git",
        "person",
        "processes",
        "secret_text",
        "sync_filesystem",
        "take_name",
        "text",
        "version",
    },
    {"context", "log", "permission", "toolkit", "net"},
    {"store", "provider", "location", "config", "plugins"},
    {"tools", "context.sources", "feed", "workspace"},
    {"runtime.history"},
    {"runtime.engine"},
    {"runtime.epoch", "runtime.calls", "runtime.budget"},
    {"runtime.answer", "runtime.undo"},
    {"runtime.compaction", "runtime.inbox", "runtime.side_calls"},
    {"runtime"},  # the spine: drain, turn, boundary, recovery
    {"runtime.process"},
    {"sessions"},
    {"app", "testing"},
    {"one_prompt"},
    {"server", "client", "__init__"},  # __init__.py only names what stands below
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}

# The only rooms that know another one on their own level.
NEIGHBOURS = {
    ("schema", "errors"),
    ("schema", "clock"),
    ("schema", "text"),
    ("file_lock", "errors"),
    ("file_lock", "person"),
    ("person", "errors"),
    ("flags", "errors"),
}


def room_of(module: str) -> str | None:
    """Name the room of a module given without its leading `holdfast.`, the inner room first."""
    parts = module.split(".")
    return next((room for room in (".".join(parts[:2]), parts[0]) if room in LEVEL), None)


def imported(tree: ast.Module, package: list[str]) -> Iterator[tuple[int, str]]:
    """Yield line and full dotted target of each import; `from a import b` gives `a.b`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else []
                head = ".".join([*base, *([module] if module else [])])
                yield from ((node.lineno, f"{head}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id=called) | ast.Attribute(attr=called),
                args=[ast.Constant(value=str(target)), *_],
            ) if called in {"import_module", "__import__"}:
                yield node.lineno, target


def arrows(root: Path) -> Iterator[tuple[Path, int, str | None, str]]:
    """Each import of one room by another: file, line, the importing room (None: in no room), the imported."""
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        parts = list(inside.with_suffix("").parts)
        name = ".".join(parts) if parts == ["__init__"] else ".".join(parts).removesuffix(".__init__")
        room = room_of(name)
        if room is None:
            yield inside, 0, None, ""
            continue
        tree = parsed(path)
        for line, target in imported(tree, ["holdfast", *parts[:-1]]):
            if target.split(".")[0] == "holdfast":
                # What is no room must be a name of the package itself: `from holdfast import open`.
                other = room_of(target.removeprefix("holdfast.")) or "__init__"
                if other != room:
                    yield inside, line, room, other


def violations(root: Path) -> list[str]:
    """Imports that point upward or sideways, and files that stand in no room."""
    found = []
    for file, line, room, other in arrows(root):
        if room is None:
            found.append(f"{file}: stands in no room of the house")
        elif LEVEL[other] >= LEVEL[room] and (room, other) not in NEIGHBOURS:
            found.append(f"{file}:{line}: {room} ({LEVEL[room]}) imports {other} ({LEVEL[other]})")
    return found


def charter(room: str, root: Path = SRC) -> str:
    """The first sentence of a room's docstring."""
    path = root / room.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(parsed(source)) or ""
    return " ".join(text.split("\n\n")[0].split())


def drawing(root: Path = SRC) -> str:
    """The house from its top: each room, what it is for, and the rooms that it really imports."""
    uses: defaultdict[str, set[str]] = defaultdict(set)
    for _, _, room, other in arrows(root):
        if room is not None:
            uses[room].add(other)
    lines = ["| level | room | is | imports |", "|---:|---|---|---|"]
    for level, rooms in reversed(list(enumerate(LEVELS))):
        for room in sorted(rooms & uses.keys() | {each for each in rooms if (root / each).is_dir()}):
            below = sorted(uses[room], key=lambda each: (-LEVEL[each], each))
            named = (
                room.replace(".", "/")
                .replace("__init__", "holdfast")
                .replace("__main__", "python -m holdfast")
            )
            lines.append(f"| {level} | `{named}` | {charter(room, root)} | {', '.join(below)} |")
    return "\n".join(lines)
