"""The store, credentials and settings of the person, which no file tool reaches, whatever the rules allow."""

from pathlib import Path

import pytest

from holdfast.person import directories
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.stories.permissions import outcomes
from tests.stories.world import World


async def refused(world: World, path: Path, *, folder: Path | None = None) -> list[bool]:
    """Whether each file tool refuses a path, and whether a search from its project passes over it."""
    world.settings(permission={"*": "allow", "external_directory": "allow"})
    named = str(path)
    calls = [
        Call("read", {"filePath": named}, id="read"),
        Call("write", {"filePath": named, "content": "x"}, id="write"),
        Call("edit", {"filePath": named, "oldString": "a", "newString": "b"}, id="edit"),
        Call("list", {"path": str(folder or path)}, id="list"),
        Call("grep", {"pattern": "x", "path": named}, id="grep"),
        Call("glob", {"pattern": "*", "path": str(folder or path)}, id="glob"),
    ]
    async with world.open(*(Step(call) for call in calls), Step(Say("done"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        found = outcomes((await hf.sessions.messages(session)).messages)
    return [state == "error" and "belongs to Holdfast itself" in text for state, text in found]


@pytest.mark.parametrize("name", ["data", "config", "opencode_data", "opencode_config"])
async def test_the_folders_of_the_person_are_closed(world: World, name: str) -> None:
    """Ours and those of OpenCode."""
    folder: Path = getattr(directories, name)()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "x.json").write_text("x")
    assert await refused(world, folder / "x.json", folder=folder) == [True] * 6


@pytest.mark.ci
async def test_a_store_elsewhere_is_closed_with_what_lies_beside_it(world: World, tmp_path: Path) -> None:
    """A tree, also in the project; a database with its log, and its journal before there is one."""
    real = world.project.resolve()
    world.store = f"file://{real}/tree"
    assert await refused(world, real / "tree/session/x.json", folder=real / "tree") == [True] * 6
    world.store = f"sqlite://{tmp_path}/elsewhere/own.db"
    for ending in ("", "-wal", "-journal", "-backups/x", ".20260101-000000.backup"):
        path = tmp_path / f"elsewhere/own.db{ending}"
        if ending.endswith(".backup"):
            path.write_text("x")
        assert await refused(world, path) == [True] * 6, ending
    other = tmp_path / "elsewhere/own.txt"
    other.write_text("x")
    assert (await refused(world, other))[0] is False


@pytest.mark.ci
@pytest.mark.parametrize("variable", ["HOLDFAST_CONFIG", "HOLDFAST_CONFIG_DIR", "OPENCODE_CONFIG"])
async def test_settings_that_the_environment_names_are_closed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A file, and a folder with all that is in it; what the name leads to in the project is the project's."""
    own = tmp_path / "mine" / "my.json"
    own.parent.mkdir()
    own.write_text("{}")
    (world.project / "mine").mkdir()
    (world.project / "mine" / "my.json").write_text("{}")
    is_folder = variable.endswith("DIR")
    monkeypatch.setenv(variable, str(own.parent if is_folder else own))
    assert await refused(world, own, folder=own.parent if is_folder else own) == [True] * 6
    monkeypatch.setenv(variable, "mine" if is_folder else "mine/my.json")
    assert (await refused(world, world.project / "mine" / "my.json"))[0] is False
