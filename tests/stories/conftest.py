"""A world for each story; for some of them several processes in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.testing.mock_provider import MockProvider
from tests.stories.processes import LEASE_MS, Place, Worker
from tests.stories.world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A person with one scripted model, a home of their own, and a project."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return World(tmp_path, home)


@pytest.fixture
async def mock() -> AsyncIterator[MockProvider]:
    """A provider on this machine."""
    async with MockProvider() as provider:
        yield provider


@pytest.fixture
def place(tmp_path: Path, mock: MockProvider) -> Place:
    """A person, a project, a store."""
    return Place(tmp_path, mock)


@pytest.fixture
async def workers(place: Place, request: pytest.FixtureRequest) -> AsyncIterator[tuple[Worker, Worker]]:
    """Two processes with a lease that nobody loses, or with one that the test names."""
    lease_ms = getattr(request, "param", LEASE_MS)
    one, two = [await Worker.start(place, lease_ms=lease_ms) for _ in range(2)]
    try:
        yield one, two
    finally:
        for worker in (one, two):
            await worker.kill()
