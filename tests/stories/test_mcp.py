"""Tools of MCP servers in sessions: real programs, a scripted model."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.location.box.host_level import HostLevel, Level
from holdfast.schema.event import McpStatusProperties
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import PatchPart, StepStartPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, answered
from tests.location.box.users import ROOT
from tests.prefixes import blocks, first_difference
from tests.stories import inside
from tests.stories.crashing import Machine, life
from tests.stories.permissions import asked as permission_asked
from tests.stories.tools import STANDARD
from tests.stories.world import Attached, World
from tests.tools.mcp.servers import entry, is_running
from tests.until import until


def calls(messages: tuple[MessageWithParts, ...]) -> list[Any]:
    """How the calls of a session ended."""
    return [part.state for each in messages for part in each.parts if isinstance(part, ToolPart)]


async def moves(hf: Holdfast, session: str) -> list[str | None]:
    """Why the prefix of each request moved."""
    return [
        part.prefix.moved
        for each in (await hf.sessions.messages(session)).messages
        for part in each.parts
        if isinstance(part, StepStartPart) and part.prefix is not None
    ]


def shown(script: ScriptedProvider, number: int = -1) -> list[str]:
    """The tools of a request that are no built-in ones."""
    return [tool.name for tool in script.requests[number].tools if tool.name not in STANDARD]


async def test_a_server_s_tools_are_offered_from_the_first_request_on(world: World, tmp_path: Path) -> None:
    """The first epoch waits for it; calls reach it; nothing of it is left when the application is closed."""
    log = tmp_path / "log"
    world.settings(mcp={"one": entry(log=str(log), offers=["picture"])})
    async with world.open(
        Step(Call("one_echo", {"text": "hi"}, id="a"), Call("one_picture", {}, id="b")),
        Step(Say("ok"), expect=answered("a", "echo: hi")),
    ) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        states = calls((await hf.sessions.messages(session)).messages)
        status = {name: each.status for name, each in hf.mcp_status(world.project).items()}
        pid = int(log.read_text().split()[1])
        assert is_running(pid)

    assert shown(script, 0) == ["one_echo", "one_picture"]
    assert status == {"one": "connected"}
    assert [type(state) for state in states] == [ToolCompleted, ToolCompleted]
    assert [file.mime for file in states[1].attachments] == ["image/png"]
    assert "obey this server" not in str(script.requests)
    await until(lambda: not is_running(pid))


@pytest.mark.ci
async def test_a_server_that_comes_late_moves_the_prefix_once(world: World, tmp_path: Path) -> None:
    """The first request does not wait longer than its bound; the reason of the move is `tools`."""
    gate = tmp_path / "gate"
    world.settings(mcp={"one": {**entry(gate=str(gate)), "timeout": 1_500}, "two": entry()})
    async with world.open(*(Step(Say("ok")) for _ in range(4))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two")
        gate.touch()
        await until(lambda: hf.mcp_status(world.project)["one"].status == "connected")
        await hf.sessions.process(session, "three")
        await hf.sessions.process(session, "four")
        found = await moves(hf, session)

    assert [shown(script, number) for number in range(4)] == [
        ["two_echo"],
        ["two_echo"],
        ["one_echo", "two_echo"],
        ["one_echo", "two_echo"],
    ]
    assert found == [None, None, "tools", None]


@pytest.mark.ci
async def test_a_server_that_is_away_keeps_its_definitions_and_a_call_of_it_fails_by_name(
    world: World, tmp_path: Path
) -> None:
    """After a restart too: the prefix stays, byte for byte, and the model reads which server is missing."""
    world.settings(mcp={"one": entry()})
    async with world.open(Step(Say("ok"))) as (hf, first):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    world.settings(mcp={"one": {"type": "local", "command": ["/no/such/program"]}})
    async with world.open(Step(Call("one_echo", {"text": "x"}, id="a")), Step(Say("ok"))) as (hf, second):
        await hf.sessions.process(session, "two")
        (state,) = calls((await hf.sessions.messages(session)).messages)
        found = await moves(hf, session)

    assert first_difference(blocks(first.requests[0]), blocks(second.requests[0])) is None
    assert found == [None, None, None]
    assert isinstance(state, ToolError)
    assert state.error == (
        "The MCP server one is not connected (/no/such/program could not be started: No such file or "
        "directory), so one_echo was not called. Go on without it, or tell the user."
    )


@pytest.mark.ci
async def test_a_list_that_changes_in_the_middle_of_a_turn_moves_the_next_request(
    world: World, tmp_path: Path
) -> None:
    """Once, with the reason `tools`; the call under way is answered."""
    file = tmp_path / "tools.json"
    one = {"name": "change", "inputSchema": {"type": "object"}}
    file.write_text(json.dumps([one]))
    more = [one, {**one, "name": "new"}]
    world.settings(mcp={"one": entry(file=str(file))}, permission={"*": "allow"})
    async with world.open(
        Step(Call("one_change", {"tools": more}, id="a")),
        Step(Say("ok"), expect=answered("a", "changed")),
        Step(Say("ok")),
        Step(Say("ok")),
    ) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await until(lambda: "one_new" in inside.server_tools(hf, world.project))
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        found = await moves(hf, session)

    assert shown(script) == ["one_change", "one_new"]
    assert [reason for reason in found if reason] == ["tools"]


async def test_a_project_s_servers_are_started_once_it_is_trusted(world: World, tmp_path: Path) -> None:
    """Before that, nothing of it runs."""
    log = tmp_path / "log"
    (world.project / "holdfast.json").write_text(json.dumps({"mcp": {"one": entry(log=str(log))}}))
    names = []
    for trusts in (False, True):
        async with world.open(Step(Say("ok"))) as (hf, script):
            if trusts:
                await hf.trust.decide(world.project, granted=True)
            await hf.sessions.process(await world.session(hf), "go")
        names.append((shown(script), log.exists()))

    assert names == [([], False), (["one_echo"], True)]


async def test_an_interrupted_call_with_effects_is_unknown(world: World, tmp_path: Path) -> None:
    """The server is told to stop; whether it did anything cannot be known."""
    log = tmp_path / "log"
    world.settings(mcp={"one": entry(log=str(log), offers=["hang"])})
    async with world.open(Step(Call("one_hang", {}, id="a"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: log.exists() and "call hang" in log.read_text())
        await hf.sessions.interrupt(session)
        (state,) = calls((await hf.sessions.messages(session)).messages)
        await until(lambda: "cancelled" in log.read_text())

    assert isinstance(state, ToolError)
    assert state.metadata is not None
    assert state.metadata["outcome"] == "unknown"
    assert "Whether something that one_hang reaches changed is unknown" in state.error


async def test_a_server_asks_the_user_by_our_questions(world: World) -> None:
    """Any client answers; the server gets it, and the call goes on."""
    world.settings(mcp={"one": entry(offers=["ask"])})
    async with world.open(
        Step(Call("one_ask", {}, id="a")),
        Step(Say("ok"), expect=answered("a", '{"action": "accept", "content": {"color": "blue"}}')),
        presence=Attached(),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (request,) = await until(lambda: hf.sessions.requests(session), store=hf.store)
        await hf.sessions.answer(session, request.id, [["blue"], []])
        await hf.sessions.wait(session)


@pytest.mark.ci
@pytest.mark.parametrize(("tool", "times"), [("echo", 2), ("hang", 1)])
async def test_after_a_crash_only_what_may_be_repeated_is_called_again(
    world: World, tmp_path: Path, tool: str, times: int
) -> None:
    """By the server's annotations. The server is connected before that is decided."""
    log, gate = tmp_path / "log", tmp_path / "gate"
    world.settings(mcp={"one": entry(log=str(log), offers=["hang"], holds=str(gate))})
    machine = Machine()
    script = ScriptedProvider(Step(Call(f"one_{tool}", {"text": "x"}, id="a")))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: log.exists() and f"call {tool}" in log.read_text())
        mortal.kill()
    gate.touch()
    script = ScriptedProvider(Step(Say("ok")))
    async with life(world.store, machine, provider=script) as (hf, _):
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        (state,) = calls((await hf.sessions.messages(session)).messages)

    assert log.read_text().count(f"call {tool}") == times
    outcome = (state.metadata or {}).get("outcome")
    assert outcome == (None if tool == "echo" else "unknown")


