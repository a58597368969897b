"""Imports point downward only, and rooms on one line are strangers (design, "The house").

Every import counts: at the head of a file, inside a function, under TYPE_CHECKING, relative, or by
`import_module("holdfast...")`.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "holdfast"

LEVELS = [
    {"schema", "errors", "clock", "flags", "person", "processes", "version"},
    {"context", "permission", "tool", "net"},
    {"store", "provider", "location", "config", "plugins"},
    {"tools", "context.sources", "feed"},
    {"runtime"},
    {"sessions"},
    {"app", "testing"},
    {"server", "client", "__init__"},  # __init__.py only hands out what app.py builds
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}

# The only rooms that know somebody on their own line.
NEIGHBOURS = {("schema", "errors"), ("schema", "clock"), ("person", "errors"), ("flags", "errors")}


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


def violations(root: Path) -> list[str]:
    found = []
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        parts = list(inside.with_suffix("").parts)
        name = ".".join(parts) if parts == ["__init__"] else ".".join(parts).removesuffix(".__init__")
        room = room_of(name)
        if room is None:
            found.append(f"{inside}: stands in no room of the house")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for line, target in imported(tree, ["holdfast", *parts[:-1]]):
            if target.split(".")[0] != "holdfast":
                continue
            # What is no room must be a name of the package itself: `from holdfast import open`.
            other = room_of(target.removeprefix("holdfast.")) or "__init__"
            if other == room or LEVEL[other] < LEVEL[room] or (room, other) in NEIGHBOURS:
                continue
            found.append(f"{inside}:{line}: {room} ({LEVEL[room]}) imports {other} ({LEVEL[other]})")
    return found


@pytest.mark.ci
def test_imports_point_downward() -> None:
    """No file of the package imports from its own line or from above."""
    assert list(SRC.rglob("*.py")), "no sources found"
    assert violations(SRC) == []


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("store/base.py", "import holdfast.runtime.turn", "store/base.py:1: store (2) imports runtime (4)"),
        ("store/base.py", "from holdfast import app", "store/base.py:1: store (2) imports app (6)"),
        ("store/a/b.py", "from ...config import load", "store/a/b.py:1: store (2) imports config (2)"),
        ("net/__init__.py", "from .. import store", "net/__init__.py:1: net (1) imports store (2)"),
        (
            "feed/tail.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import holdfast.tools.registry",
            "feed/tail.py:3: feed (3) imports tools (3)",
        ),
        (
            "schema/ids.py",
            "def now():\n    from holdfast.store import base",
            "schema/ids.py:2: schema (0) imports store (2)",
        ),
        (
            "client/http.py",
            "import importlib\nimportlib.import_module('holdfast.server.app')",
            "client/http.py:2: client (7) imports server (7)",
        ),
        (
            "context/__init__.py",
            "from holdfast.context import sources",
            "context/__init__.py:1: context (1) imports context.sources (3)",
        ),
        ("errors.py", "from holdfast.schema import ids", "errors.py:1: errors (0) imports schema (0)"),
        (
            "testing/store.py",
            "from holdfast import open",
            "testing/store.py:1: testing (6) imports __init__ (7)",
        ),
        ("utils.py", "", "utils.py: stands in no room of the house"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, file: str, source: str, complaint: str) -> None:
    """The check names file, line and both rooms for each way to import upward or sideways."""
    plant(tmp_path, file, source)

    assert violations(tmp_path) == [complaint]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            "__init__.py",
            "from holdfast.version import __version__\ndef f():\n    from holdfast.app import open",
        ),
        ("__main__.py", "from holdfast.cli.main import main"),
        ("cli/chat/screen.py", "from holdfast import __version__\nfrom ..main import main"),
        (
            "context/sources/date.py",
            "from holdfast.context.registry import Registry\nfrom .. import snapshot",
        ),
        ("schema/ids.py", "from holdfast.clock import Clock\nfrom holdfast.errors import CallerError"),
        ("store/tables/writer.py", "import os\nfrom holdfast.store.base import Store\nfrom . import tables"),
    ],
)
def test_imports_downward_and_within_a_room_are_free(tmp_path: Path, file: str, source: str) -> None:
    """What the house allows is not reported."""
    plant(tmp_path, file, source)

    assert violations(tmp_path) == []


def plant(root: Path, file: str, source: str) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")


def python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


def test_importing_the_package_loads_only_the_version() -> None:
    """`import holdfast` is free: it loads itself, the version, and nothing that a bare start has not."""
    loaded = python(
        "import sys; before = set(sys.modules); import holdfast; print(*sorted(set(sys.modules) - before))"
    )

    assert loaded == "holdfast holdfast.version"


def test_windows_is_refused_in_one_sentence() -> None:
    """On Windows the import fails with an ImportError that says what Holdfast needs."""
    said = python(
        "import sys\nsys.platform = 'win32'\n"
        "try:\n    import holdfast\nexcept ImportError as refusal:\n    print(refusal)"
    )

    assert said == "Holdfast does not run on Windows: it needs Linux or macOS (WSL works as Linux)."
