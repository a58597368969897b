"""How the files of an undo come to the disk: together, and in an order that a power cut may stop anywhere."""

import os
from pathlib import Path

import pytest

from holdfast.location import write_path
from holdfast.location.write_path import New
from tests.sessions.undo_world import LINES, UndoWorld

pytestmark = pytest.mark.needs("git")


@pytest.mark.ci
async def test_many_files_are_synced_together(world: UndoWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many files come back: other processes wait for the end of it, and each sync takes as long as
    a hundred files without one.
    """
    names = [f"f{number % 3}/{number}" for number in range(60)]
    for name in names:
        world.put(name, name.encode())
    await world.prompt()
    await world.agent(dict.fromkeys(names, b"agent\n") | {"new": b"agent\n"})
    plain, count = os.fsync, 0

    def counted(fd: int) -> None:
        nonlocal count
        count += 1
        plain(fd)

    monkeypatch.setattr(os, "fsync", counted)
    await world.revert()
    assert world.files() == {name: name.encode() for name in names}
    await world.unrevert()
    assert world.files() == dict.fromkeys(names, b"agent\n") | {"new": b"agent\n"}
    assert count < 40


@pytest.mark.parametrize(
    ("can", "events"),
    [
        (True, ["all", "put a", "put b", "folder"]),
        (False, ["all", "file", "file", "put a", "put b", "folder"]),
    ],
)
async def test_contents_are_on_the_disk_before_they_take_their_place(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch, can: bool, events: list[str]
) -> None:
    """And so are the names, before the session says that the files are written; also where the system cannot
    sync everything at once.
    """
    for name in "ab":
        world.put(name, LINES)
    await world.prompt()
    await world.agent(dict.fromkeys("ab", b"agent\n"))
    found: list[str] = []
    put, fsync = write_path.put, os.fsync

    def sync_all(fd: int) -> bool:
        del fd
        found.append("all")
        return can

    def sync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.is_relative_to(world.top):
            found.append("folder" if path == world.top else "file")
        fsync(fd)

    def put_logged(new: New) -> None:
        found.append(f"put {new.real.name}")
        put(new)

    monkeypatch.setattr(write_path, "sync_filesystem", sync_all)
    monkeypatch.setattr(write_path, "put", put_logged)
    monkeypatch.setattr(os, "fsync", sync)
    await world.revert()
    assert found == events
