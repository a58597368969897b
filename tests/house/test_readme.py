"""The README's example runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.ci
def test_the_example_runs(tmp_path: Path) -> None:
    """Copied out of the page, on a store of its own, it prints what it promises."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    code = found[1].replace("/tmp/example.db", f"{tmp_path}/example.db")
    assert str(tmp_path) in code
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60
    )
    assert ran.stdout.splitlines() == [
        "It is about a durable session runtime.",
        "['tool-calls', 'stop']",
    ]
