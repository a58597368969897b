"""The world of a test of sources."""

from pathlib import Path

import pytest

from tests.context.sources.world import SourceWorld, Told


@pytest.fixture
def world(tmp_path: Path) -> SourceWorld:
    return SourceWorld(tmp_path.resolve())


@pytest.fixture
def told() -> Told:
    return Told()
