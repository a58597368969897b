"""Files that became folders, and folders that became files."""

import pytest

from holdfast.errors import UndoConflict
from tests.sessions.undo_world import UndoWorld

pytestmark = pytest.mark.needs("git")


async def test_a_file_that_became_a_folder(world: UndoWorld) -> None:
    """It comes back, and so does the folder."""
    world.put("b", b"file\n")
    await world.prompt()
    await world.agent({"b": None}, observed=True)
    await world.agent({"b/c/d": b"1\n", "b/e": b"2\n"}, observed=True)

    assert await world.revert() == {"b": "restored", "b/c/d": "deleted", "b/e": "deleted"}
    assert world.files() == {"b": b"file\n"}
    assert await world.unrevert() == {"b": "deleted", "b/c/d": "restored", "b/e": "restored"}
    assert world.files() == {"b/c/d": b"1\n", "b/e": b"2\n"}


async def test_a_folder_that_became_a_file(world: UndoWorld) -> None:
    """The other way round."""
    world.put("b/c/d", b"file\n")
    await world.prompt()
    await world.agent({"b/c/d": None}, observed=True)
    (world.top / "b/c").rmdir()
    (world.top / "b").rmdir()
    await world.agent({"b": b"1\n"}, observed=True)

    assert await world.revert() == {"b": "deleted", "b/c/d": "restored"}
    assert world.files() == {"b/c/d": b"file\n"}
    assert await world.unrevert() == {"b": "restored", "b/c/d": "deleted"}
    assert world.files() == {"b": b"1\n"}


async def test_what_the_user_has_there_stays_in_the_way(world: UndoWorld) -> None:
    """A file of theirs in the folder, a link in it, and a file of theirs in the place of the folder."""
    world.put("b", b"file\n")
    world.put("x/y", b"file\n")
    await world.prompt()
    await world.agent({"b": None, "x/y": None}, observed=True)
    await world.agent({"b/c": b"1\n"}, observed=True)
    world.put("b/mine", b"mine\n")
    (world.top / "x").rmdir()
    world.put("x", b"mine\n")
    files = world.files()

    with pytest.raises(UndoConflict) as raised:
        await world.revert()
    assert [path for path, *_ in raised.value.files] == ["b", "x/y"]
    (world.top / "b/mine").unlink()
    (world.top / "b/link").symlink_to(world.top)
    with pytest.raises(UndoConflict) as raised:
        await world.revert()
    assert [path for path, *_ in raised.value.files] == ["b", "x/y"]
    assert world.files() | {"b/mine": b"mine\n"} == files
