"""Managed Tool Output Files: private, unguessable, whole or absent, and removed when their time is over."""

import os
import stat
from pathlib import Path

import pytest

from holdfast.testing.clock import FakeClock
from holdfast.tools import managed_output
from holdfast.tools.managed_output import RETENTION_MS, ManagedOutput


class World:
    """A folder, its clock, and what the operator was told."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.told: list[str] = []
        self.output = ManagedOutput(folder, self.clock, trouble=self.told.append)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "data" / "tool-output")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def kept(world: World, text: str = "x") -> Path:
    path = await world.output.keep(text)
    assert path is not None
    return Path(path)


async def test_a_folder_that_cannot_be_made_is_told_and_answers_none(tmp_path: Path) -> None:
    """A file stands where the folder should be; the message names the place."""
    (tmp_path / "file").write_text("in the way")
    world = World(tmp_path / "file")

    assert await world.output.keep("text") is None
    assert world.told == [f"tool output could not be kept in {tmp_path}/file: Not a directory"]


async def test_a_folder_of_somebody_else_is_not_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """They could read what is put there."""
    world.output.folder.mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: world.output.folder.stat().st_uid + 1)

    assert await world.output.keep("text") is None
    assert list(world.output.folder.iterdir()) == []
    why = "the folder belongs to another user"
    assert world.told == [f"tool output could not be kept in {world.output.folder}: {why}"]


async def test_a_text_beyond_the_bound_is_not_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call cannot fill the disk."""
    monkeypatch.setattr(managed_output, "FILE_BYTES_MAX", 3)

    assert await world.output.keep("four") is None
    why = "4 bytes are more than the 3 that one file may have"
    assert world.told == [f"tool output could not be kept in {world.output.folder}: {why}"]


async def test_a_write_that_fails_leaves_no_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: nothing half-written stays under a name of ours."""

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert await world.output.keep("text") is None
    assert list(world.output.folder.iterdir()) == []
    assert world.told == [f"tool output could not be kept in {world.output.folder}: No space left on device"]


async def test_a_text_is_kept_exactly_in_a_private_file(world: World) -> None:
    """Folder 0700, file 0600, whatever the umask; line ends as they were."""
    before = os.umask(0)
    try:
        path = await kept(world, "é\r\nline\n")
    finally:
        os.umask(before)

    assert path.read_bytes() == "é\r\nline\n".encode()
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert path.is_absolute()
    assert world.told == []


async def test_an_open_folder_is_closed_to_others(world: World) -> None:
    """It may have been made by hand."""
    world.output.folder.mkdir(parents=True, mode=0o755)
    await kept(world)
    assert mode(world.output.folder) == 0o700


async def test_names_are_unique_and_start_with_our_prefix(world: World) -> None:
    """The same text twice is two files."""
    names = {(await kept(world)).name for _ in range(20)}

    assert len(names) == 20
    assert all(name.startswith("tool_") and len(name) == 31 for name in names)


async def test_the_sweep_removes_old_files_of_ours_and_nothing_else(world: World, tmp_path: Path) -> None:
    """Not younger ones, not foreign names, not links nor what they lead to, not folders."""
    old, young = await kept(world), await kept(world)
    folder = world.output.folder
    target = tmp_path / "target"
    foreign = [target, folder / "notes.txt", folder / "tool_short"]
    for path in foreign:
        path.write_text("mine")
    link = folder / f"tool_{'l' * 26}"
    link.symlink_to(target)
    directory = folder / f"tool_{'d' * 26}"
    directory.mkdir()
    now_s = world.clock.now_ms() / 1000
    for path in (old, *foreign, directory):
        os.utime(path, (now_s, now_s))
    world.clock.advance(RETENTION_MS + 1)
    now_s = world.clock.now_ms() / 1000
    os.utime(young, (now_s, now_s))
    os.utime(link, (0, 0), follow_symlinks=False)

    assert await world.output.sweep() == 1
    assert not old.exists()
    assert all(path.exists() for path in (young, link, directory, *foreign))
    assert await world.output.sweep(older_than_ms=-1) == 1
    assert not young.exists()


async def test_a_sweep_without_a_folder_finds_nothing(world: World) -> None:
    """Nothing was ever kept."""
    assert await world.output.sweep() == 0
    assert world.told == []


async def test_a_sweep_that_cannot_look_is_told(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").touch()
    world = World(tmp_path / "file")

    assert await world.output.sweep() == 0
    assert world.told == [f"old tool output in {tmp_path}/file cannot be removed: Not a directory"]


async def test_a_path_of_ours_is_known_also_through_a_link(world: World, tmp_path: Path) -> None:
    """Neighbours, other folders and tricks with dots are not ours."""
    path = await kept(world)
    (tmp_path / "short").symlink_to(world.output.folder)

    assert world.output.is_managed(path)
    assert world.output.is_managed(tmp_path / "short" / path.name)
    assert world.output.is_managed(f"{path.parent}/x/../{path.name}")
    for other in (
        path.parent,
        path.parent / "notes",
        tmp_path / path.name,
        f"{path}/",
        f"{path}\0",
        f"{path}/..",
    ):
        assert not world.output.is_managed(other)
