"""The world of a test of settings."""

from pathlib import Path

import pytest

from tests.config.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path.resolve())
