"""Two stores of their own for each test: one to export from, one to import into."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.store.base import Store
from tests.store.exchange.portable.world import opened


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """Where things come from."""
    handle = await opened(tmp_path / "one")
    yield handle
    await handle.close()


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Store]:
    """Where things go."""
    handle = await opened(tmp_path / "two")
    yield handle
    await handle.close()
