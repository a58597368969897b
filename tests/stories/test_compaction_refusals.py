"""Compactions that come to nothing: by name, with the old boundary in force, and counted over a crash."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from holdfast.provider.request.events import FinishReason, ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.runtime.compaction import wording
from holdfast.schema.fault import ContentFilterFault, ContextOverflowFault, OutputLengthFault
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import CompactionPart
from holdfast.testing.mock_provider.script import Say, Usage
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step
from tests.stories.compaction import BIG, LONG, OVERFLOW, SILENT, SUMMARY, shown, small, texts
from tests.stories.compaction_bounds import compacted, says
from tests.stories.crashing import Machine, Mortal, life
from tests.stories.world import World


@pytest.mark.parametrize(
    ("reason", "fault", "tries"),
    [("content-filter", ContentFilterFault, 1), ("length", OutputLengthFault, 2)],
)
async def test_a_summary_that_was_cut_is_none(
    world: World, reason: FinishReason, fault: type, tries: int
) -> None:
    """By a filter or, twice, by its length: it fails by name, is paid for, and the history is what it was."""
    cut = Step(Say("I cannot help with th"), reason=reason, usage=Usage(input=300, output=20))
    async with world.open(*says(f"a {LONG}"), *[cut] * tries, *says("b")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await compacted(hf, session)
        failed = (await shown(hf, session))[-1]
        await hf.sessions.process(session, "two")
        record = await hf.sessions.get(session)
    assert isinstance(failed.info.error, fault)
    assert (failed.info.summary, failed.info.finish) == (True, "error")
    assert texts(script.requests[-1]) == ["one", f"a {LONG}", "two"]
    assert record.tokens is not None
    assert (record.tokens.input, record.tokens.output) == (300 * tries + 2 * 10, 20 * tries + 2 * 5)


async def test_a_cut_summary_of_a_chunk_ends_the_folding(world: World) -> None:
    """Half of the beginning is no summary of the whole: after a second try nothing more is asked for."""
    small(world)
    cut = Step(Say("half"), reason="length")
    async with world.open(*says("a", "b"), cut, cut) as (hf, script):
        session = await world.session(hf)
        for sign in "xy":
            await hf.sessions.process(session, sign * 150_000, model="scripted/large")
        answer = await hf.sessions.process(session, "now on the small one", model="scripted/m", check=False)
    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, OutputLengthFault)
    assert len(script.requests) == 4


async def test_a_compaction_that_would_lengthen_the_request_ends_by_name(world: World) -> None:
    """The summary is longer than what it stands for: the old boundary counts, and what takes room is said."""
    async with world.open(*says(f"a {LONG}", "s" * 12_000, "b")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        before = (await hf.sessions.context(session)).tokens
        await compacted(hf, session)
        failed = (await shown(hf, session))[-1]
        assert (await hf.sessions.context(session)).tokens == before
        await hf.sessions.process(session, "two")
    assert isinstance(failed.info.error, ContextOverflowFault)
    assert "would not make the request shorter" in failed.info.error.data.message
    assert "summary 2000" in failed.info.error.data.message, "six characters a token, as the model counts"
    assert texts(script.requests[2]) == ["one", f"a {LONG}", "two"]


async def test_where_no_summary_could_shorten_the_request_nobody_is_asked_for_one(world: World) -> None:
    """A tiny session, by hand and by force: what is carried over is longer than what was said."""
    async with world.open(*says("a")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await compacted(hf, session)
        failed = (await shown(hf, session))[-1]
    assert isinstance(failed.info.error, ContextOverflowFault)
    assert "would not make the request shorter" in failed.info.error.data.message
    assert len(script.requests) == 1


async def test_a_model_of_unknown_size_is_not_given_a_longer_request_either(world: World) -> None:
    """There is no target to miss, and it has to shrink all the same."""
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": {"name": "M"}},
    }
    world.settings(provider={"scripted": entry})
    async with world.open(*says(f"a {LONG}", "s" * 12_000)) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await compacted(hf, session)
        failed = (await shown(hf, session))[-1]
    assert isinstance(failed.info.error, ContextOverflowFault)


async def test_an_automatic_compaction_that_would_not_shrink_stops_the_work_by_name(world: World) -> None:
    """The provider refused the request: it is not sent again, and the person is told what takes the room."""
    steps = [*says(f"a {LONG}"), Step(Fail(OVERFLOW)), *says("s" * 12_000)]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        answer = await hf.sessions.process(session, "two", check=False)
    assert isinstance(answer.info.error, ContextOverflowFault)
    assert "instructions and context" in answer.info.error.data.message
    assert len(script.requests) == 3


async def test_a_limit_on_messages_is_served_by_fewer_messages(world: World) -> None:
    """The person wants few messages, however short: a summary in their place is progress."""
    world.settings(compaction={"max_messages": 4, "tail_turns": 0})
    steps = [Step(Say(text), usage=SILENT) for text in ("a", "b", SUMMARY, "c")]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        answers = [await hf.sessions.process(session, text) for text in ("one", "two", "three")]
    assert [answer.info.error for answer in answers] == [None] * 3
    assert len(script.requests[-1].messages) == 3


class Overflowing:
    """Answers its first request, summarises, and refuses every other; it dies after a refusal's record."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.mortal: Mortal | None = None

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        self.requests.append(request)
        asked = [each for each in self.requests if each.tools]
        step = Step(Say(SUMMARY)) if not request.tools else Step(Fail(OVERFLOW))
        if len(asked) == 1:
            step = Step(Say(f"one {LONG}"))
        async for event in ScriptedProvider(step).stream(request):
            if request.tools and len(asked) == 3 and self.mortal is not None:
                # The next write is the one that closes this message.
                self.mortal._left, self.mortal._after = self.mortal.writes + 1, True
                self.mortal = None
            yield event


