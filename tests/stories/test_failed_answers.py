"""An answer that ended with an error, and had begun a call of ours, is told to the model: what ran, ran.

By which rules a history is lowered is pinned by the epoch when it begins, so that an upgrade moves no prefix.
"""

import anyio
import pytest
from msgspec.structs import replace

from holdfast.app import Holdfast
from holdfast.errors import ProviderError
from holdfast.provider.request import lowering
from holdfast.provider.request.request import Request
from holdfast.schema.budget import Budget
from holdfast.store.batch import Batch
from holdfast.store.put import put
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step
from tests.loop_time import let_pass
from tests.stories.epochs import LONG, epochs, extends
from tests.stories.tools import Deed
from tests.stories.world import World, is_shown
from tests.until import until

OVERLOADED = Fail(ProviderError("Overloaded", kind="overloaded", retryable=True))
FOR_GOOD = Fail(ProviderError("no", kind="other"))
CUT = Fail(ProviderError("cut", kind="connection", retryable=True))


def act(what: str) -> Call:
    return Call("act", {"what": what}, id=what)


def tells_of(request: Request, deed: Deed) -> list[str]:
    """What of the things that were done the model is told."""
    return [what for what in deed.done if f"did {what}" in str(request.messages)]


@pytest.mark.parametrize(
    "steps",
    [
        [Step(act("one"), OVERLOADED)],
        [Step(act("one"), FOR_GOOD)],
        [Step(act("one"), reason="content-filter")],
        [Step(act("one"), CUT), Step(act("two"), CUT), Step(act("three"), CUT)],
    ],
    ids=["overloaded", "failed for good", "filtered", "cut three times"],
)
async def test_calls_that_ran_are_told_whatever_ended_their_answer(world: World, steps: list[Step]) -> None:
    """Each of them, with what it answered."""
    world.settings(permission={"*": "allow"})
    deed = Deed(ask=False)
    async with world.open(*steps, Step(Say("ok"))) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "do it", check=False)
        await hf.sessions.process(session, "go on")
    assert len(deed.done) == len(steps)
    assert tells_of(script.requests[-1], deed) == deed.done


async def test_a_call_that_was_cut_off_by_the_time_is_told_too(world: World) -> None:
    """One call was done when the budget of time ended the answer, the other was not."""
    world.settings(permission={"*": "allow"})
    deed, slow = Deed(ask=False), Deed("slow", ask=False)
    slow.gate = anyio.Event()
    async with world.open(Step(act("one"), Call("slow", {"what": "two"})), Step(Say("ok"))) as (hf, script):
        hf.tools.register(deed.tool)
        hf.tools.register(slow.tool)
        session = await world.session(hf)
        await hf.sessions.set_budget(session, Budget(time_ms=30_000))
        await hf.sessions.prompt(session, "do it")
        with anyio.fail_after(60):
            await slow.begun.wait()
        await until(lambda: is_shown(hf, session, "did one"), store=hf.store)
        let_pass(30)
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
        await hf.sessions.set_budget(session, None)
        await hf.sessions.process(session, "go on")
    assert tells_of(script.requests[-1], deed) == ["one"]
    assert "The call was interrupted." in str(script.requests[-1].messages)


async def old_epoch(hf: Holdfast, session: str) -> None:
    """The epoch in force as an earlier version stored it."""
    *_, epoch = await epochs(hf, session)
    assert epoch.lowering == lowering.RULES
    await hf.store.commit(Batch((put(replace(epoch, lowering=None)),)))


async def failed_session(hf: Holdfast, world: World, script: ScriptedProvider) -> str:
    """A session of an earlier version: a call ran in an answer that failed."""
    session = await world.session(hf)
    script.add(Step(Say(LONG)), Step(act("one"), FOR_GOOD))
    await hf.sessions.process(session, LONG)
    await old_epoch(hf, session)
    await hf.sessions.process(session, "do it", check=False)
    return session


async def test_an_epoch_from_before_the_rule_is_gone_on_with_as_it_was(world: World) -> None:
    """Over an upgrade each request of an epoch extends the one before it, here and in a fork; the next epoch
    has the new rule.
    """
    world.settings(permission={"*": "allow"}, compaction={"tail_turns": 2})
    deed = Deed(ask=False)
    async with world.open() as (hf, script):
        hf.tools.register(deed.tool)
        session = await failed_session(hf, world, script)
    async with world.open(*[Step(Say("ok"))] * 3) as (hf, later):
        hf.tools.register(deed.tool)
        await hf.sessions.process(session, "go on")
        await hf.sessions.process(session, "and on")
        fork = (await hf.sessions.fork(session)).id
        await hf.sessions.process(fork, "in a fork")
        assert [each.lowering for each in await epochs(hf, fork)] == [None]
        assert [tells_of(request, deed) for request in later.requests] == [[], [], []]
        assert extends(script.requests[-1], later.requests[0])
        assert extends(later.requests[0], later.requests[1])
        assert extends(later.requests[1], later.requests[2])
        later.add(Step(Say("summary")), Step(Say("ok")))
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "after it")
        assert [each.lowering for each in await epochs(hf, session)] == [None, lowering.RULES]


async def test_a_session_that_moves_has_the_new_rule_from_there_on(world: World) -> None:
    """Its next epoch begins with the move: what ran before, and was never told, is told now."""
    world.settings(permission={"*": "allow"})
    deed, elsewhere = Deed(ask=False), world.project.with_name("elsewhere")
    elsewhere.mkdir()
    async with world.open() as (hf, script):
        hf.tools.register(deed.tool)
        session = await failed_session(hf, world, script)
        script.add(Step(Say("ok")))
        await hf.sessions.move(session, str(elsewhere))
        await hf.sessions.process(session, "go on")
    assert tells_of(script.requests[-1], deed) == ["one"]
