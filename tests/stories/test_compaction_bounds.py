"""What a compaction must not do: lose a request, set a bound back, leave a prompt unanswered, hide costs."""

from collections.abc import AsyncGenerator

import anyio
import pytest

import holdfast
from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import CompactionPart
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step, Wait
from tests.stories.compaction import BIG, LONG, OVERFLOW, SILENT, SUMMARY, shown, small, texts
from tests.stories.compaction_bounds import QUOTA, compacted, says
from tests.stories.crashing import Machine, life
from tests.stories.tools import Deed
from tests.stories.world import World
from tests.until import until


class Caller:
    """A model that calls a tool again and again, and summarises when it is asked to."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        self.requests.append(request)
        number = len(self.requests)
        step = Step(Call("act", {"what": str(number)}, id=f"c{number}"))
        if request.tool_choice == "none":
            step = Step(Say("end"))
        elif not request.tools:
            step = Step(Say(SUMMARY))
        if number > 60:
            step = QUOTA
        async for event in ScriptedProvider(step).stream(request):
            yield event


async def test_the_steps_of_a_prompt_are_counted_over_compactions(world: World) -> None:
    """An agent with five steps takes five, however often its history is compacted meanwhile."""
    world.settings(
        permission={"*": "allow"},
        compaction={"max_messages": 4, "tail_turns": 0},
        agent={"build": {"steps": 5}},
    )
    model = Caller()
    async with holdfast.open(world.store, provider=model) as hf:
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    assert len([each for each in model.requests if each.tools]) == 5
    assert len(model.requests) > 5, "it was compacted in between"


async def test_a_request_that_is_no_longer_carried_is_summarised(world: World) -> None:
    """What the person asked for first is told to the summariser when another request takes its place."""
    world.settings(compaction={"tail_turns": 0})
    async with world.open(*says(f"a {LONG}", "first summary", f"b {LONG}", "second summary")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "Port the frobnicator.")
        await compacted(hf, session)
        await hf.sessions.process(session, "ok, go on")
        await compacted(hf, session)
    assert "Port the frobnicator." not in texts(script.requests[1])[0]
    assert "Port the frobnicator." in texts(script.requests[3])[0]


@pytest.mark.ci
@pytest.mark.parametrize("after", [False, True])
async def test_wherever_an_overflow_dies_the_prompt_is_answered(world: World, after: bool) -> None:
    """Crash at every write between the refusal and the answer: whoever resumes gets it."""
    dies_at = 1
    while True:
        machine, store = Machine(), f"{world.store}{dies_at}{after}"
        with ScriptedProvider(Step(Say(f"one {LONG}"))) as script:
            async with life(store, machine, provider=script) as (hf, mortal):
                session = await world.session(hf)
                await hf.sessions.process(session, "first")
                mortal._left, mortal._after = mortal.writes + dies_at, after
                script._steps[:] = [Step(Fail(OVERFLOW)), Step(Say("the summary")), Step(Say("an answer"))]
                try:
                    with anyio.fail_after(60):
                        await hf.sessions.process(session, "second")
                except BaseException:  # noqa: BLE001 - it dies with whatever error
                    assert mortal.dead.is_set()
                died = mortal.dead.is_set()
                script._steps.clear()
        if not died:
            return
        with ScriptedProvider(*[Step(Say("the answer"))] * 6) as script:
            async with life(store, machine, provider=script) as (hf, _):
                await hf.sessions.resume(session)
                await hf.sessions.wait(session)
                last = (await shown(hf, session))[-1].info
                script._steps.clear()
        prompted = dies_at > 1 or after
        assert isinstance(last, AssistantMessage), dies_at
        assert last.error is None or not prompted, dies_at
        dies_at += 1


async def test_a_new_prompt_tries_again_after_attempts_that_came_to_nothing(world: World) -> None:
    """Two failed and two interrupted ones: the person's word resets the count."""
    gate = anyio.Event()
    whole = Step(Say(f"a {LONG}"), usage=BIG)
    steps = [whole, QUOTA, QUOTA, Step(Wait(gate)), Step(Say(SUMMARY)), Step(Say("b"))]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        for text in ("one", "two", "three"):
            await hf.sessions.process(session, text, check=False)
        await hf.sessions.prompt(session, "four")
        await until(lambda: len(script.requests) >= 4)
        await hf.sessions.interrupt(session)
        answer = await hf.sessions.process(session, "five")
    assert answer.info.error is None


async def test_a_compaction_by_hand_that_fails_does_not_keep_the_prompt_beside_it(world: World) -> None:
    """It is answered with the history as it was."""
    async with world.open(*says(f"a {LONG}"), QUOTA, *says("b")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.prompt(session, "two", resume=False)
        await compacted(hf, session)
    assert texts(script.requests[2]) == ["one", f"a {LONG}", "two"]


async def test_the_system_text_of_a_prompt_is_carried_over(world: World) -> None:
    """It came with the request that is still being worked on."""
    world.settings(compaction={"tail_turns": 0})
    async with world.open(Step(Say(f"a {LONG}"), usage=BIG), *says(SUMMARY, "b")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two", system="Answer in Latin only.")
    assert "Answer in Latin only." in str(script.requests[2].messages)


async def test_an_attempt_that_came_to_nothing_is_paid_for(world: World) -> None:
    """A summary that was too long took tokens all the same."""
    small(world)
    long = Step(Say("long " * 40_000), usage=Usage(input=20_000, output=4_000))
    async with world.open(Step(Say("a"), usage=SILENT), long) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "x" * 80_000)
        await hf.sessions.process(session, "y" * 90_000, check=False)
        record = await hf.sessions.get(session)
    assert record.tokens is not None
    assert (record.tokens.input, record.tokens.output) == (20_000, 4_000)


async def test_removing_the_first_message_of_a_tail_leaves_the_rest_of_it(world: World) -> None:
    """The tail begins with the next one."""
    world.settings(compaction={"tail_turns": 2})
    async with world.open(*says(f"a {LONG}", "b", "c", SUMMARY, "d")) as (hf, script):
        session = await world.session(hf)
        for text in ("one", "two", "three"):
            await hf.sessions.process(session, text)
        await compacted(hf, session)
        parts = [part for each in await shown(hf, session) for part in each.parts]
        (tail,) = [part.tail_start_id for part in parts if isinstance(part, CompactionPart)]
        assert tail is not None
        await hf.sessions.remove_message(session, tail)
        await hf.sessions.process(session, "four")
    assert texts(script.requests[4])[2:] == [SUMMARY, "b", "three", "c", "four"]


@pytest.mark.ci
async def test_removing_a_second_compaction_brings_the_first_one_back(world: World) -> None:
    """Its summary goes with the message that asked for it."""
    world.settings(compaction={"tail_turns": 1})
    async with world.open(*says(f"a {LONG}", f"b {LONG}", "FIRST", "c", "SECOND", "d")) as (hf, script):
        session = await world.session(hf)
        for text in ("one", "two"):
            await hf.sessions.process(session, text)
        await compacted(hf, session)
        await hf.sessions.process(session, "three")
        await compacted(hf, session)
        messages = await shown(hf, session)
        asking = [
            each.info.id for each in messages if any(isinstance(part, CompactionPart) for part in each.parts)
        ]
        await hf.sessions.remove_message(session, asking[-1])
        await hf.sessions.process(session, "four")
    said = texts(script.requests[5])
    assert "FIRST" in said
    assert "SECOND" not in said
