"""Servers that do what they should not: each fails by its name, and nothing else does."""

import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.schema.program_entry import McpEntry, McpOAuth
from holdfast.schema.request import Question
from holdfast.toolkit.output import ToolOutput
from holdfast.tools.mcp import keeper as keeping
from holdfast.tools.mcp.server import Server
from tests.loop_time import let_pass
from tests.tools.fake_context import FakeContext
from tests.tools.mcp.servers import Servers, entry, is_running, servers
from tests.until import until


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers(tmp_path) as found:
        yield found


class Busy(FakeContext):
    """A user who answers one form at a time."""

    asked_in_all = most_at_once = now = 0

    async def question(self, questions: Sequence[Question]) -> list[list[str]]:
        self.asked_in_all += 1
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        await anyio.sleep(0)
        self.now -= 1
        return [["red"], ["3"]]


def quick(name: str, **spec: Any) -> Server:
    """A server that has little time to answer."""
    return Server(name=name, entry=McpEntry(**entry(**spec)), connect_s=0.4)


async def test_servers_that_never_answer_are_waited_for_no_longer_than_their_bound(made: Servers) -> None:
    """Each fails by its name, and a good one beside them is connected."""
    mute = {name: quick(name, mute=True) for name in ("a", "b", "c")}

    await made.connect({**mute, "good": entry()})

    why = "it did not answer within 0.4 s"
    assert made.states == {**dict.fromkeys("abc", ("failed", why)), "good": ("connected", None)}
    assert made.names() == ["good_echo"]


async def test_servers_are_waited_for_all_at_once(made: Servers, tmp_path: Path) -> None:
    """Three, each of which answers only when another has started, are connected."""
    logs = {name: str(tmp_path / f"{name}.log") for name in "abc"}

    await made.connect(
        {name: entry(log=logs[name], gate=logs[other]) for name, other in zip("abc", "bca", strict=True)}
    )

    assert made.states == dict.fromkeys("abc", ("connected", None))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"bye": True}, "its program ended (it last said: cannot start: no licence)"),
        ({"old": True}, "RuntimeError: Unsupported protocol version from the server: 1999-01-01"),
        ({"tools": [{"name": "x", "inputSchema": "none"}]}, "its answer is none of the protocol (1 faults)"),
    ],
)
async def test_a_server_that_cannot_be_used_says_why(made: Servers, spec: Any, why: str) -> None:
    """With the last line that it printed."""
    await made.connect({"bad": entry(**spec), "good": entry()})

    assert made.states == {"bad": ("failed", why), "good": ("connected", None)}


async def test_a_program_that_is_not_there(made: Servers) -> None:
    """Names the program."""
    await made.connect({"bad": {"type": "local", "command": ["/no/such/program"]}})

    why = "/no/such/program could not be started: No such file or directory"
    assert made.states == {"bad": ("failed", why)}


async def test_a_server_that_fails_again_and_again_is_tried_less_and_less_often(
    made: Servers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Up to a bound."""
    monkeypatch.setattr(keeping, "PAUSE_S", 0.01)
    monkeypatch.setattr(keeping, "PAUSE_S_MAX", 0.05)
    await made.connect({"bad": {"type": "local", "command": ["/no/such/program"]}})

    await until(lambda: len(caplog.records) >= 5)

    facts = [record.__dict__["facts"] for record in caplog.records[:5]]
    assert [each["again_s"] for each in facts] == [0.01, 0.02, 0.04, 0.05, 0.05]


async def test_after_a_connection_that_held_the_next_pause_is_short(
    made: Servers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However often it was tried before."""
    monkeypatch.setattr(keeping, "PAUSE_S", 0.01)
    monkeypatch.setattr(keeping, "STEADY_S", -1)
    await made.connect({"bad": {"type": "local", "command": ["/no/such/program"]}})

    await until(lambda: len(caplog.records) >= 4)

    assert {record.__dict__["facts"]["again_s"] for record in caplog.records[:4]} == {0.01}


@pytest.mark.ci
async def test_text_that_is_no_message_is_ignored_within_a_bound(made: Servers) -> None:
    """A greeting does no harm; a program that prints on and on is none of the protocol."""
    await made.connect({"loud": entry(noise="hello\n{}\n[1]\n" * 20)})
    assert made.states == {"loud": ("connected", None)}
    endless = [sys.executable, "-c", "while True: print('x' * 9999)"]
    await made.connect({"endless": {**entry(), "command": endless}})

    assert made.states == {
        "endless": ("failed", "it prints text that is no MCP message to its standard output")
    }


@pytest.mark.ci
async def test_a_flood_ends_the_connection_and_not_the_process(made: Servers) -> None:
    """A hundred megabytes in one line: 16 are read."""
    await made.connect({"bad": entry(offers=["flood"])})

    said = await made.failure("bad_flood", megabytes=100)

    assert said.startswith("The MCP server bad left during the call: it sent a message of more than 16 MiB.")
    await until(lambda: made.states["bad"][0] != "connected")


@pytest.mark.ci
async def test_ten_thousand_tools_and_long_words(made: Servers) -> None:
    """The first are offered, with bounded descriptions, and the user reads it."""
    await made.connect({"many": entry(count=10_000), "long": entry(count=1, long=10_000_000)})

    assert made.states == {"many": ("connected", None), "long": ("connected", None)}
    assert len(made.names()) == 129
    assert made.warnings == [
        "MCP server many: it has 2000 tools, and the first 128 are offered; choose with `allow`"
    ]
    assert all(len(str(tool)) < 3_000 for tool in made.here.registry.materialise().tools)


async def test_names_that_are_odd_or_shared_are_all_offered(made: Servers) -> None:
    """By names that providers take, each reaching its own tool."""
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("a.b", "a b", "日本", "")]
    await made.connect({"one": entry(tools=tools)})
    names = [name for name in made.names() if name != "one_echo"]

    assert [name[:-9] if "_a_b_" in name else name for name in names] == ["one___", "one_a_b", "one_a_b"]
    said = [str(await made.call(name, text="x")) for name in names]
    assert sorted(text.split("'")[1] for text in said) == ["a b: x", "a.b: x", "日本: x"]


