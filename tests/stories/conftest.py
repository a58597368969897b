"""A world for each story."""

from pathlib import Path

import pytest

from tests.stories.world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A person with one scripted model, a home of their own, and a project."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return World(tmp_path, home)
