"""Local servers, each a real program: connected, called, away, and gone."""

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.location.guard import Guard
from holdfast.schema.program_entry import McpEntry
from holdfast.schema.request import Question
from holdfast.toolkit.output import Attachment, ToolDenied, ToolFailure, ToolOutput, ToolParked
from holdfast.tools.mcp import keeper as keeping
from holdfast.tools.mcp.server import Server
from holdfast.tools.registry import Registry
from tests.tools.fake_context import FakeContext
from tests.tools.mcp.servers import Servers, entry, is_running, servers
from tests.until import until


@pytest.fixture
async def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Servers]:
    """The servers of a directory; a connection that was lost is tried again soon."""
    monkeypatch.setattr(keeping, "PAUSE_S", 0.02)
    async with servers(tmp_path) as found:
        yield found


class Asked(FakeContext):
    """A user who answers questions."""

    def __init__(self, directory: Path, answers: Any, **more: Any) -> None:
        super().__init__(directory, **more)
        self.answers = answers
        self.questions: list[str] = []

    async def question(self, questions: Sequence[Question]) -> list[list[str]]:
        self.questions += [each.question for each in questions]
        if isinstance(self.answers, BaseException):
            raise self.answers
        return list(self.answers)


def output(text: str, name: str, **more: Any) -> ToolOutput:
    return ToolOutput(text=text, title=f"one_{name}", **more)


async def test_tools_are_offered_and_called(made: Servers) -> None:
    """Text, a picture, resources, a structured value; progress is shown; other answers are ignored."""
    offers = ["picture", "resource", "structured", "slow", "wrong", "roots"]
    await made.connect({"one": entry(offers=offers)})
    context = FakeContext(made.directory)
    picture = await made.call("one_picture")
    assert isinstance(picture, ToolOutput)

    assert made.names() == sorted(f"one_{name}" for name in ("echo", *offers))
    assert await made.call("one_echo", text="hi") == output("echo: hi", "echo")
    assert [each.mime for each in picture.attachments] == ["image/png"]
    assert isinstance(picture.attachments[0], Attachment)
    words = "[Resource test://one]\nthe text of one\n\n[Resource test://two: two]"
    assert await made.call("one_resource") == output(words, "resource")
    assert await made.call("one_structured") == output("", "structured", structured={"answer": 42})
    assert await made.call("one_slow", context) == output("slowly done", "slow")
    await until(lambda: context.shown)
    assert context.shown[0] == (None, {"progress": {"progress": 1.0, "total": 3.0, "message": "step 0"}})
    assert await made.call("one_wrong") == output("to this one", "wrong")
    roots = {"roots": [{"uri": made.directory.as_uri(), "name": made.directory.name}]}
    assert await made.call("one_roots") == output(json.dumps(roots), "roots")
    assert [each[0] for each in made.events] == ["mcp.tools.changed", "mcp.status"]
    assert made.events[1][1] == {"directory": str(made.directory), "server": "one", "status": "connected"}