async def test_what_a_server_sends_is_not_logged(made: Servers, caplog: pytest.LogCaptureFixture) -> None:
    """The package logs what it cannot read, with its content."""
    bad = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"secret": "abcdefgh"}}
    await made.connect({"one": entry(noise=json.dumps(bad) + "\n")})

    assert made.states == {"one": ("connected", None)}
    assert "abcdefgh" not in caplog.text


async def test_what_a_server_says_of_itself_reaches_nobody(made: Servers) -> None:
    """Its instructions are no text of ours: nothing that is offered holds them."""
    await made.connect({"one": entry(resources=True)})

    assert "obey" not in json.dumps([tool.description for tool in made.here.registry.materialise().tools])


async def test_a_key_of_the_settings_is_in_no_status_no_event_and_no_failure(made: Servers) -> None:
    """A server repeats the key that it refuses: when it greets, as it ends, and to a call."""
    key = {"environment": {"ONE": "hunter-2-hunter"}}
    await made.connect(
        {
            "a": {**entry(refuses="bad key $ONE"), **key},
            "b": {**entry(bye=True, says="wrong: $ONE"), **key},
            "c": {**entry(offers=["refuse"]), **key},
        }
    )

    failed = await made.failure("c_refuse", why="no $ONE here")
    assert made.states == {
        "a": ("failed", "bad key …hidden…"),
        "b": ("failed", "its program ended (it last said: wrong: …hidden…)"),
        "c": ("connected", None),
    }
    assert failed == "The MCP server c refused the call: no …hidden… here."
    assert made.here.keepers["b"].printed() == ["wrong: …hidden…"]
    assert "hunter" not in json.dumps(made.events)


def test_the_values_of_an_entry_are_hidden_whole() -> None:
    """Also without the word before them, longest first; short ones would be everywhere."""
    made = McpEntry(
        type="remote",
        url="https://a.test/mcp",
        headers={"authorization": "Bearer abcdefgh", "x-long": "abcdefghijkl"},
        environment={"N": "1"},
        oauth=McpOAuth(client_secret="of-the-client"),
    )

    shown = Server(name="a", entry=made).hidden(
        "1: abcdefgh, abcdefghijkl, of-the-client; see https://u:p@a.test"
    )
    assert shown == "1: …hidden…, …hidden…, …hidden…; see https://…hidden…@a.test"


async def test_an_error_with_the_number_of_a_lost_connection_is_an_answer(made: Servers) -> None:
    """Many servers give it to errors of their own: they are connected as before."""
    await made.connect({"one": entry(offers=["refuse"])})

    failed = await made.failure("one_refuse", why="no such row", code=-32000)
    assert failed == "The MCP server one refused the call: no such row."
    assert made.here.keepers["one"].link("one_refuse") is not None


@pytest.mark.ci
async def test_the_end_of_a_program_is_not_waited_for(made: Servers) -> None:
    """One that does not answer and ignores its end: the turn goes on when its time to connect is over."""
    log = made.directory / "log"
    mute = McpEntry(**entry(mute=True, stubborn=True, log=str(log)))
    server = Server(name="one", entry=mute, connect_s=30)
    async with anyio.create_task_group() as group:
        group.start_soon(made.connect, {"one": server})
        await until(lambda: log.exists() and log.read_text().endswith("\n"))
        let_pass(30)

    assert made.states == {"one": ("failed", "it did not answer within 30 s")}
    assert is_running(int(log.read_text().split()[1]))


