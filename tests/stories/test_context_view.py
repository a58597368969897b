"""What the model is sent can be looked at: every block, its source and size, and how the cache fares."""

import pytest

from holdfast.errors import NotFound
from holdfast.provider import prefix
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Step
from tests.stories.test_epochs import Fact
from tests.stories.tools import Deed
from tests.stories.world import World

pytestmark = pytest.mark.ci


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
        "tool act",
        "tool read",
        "tool recall",
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