async def test_progress_is_not_shown_more_often_than_is_of_use(
    made: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may report a thousand times a second."""
    monkeypatch.setattr(keeping, "PROGRESS_S", 1_000)
    await made.connect({"one": entry(offers=["slow"])})
    context = FakeContext(made.directory)

    await made.call("one_slow", context)

    await until(lambda: context.shown)
    assert [facts["progress"]["progress"] for _, facts in context.shown] == [1.0]


async def test_the_user_is_asked_by_the_tool_s_name(made: Servers) -> None:
    """With the pattern `*`; a call that is denied never reaches the server."""
    log = made.directory / "log"
    await made.connect({"one": entry(log=str(log))})
    refusing = FakeContext(made.directory, denies=["one_echo"])

    assert await made.failure("one_echo", refusing) == "one_echo is denied"
    (asked,) = refusing.asked
    assert (asked.permission, asked.patterns, asked.always) == ("one_echo", ["*"], ["*"])
    assert asked.metadata == {"server": "one", "tool": "echo"}
    assert "call" not in log.read_text()


async def test_an_agent_that_only_reads_calls_what_only_reads(made: Servers) -> None:
    """By the server's own annotations; what has none may have effects."""
    await made.connect({"one": entry(offers=["act"])})
    context = FakeContext(made.directory)
    context.agent = "plan"

    assert await made.call("one_echo", context, text="x") == output("echo: x", "echo")
    said = await made.failure("one_act", context)
    assert said == "The agent plan only reads, and one_act is not declared as reading only."


@pytest.mark.ci
async def test_failures_reach_the_model_in_words(made: Servers) -> None:
    """What the tool itself says, an error of the protocol, and silence, each with the server's name."""
    two = Server(name="two", entry=McpEntry(**entry(offers=["hang"])), connect_s=60, call_s=0.2)
    await made.connect({"one": entry(offers=["fail", "refuse"]), "two": two})

    assert await made.failure("one_fail") == "it went wrong"
    assert await made.failure("one_refuse") == "The MCP server one refused the call: no such thing."
    assert await made.failure("two_hang") == (
        "The MCP server two did not answer within 0.2 s, and the call was cancelled. Whether it took effect "
        "is unknown: look before you repeat it."
    )


@pytest.mark.ci
async def test_the_time_to_connect_is_no_bound_of_the_connection(made: Servers) -> None:
    """Once connected, a server stays so."""
    for connect_s in (1.0, 5.0, 25.0):  # A busy machine needs longer to start it.
        await made.connect({"one": Server(name="one", entry=McpEntry(**entry()), connect_s=connect_s)})
        if made.states["one"][0] == "connected":
            break
    made.events.clear()

    await anyio.sleep(connect_s + 0.05)

    assert made.states == {"one": ("connected", None)}
    assert made.events == []


async def test_an_interrupted_call_is_cancelled_at_the_server(made: Servers) -> None:
    """The server is told, and the connection serves the next call."""
    log = made.directory / "log"
    await made.connect({"one": entry(offers=["hang"], log=str(log))})
    async with anyio.create_task_group() as group:
        group.start_soon(made.call, "one_hang")
        await until(lambda: "call hang" in log.read_text())
        group.cancel_scope.cancel()

    await until(lambda: "cancelled caller cancelled" in log.read_text())
    assert await made.call("one_echo", text="x") == output("echo: x", "echo")


async def test_a_server_that_dies_keeps_its_tools_and_comes_back(
    made: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call fails, so do others while it is away, by its name; then it is connected again by itself."""
    monkeypatch.setattr(keeping, "PAUSE_S", 60.0)
    await made.connect({"one": entry(offers=["crash"])})
    before = made.here.registry.current("one_echo")

    assert await made.failure("one_crash") == (
        "The MCP server one left during the call: its program ended. Whether it took effect is unknown: look "
        "before you repeat it."
    )
    at_once = await made.failure("one_echo", text="x")
    assert at_once.startswith("The MCP server one is not connected (its program ended")
    await until(lambda: made.states["one"][0] == "failed")
    said = "its program ended (it last said: fatal: out of luck, token=…hidden…)"
    assert made.states == {"one": ("failed", said)}
    assert await made.failure("one_echo", text="x") == (
        f"The MCP server one is not connected ({said}), so one_echo was not called. Go on without it, or "
        "tell the user."
    )
    made.here.keepers["one"].retry()
    await until(lambda: made.states["one"][0] == "connected")
    assert await made.call("one_echo", text="x") == output("echo: x", "echo")
    assert made.here.registry.current("one_echo") is before
    kinds = [(kind, given.get("status")) for kind, given in made.events]
    states = [("mcp.status", state) for state in ("connected", "failed", "connected")]
    assert kinds == [("mcp.tools.changed", None), *states]


class Careful(FakeContext):
    """Notes what is called an effect."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.effects: list[str] = []

    def effect(self, *what: str, waits: bool = True) -> contextlib.AbstractContextManager[None]:
        self.effects += what
        return contextlib.nullcontext()


async def test_a_call_that_reaches_no_server_has_no_effect(made: Servers) -> None:
    """It is not unknown what became of it; one that reaches its server may have had one, unless it reads."""
    await made.connect({"one": entry(offers=["crash", "write"])})
    context = Careful(made.directory)
    await made.call("one_echo", context, text="x")
    await made.failure("one_crash", context)
    assert context.effects == ["something that one_crash reaches"]

    said = await made.failure("one_write", context, path=str(made.directory / "file"))
    assert said.startswith("The MCP server one is not connected")
    assert context.effects == ["something that one_crash reaches"]


@pytest.mark.parametrize("later", [False, True])
async def test_a_connection_that_was_lost_is_made_again_before_the_next_turn(
    made: Servers, monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    """At once, and waited for: a machine that slept has lost all of them. Only once for each loss.

    Also when its end was seen long ago, and it waits for its next attempt.
    """
    monkeypatch.setattr(keeping, "PAUSE_S", 60.0)
    gone = made.directory / "gone"
    given = {"one": entry(offers=["crash"], bye_if=str(gone))}
    await made.connect(given)
    for state in ("connected", "failed"):
        await made.failure("one_crash")
        if later:
            await until(lambda: made.states["one"][0] == "failed")
        await made.connect(given)
        assert made.states["one"][0] == state
        gone.touch()
    before = len(made.events)

    await made.connect(given)

    assert len(made.events) == before


async def test_a_server_that_is_let_go_meanwhile_is_not_waited_for(made: Servers) -> None:
    """Two sessions of a directory may read the settings before and after a change of them."""
    mute = Server(name="one", entry=McpEntry(**entry(mute=True)), connect_s=300)
    async with anyio.create_task_group() as group:
        group.start_soon(made.connect, {"one": mute})
        await until(lambda: made.connections.at(str(made.directory)))
        group.start_soon(made.connect, {"two": entry()})

    assert made.states == {"two": ("connected", None)}


@pytest.mark.ci
async def test_nothing_is_left_of_a_server_that_is_let_go(made: Servers) -> None:
    """Not a program that ignores its end, nor what it started, in its group or out of it."""
    log = made.directory / "log"
    await made.connect({"one": entry(offers=["child"], log=str(log), stubborn=True)})
    inside = await made.call("one_child")
    outside = await made.call("one_child", leaves=True)
    assert isinstance(inside, ToolOutput)
    assert isinstance(outside, ToolOutput)
    pids = [int(log.read_text().split()[1]), int(inside.text), int(outside.text)]
    assert all(map(is_running, pids))
    assert os.getpgid(pids[0]) == pids[0]  # Ctrl-C in a terminal is not for it.

    await made.connect({})

    await until(lambda: not any(map(is_running, pids)))
    assert made.connections.at(str(made.directory)) is None


class Noting(Guard):
    """A guard that notes its orders, each with the mark that it is for."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: list[tuple[str, str]] = []

    def expect(self, mark: str) -> None:
        self.orders.append(("expect", mark))
        super().expect(mark)

    def unexpect(self, mark: str) -> None:
        self.orders.append(("unexpect", mark))
        super().unexpect(mark)

    def watch(self, pgid: int, began: str, mark: str = "") -> None:
        self.orders.append(("watch", mark))
        super().watch(pgid, began, mark)


async def test_the_guard_knows_of_a_program_before_it_is_started(made: Servers) -> None:
    """Killed in between, this process would leave it behind; of one that is not started nothing is kept."""
    made.guard = guard = Noting()
    try:
        await made.connect({"one": entry()})
        await made.connect({"two": {"type": "local", "command": ["/no/such/program"]}})
        first, other = guard.orders[0][1], guard.orders[2][1]
        assert guard.orders[:4] == [
            ("expect", first),
            ("watch", first),
            ("expect", other),
            ("unexpect", other),
        ]
        await made.connect({})
    finally:
        await made.connections.close()
        guard.close()


async def test_nothing_is_connected_once_all_is_closed(made: Servers) -> None:
    """A turn may still be at its boundary when the application closes: nothing would end the program."""
    log = made.directory / "log"
    await made.connections.close()

    await made.connect({"one": entry(log=str(log))})

    assert made.connections.at(str(made.directory)) is None
    assert not log.exists()


OWNER = """
import sys
from pathlib import Path
import anyio
from tests.tools.mcp.servers import entry, servers

async def main():
    async with servers(Path(sys.argv[1])) as made:
        await made.connect({"one": entry(log=sys.argv[1] + "/log", deaf=True)})
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.ci
async def test_servers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """The guard ends them, those too that do not mind the end of their input."""
    log = tmp_path / "log"
    log.touch()
    root = str(Path(__file__).parents[3])
    async with await anyio.open_process(
        [sys.executable, "-c", OWNER, str(tmp_path)], env={**os.environ, "PYTHONPATH": root}
    ) as owner:
        await until(lambda: "initialize" in log.read_text())
        pid = int(log.read_text().split()[1])

        owner.kill()

        await until(lambda: not is_running(pid))


async def test_the_settings_decide_who_is_connected(made: Servers, tmp_path: Path) -> None:
    """A new entry is connected, a changed one anew, a disabled one not at all, and the others stay."""
    logs = [tmp_path / name for name in ("a", "b")]
    one, two = (entry(log=str(log)) for log in logs)
    await made.connect({"one": one})
    await made.connect({"one": one, "two": two, "off": {**two, "enabled": False}})
    await made.connect({"one": {**one, "deny": ["echo"]}, "two": two, "off": {**two, "enabled": False}})

    assert made.names() == ["two_echo"]
    assert {name: state for name, (state, _) in made.states.items()} == {
        "one": "connected",
        "two": "connected",
        "off": "disabled",
    }
    assert [len(log.read_text().split("start")) - 1 for log in logs] == [2, 1]


async def test_a_program_gets_its_environment_and_folder(made: Servers) -> None:
    """What the entry says, over what commands see; its mark of ours besides."""
    await made.connect({"one": {**entry(offers=["environment"]), "environment": {"WHO": "me"}}})
    given = await made.call("one_environment")
    assert isinstance(given, ToolOutput)
    seen = json.loads(given.text)

    assert (seen["WHO"], seen["cwd"]) == ("me", str(made.directory))
    assert len(seen["HOLDFAST_GROUP"]) == 16


async def test_a_tool_that_changes_is_registered_anew(made: Servers) -> None:
    """In the middle of a turn: a call with the old definition is stale; the rest keeps its registration."""
    file = made.directory / "tools.json"
    one, two = ({"name": name, "inputSchema": {"type": "object"}} for name in ("change", "two"))
    file.write_text(json.dumps([one, two]))
    await made.connect({"one": entry(file=str(file))})
    turn = made.here.registry.materialise()
    wide = {"type": "object", "properties": {"x": {"type": "string"}}}

    await made.call("one_change", tools=[one, {**two, "inputSchema": wide}, {**one, "name": "three\x1b"}])

    await until(lambda: made.here.registry.current("one_three_"))
    assert (turn.is_stale("one_two"), turn.is_stale("one_change")) == (True, False)
    await until(lambda: made.warnings)
    (warned,) = made.warnings
    assert warned.startswith("MCP server one has other definitions than before: two, three ; `holdfast mcp ")


FORM = "one (MCP server) asks: Which one?"


@pytest.mark.parametrize(
    ("answers", "got"),
    [
        ([["blue"], ["7"]], {"action": "accept", "content": {"color": "blue", "size": 7}}),
        (ToolDenied("dismissed", stops=True), {"action": "decline"}),
        (ToolFailure("nobody is there"), {"action": "cancel"}),
        (ToolParked("no answer"), {"action": "cancel"}),
    ],
)
async def test_a_server_asks_the_user_of_its_call(made: Servers, answers: Any, got: Any) -> None:
    """As our questions; without an answer the server is told so, and its call goes on."""
    await made.connect({"one": entry(offers=["ask"])})
    user = Asked(made.directory, answers)

    assert await made.call("one_ask", user) == output(json.dumps(got, sort_keys=True), "ask")
    assert user.questions == [f"{FORM} — color (string)", f"{FORM} — size (integer) In metres"]


@pytest.mark.ci
async def test_the_time_of_a_call_stands_still_while_the_user_is_asked(made: Servers) -> None:
    """A user thinks for longer than a server may be silent."""

    class Slow(Asked):
        async def question(self, questions: Sequence[Question]) -> list[list[str]]:
            await anyio.sleep(call_s + 0.1)
            return await super().question(questions)

    got: Any = None
    for call_s in (0.3, 3.0, 30.0):  # A busy machine needs longer to answer.
        server = Server(name="one", entry=McpEntry(**entry(offers=["ask"])), connect_s=60, call_s=call_s)
        await made.connect({"one": server})
        user = Slow(made.directory, [["red"], []])
        with contextlib.suppress(ToolFailure):
            got = await made.call("one_ask", user)
            break

    assert got == output('{"action": "accept", "content": {"color": "red"}}', "ask")


async def test_a_server_that_serves_two_sessions_asks_neither(made: Servers) -> None:
    """It cannot be known whose call asks, and another user must not be asked."""
    log = made.directory / "log"
    await made.connect({"one": entry(offers=["ask", "hang"], log=str(log))})
    other, user = Asked(made.directory, [["red"], []]), Asked(made.directory, [["red"], []])
    other.session_id = "ses_2"
    async with anyio.create_task_group() as group:
        group.start_soon(made.call, "one_hang", other)
        await until(lambda: "call hang" in log.read_text())
        got = await made.call("one_ask", user)
        group.cancel_scope.cancel()

    assert got == output('{"action": "cancel"}', "ask")
    assert (other.questions, user.questions) == ([], [])


async def test_resources_are_listed_and_read(made: Servers) -> None:
    """By three tools that are there when a server has resources; the permission is `read`, by address."""
    await made.connect({"one": entry(resources=True), "two": entry()})
    context = FakeContext(made.directory)
    listed = await made.call("list_mcp_resources", context)
    templates = await made.call("list_mcp_resource_templates", context, server="one")
    text = await made.call("read_mcp_resource", context, server="one", uri="test://one")

    assert made.names() == [
        "list_mcp_resource_templates",
        "list_mcp_resources",
        "one_echo",
        "read_mcp_resource",
        "two_echo",
    ]
    assert listed == ToolOutput(text="one: test://one — one; The first", title="1 found")
    assert templates == ToolOutput(text="one: test://{name} — by name", title="1 found")
    assert text == ToolOutput(text="the text of one", title="test://one")
    assert [(each.permission, each.patterns) for each in context.asked] == [
        ("read", ["mcp:*:*"]),
        ("read", ["mcp:one:*"]),
        ("read", ["mcp:one:test://one"]),
    ]
    assert await made.failure("read_mcp_resource", server="none", uri="x") == (
        "There is no MCP server none. There are: one, two."
    )
    missing = await made.failure("read_mcp_resource", server="one", uri="test://none")
    assert missing == "The MCP server one refused: unknown: resources/read."


async def test_many_directories_let_the_one_go_that_was_used_least(
    made: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that works in many projects does not gather their servers for ever; but one that is at work
    is not let go.
    """
    monkeypatch.setattr("holdfast.tools.mcp.connections.DIRECTORIES_MAX", 1)
    log = tmp_path / "log"
    await made.connect({"one": entry(log=str(log), offers=["hang"])})
    pid = int(log.read_text().split()[1])
    other = Server(name="other", entry=McpEntry(**entry()), connect_s=60)
    async with anyio.create_task_group() as group:
        group.start_soon(made.call, "one_hang")
        await until(lambda: "call hang" in log.read_text())
        await made.connections.connect("/elsewhere", {"other": other}, Registry(), made._world)
        assert made.connections.at(str(tmp_path)) is not None
        group.cancel_scope.cancel()

    await made.connections.connect("/elsewhere", {"other": other}, Registry(), made._world)

    assert made.connections.at(str(tmp_path)) is None
    await until(lambda: not is_running(pid))