@pytest.mark.ci
async def test_a_program_whose_entry_goes_while_it_is_ended_is_ended(made: Servers) -> None:
    """It flooded, and ignores its end."""
    log = made.directory / "log"
    await made.connect({"one": entry(offers=["flood"], log=str(log), stubborn=True)})
    pid = int(log.read_text().split()[1])
    await made.failure("one_flood", megabytes=20)
    await until(lambda: "end of input" in log.read_text())

    await made.connect({})

    await until(lambda: not is_running(pid))


@pytest.mark.ci
async def test_a_server_that_reads_nothing_is_asked_no_longer_than_its_bound(
    made: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when there is no room left for a request."""
    monkeypatch.setattr("mcp.shared.jsonrpc_dispatcher._ABANDON_WRITE_TIMEOUT", 0.01)
    silent = McpEntry(**entry(stops="tools/list", resources=True))
    await made.connect({"one": Server(name="one", entry=silent, connect_s=60, call_s=0.2)})
    said: list[str] = []

    async def read() -> None:
        said.append(await made.failure("read_mcp_resource", server="one", uri="x" * 4_096))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(read)

    assert said == ["The MCP server one did not answer in time."] * 100


@pytest.mark.ci
async def test_millions_of_small_values_are_not_decoded(made: Servers) -> None:
    """They would stop everything else for seconds; ninety thousand are a result."""
    await made.connect({"one": entry(offers=["values"])})

    many = await made.call("one_values", count=90_000)
    failed = await made.failure("one_values", count=250_000)
    assert isinstance(many, ToolOutput)
    assert len(many.text) > 100_000
    assert "left during the call: it sent a message with more than 200,000 values." in failed


@pytest.mark.ci
async def test_a_server_that_asks_and_reads_no_answer_is_left(
    made: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests would fill the memory."""
    monkeypatch.setattr("holdfast.tools.mcp.wire.open_requests.REQUESTS_MAX", 50)
    await made.connect({"one": entry(offers=["asks"], stops="tools/call")})

    said = await made.failure("one_asks", count=300, long=2_000, method="ping")
    assert said.startswith("The MCP server one left during the call: it asks for more than can be answered.")


@pytest.mark.ci
async def test_a_server_asks_the_user_one_thing_after_the_other_and_not_for_ever(made: Servers) -> None:
    """What is beyond that is cancelled; answers make room for more requests."""
    await made.connect({"one": entry(offers=["asks"])})
    user = Busy(made.directory)

    asked = await made.call("one_asks", user, count=100)
    roots = await made.call("one_asks", user, count=1_050, method="roots/list")
    assert (asked, roots) == (
        ToolOutput(text='{"accept": 30, "cancel": 70}', title="one_asks"),
        ToolOutput(text='{"null": 1050}', title="one_asks"),
    )
    assert (user.asked_in_all, user.most_at_once) == (30, 1)


@pytest.mark.ci
async def test_a_list_without_an_end_is_read_within_bounds(made: Servers) -> None:
    """A hundred pages of a hundred kilobytes: four megabytes are kept."""
    await made.connect({"one": entry(pages=100_000)})

    listed = made.here.keepers["one"].listed
    assert [each.name for each in listed] == [f"page-{n}" for n in range(41)]


@pytest.mark.parametrize(
    ("hex", "text"), [("5c7564383364", "\N{REPLACEMENT CHARACTER}"), ("61ff", "a\ufffd")]
)
async def test_a_text_that_is_cut_inside_a_character_is_an_answer(made: Servers, hex: str, text: str) -> None:
    """Half of an emoji as Node writes it, and a byte that is no UTF-8."""
    await made.connect({"one": entry(offers=["broken"])})

    with anyio.fail_after(20):
        assert await made.call("one_broken", hex=hex) == ToolOutput(text=text, title="one_broken")


async def test_a_server_that_is_away_keeps_its_names(made: Servers) -> None:
    """Another one does not get them, nor the rules for them, meanwhile."""
    tools = [{"name": "hub_drop", "inputSchema": {"type": "object"}}]
    away = {"type": "local", "command": ["/no/such/program"]}
    await made.connect({"git": entry(tools=tools), "git_hub": away})

    assert made.names() == ["git_echo"]
    assert made.warnings == ["MCP server git: named as tools of another server, and left out: hub_drop"]
