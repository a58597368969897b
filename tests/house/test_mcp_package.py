"""The package `mcp` costs half a second and 38 MB: it is loaded with the first server, and by one folder."""

import re
import subprocess
import sys

import pytest

from tests.house.levels import SRC

PACKAGE = re.compile(
    r"^\s*(?:from|import) (?:mcp|mcp_types|pydantic|starlette|uvicorn|sse_starlette)\b.*", re.MULTILINE
)
AT_ONCE = re.compile(r"^(?:from|import) holdfast\.tools\.mcp\.wire\b.*", re.MULTILINE)
WIRE = SRC / "tools" / "mcp" / "wire"


def test_one_folder_imports_the_package() -> None:
    """And no other module imports that folder when it is loaded itself."""
    others = [path for path in sorted(SRC.rglob("*.py")) if not path.is_relative_to(WIRE)]
    texts = {str(path.relative_to(SRC)): path.read_text("utf-8") for path in others}
    found = {name: [*PACKAGE.findall(text), *AT_ONCE.findall(text)] for name, text in texts.items()}

    assert PACKAGE.search((WIRE / "link.py").read_text("utf-8"))
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.ci
def test_an_application_without_servers_does_not_load_it() -> None:
    """Nor does one that has built its engine."""
    look = (
        "import sys, holdfast.app, holdfast.sessions.prompts, holdfast.sessions.mcp_servers;"
        "import holdfast.runtime.process.coordinator, holdfast.cli.mcp.group, holdfast.cli.mcp.list;"
        "print([name for name in ('mcp', 'mcp_types', 'pydantic', 'uvicorn') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60)

    assert ran.stdout == "[]\n"
