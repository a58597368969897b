"""How long a request is, and whether it is compacted: what was learnt is kept, nothing is counted twice."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

import holdfast
from holdfast.provider.request import prefix
from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.runtime.compaction import measure
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from tests.stories.compaction import BIG, LONG, SILENT, SUMMARY
from tests.stories.compaction_bounds import QUOTA, compacted, says
from tests.stories.tools import Deed
from tests.stories.world import World


def models(world: World, *names: str, context: int = 100_000, **more: Any) -> None:
    """Models of one size."""
    model = {
        "name": "M",
        "limit": {"context": context, "output": context // 10},
        "cost": {"input": 1, "output": 2},
    }
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": dict.fromkeys(names, model),
    }
    world.settings(provider={"scripted": entry}, **more)


class Truthful:
    """Counts a token for six characters, and tells so. Its answers are what is given, by their order."""

    def __init__(self, *answers: Step) -> None:
        self.requests: list[Request] = []
        self._answers = list(answers)

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        self.requests.append(request)
        usage = Usage(input=prefix.named(request).characters // 6, output=5)
        step = self._answers.pop(0) if request.tools else Step(Say(SUMMARY))
        step.usage = usage
        async for event in ScriptedProvider(step).stream(request):
            yield event


def calls(number: int) -> Step:
    return Step(Call("act", {"what": f"{number} " + "out " * 5_000}, id=f"c{number}"))


async def test_how_long_a_token_is_stays_known_over_a_compaction(world: World) -> None:
    """The model counted six characters a token before it; nobody has to learn it again after it."""
    world.settings(compaction={"tail_turns": 0})
    model = Truthful(Step(Say("a")), Step(Say("b")))
    async with holdfast.open(world.store, provider=model) as hf:
        session = await world.session(hf)
        await hf.sessions.process(session, f"one {LONG}")
        before = measure.ratio(await SessionHistory(hf.store, session).read(), model.requests[0].model)
        await compacted(hf, session)
        after = None
        for _ in range(2):
            after = measure.ratio(await SessionHistory(hf.store, session).read(), model.requests[0].model)
            await hf.sessions.process(session, f"two {LONG}")
            await compacted(hf, session)
            model._answers.append(Step(Say("c")))
    assert round(before, 1) == 6.0
    assert after == pytest.approx(before, abs=0.1)


@pytest.mark.ci
async def test_a_request_that_fits_is_not_refused_after_a_compaction(world: World) -> None:
    """A long request of light tokens: by what the model counted it fits, before and after."""
    models(world, "m", context=20_000, permission={"*": "allow"})
    model = Truthful(Step(Say("hello")), calls(1), calls(2), Step(Say("done")))
    async with holdfast.open(world.store, provider=model) as hf:
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "hello " * 200)
        answer = await hf.sessions.process(session, "word " * 14_000)
    assert answer.info.error is None
    assert [bool(each.tools) for each in model.requests] == [True, True, False, True, False, True]


@pytest.mark.parametrize("agent", [{}, {"compaction": {"model": "scripted/n"}}])
async def test_a_failed_attempt_does_not_hide_the_usage_before_it(
    world: World, agent: dict[str, Any]
) -> None:
    """Whichever model was to write the summary: the answer before it was too long, and still is."""
    models(world, "m", "n", agent=agent)
    steps = [Step(Say("a"), usage=BIG), QUOTA, Step(Say(SUMMARY)), Step(Say("b"))]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        for text in (f"one {LONG}", "two", "three"):
            await hf.sessions.process(session, text, check=False)
    assert [bool(each.tools) for each in script.requests] == [True, False, False, True]


@pytest.mark.ci
async def test_by_hand_only_the_tools_of_the_agent_that_answers_are_counted(world: World) -> None:
    """A session in which two agents have spoken is as long as the next request, and no longer."""
    world.settings(permission={"*": "allow"})
    async with world.open(*[Step(Say(text), usage=SILENT) for text in "abc"]) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two", agent="plan")
        hf.tools.register(Deed(ask=False).tool)
        await hf.sessions.process(session, "three", agent="plan")
        tokens = (await hf.sessions.context(session)).tokens
    for limit, answer in ((tokens + 50, "not needed"), (tokens - 50, "admitted")):
        world.settings(permission={"*": "allow"}, compaction={"max_tokens": limit})
        async with world.open() as (hf, _):
            assert await hf.sessions.compact(session) == answer
            await hf.sessions.wait(session)
    assert len(script.requests) == 3


async def test_by_hand_another_model_s_count_says_nothing(world: World) -> None:
    """The last answer was another model's: what it counted is no threshold of the one that is asked next."""
    models(world, "m", "n")
    async with world.open(Step(Say("a"), usage=BIG), *says("b")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one", model="scripted/n")
        await hf.sessions.prompt(session, "two", model="scripted/m", resume=False)
        assert await hf.sessions.compact(session) == "not needed"
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
    assert len(script.requests) == 2
