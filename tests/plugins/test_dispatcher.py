"""Plugins are called in order, each on a copy, and none of them can harm a session."""

import asyncio
import subprocess
import sys
import threading
from copy import deepcopy
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from holdfast.plugins import hook_run
from holdfast.plugins.dispatcher import TIMEOUTS_MAX, Dispatcher, Plugin, Trouble
from holdfast.plugins.hooks import TOOL_EXECUTE_AFTER, ToolAfter, ToolOutcome
from holdfast.schema.model import ModelRef
from holdfast.toolkit.declare import Tool
from tests.plugins.sample_hooks import (
    CHAT_HEADERS,
    CHAT_PARAMS,
    MESSAGES_TRANSFORM,
    ChatHeaders,
    ChatParams,
    ChatTurn,
    MessagesSeen,
    MessagesShown,
)
from tests.provider.history import user
from tests.until import until

TURN = ChatTurn(session_id="ses_1", agent="build", model=ModelRef(provider_id="p", model_id="m"))


class Raises:
    """A plugin that breaks half-way through its change."""

    async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        output.temperature = 9.0
        raise ValueError("no\nluck")


class Hangs:
    """A plugin that never answers."""

    async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        output.temperature = 9.0
        await anyio.sleep_forever()


class Nonsense:
    """A plugin that leaves something of another type."""

    async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        output.temperature = "hot"  # type: ignore[assignment]


class Adds:
    """A good plugin."""

    def __init__(self, words: str) -> None:
        self.words = words

    async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        output.options["said"] = [*output.options.get("said", []), self.words]


def dispatcher(*plugins: object, **settings: Any) -> tuple[Dispatcher, list[Trouble]]:
    """Plugins by their class names, and what is reported."""
    heard: list[Trouble] = []
    made = [Plugin(type(each).__name__, "here", each) for each in plugins]
    return Dispatcher(made, heard.append, **settings), heard


@pytest.mark.ci
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Raises(), "ValueError: no luck"),
        (Hangs(), "took longer than 0.5 s; its change was dropped"),
        (Nonsense(), "InvalidInput: not the JSON that was expected"),
    ],
)
async def test_a_bad_plugin_costs_its_own_change_and_a_notice(bad: object, message: str) -> None:
    """Those before and after it do their part."""
    calls, heard = dispatcher(Adds("one"), bad, Adds("two"), limit_s=0.5)

    made = await calls.call(CHAT_PARAMS, TURN, ChatParams(temperature=0.5))

    assert made == ChatParams(temperature=0.5, options={"said": ["one", "two"]})
    (trouble,) = heard
    assert (trouble.plugin, trouble.hook) == (type(bad).__name__, "chat.params")
    assert trouble.message.startswith(message)


async def test_what_was_given_is_never_changed_in_place() -> None:
    """A plugin works on a copy, so that nothing half done can stay."""
    given = ChatParams(options={"deep": {"list": [1]}})

    class Digs:
        def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
            output.options["deep"]["list"].append(2)

    calls, _ = dispatcher(Digs())

    assert (await calls.call(CHAT_PARAMS, TURN, given)).options == {"deep": {"list": [1, 2]}}
    assert given == ChatParams(options={"deep": {"list": [1]}})


async def test_a_plain_function_runs_in_a_thread_and_cannot_hold_the_session() -> None:
    """When its time is over the session goes on without it."""
    gate = threading.Event()
    where: list[threading.Thread] = []

    class Blocks:
        def chat_headers(self, input: ChatTurn, output: ChatHeaders) -> None:
            where.append(threading.current_thread())
            gate.wait(30)
            output.headers["late"] = "yes"

    calls, heard = dispatcher(Blocks(), limit_s=0.05)
    made = await calls.call(CHAT_HEADERS, TURN, ChatHeaders())
    await until(lambda: where)
    gate.set()

    assert made == ChatHeaders()
    assert "took longer" in heard[0].message
    assert where[0] is not threading.main_thread()


