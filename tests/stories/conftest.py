"""A world for each story."""

from pathlib import Path

import pytest

from tests.stories.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A person with one scripted model, and a project."""
    return World(tmp_path, Path.home())
