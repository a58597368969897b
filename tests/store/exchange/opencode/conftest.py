"""A store to import into."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.store.base import Store
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """Empty, and beside the source, never in it."""
    handle = await SqliteStore.open(tmp_path / "store.db", clock=FakeClock(), host=FakeHost())
    yield handle
    await handle.close()
