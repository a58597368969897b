"""A skill that was loaded: its text, and its folder, which may be read from then on and only then."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from holdfast.app import Holdfast
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.store.batch import Batch
from holdfast.store.put import put as put_record
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.stories.permissions import outcomes
from tests.stories.world import World


def put(folder: Path, name: str = "deploy", **files: str) -> Path:
    """A skill with files beside it."""
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: How to deploy\n---\nDo it by hand.\n")
    for each, text in files.items():
        (folder / f"{each}.md").write_text(text)
    return folder


@pytest.fixture
def folder(world: World) -> Path:
    """A skill of the user's, in the config folder that is closed to tools."""
    return put(world.home / ".config/holdfast/skills/deploy", more="more of it\n")


async def said(hf: Holdfast, session: str) -> list[tuple[str, str]]:
    return outcomes((await hf.sessions.messages(session)).messages)


def loaded(messages: Iterable[MessageWithParts]) -> tuple[ToolPart, ToolCompleted]:
    """The first call that succeeded."""
    return next(
        (part, part.state)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted)
    )


def load(name: str = "deploy") -> Step:
    return Step(Call("skill", {"name": name}, id="s"))


def read(path: Path | str, id: str = "r") -> Step:
    return Step(Call("read", {"filePath": str(path)}, id=id))


async def test_a_skill_is_loaded(world: World, folder: Path) -> None:
    """Its text without the front matter, its folder, and files beside it; the record names both."""
    async with world.open(load(), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        ((outcome, text),) = await said(hf, session)
        page = await hf.sessions.messages(session)
    _, state = loaded(page.messages)
    assert (outcome, text) == (
        "completed",
        (
            f'<skill_content name="deploy">\nDo it by hand.\n\nThe folder of this skill: {folder}\n'
            f"Relative paths in it start there. Some of its files:\n{folder}/more.md\n</skill_content>"
        ),
    )
    assert state.title == "Loaded the skill deploy"
    assert (state.metadata["name"], state.metadata["dir"]) == ("deploy", str(folder))


async def test_an_unknown_skill_is_answered_with_those_that_there_are(world: World, folder: Path) -> None:
    """Not those that the rules deny; a name is never a path."""
    put(folder.parent / "secret", "secret")
    world.settings(permission={"skill": {"*": "allow", "secret": "deny"}})
    async with world.open(load("deplpy"), load("../deploy"), load("secret"), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        there = "There is no skill of that name. There are: deploy."
        assert await said(hf, session) == [
            ("error", there),
            ("error", there),
            ("error", "The rules deny skill for secret."),
        ]


async def test_without_any_the_model_goes_on(world: World) -> None:
    """There is nothing to list."""
    async with world.open(load(), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        assert await said(hf, session) == [("error", "There are no skills here. Go on without one.")]


async def test_the_folder_opens_with_the_load_and_survives_a_restart(world: World, folder: Path) -> None:
    """Before it is closed; after it file, folder and search are open, also in another process."""
    async with world.open(read(folder / "more.md", "a"), load(), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        before, _ = await said(hf, session)
    assert before[0] == "error"
    assert "belongs to Holdfast itself" in before[1]

    grep = {"pattern": "more of", "path": str(folder)}
    async with world.open(
        read(folder / "more.md", "b"),
        read(folder, "c"),
        Step(Call("grep", grep, id="d")),
        Step(Call("list", {"path": str(folder)}, id="e")),
        Step(Say("ok")),
    ) as (hf, _):
        await hf.sessions.process(session, "again")
        after = (await said(hf, session))[2:]
    assert [outcome for outcome, _ in after] == ["completed"] * 4
    assert "more of it" in after[0][1]
    assert "SKILL.md" in after[1][1]
    assert "Found 1 match" in after[2][1]


async def test_nothing_else_opens(world: World, folder: Path, tmp_path: Path) -> None:
    """Not what lies beside the skill, not what its links lead to; another session has to load it itself."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (folder / "link").symlink_to(secret)
    settings = folder.parents[1] / "holdfast.json"
    (folder / "settings").symlink_to(settings)
    other = put(folder.parent / "other", "other")
    paths = (
        settings,
        folder.parent,
        other / "SKILL.md",
        folder / "link",
        folder / "settings",
        folder / "../..",
    )
    steps = [read(path, f"r{number}") for number, path in enumerate(paths)]
    async with world.open(
        load(), *steps, Step(Say("ok")), read(folder / "more.md", "x"), Step(Say("ok"))
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        assert [outcome for outcome, _ in await said(hf, session)] == ["completed"] + ["error"] * len(paths)
        stranger = await world.session(hf)
        await hf.sessions.process(stranger, "go")
        ((outcome, _),) = await said(hf, stranger)
        assert outcome == "error"


async def test_a_load_that_was_denied_opens_nothing(world: World, folder: Path) -> None:
    """Nor does one of before, once the rules deny the skill."""
    async with world.open(load(), read(folder / "more.md"), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        assert [outcome for outcome, _ in await said(hf, session)] == ["completed", "completed"]
    world.settings(permission={"skill": {"deploy": "deny"}})
    async with world.open(
        read(folder / "more.md", "x"), Step(Say("ok")), load(), read(folder / "more.md", "y"), Step(Say("ok"))
    ) as (hf, _):
        await hf.sessions.process(session, "go")
        assert (await said(hf, session))[-1][0] == "error"
        fresh = await world.session(hf)
        await hf.sessions.process(fresh, "go")
        assert [outcome for outcome, _ in await said(hf, fresh)] == ["error", "error"]


async def test_a_record_made_elsewhere_opens_nothing(world: World, folder: Path) -> None:
    """An imported session may name any folder: only a skill of that name at that place counts."""
    keys = world.home / ".ssh"
    keys.mkdir()
    (keys / "id").write_text("key")
    async with world.open(load(), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        part, state = loaded((await hf.sessions.messages(session)).messages)
        forged = msgspec.structs.replace(state, metadata={**state.metadata, "dir": str(keys)})
        await hf.store.commit(Batch((put_record(msgspec.structs.replace(part, state=forged)),)))
    async with world.open(read(keys / "id", "a"), read(folder / "more.md", "b"), Step(Say("ok"))) as (hf, _):
        await hf.sessions.process(session, "go")
        assert [outcome for outcome, _ in (await said(hf, session))[1:]] == ["error", "error"]


async def test_a_skill_that_is_gone_opens_nothing(world: World, folder: Path) -> None:
    """What lies in its place now is no skill."""
    async with world.open(load(), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "more.md").write_text("new")
    async with world.open(read(folder / "more.md"), Step(Say("ok"))) as (hf, _):
        await hf.sessions.process(session, "go")
        assert (await said(hf, session))[-1][0] == "error"
