"""Whose a change of a file is: what undo takes back, and what it says that it cannot know."""

import os

import anyio
import pytest

from holdfast.schema.request import PermissionAnswer, PermissionRequest
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories.undo import ALLOWED, act, command, edit, outcomes, turn, write
from tests.stories.world import World

pytestmark = pytest.mark.needs("git")


async def test_what_the_user_does_during_a_step_of_edits_is_theirs(world: World) -> None:
    """The tools of the step note what they write, so that nothing else in it can be the agent's."""
    world.settings(permission={"edit": "ask"}, snapshot=True)
    (world.project / "mine").write_text("one\n")

    async def on_ask(_: PermissionRequest) -> PermissionAnswer | None:
        (world.project / "mine").write_text("two\n")
        (world.project / "new").write_text("the user's\n")
        return PermissionAnswer(reply="once")

    async with world.open(*turn(write("a", "1\n")), on_ask=on_ask) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        undo = await hf.sessions.revert(session)

    assert outcomes(undo) == {"a": "deleted"}
    assert {path.name: path.read_text() for path in world.project.iterdir()} == {
        "mine": "two\n",
        "new": "the user's\n",
    }


async def test_a_name_that_is_no_text(world: World) -> None:
    """The step goes on; the file is named as well as can be, and stays."""
    world.settings(permission=ALLOWED, snapshot=True)
    line = "open(b'odd-\\xff', 'w').write('x'); open('plain', 'w').write('x')"
    async with world.open(*turn(act(line))) as (hf, _):
        hf.tools.register(command())
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go")
        undo = await hf.sessions.revert(session)

    assert answer.text == "done"
    assert outcomes(undo) == {"odd-\ufffd": "not covered", "plain": "deleted"}
    assert [os.fsencode(path.name) for path in world.project.iterdir()] == [b"odd-\xff"]


async def test_without_snapshots_undo_says_what_is_not_known(world: World) -> None:
    """The calls that may have changed files are named, step by step."""
    world.settings(permission=ALLOWED, snapshot=False)
    async with world.open(*turn(write("a", "1\n"), act("open('b', 'w')"))) as (hf, _):
        hf.tools.register(command())
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        said = [each.info.id for each in (await hf.sessions.messages(session)).messages[1:3]]
        undo = await hf.sessions.revert(session, preview=True)

    assert (undo.files, undo.notes) == (
        (),
        tuple(
            f"message {id} had no snapshot of the files: what its calls of {tool} changed is not known"
            for id, tool in zip(said, ("write", "act"), strict=True)
        ),
    )


@pytest.mark.ci
@pytest.mark.parametrize("processes", [1, 2])
async def test_what_another_session_does_meanwhile_is_not_the_command_s(world: World, processes: int) -> None:
    """Two sessions in one worktree, also of two processes: a write of one, while a command of the other runs,
    is its own.
    """
    world.settings(permission=ALLOWED, snapshot=True)
    begun, go_on = anyio.Event(), anyio.Event()

    @tool(name="slow", description="Writes, and takes its time.")
    async def slow(context: ToolContext) -> str:
        (context.directory / "of the command").write_text("1\n")
        begun.set()
        await go_on.wait()
        return "done"

    writes = turn(write("of the other", "2\n"), edit("of the other", "2", "3"))
    mine = (Step(Call("slow", {})), *(writes if processes == 1 else ()), Step(Say("done")))
    async with (
        world.open(*mine) as (hf, _),
        world.open(*(writes if processes == 2 else ())) as (second, _),
    ):
        hf.tools.register(slow)
        one, other = await world.session(hf), await world.session(hf)
        await hf.sessions.prompt(one, "go")
        with anyio.fail_after(30):
            await begun.wait()
            await (hf if processes == 1 else second).sessions.process(other, "go")
            go_on.set()
            await hf.sessions.wait(one)
        undo = await hf.sessions.revert(one)

    assert outcomes(undo) == {"of the command": "deleted"}
    assert (world.project / "of the other").read_text() == "3\n"


@pytest.mark.ci
async def test_what_a_session_below_does_meanwhile_is_the_command_s_too(world: World) -> None:
    """It is recorded with the step, and goes with it also when the session below is gone."""
    world.settings(permission=ALLOWED, snapshot=True)
    begun, go_on = anyio.Event(), anyio.Event()

    @tool(name="slow", description="Takes its time.")
    async def slow(context: ToolContext) -> str:
        begun.set()
        await go_on.wait()
        return "done"

    async with world.open(Step(Call("slow", {})), *turn(write("below", "2\n")), Step(Say("done"))) as (hf, _):
        hf.tools.register(slow)
        one = await world.session(hf)
        child = await world.session(hf, parent=one)
        await hf.sessions.prompt(one, "go")
        with anyio.fail_after(30):
            await begun.wait()
            await hf.sessions.process(child, "go")
            go_on.set()
            await hf.sessions.wait(one)
        await hf.sessions.remove(child)
        undo = await hf.sessions.revert(one)

    assert outcomes(undo) == {"below": "deleted"}


@pytest.mark.ci
async def test_what_another_session_did_before_explains_nothing(world: World) -> None:
    """A command that writes the same again did it itself."""
    world.settings(permission=ALLOWED, snapshot=True)
    async with world.open(*turn(write("a", "1\n")), *turn(act("open('a', 'w').write('1\\n')"))) as (hf, _):
        hf.tools.register(command())
        one, other = await world.session(hf), await world.session(hf)
        await hf.sessions.process(other, "go")
        (world.project / "a").unlink()
        await hf.sessions.process(one, "go")
        undo = await hf.sessions.revert(one)

    assert outcomes(undo) == {"a": "deleted"}