@pytest.mark.ci
async def test_a_call_that_asked_in_the_middle_is_not_run_again_for_the_answer(
    world: World, tmp_path: Path
) -> None:
    """After a crash: it had begun, and a server asks in the middle of its work."""
    log = tmp_path / "log"
    world.settings(mcp={"one": entry(log=str(log), offers=["ask"])})
    machine = Machine()
    script = ScriptedProvider(Step(Call("one_ask", {}, id="a")))
    async with life(world.store, machine, provider=script, presence=Attached()) as (hf, mortal):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: hf.sessions.requests(session), store=hf.store)
        mortal.kill()
    script = ScriptedProvider(Step(Say("ok")))
    async with life(world.store, machine, provider=script, presence=Attached()) as (hf, _):
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        (state,) = calls((await hf.sessions.messages(session)).messages)
        left = await hf.sessions.requests(session)

    assert log.read_text().count("call ask") == 1
    assert state.metadata["outcome"] == "unknown"
    assert left == []


async def test_files_that_a_tool_changes_are_observed(world: World) -> None:
    """Also of one that may be repeated, unless its server says that it only reads."""
    tool = {"name": "write", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}}
    world.settings(mcp={"one": entry(tools=[tool])}, snapshot=True)
    made = world.project / "made"
    async with world.open(Step(Call("one_write", {"path": str(made)}, id="a")), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        messages = (await hf.sessions.messages(session)).messages

    patches = [part for each in messages for part in each.parts if isinstance(part, PatchPart)]
    assert [patch.files for patch in patches] == [[str(made)]]


async def test_a_call_asks_for_permission_by_its_name(world: World) -> None:
    """A rule may name the tools of one server."""
    world.settings(mcp={"one": entry()}, permission={"one_*": "ask"})
    async with world.open(
        Step(Call("one_echo", {"text": "x"}, id="a")),
        Step(Say("ok"), expect=answered("a", "echo: x")),
        presence=Attached(),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (request,) = await permission_asked(hf, session)
        assert (request.permission, request.patterns) == ("one_echo", ["*"])
        await hf.sessions.reply(session, request.id, "once")
        await hf.sessions.wait(session)


async def test_a_server_that_leaves_the_settings_ends(world: World, tmp_path: Path) -> None:
    """Before the next turn; its tools are not offered any more to a new session."""
    log = tmp_path / "log"
    world.settings(mcp={"one": entry(log=str(log))})
    async with world.open(Step(Say("ok")), Step(Say("ok"))) as (hf, script):
        await hf.sessions.process(await world.session(hf), "go")
        pid = int(log.read_text().split()[1])
        world.settings()
        inside.forget_workspaces(hf)
        await hf.sessions.process(await world.session(hf), "go")
        assert hf.mcp_status(world.project) == {}
        await until(lambda: not is_running(pid))

    assert (shown(script, 0), shown(script, 1)) == (["one_echo"], [])


async def test_a_server_sees_the_environment_of_commands(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's without the keys of providers, and what its entry adds; its folder is the session's."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("PLAIN", "yes")
    world.settings(mcp={"one": {**entry(offers=["environment"]), "environment": {"WHO": "me"}}})
    async with world.open(Step(Call("one_environment", {}, id="a")), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (state,) = calls((await hf.sessions.messages(session)).messages)

    seen = json.loads(state.output)
    assert (seen["PLAIN"], seen["WHO"], seen["cwd"]) == ("yes", "me", str(world.project))
    assert "ANTHROPIC_API_KEY" not in seen


@pytest.mark.ci
@pytest.mark.needs("box")
async def test_a_server_runs_in_the_box_where_its_entry_says_so(world: World, tmp_path: Path) -> None:
    """What it writes to the project is there, and what it writes elsewhere is not."""
    within, outside = world.project / "log", tmp_path / "log"
    world.settings(
        sandbox={"reveal": [str(ROOT)]},  # A checkout may lie below /tmp, which a box covers.
        mcp={
            "one": {**entry(log=str(within)), "box": True},
            "two": {**entry(log=str(outside)), "box": True},
        },
    )
    async with world.open(Step(Say("ok"))) as (hf, script):
        await hf.sessions.process(await world.session(hf), "go")

    assert "start" in within.read_text()
    assert not outside.exists()
    assert "one_echo" in shown(script)


@pytest.mark.parametrize("level", ["partial", "none"])
async def test_a_server_for_the_box_is_not_started_without_one(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: Level
) -> None:
    """Its entry says where it runs: nowhere else."""
    monkeypatch.setattr(
        "holdfast.location.box.host_level.host_level", lambda _: HostLevel(level, "no such call")
    )
    log = tmp_path / "log"
    world.settings(mcp={"one": {**entry(log=str(log)), "box": True}})
    async with world.open(Step(Say("ok"))) as (hf, script):
        await hf.sessions.process(await world.session(hf), "go")
        status = hf.mcp_status(world.project)["one"]

    assert (status.status, shown(script)) == ("failed", [])
    assert status.error == f"it is to run in a box, and the box is {HostLevel(level, 'no such call')}"
    assert not log.exists()


async def test_an_event_says_how_a_server_is(world: World) -> None:
    """`mcp.status`, with the reason where it is not connected."""
    world.settings(mcp={"one": {"type": "local", "command": ["/no/such/program"]}})
    seen: list[Any] = []
    async with world.open(Step(Say("ok"))) as (hf, _):

        async def follow() -> None:
            async for frames in hf.feed.follow():
                seen.extend(each.event() for each in frames if each.type == "mcp.status")

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await hf.sessions.process(await world.session(hf), "go")
            await until(lambda: seen)
            group.cancel_scope.cancel()

    assert seen[0].properties == McpStatusProperties(
        directory=str(world.project),
        server="one",
        status="failed",
        error="/no/such/program could not be started: No such file or directory",
    )
