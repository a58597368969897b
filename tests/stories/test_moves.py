"""A prefix that moves has a reason, whatever happens around it: refused requests, forks, upgrades."""

import pytest

from holdfast.errors import ProviderError
from holdfast.provider.instructions import choose
from holdfast.schema.message import UserMessage
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Fail, Step
from tests.stories.test_epochs import extends, says, steps
from tests.stories.test_pruning import flood, settings
from tests.stories.tools import Deed
from tests.stories.world import World

pytestmark = pytest.mark.ci

REFUSED = Step(Fail(ProviderError("no", kind="auth", retryable=False)))


async def test_a_tool_that_arrives_with_a_refused_request_is_the_reason_all_the_same(world: World) -> None:
    """What was sent is known before anybody answers; the next request extends it."""
    async with world.open(*says("a"), REFUSED, *says("b")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        hf.tools.register(Deed().tool)
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        assert [each.moved for each in await steps(hf, session)] == [None, "tools", None]


async def test_an_agent_edited_before_a_refused_request_is_the_reason(world: World) -> None:
    """Once."""
    world.settings(agent={"build": {"prompt": "Be brief."}})
    async with world.open(*says("a")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    world.settings(agent={"build": {"prompt": "Be thorough."}})
    async with world.open(REFUSED, *says("b")) as (hf, _):
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        assert [each.moved for each in await steps(hf, session)] == [None, "agent", None]


async def test_a_fork_from_before_a_tool_arrived_goes_on_with_the_source_s_prefix(world: World) -> None:
    """It begins with what was pinned then; the tool, which is there by now, moves it for its reason."""
    async with world.open(*says("a", "b", "c", "d")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        registration = hf.tools.register(Deed().tool)
        await hf.sessions.process(session, "two")
        page = await hf.sessions.messages(session)
        here = (await hf.sessions.fork(session, page.messages[2].info.id)).id
        await hf.sessions.process(here, "two again")
        assert [(each.moved, each.block) for each in await steps(hf, here)] == [(None, None), ("tools", 0)]
        registration.close()
        gone = (await hf.sessions.fork(session, page.messages[2].info.id)).id
        await hf.sessions.process(gone, "without it")
        assert [each.moved for each in await steps(hf, gone)] == [None, None]
    assert extends(script.requests[0], script.requests[3])


async def test_a_fork_from_before_a_pruning_shows_the_output_again(world: World) -> None:
    """And a fork of that fork too: what was pruned later was not pruned then."""
    settings(world, prune=True)
    pairs = [(Step(Call("flood", {"number": n}, id=f"c{n}")), Step(Say("ok"))) for n in range(9)]
    script = [step for pair in pairs for step in pair]
    async with world.open(*script, *says("x", "y")) as (hf, _):
        hf.tools.register(flood)
        session = await world.session(hf)
        for _ in range(9):
            await hf.sessions.process(session, "more")
        moved = [each.moved for each in await steps(hf, session)]
        first = moved.index("pruning")
        page = await hf.sessions.messages(session)
        prompts = [each.info.id for each in page.messages if isinstance(each.info, UserMessage)]
        forked = (await hf.sessions.fork(session, prompts[first // 2])).id
        await hf.sessions.process(forked, "again")
        again = (await hf.sessions.fork(forked)).id
        await hf.sessions.process(again, "and again")
        for each in (forked, again):
            assert {step.moved for step in await steps(hf, each)} <= {None, "pruning"}


async def test_another_agent_is_told_of_tools_as_the_first_one_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade a switch moves the agent's own text, and nothing before it."""
    async with world.open(*says("a")) as (hf, one):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    monkeypatch.setattr(choose, "_text", lambda name: f"An improved text for {name}.")
    async with world.open(*says("b")) as (hf, two):
        await hf.sessions.process(session, "two", agent="plan")
        last = (await steps(hf, session))[-1]
    assert two.requests[0].tools == one.requests[0].tools
    assert two.requests[0].system[0] == one.requests[0].system[0]
    assert (last.moved, last.block) == ("agent", len(one.requests[0].tools) + 1)


async def test_a_message_that_a_person_removes_is_a_reason(world: World) -> None:
    """Once; what is said afterwards extends the new prefix."""
    async with world.open(*says("a", "b", "c", "d")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two")
        page = await hf.sessions.messages(session)
        await hf.sessions.remove_message(session, page.messages[1].info.id)
        await hf.sessions.process(session, "three")
        await hf.sessions.process(session, "four")
        moved = [(each.moved, each.block) for each in await steps(hf, session)]
    assert [each[0] for each in moved] == [None, "edit", None]
