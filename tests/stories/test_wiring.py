"""What the application puts together: each fact is lost with one line of `app.py` or of the boundary."""

import logging
import os
import time
from pathlib import Path

import anyio
import pytest

from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider.script import Call
from holdfast.testing.scripted_provider import Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories.epochs import epochs, says, told
from tests.stories.wiring import outputs
from tests.stories.world import Attached, World
from tests.until import until

LINES = [f"line {number} {'x' * 200}" for number in range(3_000)]


@tool(name="flood")
async def flood(context: ToolContext) -> str:
    """Say more than the model is shown."""
    return "\n".join(LINES)


def output_folder(world: World) -> Path:
    return world.home / ".local/share/holdfast/tool-output"


async def test_a_kept_output_is_read_by_its_absolute_path_without_asking(world: World) -> None:
    """It lies outside the project, in a folder that is closed otherwise; nobody is there to ask."""
    async with world.open(Step(Call("flood", {}, id="f")), *says("a")) as (hf, script):
        hf.tools.register(flood)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        page = await hf.sessions.messages(session)
        (call,) = [part for part in page.messages[1].parts if isinstance(part, ToolPart)]
        assert isinstance(call.state, ToolCompleted)
        path = Path(call.state.metadata["outputPath"])
        beside = path.parent.parent / "auth.json"
        beside.write_text("secret")
        reads = [
            Step(Call("read", {"filePath": str(each), "limit": 1}, id=each.name)) for each in (path, beside)
        ]
        script.add(*reads, *says("b"))
        await hf.sessions.process(session, "read it")
    assert path.parent == output_folder(world)
    shown, refused = outputs(script.requests[-1])[-2:]
    assert LINES[0] in shown
    assert "secret" not in refused


async def test_the_configured_limit_bounds_what_the_model_sees(world: World) -> None:
    """In lines and in bytes; without settings it is the limit of the house."""
    seen = []
    for limits in ({}, {"max_lines": 10}, {"max_bytes": 3_000}):
        world.settings(tool_output=limits)
        async with world.open(Step(Call("flood", {}, id="f")), *says("a")) as (hf, script):
            hf.tools.register(flood)
            await hf.sessions.process(await world.session(hf), "go")
        seen.append(outputs(script.requests[-1])[0])
    house, lines, size = seen
    assert len(house) > 10_000
    assert len(lines.splitlines()) <= 10 + 5
    assert len(size.encode()) <= 3_000 + 500


async def test_old_output_is_swept_when_a_runtime_begins_to_work(world: World) -> None:
    """What is younger than its time, and what is not ours, stays."""
    folder = output_folder(world)
    folder.mkdir(parents=True)
    old, young, other = (folder / name for name in (f"tool_{'a' * 26}", f"tool_{'b' * 26}", "mine.txt"))
    for file in (old, young, other):
        file.write_text("text")
    week_ago = time.time() - 8 * 86_400
    for file in (old, other):
        os.utime(file, (week_ago, week_ago))
    async with world.open(*says("a")) as (hf, _):
        await hf.sessions.process(await world.session(hf), "go")
        await until(lambda: not old.exists())
    assert (young.exists(), other.exists()) == (True, True)


async def test_output_that_cannot_be_kept_is_told_to_the_operator(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The call succeeded all the same, and the model sees the beginning and the end."""
    output_folder(world).parent.mkdir(parents=True)
    output_folder(world).write_text("a file in its place")
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        async with world.open(Step(Call("flood", {}, id="f")), *says("a")) as (hf, script):
            hf.tools.register(flood)
            await hf.sessions.process(await world.session(hf), "go")
    assert any(f"tool output could not be kept in {output_folder(world)}" in line for line in caplog.messages)
    (shown,) = outputs(script.requests[-1])
    assert LINES[0] in shown
    assert LINES[-1] in shown


async def test_guidance_follows_the_rules_of_the_agent_that_answers(world: World) -> None:
    """A skill that the agent is denied is not told; a switch is a message, and the baseline stays."""
    for name in ("open", "hidden"):
        folder = world.home / f".config/holdfast/skill/{name}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: How to {name}.\n---\nText.")
    deny = {"permission": {"skill": {"hidden": "deny"}}}
    world.settings(agent={"build": deny, "other": {"mode": "primary", "prompt": "Other."}})

    async def load(context: ToolContext, name: str) -> str:
        """Load a skill."""
        return name

    async with world.open(*says("a", "b")) as (hf, script):
        hf.tools.register(tool(name="skill")(load))
        session = await world.session(hf)
        await hf.sessions.process(session, "one", agent="build")
        (before,) = await epochs(hf, session)
        await hf.sessions.process(session, "two", agent="other")
        (after,) = await epochs(hf, session)
        (message,) = await told(hf, session)
    first = "\n".join(script.requests[0].system)
    assert ("How to open." in first, "How to hidden." in first) == (True, False)
    assert "How to hidden." in message
    assert before.baseline == after.baseline


async def test_a_call_that_asks_after_a_switch_of_agents_is_judged_by_its_own(world: World) -> None:
    """The agent of the turn that made the call decides, though a prompt for another one has come since."""
    world.settings(agent={"build": {"permission": {"act": "deny"}}, "plan": {"permission": {"act": "allow"}}})
    gate, begun, done = anyio.Event(), anyio.Event(), []

    @tool(name="act", permission="other")
    async def act(context: ToolContext) -> str:
        """Ask late."""
        begun.set()
        await gate.wait()
        await context.ask("act", ["x"], always=[], metadata={})
        done.append(context.agent)
        return "done"

    async with world.open(Step(Call("act", {}, id="c")), *says("a", "b"), presence=Attached()) as (hf, _):
        hf.tools.register(act)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go", agent="build")
        await begun.wait()
        await hf.sessions.prompt(session, "then plan", agent="plan", delivery="queue")
        gate.set()
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    (call,) = [part for message in page.messages for part in message.parts if isinstance(part, ToolPart)]
    assert isinstance(call.state, ToolError)
    assert ((call.state.metadata or {}).get("outcome"), done) == ("denied", [])


async def test_a_read_that_failed_brings_no_instructions(world: World) -> None:
    """Only what was really read stands for the folder that it lies in."""
    inner = world.project / "inner"
    inner.mkdir()
    (inner / "AGENTS.md").write_text("Inner rule.")
    read = Step(Call("read", {"filePath": "inner/missing.txt"}, id="r"))
    async with world.open(read, *says("a", "b")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two")
        assert await told(hf, session) == []
        (epoch,) = await epochs(hf, session)
    assert epoch.nested == []
