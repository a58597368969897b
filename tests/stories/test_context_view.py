"""What the model is sent can be looked at: every block, its source and size, and how the cache fares."""

import pytest

from holdfast.errors import NotFound
from holdfast.provider.request import prefix
from holdfast.sessions import cache
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Step
from tests.stories.epochs import LONG, Fact, compacted
from tests.stories.moves import FORM
from tests.stories.tools import STANDARD, Deed
from tests.stories.world import World


async def test_a_session_without_a_prompt_has_nothing_to_show(world: World) -> None:
    """It is said so."""
    async with world.open() as (hf, _):
        session = await world.session(hf)
        with pytest.raises(NotFound, match="not said anything"):
            await hf.sessions.context(session)
        with pytest.raises(NotFound, match="does not exist"):
            await hf.sessions.context("ses_nowhere")


async def test_the_blocks_are_those_that_were_sent(world: World) -> None:
    """In send order, by the same names, with what was said since."""
    world.settings(permission={"act": "allow"})
    fact = Fact()
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c")),
        Step(Say("done"), usage=Usage(input=50, cache_read=900, output=5)),
        Step(Say("more"), usage=Usage(input=50, cache_read=950, output=5)),
    ) as (hf, script):
        fact.register(hf)
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value = "two"
        await hf.sessions.process(session, "two")
        view = await hf.sessions.context(session)
    sent = prefix.named(script.requests[-1]).names
    assert [block.name for block in view.blocks][: len(sent)] == sent
    assert [block.source for block in view.blocks] == [
        *(f"tool {name}" for name in sorted(["act", *STANDARD])),
        "instructions",
        "baseline",
        "person",
        "model",
        "results of act",
        "model",
        "person",
        "system update",
        "model",
    ]
    assert view.moves == []
    assert (view.cause, view.agent, view.model) == ("first", "build", "scripted/m")
    assert view.tokens == sum(block.tokens for block in view.blocks)
    assert view.hit is not None
    assert view.ideal is not None
    assert 0 < view.hit < 1
    assert 0 < view.ideal <= 1
    assert view.blocks[0].cached
    assert not view.blocks[-1].cached


async def test_the_hit_ratio_is_that_of_the_whole_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction forgets nothing of it, and neither do pages: what was read, and what could have been."""
    monkeypatch.setattr(cache, "_PAGE", 3)
    world.settings(compaction={"tail_turns": 0})
    fresh, found = Usage(input=1_000, output=5), Usage(input=100, cache_read=900, output=5)
    script = [Step(Say(f"a {LONG}"), usage=fresh), Step(Say("b"), usage=found), Step(Say("c"), usage=found)]
    summary = Step(Say("## Goal\nAll."), usage=fresh)
    async with world.open(*script, summary, Step(Say("d"), usage=fresh)) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        hf.tools.register(Deed().tool)
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        before = await hf.sessions.context(session)
        await compacted(hf, session)
        after = await hf.sessions.context(session)
        await hf.sessions.process(session, "four")
        last = await hf.sessions.context(session)
    assert (before.hit, before.ideal) == (after.hit, after.ideal) == (1_800 / 3_000, 1_000 / 3_000)
    assert (last.hit, last.ideal) == (1_800 / 4_000, 1_000 / 4_000)
    assert [move.reason for move in before.moves] == ["tools"]
    assert before.moves == after.moves == last.moves
    assert last.cause == "compaction"


async def test_the_tool_for_an_answer_of_a_given_form_is_shown(world: World) -> None:
    """It was sent, among the others by its name."""
    answer = Step(Call("StructuredOutput", {"a": 1}, id="s"))
    async with world.open(answer) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one", format=FORM)
        view = await hf.sessions.context(session)
    sent = prefix.named(script.requests[0]).names
    assert [block.name for block in view.blocks][: len(sent)] == sent
    assert view.blocks[0].source == "tool StructuredOutput"


async def test_an_agent_that_was_not_asked_yet_is_shown_with_what_it_will_be_told(world: World) -> None:
    """Tools, instructions and its own text; and nothing counts as cached behind what differs."""
    world.settings(agent={"plan": {"permission": {"act": "deny"}}})
    found = Usage(input=100, cache_read=90_000, output=5)
    async with world.open(Step(Say("a"), usage=found), Step(Say("b"))) as (hf, script):
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.prompt(session, "two", agent="plan", resume=False)
        view = await hf.sessions.context(session)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
    sent = prefix.named(script.requests[1]).names
    assert [block.name for block in view.blocks] == sent
    assert [block.source for block in view.blocks] == [
        *(f"tool {name}" for name in STANDARD),  # A plan may be written to its own folder.
        "instructions",
        "agent plan",
        "baseline",
        "person",
        "model",
        "person",
    ]
    assert not any(block.cached for block in view.blocks), "the first block is another one"
