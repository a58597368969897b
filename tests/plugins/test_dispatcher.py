"""Plugins are called in order, each on a copy, and none of them can harm a session."""

import threading
from typing import Any

import anyio
import pytest

from holdfast.plugins.dispatcher import Dispatcher, Plugin, Trouble
from holdfast.plugins.hooks import (
    CHAT_HEADERS,
    CHAT_PARAMS,
    HOOKS,
    MESSAGES_TRANSFORM,
    ChatHeaders,
    ChatParams,
    ChatTurn,
    MessagesSeen,
    MessagesShown,
)
from holdfast.schema.model import ModelRef
from tests.provider.history import user

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


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Raises(), "ValueError: no luck"),
        (Hangs(), "took longer than 0.05 s; its change was dropped"),
        (Nonsense(), "InvalidInput: not the JSON that was expected"),
    ],
)
async def test_a_bad_plugin_costs_its_own_change_and_a_notice(bad: object, message: str) -> None:
    """Those before and after it do their part."""
    calls, heard = dispatcher(Adds("one"), bad, Adds("two"), limit_s=0.05)

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
    gate.set()

    assert made == ChatHeaders()
    assert "took longer" in heard[0].message
    assert where[0] is not threading.main_thread()


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


def test_the_hooks_are_those_of_the_specification() -> None:
    """By name; what registers tools and providers is no hook."""
    assert {hook.name for hook in HOOKS} == {
        "chat.headers",
        "chat.message",
        "chat.params",
        "command.execute.before",
        "config",
        "dispose",
        "event",
        "experimental.chat.messages.transform",
        "experimental.chat.system.transform",
        "experimental.compaction.autocontinue",
        "experimental.provider.small_model",
        "experimental.session.compacting",
        "experimental.text.complete",
        "permission.ask",
        "shell.env",
        "tool.definition",
        "tool.execute.after",
        "tool.execute.before",
    }
