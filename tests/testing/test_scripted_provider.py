"""The scripted provider: answers as data, and no difference from the script goes unnoticed."""

from contextlib import aclosing

import anyio
import pytest
from msgspec.structs import replace

from holdfast.errors import ProviderError
from holdfast.provider.port import Provider
from holdfast.provider.request.events import (
    Failed,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Start,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCalled,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from holdfast.provider.request.request import Request, Results, Text, ToolResult, User
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.testing.mock_provider.script import Call, Say, Think
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, ScriptFailed, Step, Wait, answered
from tests.provider.history import GPT

REQUEST = Request(model=GPT, messages=(User(content=(Text(text="q"),)),))


async def told(provider: Provider, request: Request = REQUEST) -> list[ProviderEvent]:
    """All events of one answer."""
    async with aclosing(provider.stream(request)) as events:
        return [event async for event in events]


async def test_a_request_that_is_not_expected_fails_even_if_somebody_swallows_it() -> None:
    """The error is raised where it happens and again at the end."""
    provider = ScriptedProvider()
    with pytest.raises(ScriptFailed, match="request 1 was not expected"):
        await told(provider)

    with pytest.raises(ScriptFailed, match="request 1 was not expected"):
        provider.check()


def test_a_step_that_nobody_asked_for_fails() -> None:
    """At the end of the block."""
    with pytest.raises(ScriptFailed, match="1 steps of the script were never asked for"):  # noqa: SIM117
        with ScriptedProvider(Step(Say("hi"))):
            pass


async def test_a_request_must_be_as_expected() -> None:
    """`answered` looks for a tool's result."""
    result = ToolResult(id="c", name="read", content=(Text(text="abc"),))
    good = replace(REQUEST, messages=(Results(content=(result,)),))

    with ScriptedProvider(Step(Say("hi"), expect=answered("c", "b"))) as provider:
        await told(provider, good)
    provider = ScriptedProvider(Step(Say("hi"), expect=answered("c", "x")))
    with pytest.raises(ScriptFailed, match="the result of c is 'abc', without 'x'"):
        await told(provider, good)
    provider = ScriptedProvider(Step(Say("hi"), expect=answered("c", "x")))
    with pytest.raises(ScriptFailed, match="no result for call c"):
        await told(provider)


async def test_a_step_is_a_whole_answer() -> None:
    """Thinking, text, a call, and the end with a reason that fits."""
    step = Step(Think("hm"), Say("look"), Call("read", {"a": 1}, id="c"), delta_characters=100)
    with ScriptedProvider(step) as provider:
        assert await told(provider) == [
            Start(),
            StepStart(),
            ReasoningStart(id="0"),
            ReasoningDelta(id="0", text="hm"),
            ReasoningEnd(id="0", metadata={"signature": "mock-signature"}),
            TextStart(id="1"),
            TextDelta(id="1", text="look"),
            TextEnd(id="1"),
            ToolInputStart(id="c", name="read"),
            ToolInputDelta(id="c", text='{"a":1}'),
            ToolInputEnd(id="c"),
            ToolCalled(id="c", name="read", input={"a": 1}),
            StepFinish(
                reason="tool-calls",
                tokens=Tokens(input=10, output=5, reasoning=0, cache=CacheTokens(read=0, write=0)),
            ),
            Finish(),
        ]


async def test_a_step_may_fail_in_the_middle() -> None:
    """Nothing follows the failure."""
    error = ProviderError("gone", kind="connection", retryable=True)
    with ScriptedProvider(Step(Say("a"), Fail(error), Say("b"))) as provider:
        events = await told(provider)

    assert events[-2:] == [TextEnd(id="0"), Failed(error=error)]


async def test_sessions_have_steps_of_their_own() -> None:
    """The order between sessions does not matter."""
    with ScriptedProvider(Step(Say("one"), session="a"), Step(Say("two"), session="b")) as provider:
        second = await told(provider, replace(REQUEST, session="b"))
        first = await told(provider, replace(REQUEST, session="a"))

    assert (first[3], second[3]) == (TextDelta(id="0", text="one"), TextDelta(id="0", text="two"))


async def test_a_gate_holds_the_stream_without_sleeping() -> None:
    """What was said before it has arrived."""
    gate = anyio.Event()
    with ScriptedProvider(Step(Say("a"), Wait(gate), Say("b"))) as provider:
        async with aclosing(provider.stream(REQUEST)) as events:
            before = [await anext(events) for _ in range(5)]
            assert before[-1] == TextEnd(id="0")
            gate.set()
            after = [event async for event in events]

    assert after[0] == TextStart(id="2")
