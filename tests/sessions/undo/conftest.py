"""A project with a session in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.clock import FakeClock
from tests.sessions.undo_world import UndoWorld


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[UndoWorld]:
    """In no repository; the shadow repository lies in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    top = tmp_path / "project"
    top.mkdir()
    clock = FakeClock()
    async with holdfast.open(f"sqlite://{tmp_path}/store.db", clock=clock) as hf:
        yield await UndoWorld(hf, clock, top).begin()
