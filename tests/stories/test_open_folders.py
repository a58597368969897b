"""What agents may read and write outside of the project without asking."""

import os
from pathlib import Path

import pytest

from holdfast.person import directories, temporary
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.stories.permissions import outcomes
from tests.stories.world import World


async def said(world: World, *calls: Call, agent: str = "build") -> list[tuple[str, str]]:
    """How calls end, one after the other, where no user can be asked."""
    async with world.open(*(Step(call) for call in calls), Step(Say("done"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go", agent=agent)
        return outcomes((await hf.sessions.messages(session)).messages)


def read(path: Path) -> Call:
    return Call("read", {"filePath": str(path)}, id=f"r{path.name}")


def write(path: Path) -> Call:
    return Call("write", {"filePath": str(path), "content": "x"}, id=f"w{path}")


@pytest.fixture
def tmp(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    system = tmp_path / "tmp"
    system.mkdir()
    monkeypatch.setenv("TMPDIR", str(system))
    return system


async def test_plans_kept_output_and_the_private_temporary_folder_are_read(world: World, tmp: Path) -> None:
    """Also where everything outside is denied; nothing else of the system's temporary folder."""
    world.settings(permission={"external_directory": "deny"})
    open_ = [
        directories.data() / "plans" / "a.md",
        directories.data() / "tool-output" / "b",
        temporary.folder() / "c",
    ]
    closed = [tmp / "d", directories.data() / "plans" / ".." / "auth.json", directories.data() / "plans"]
    for path in (*open_, *closed[:2]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    found = await said(world, *map(read, (*open_, *closed)))
    assert [state for state, _ in found] == ["completed"] * 3 + ["error"] * 3
    assert all("1: content" in text for _, text in found[:3])
    assert "The rules deny external_directory" in found[3][1]
    assert all("belongs to Holdfast itself" in text for _, text in found[4:])


@pytest.mark.parametrize("what", ["link", "file"])
async def test_a_temporary_folder_that_is_not_ours_is_outside(world: World, tmp: Path, what: str) -> None:
    """A link in its place opens nothing."""
    world.settings(permission={"external_directory": "deny"})
    secret = tmp / "secret"
    secret.mkdir()
    (secret / "a").write_text("content")
    folder = tmp / f"holdfast-{os.geteuid()}"
    folder.symlink_to(secret) if what == "link" else folder.write_text("x")
    ((state, text),) = await said(world, read(folder / "a" if what == "link" else folder))
    assert (state, "The rules deny external_directory" in text) == ("error", True)


async def test_the_plan_agent_writes_its_plans_and_nothing_else(world: World, tmp: Path) -> None:
    """In the project and in our own folder."""
    plans = directories.data() / "plans"
    calls = [
        write(world.project / ".holdfast" / "plans" / "a.md"),
        write(plans / "b.md"),
        read(plans / "b.md"),
        write(plans / "c.py"),
        write(plans.parent / "d.md"),
        write(world.project / "e.md"),
    ]
    found = await said(world, *calls, agent="plan")
    assert [state for state, _ in found] == ["completed"] * 3 + ["error"] * 3
    assert sorted(path.name for path in plans.iterdir()) == ["b.md"]


async def test_what_may_be_read_may_not_be_written(world: World, tmp: Path) -> None:
    """Kept output is a record of ours; plans are written by who plans."""
    world.settings(permission={"*": "allow"})
    kept, plan = directories.data() / "tool-output" / "a", directories.data() / "plans" / "a.md"
    for path in (kept, plan):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    found = await said(
        world, read(kept), write(kept), write(kept.parent / "new"), write(temporary.folder() / "b")
    )
    assert [state for state, _ in found] == ["completed", "error", "error", "completed"]
    assert all("belongs to Holdfast itself" in text for _, text in found[1:3])
    assert kept.read_text() == "content"