class Stubborn:
    """A plugin that cannot be cancelled."""

    def __init__(self) -> None:
        self.asked_to_end = 0

    async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        while True:
            try:
                await anyio.sleep_forever()
            except BaseException:  # noqa: BLE001
                self.asked_to_end += 1


class Shields:
    """A plugin that hides from its cancellation."""

    async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep_forever()


STUBBORN = """
import anyio
from holdfast.plugins import hook_run, hooks
from holdfast.plugins.dispatcher import Dispatcher, Plugin

hook_run.GRACE_S = 0.01

class Stubborn:
    async def shell_env(self, input, output):
        while True:
            try:
                await anyio.sleep_forever()
            except BaseException:
                pass

    def tool_definition(self, input, output):
        import time
        time.sleep(300)

async def main():
    calls = Dispatcher([Plugin("s", "here", Stubborn())], print, limit_s=0.01)
    await calls.call(hooks.SHELL_ENV, hooks.ShellWhere(cwd="/"), hooks.ShellEnv())
    given = hooks.ToolDefined(description="", parameters={})
    await calls.call(hooks.TOOL_DEFINITION, hooks.ToolNamed(tool_id="t"), given)

anyio.run(main)
"""


def test_a_hook_that_will_not_end_does_not_keep_the_process() -> None:
    """Neither a coroutine nor a plain function, and nothing is said of them at the end."""
    ran = subprocess.run(
        [sys.executable, "-c", STUBBORN], capture_output=True, text=True, check=True, timeout=30
    )

    lines = [line.split(":")[0] for line in ran.stdout.splitlines()]
    assert lines == ["plugin s, shell.env", "plugin s, tool.definition"]
    assert ran.stderr == ""


