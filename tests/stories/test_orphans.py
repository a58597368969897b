"""Calls whose prompt is gone: there is no turn that they could be run again in."""

import pytest

from holdfast.schema.message import UserMessage
from holdfast.testing.mock_provider.script import Call
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from tests.stories.crashing import Machine, life
from tests.stories.permissions import asked, outcomes
from tests.stories.recovery import await_open
from tests.stories.tools import Deed
from tests.stories.world import Attached, World


@pytest.mark.parametrize("removed", [False, True])
async def test_a_call_that_waits_is_settled_when_its_prompt_was_removed(world: World, removed: bool) -> None:
    """It had begun, so its outcome is unknown; with its prompt it would go on waiting for the user."""
    world.settings(permission={"act": "ask"})
    machine, deed = Machine(), Deed()
    script = ScriptedProvider(Step(Call("act", {"what": "x"})))
    async with life(world.store, machine, provider=script, presence=Attached()) as (hf, mortal):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await asked(hf, session)
        mortal.kill()

    async with life(world.store, machine, provider=ScriptedProvider(), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        first = (await hf.sessions.messages(session)).messages[0].info
        assert isinstance(first, UserMessage)
        if removed:
            await hf.sessions.remove_message(session, first.id)
            await hf.sessions.resume(session)
            await hf.sessions.wait(session)
            page = await hf.sessions.messages(session)
            assert [how for how, _ in outcomes(page.messages)] == ["error"]
            assert await_open(page.messages) == []
        else:
            await hf.sessions.resume(session)
            assert len(await asked(hf, session)) == 1
    assert deed.done == []
