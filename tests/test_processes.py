"""Processes by the mark that they carry in their environment."""

import os
import subprocess
import sys

import pytest

from holdfast import processes
from tests.until import until


async def test_a_process_that_changes_its_program_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel shows no variables in the moment between two programs: that is not taken for none."""
    program = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    child = subprocess.Popen(
        program, env={**os.environ, processes.MARK: "known"}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    try:
        await until(lambda: processes.strays("known") == [child.pid])
        plain, looks = processes._read, list[str]()

        def empty_at_first(path: str) -> bytes:
            looks.append(path)
            return plain(path) if looks.count(path) > 1 else b""

        monkeypatch.setattr(processes, "_read", empty_at_first)
        assert processes.strays("known") == [child.pid]
    finally:
        child.communicate()
