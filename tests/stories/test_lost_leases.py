"""This process loses its lease, or cannot claim a session: nothing that was asked for is forgotten."""

import contextlib
from typing import Any

import anyio
import pytest
from msgspec.structs import force_setattr, replace

from holdfast.app import Holdfast
from holdfast.errors import HoldfastError, LeaseLost, Refused, StoreBusy
from holdfast.runtime import drain
from holdfast.runtime.engine import interrupt_requests, patience
from holdfast.runtime.process import placement_prompts, resumption
from holdfast.schema.fault import AbortedFault
from holdfast.schema.message import AssistantMessage
from holdfast.schema.stored import Mark
from holdfast.store.open import open_store
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, Wait
from tests.stories import inside
from tests.stories.crashing import Machine, killed_in_a_call, life
from tests.stories.interrupting import hold_watcher, ordered
from tests.stories.places import Machine as Named
from tests.stories.tools import Deed
from tests.stories.world import Attached, World, is_shown
from tests.until import until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks and tries follow one another at once."""
    monkeypatch.setattr(placement_prompts, "LOOK_S", 0.01)
    monkeypatch.setattr(resumption, "AGAIN_S", 0.01)


async def waiting(hf: Holdfast, session: str) -> int:
    """How many prompts nobody has begun to work on."""
    return len(await hf.store.select("prompt", session=session, mark=Mark.OPEN))


async def end_of(hf: Holdfast, session: str) -> type[object]:
    """With what the last answer ended."""
    last = (await hf.sessions.messages(session)).messages[-1].info
    assert isinstance(last, AssistantMessage)
    return type(last.error)


def lose(hf: Holdfast) -> None:
    """What a renewal does when it could not be had in time."""
    inside.coordinator(hf).lease.forget(inside.owner(hf))


def hold_first_settlement(monkeypatch: pytest.MonkeyPatch) -> anyio.Event:
    """Let the first interrupt be settled only when the lease is gone; set when it is about to be."""
    settle, settling = drain._settle_interrupted, anyio.Event()

    async def held(run: Any, *, started: bool) -> None:
        if not settling.is_set():
            settling.set()
            while not run.abandoned:
                await anyio.sleep(0.01)
        await settle(run, started=started)

    monkeypatch.setattr(drain, "_settle_interrupted", held)
    return settling


def limit_waits(hf: Holdfast) -> None:
    """The user is asked, and soon not waited for."""
    engine = inside.engine(hf)
    force_setattr(engine, "limits", replace(engine.limits, answer_wait_ms=50))


async def test_an_interrupt_of_work_that_is_cut_off_is_settled(world: World) -> None:
    """The lease goes, the tool takes a moment to end, and the user interrupts: the work does not go on."""
    world.settings(permission={"*": "allow"})
    deed, ending, gate = Deed(repeatable=True, ask=False), anyio.Event(), anyio.Event()
    deed.gate = anyio.Event()
    async with world.open(Step(Call("act", {"what": "x"}, id="c"))) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        rounds = drain._rounds

        async def slowly(run: Any, *, force: bool) -> Any:
            try:
                return await rounds(run, force=force)
            finally:
                if not ending.is_set():
                    ending.set()
                    with anyio.CancelScope(shield=True):
                        await gate.wait()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drain, "_rounds", slowly)
            await hf.sessions.prompt(session, "go")
            with anyio.fail_after(60):
                await deed.begun.wait()
                lose(hf)
                await ending.wait()
                async with anyio.create_task_group() as group:
                    group.start_soon(hf.sessions.interrupt, session)
                    await until(lambda: inside.running(hf, session).stop)
                    gate.set()
                await hf.sessions.wait(session)
        assert (len(script.requests), deed.done) == (1, [])
        assert await end_of(hf, session) is AbortedFault


async def test_an_interrupt_that_was_not_settled_before_the_lease_went_is_settled_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else may go on with the interrupted work: not a remark without reply, nor any other wake."""
    settling = hold_first_settlement(monkeypatch)
    async with world.open(Step(Say("half"), Wait(anyio.Event()))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(hf.sessions.interrupt, session)
                await settling.wait()
                lose(hf)
            assert await end_of(hf, session) is AbortedFault
            await hf.sessions.prompt(session, "by the way", no_reply=True)
            await inside.wake(hf, session)
            await hf.sessions.wait(session)
        assert len(script.requests) == 1


async def test_a_prompt_behind_an_interrupt_from_elsewhere_outlives_the_lease(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt is settled under the next lease; what was admitted behind it is worked on then."""
    settling = hold_first_settlement(monkeypatch)
    steps = Step(Wait(anyio.Event())), Step(Say("two"))
    async with world.open(*steps) as (hf, script), world.open() as (other, _):
        session = await world.session(hf)
        gate = hold_watcher(hf, monkeypatch)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)

        async def interrupt() -> None:
            with contextlib.suppress(Refused):  # The run has ended, with its owner.
                await other.sessions.interrupt(session)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(interrupt)
                await until(lambda: other.store.select("request", session=session, mark=Mark.OPEN))
                await hf.sessions.prompt(session, "second")
                gate.set()
                await settling.wait()
                lose(hf)
            await until(lambda: is_shown(hf, session, "two"), store=hf.store)
            await hf.sessions.wait(session)
        assert await waiting(hf, session) == 0


async def test_a_prompt_behind_an_interrupt_survives_the_loss_of_the_lease(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No setting decides about it: it was not cut off, it has not begun."""
    world.settings(recovery="off")
    settling = hold_first_settlement(monkeypatch)
    async with world.open(Step(Wait(anyio.Event())), Step(Say("two"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(hf.sessions.interrupt, session)
                await settling.wait()
                await hf.sessions.prompt(session, "second")
                lose(hf)
            await until(lambda: is_shown(hf, session, "two"), store=hf.store)
            await hf.sessions.wait(session)


async def test_a_prompt_behind_work_that_is_cut_off_is_worked_on(world: World) -> None:
    """The setting decides about work that was under way, not about what has not begun."""
    world.settings(recovery="off")
    async with world.open(Step(Wait(anyio.Event())), Step(Say("two"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        await hf.sessions.prompt(session, "second")
        lose(hf)
        with anyio.fail_after(60):
            await until(lambda: is_shown(hf, session, "two"), store=hf.store)
            await hf.sessions.wait(session)


async def test_what_is_cut_off_goes_by_the_setting(world: World) -> None:
    """`off`: the next prompt goes on with it, and nothing else."""
    world.settings(recovery="off")
    async with world.open(Step(Wait(anyio.Event()))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        lose(hf)
        with anyio.fail_after(60):
            with pytest.raises(LeaseLost):
                await hf.sessions.wait(session)
            await until(lambda: not inside.coordinator(hf).resumption.waiting)
        assert (len(script.requests), inside.coordinator(hf).active()) == (1, [])


async def test_an_idle_owner_that_loses_its_lease_is_an_owner_again(world: World) -> None:
    """Others admit prompts for its placement as before, and its process is alive."""
    async with world.open(Step(Say("one")), Step(Say("two")), host=Named("alpha")) as (alpha, _):
        session = await world.session(alpha)
        await alpha.sessions.process(session, "first")
        former = inside.owner(alpha)
        lose(alpha)
        async with world.open(host=Named("beta")) as (beta, _):
            await beta.sessions.prompt(session, "second")
            with anyio.fail_after(60):
                await until(lambda: is_shown(beta, session, "two"), store=beta.store)
            await alpha.sessions.wait(session)
            assert inside.owner(alpha) not in ("", former)


async def test_a_write_that_is_refused_right_behind_the_claim_loses_no_prompt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner was buried in that moment: nothing has begun, so no setting is asked."""
    world.settings(recovery="off")
    answer, buried = interrupt_requests.answer, anyio.Event()
    async with world.open(Step(Say("one")), Step(Say("two"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "first")
        await ordered(hf, session)

        async def behind_a_burial(*arguments: Any, **named: Any) -> None:
            if not buried.is_set():
                buried.set()
                machine = Machine()
                machine.killed.add(inside.owner(hf))
                elsewhere = await open_store(world.store, host=machine)
                await elsewhere.bury("")
                await elsewhere.close()
            await answer(*arguments, **named)

        monkeypatch.setattr(interrupt_requests, "answer", behind_a_burial)
        await hf.sessions.prompt(session, "second")
        with anyio.fail_after(60):
            await until(lambda: is_shown(hf, session, "two"), store=hf.store)
            await hf.sessions.wait(session)


async def test_a_user_who_resumes_is_heard_though_the_lease_goes_before_anything_begins(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome of a call is not known: without that word the session would rest."""
    world.settings(permission={"*": "allow"})
    machine, deed = Machine(), Deed(ask=False)
    session = await killed_in_a_call(world, machine, deed)
    work, entered = drain._work, anyio.Event()

    async def first_never(run: Any, *, force: bool) -> Any:
        if not entered.is_set():
            entered.set()
            await anyio.sleep_forever()
        return await work(run, force=force)

    monkeypatch.setattr(drain, "_work", first_never)
    with ScriptedProvider(Step(Say("gone on"))) as script:
        async with life(world.store, machine, provider=script) as (hf, _):
            hf.tools.register(deed.tool)
            with anyio.fail_after(60):
                await hf.sessions.resume(session)
                await entered.wait()
                lose(hf)
                await until(lambda: is_shown(hf, session, "gone on"), store=hf.store)
                await hf.sessions.wait(session)


@pytest.mark.needs("bash")
async def test_a_command_that_is_cut_off_wakes_nothing_and_says_so(world: World) -> None:
    """What waits in the inbox goes on waiting; who ran the command is told that its end is not known."""
    async with world.open() as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "later", resume=False)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:

                async def command() -> None:
                    with pytest.raises(LeaseLost):
                        await hf.sessions.shell(session, "sleep 30")

                group.start_soon(command)
                await until(lambda: is_shown(hf, session, "sleep 30"), store=hf.store)
                lose(hf)
            await hf.sessions.wait(session)
        assert (inside.coordinator(hf).resumption.waiting, script.requests) == ([], [])
        assert await waiting(hf, session) == 1


async def test_a_prompt_that_could_not_be_claimed_can_be_interrupted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was away; it would be taken on by itself, so there is something to stop."""
    monkeypatch.setattr(patience, "WAIT_S", 0.0)
    monkeypatch.setattr(resumption, "AGAIN_S", 60.0)
    async with world.open() as (hf, script):
        session = await world.session(hf)
        claim, away = hf.store.claim, [StoreBusy("away")]

        async def back_later(*arguments: Any) -> Any:
            if away:
                raise away.pop()
            return await claim(*arguments)

        hf.store.claim = back_later  # type: ignore[method-assign, assignment]
        await hf.sessions.prompt(session, "go")
        resuming = inside.coordinator(hf).resumption
        with anyio.fail_after(60):
            await until(lambda: resuming.waiting)
            assert await hf.sessions.interrupt(session)
        assert (resuming.waiting, script.requests) == ([], [])
        assert (await waiting(hf, session), await end_of(hf, session)) == (0, AbortedFault)


@pytest.mark.parametrize("why", ["elsewhere", "away"])
async def test_an_interrupt_that_settles_nothing_is_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The call waits for its answer as before: the session is another machine's, or the store is away."""
    monkeypatch.setattr(patience, "WAIT_S", 0.0)
    world.settings(permission={"*": "ask"})
    deed = Deed()
    step = Step(Call("act", {"what": "x"}, id="c"))
    async with world.open(step, host=Named("alpha"), presence=Attached()) as (alpha, _):
        alpha.tools.register(deed.tool)
        limit_waits(alpha)
        session = await world.session(alpha)
        await alpha.sessions.prompt(session, "go")
        await until(lambda: alpha.store.select("request", session=session, mark=Mark.OPEN))
        await alpha.sessions.wait(session)

        async def refused(hf: Holdfast, error: type[HoldfastError]) -> None:
            with pytest.raises(error), anyio.fail_after(60):
                await hf.sessions.interrupt(session)
            assert len(await hf.store.select("request", session=session, mark=Mark.OPEN)) == 1

        if why == "elsewhere":
            async with world.open(host=Named("beta")) as (beta, _):
                await refused(beta, Refused)
            return

        async def away(*_: Any) -> Any:
            raise StoreBusy("away")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(alpha.store, "claim", away)
            await refused(alpha, StoreBusy)


async def test_both_of_two_interrupts_return_when_everything_is_settled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one finds that the first has just begun to settle the parked call."""
    settle, settling, gate = drain._settle_interrupted, anyio.Event(), anyio.Event()

    async def slowly(run: Any, *, started: bool) -> None:
        settling.set()
        await gate.wait()
        await settle(run, started=started)

    monkeypatch.setattr(drain, "_settle_interrupted", slowly)
    world.settings(permission={"*": "ask"})
    deed, answers, looks = Deed(), [False, False], 0
    async with world.open(Step(Call("act", {"what": "x"}, id="c")), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        limit_waits(hf)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: hf.store.select("request", session=session, mark=Mark.OPEN))
        await hf.sessions.wait(session)

        is_unfinished = inside.coordinator(hf)._is_unfinished

        async def slow_second(id: str) -> bool:
            nonlocal looks
            looks, is_second = looks + 1, looks == 1
            found = await is_unfinished(id)
            await until(lambda: looks == 2)
            if is_second:
                await settling.wait()
            return found

        monkeypatch.setattr(inside.coordinator(hf), "_is_unfinished", slow_second)

        async def interrupt(index: int) -> None:
            answers[index] = await hf.sessions.interrupt(session)
            assert gate.is_set()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(interrupt, 0)
                group.start_soon(interrupt, 1)
                await settling.wait()
                await anyio.sleep(0.1)  # Neither returns before that.
                gate.set()
    assert (answers, looks) == ([True, True], 2)


async def test_a_reply_from_another_process_is_acted_on_once_the_session_rests(world: World) -> None:
    """The wait for it ran out while another call of the answer ran on, and no prompt waits."""
    world.settings(permission={"act": "ask", "slow": "allow"})
    act, slow = Deed("act"), Deed("slow", ask=False)
    slow.gate = anyio.Event()
    calls = Call("act", {"what": "x"}, id="a"), Call("slow", {"what": "y"}, id="b")
    async with (
        world.open(Step(*calls), presence=Attached()) as (here, _),
        world.open(Step(Say("done")), presence=Attached()) as (there, _),
    ):
        for each in (here, there):
            each.tools.register(act.tool)
            each.tools.register(slow.tool)
        limit_waits(here)
        session = await world.session(here)
        await here.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await slow.begun.wait()
            await until(lambda: there.store.select("request", session=session, mark=Mark.OPEN))
            await anyio.sleep(0.2)  # Behind the end of the wait.
            [request] = await there.sessions.requests(session)
            await there.sessions.reply(session, request.id, "once")
            await until(lambda: session in inside.coordinator(there).active())
            slow.gate.set()
            await until(lambda: is_shown(there, session, "done"), store=there.store)
        assert act.done == ["x"]


async def test_a_prompt_from_elsewhere_to_a_session_that_is_parked_is_tried_once(world: World) -> None:
    """The answer of the user goes on with it: until then each try would find it parked again."""
    world.settings(permission={"*": "ask"})
    deed = Deed()
    step = Step(Call("act", {"what": "x"}, id="c"))
    async with world.open(step, host=Named("alpha"), presence=Attached()) as (alpha, _):
        alpha.tools.register(deed.tool)
        limit_waits(alpha)
        session = await world.session(alpha)
        await alpha.sessions.prompt(session, "go")
        await until(lambda: alpha.store.select("request", session=session, mark=Mark.OPEN))
        await alpha.sessions.wait(session)
        async with world.open(host=Named("beta")) as (beta, _):
            before = (await beta.store.session(session)).claim
            await beta.sessions.prompt(session, "from elsewhere")
            await until(lambda: claimed_since(beta, session, before))
            for _ in range(3):
                await beta.sessions.update(session, lambda value: replace(value, title=value.title + "."))
                await anyio.sleep(0.1)
            assert (await beta.store.session(session)).claim == before + 1


async def claimed_since(hf: Holdfast, session: str, number: int) -> bool:
    """Whether a session was claimed behind that claim, and rests again."""
    record = await hf.store.session(session)
    return record.claim > number and not record.busy


async def test_a_prompt_whose_release_is_still_being_answered_is_recorded_as_interrupted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came behind the release of the work before it, and the interrupt behind that."""
    release, released, gate = drain._release, anyio.Event(), anyio.Event()

    async def slowly(run: Any, *, at_once: bool) -> bool:
        found = await release(run, at_once=at_once)
        if not released.is_set():
            released.set()
            await gate.wait()
        return found

    monkeypatch.setattr(drain, "_release", slowly)
    async with world.open(Step(Say("one"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "first")
        with anyio.fail_after(60):
            await released.wait()
            await hf.sessions.prompt(session, "second")
            async with anyio.create_task_group() as group:
                group.start_soon(hf.sessions.interrupt, session)
                await until(lambda: inside.running(hf, session).stop)
                gate.set()
            await hf.sessions.wait(session)
        assert (await waiting(hf, session), await end_of(hf, session)) == (0, AbortedFault)
