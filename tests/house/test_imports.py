"""Imports point downward only, and rooms on one line are strangers (design, "The house").

Every import counts: at the head of a file, inside a function, under TYPE_CHECKING, relative, or by
`import_module("holdfast...")`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.levels import SRC, violations


@pytest.mark.ci
def test_imports_point_downward() -> None:
    """No file of the package imports from its own line or from above."""
    assert list(SRC.rglob("*.py")), "no sources found"
    assert violations(SRC) == []


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("store/base.py", "import holdfast.runtime.turn", "store/base.py:1: store (2) imports runtime (9)"),
        ("store/base.py", "from holdfast import app", "store/base.py:1: store (2) imports app (12)"),
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
            "client/http.py:2: client (14) imports server (14)",
        ),
        (
            "context/__init__.py",
            "from holdfast.context import sources",
            "context/__init__.py:1: context (1) imports context.sources (3)",
        ),
        (
            "runtime/calls/tool_calls.py",
            "from holdfast.runtime.epoch import pins",
            "runtime/calls/tool_calls.py:1: runtime.calls (6) imports runtime.epoch (6)",
        ),
        (
            "runtime/answer/ending.py",
            "from holdfast.runtime import boundary",
            "runtime/answer/ending.py:1: runtime.answer (7) imports runtime (9)",
        ),
        ("errors.py", "from holdfast.schema import ids", "errors.py:1: errors (0) imports schema (0)"),
        (
            "testing/store.py",
            "from holdfast import open",
            "testing/store.py:1: testing (12) imports __init__ (14)",
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