async def test_attempts_are_counted_over_a_crash_after_an_overflow(world: World) -> None:
    """Killed right after the second refusal was recorded: there is one attempt left, not two."""
    machine, model = Machine(), Overflowing()
    async with life(world.store, machine, provider=model) as (hf, mortal):
        session = await world.session(hf)
        await hf.sessions.process(session, f"first {LONG}")
        model.mortal = mortal
        with anyio.move_on_after(60):
            try:
                await hf.sessions.process(session, "second")
            except BaseException:  # noqa: BLE001 - it dies with whatever error
                assert mortal.dead.is_set()
        assert mortal.dead.is_set()
    async with life(world.store, machine, provider=model) as (hf, _):
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        messages = await shown(hf, session)
    parts = [part for each in messages for part in each.parts if isinstance(part, CompactionPart)]
    assert [part.attempt for part in parts] == [1, 2]
    error = messages[-1].info.error
    assert isinstance(error, ContextOverflowFault)


async def test_the_tail_gives_way_before_the_work_does(world: World) -> None:
    """The current request stands in the tail and is carried over: with both the request would be longer."""
    world.settings(compaction={"tail_turns": 1})
    steps = [Step(Say(f"a {LONG}"), usage=BIG), *says(SUMMARY, "b")]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        answer = await hf.sessions.process(session, f"two {LONG}")
    assert answer.info.error is None
    said = texts(script.requests[-1])
    assert f"<request>\ntwo {LONG}\n</request>" in said[1]
    assert said[2:] == [SUMMARY, wording.CONTINUE]


async def test_usage_that_no_compaction_could_lower_is_left_to_the_provider_to_judge(world: World) -> None:
    """A short conversation whose last answer was counted high: it is sent, and answered; once the provider
    refuses it, the work ends by name.
    """
    steps = [Step(Say("a"), usage=BIG), Step(Say("b"), usage=BIG), Step(Fail(OVERFLOW))]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        answer = await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three", check=False)
        last = (await shown(hf, session))[-1]
    assert answer.info.error is None
    assert isinstance(last.info.error, ContextOverflowFault)
    assert "would not make the request shorter" in last.info.error.data.message
    assert all(each.tools for each in script.requests)
