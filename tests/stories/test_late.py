"""What comes in between, too late, or not at all: wakes, interrupts and renewals."""

import anyio
import pytest

from holdfast.errors import LeaseLost, StoreBusy
from holdfast.runtime.process import lease
from holdfast.schema import stored
from holdfast.schema.ids import SessionID
from holdfast.schema.request import InterruptRequest, RequestTime
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Put
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, Wait
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.loop_time import let_pass
from tests.stories import inside
from tests.stories.tools import Deed
from tests.stories.world import World, shape


async def test_what_is_said_while_an_interrupt_cleans_up_is_worked_on(world: World) -> None:
    """The interrupt is for what ran; the prompt that follows it is not left in the inbox."""
    world.settings(permission={"*": "allow"})
    begun, cleaning, cleaned = anyio.Event(), anyio.Event(), anyio.Event()

    @tool(name="tidy")
    async def tidy(context: ToolContext) -> str:
        """Take time to stop."""
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            cleaning.set()
            with anyio.CancelScope(shield=True):
                await cleaned.wait()
        return ""

    async with world.open(Step(Call("tidy")), Step(Say("second"))) as (hf, _):
        hf.tools.register(tidy)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "one")
        with anyio.fail_after(60):
            await begun.wait()
            async with anyio.create_task_group() as group:
                group.start_soon(hf.sessions.interrupt, session)
                await cleaning.wait()
                await hf.sessions.prompt(session, "two")
                cleaned.set()
            await hf.sessions.wait(session)
        assert await hf.store.select("prompt", session=session, mark=Mark.OPEN) == []
        assert "second" in str(shape((await hf.sessions.messages(session)).messages))


async def test_an_interrupt_that_came_too_late_does_not_stop_the_next_run(world: World) -> None:
    """Another process wrote it when the work was just over, or the runner died before it could hear it."""
    gate = anyio.Event()
    async with world.open(Step(Say("one")), Step(Say("two"), Wait(gate))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        late = InterruptRequest(
            id=hf.mint.ascending("per"), session_id=SessionID(session), time=RequestTime(created=1)
        )
        data = stored.strip("request", late)
        await hf.store.commit(Batch((Put(session, "request", late.id, data, mark=stored.mark(late)),)))

        await hf.sessions.prompt(session, "two")
        watch = hf.store.watch()
        with anyio.fail_after(60):
            while await hf.store.select("request", session=session, mark=Mark.OPEN):
                await watch.wait()
        watch.close()
        gate.set()
        await hf.sessions.wait(session)
        answer = (await hf.sessions.messages(session)).messages[-1]

    assert answer.info.error is None


@pytest.mark.ci
@pytest.mark.parametrize("silent", [False, True], ids=["refused", "without an answer"])
async def test_an_owner_that_cannot_renew_stops_in_time_and_writes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    """At 0.8 of its lease since the last good renewal was sent, before anybody may bury it."""
    world.settings(permission={"*": "allow"})
    deed = Deed()
    deed.gate = anyio.Event()

    async def renew(owner: str) -> None:
        if silent:
            await anyio.sleep_forever()
        raise StoreBusy("the disk is away")

    async with world.open(Step(Say("half"), Call("act", {"what": "x"}))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        began_ms = hf.clock.boot_ms()
        await hf.sessions.prompt(session, "go")
        coordinator = inside.coordinator(hf)
        with anyio.fail_after(60):
            await deed.begun.wait()
            cursor = await hf.store.head()
            # Only now: a machine that stalls before loses no lease.
            monkeypatch.setattr(hf.store, "renew", renew)
            monkeypatch.setattr(lease, "STOP_AFTER_MS", 3_000)
            monkeypatch.setattr(lease, "LATE_MS", 50)
            monkeypatch.setattr(lease, "AGAIN_MS", 60_000)  # It does not wait for another, late try.
            monkeypatch.setattr(lease, "RENEW_MS", 2_500)
            let_pass(5)  # The renewal for which it sleeps is due.
            with pytest.raises(LeaseLost):
                await coordinator.wait(session)
        took_ms = hf.clock.boot_ms() - began_ms
        changes = await hf.store.changes(cursor, session)

    assert deed.done == []
    assert took_ms >= 3_000
    assert changes.records == ()


async def test_a_bug_beside_the_work_does_not_end_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one in naming the session, nor a request that cannot be read."""
    named = anyio.Event()

    async def broken(*_: object) -> None:
        named.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr("holdfast.runtime.side_calls.session_title._name", broken)
    gate = anyio.Event()
    async with world.open(Step(Say("half"), Wait(gate), Say("rest"))) as (hf, _):
        session = await world.session(hf)
        unreadable = Put(session, "request", hf.mint.ascending("per"), b'{"type":"none"}', mark=Mark.OPEN)
        await hf.store.commit(Batch((unreadable,)))
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await named.wait()
            await hf.sessions.rename(session, "Something is written, so the store is looked at")
            await anyio.wait_all_tasks_blocked()
            gate.set()
            await hf.sessions.wait(session)
        said = shape((await hf.sessions.messages(session)).messages)

    assert ("text", "rest") in said[-1][1]