@pytest.mark.ci
@pytest.mark.parametrize("bad", [Stubborn(), Shields()])
def test_a_hook_that_will_not_end_holds_neither_the_session_nor_the_loop(
    bad: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next plugin is called in time, and the loop closes."""
    monkeypatch.setattr(hook_run, "GRACE_S", 0.05)

    async def main() -> ChatParams:
        calls, _ = dispatcher(bad, Adds("next"), limit_s=0.5)
        return await calls.call(CHAT_PARAMS, TURN, ChatParams())

    ended: list[ChatParams] = []
    thread = threading.Thread(target=lambda: ended.append(anyio.run(main)), daemon=True)
    thread.start()
    thread.join(20)

    assert ended == [ChatParams(options={"said": ["next"]})]


async def test_a_hook_whose_time_is_over_may_tidy_up() -> None:
    """It is cancelled first, and gets a while; nobody waits for it."""
    tidied = anyio.Event()

    class Tidy:
        async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                await anyio.lowlevel.cancel_shielded_checkpoint()
                tidied.set()

    calls, heard = dispatcher(Tidy(), limit_s=0.05)
    await calls.call(CHAT_PARAMS, TURN, ChatParams())

    assert len(heard) == 1
    with anyio.fail_after(60):
        await tidied.wait()


class Exits:
    async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        raise SystemExit(3)


class ExitsPlainly:
    def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        raise SystemExit(3)


class CancelsItself:
    async def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        raise asyncio.CancelledError


class Interrupts:
    def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Exits(), "SystemExit: 3"),
        (ExitsPlainly(), "RuntimeError: SystemExit: 3"),
        (CancelsItself(), "CancelledError: it ended itself"),
        (Interrupts(), "RuntimeError: KeyboardInterrupt:"),
    ],
)
async def test_a_plugin_cannot_end_the_process(bad: object, message: str) -> None:
    """To exit, to interrupt or to pretend a cancellation is a fault as any other."""
    calls, heard = dispatcher(bad, Adds("next"))

    made = await calls.call(CHAT_PARAMS, TURN, ChatParams())

    assert made == ChatParams(options={"said": ["next"]})
    assert [each.message for each in heard] == [message]


@pytest.mark.ci
async def test_a_plugin_that_hangs_again_and_again_is_called_no_more() -> None:
    """What it leaves behind does not pile up, on none of its hooks; the others go on."""
    gate = threading.Event()
    calls_made: list[str] = []

    class Blocks:
        def chat_params(self, input: ChatTurn, output: ChatParams) -> None:
            calls_made.append("params")
            gate.wait(30)

        async def chat_headers(self, input: ChatTurn, output: ChatHeaders) -> None:
            calls_made.append("headers")

    before = threading.active_count()
    calls, heard = dispatcher(Blocks(), Adds("x"), limit_s=0.3)
    made = [await calls.call(CHAT_PARAMS, TURN, ChatParams()) for _ in range(10)]
    await calls.call(CHAT_HEADERS, TURN, ChatHeaders())
    after = threading.active_count()
    await until(lambda: len(calls_made) >= TIMEOUTS_MAX)
    gate.set()

    assert made == [ChatParams(options={"said": ["x"]})] * 10
    assert calls_made == ["params"] * TIMEOUTS_MAX
    assert after - before <= TIMEOUTS_MAX
    assert not calls.wants(CHAT_HEADERS)
    assert heard[-1].message == "its time was over 3 times; it is called no more"
    assert len(heard) == TIMEOUTS_MAX + 1


async def test_what_a_plugin_does_to_its_input_reaches_nobody() -> None:
    """Not the caller, and not the next plugin."""
    seen: list[dict[str, Any]] = []

    class Meddles:
        def tool_execute_after(self, input: ToolAfter, output: ToolOutcome) -> None:
            seen.append(deepcopy(input.args))
            input.args["deep"].append("changed")

    given: dict[str, Any] = {"deep": []}
    calls, _ = dispatcher(Meddles(), Meddles())
    told = ToolAfter(tool="t", session_id="s", call_id="c", args=given)
    await calls.call(TOOL_EXECUTE_AFTER, told, ToolOutcome(title="", output="", metadata={}))

    assert given == {"deep": []}
    assert seen == [{"deep": []}, {"deep": []}]


def test_the_tools_of_all_plugins_are_told() -> None:
    """In the order of the plugins; of two with one name it is the later one."""

    async def run(context: object, input: object) -> str:
        return ""

    def made(name: str, words: str) -> Tool:
        return Tool(name=name, description=words, schema={}, run=run, permission=name)

    one, two, again = made("one", ""), made("two", ""), made("one", "again")
    plugins = [Plugin("a", "here", object(), (one, two)), Plugin("b", "here", object(), (again,))]

    assert Dispatcher(plugins, print).tools == (again, two)


async def test_cancellation_passes_through() -> None:
    """A plugin's time limit does not swallow an interruption."""
    calls, heard = dispatcher(Hangs())

    with anyio.move_on_after(0.05) as scope:
        await calls.call(CHAT_PARAMS, TURN, ChatParams())

    assert scope.cancelled_caught
    assert heard == []


async def test_records_survive_a_hook_that_may_change_them() -> None:
    """Messages and their parts come back equal."""
    shown = MessagesShown(messages=[user("hi")])

    class Looks:
        async def experimental_chat_messages_transform(self, input: object, output: MessagesShown) -> None:
            output.messages.append(output.messages[0])

    calls, heard = dispatcher(Looks())

    assert (await calls.call(MESSAGES_TRANSFORM, MessagesSeen(), shown)).messages == shown.messages * 2
    assert heard == []


def test_nobody_is_asked_who_has_no_such_method() -> None:
    """An attribute that cannot be called is none."""

    class Odd:
        chat_params = 7

    calls, _ = dispatcher(Adds("x"), Odd())

    assert calls.wants(CHAT_PARAMS)
    assert not calls.wants(CHAT_HEADERS)
