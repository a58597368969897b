"""An open runtime over a temporary store, with a clock of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import holdfast
from holdfast.app import Holdfast
from holdfast.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    """Time stands still unless a test moves it."""
    return FakeClock()


@pytest.fixture(params=["sqlite", "file"])
async def hf(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Holdfast]:
    """The library as a caller has it."""
    async with holdfast.open(f"{request.param}://{tmp_path}/store", clock=clock) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that counts as a repository of its own."""
    monkeypatch.setenv("HOLDFAST_FAKE_VCS", "git")
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
