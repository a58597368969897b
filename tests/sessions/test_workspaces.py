"""Readings of workspaces are used for a moment, and are not kept without a bound."""

from pathlib import Path

import pytest

import holdfast
from holdfast.sessions import workspaces
from holdfast.sessions.workspaces import Workspaces


async def test_readings_do_not_grow_with_the_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server meets as many directories as its users have: only so many readings are remembered."""
    monkeypatch.setattr(workspaces, "KNOWN_MAX", 2)
    folders = [tmp_path / name for name in "abcde"]
    async with holdfast.open(f"sqlite://{tmp_path}/store.db") as hf:
        known = Workspaces(hf.sessions.access, hf.trust)
        for folder in folders:
            folder.mkdir()
            session = await hf.sessions.create(directory=folder, title="x")
            assert (await known.of(session)) is (await known.of(session))

    assert len(known._known) <= 2
