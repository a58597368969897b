"""Every wake leads to work, whatever else ends, fails or is refused at that moment."""

from typing import Any

import anyio
import pytest
from msgspec.structs import force_setattr, replace

from holdfast.app import Holdfast
from holdfast.context.source import UNAVAILABLE
from holdfast.errors import NotFound, StoreBusy
from holdfast.runtime import drain
from holdfast.runtime.engine import patience, status_events
from holdfast.runtime.inbox import promotion
from holdfast.runtime.process import placement_prompts, resumption
from holdfast.schema.fault import AbortedFault
from holdfast.schema.message import AssistantMessage
from holdfast.schema.stored import Mark
from holdfast.store.open import open_store
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, Wait
from tests.stories import inside
from tests.stories.crashing import Machine, killed_in_a_call, life
from tests.stories.epochs import Fact
from tests.stories.interrupting import hold_watcher
from tests.stories.places import Machine as Named
from tests.stories.tools import Deed
from tests.stories.world import World, is_shown, shape
from tests.until import until


async def waiting(hf: Holdfast, session: str) -> list[str]:
    """The prompts that nobody has begun to work on."""
    return [record.id for record in await hf.store.select("prompt", session=session, mark=Mark.OPEN)]


def texts(messages: Any) -> list[str]:
    """What was said, in its order."""
    return [part[1] for _, parts in shape(messages) for part in parts if part[0] == "text"]


async def test_a_prompt_that_comes_while_a_command_is_refused_is_worked_on(world: World) -> None:
    """The command never begins; the prompt was acknowledged while it was looked at."""
    async with world.open(Step(Say("one")), Step(Say("two"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "first")
        claims = inside.coordinator(hf)._claims
        take, entered, gate = claims.take, anyio.Event(), anyio.Event()

        async def slowly(session: str) -> Any:
            entered.set()
            await gate.wait()
            return await take(session)

        claims.take = slowly  # type: ignore[method-assign]

        async def command() -> None:
            with pytest.raises(NotFound):
                await hf.sessions.shell(session, "true", agent="nobody")

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(command)
                await entered.wait()
                await hf.sessions.prompt(session, "second")
                gate.set()
            await hf.sessions.wait(session)
        assert await waiting(hf, session) == []
        assert texts((await hf.sessions.messages(session)).messages) == ["first", "one", "second", "two"]


async def test_a_prompt_behind_an_interrupt_that_comes_before_the_claim_is_worked_on(world: World) -> None:
    """The interrupt ends the prompt that was to begin then; the next one is not stopped with it."""
    async with world.open(Step(Say("two"))) as (hf, _):
        session = await world.session(hf)
        claims = inside.coordinator(hf)._claims
        take, entered, gate = claims.take, anyio.Event(), anyio.Event()

        async def slowly(session: str) -> Any:
            entered.set()
            await gate.wait()
            return await take(session)

        claims.take = slowly  # type: ignore[method-assign]
        with anyio.fail_after(60):
            await hf.sessions.prompt(session, "first")
            await entered.wait()
            async with anyio.create_task_group() as group:
                group.start_soon(hf.sessions.interrupt, session)
                await until(lambda: inside.running(hf, session).asked_at)
                await hf.sessions.prompt(session, "second")
                gate.set()
            await until(lambda: is_shown(hf, session, "two"), store=hf.store)
            await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    assert texts(page.messages) == ["first", "second", "two"]
    faults = [each.info.error for each in page.messages if isinstance(each.info, AssistantMessage)]
    assert [type(each) for each in faults] == [AbortedFault, type(None)]


async def test_a_prompt_that_comes_while_a_drain_fails_is_worked_on(world: World) -> None:
    """Its failure is that of the work before; the prompt finds the session in order again, and who waits for
    it is not told of that failure.
    """
    async with world.open(Step(Say("one")), Step(Say("two"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "first")
        claims = inside.coordinator(hf)._claims
        take, failing = claims.take, [ZeroDivisionError("a bug")]

        async def badly(session: str) -> Any:
            if failing:
                await hf.sessions.prompt(session, "second")
                raise failing.pop()
            return await take(session)

        claims.take = badly  # type: ignore[method-assign]
        with anyio.fail_after(60):
            await inside.wake(hf, session)
            await hf.sessions.wait(session)
        assert await waiting(hf, session) == []
        assert texts((await hf.sessions.messages(session)).messages)[-1] == "two"


@pytest.mark.needs("bash")
async def test_a_user_who_resumes_while_a_command_runs_is_heard(world: World) -> None:
    """The outcome of a call is not known; the word that passes it comes while something else is at work."""
    world.settings(permission={"*": "allow"})
    machine, deed = Machine(), Deed(ask=False)
    session = await killed_in_a_call(world, machine, deed)

    gate = world.project / "gate"
    with ScriptedProvider(Step(Say("gone on"))) as script:
        async with life(world.store, machine, provider=script) as (hf, _):
            hf.tools.register(deed.tool)
            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    group.start_soon(hf.sessions.shell, session, "until [ -e gate ]; do sleep 0.02; done")
                    await until(lambda: is_shown(hf, session, "until ["), store=hf.store)
                    assert script.requests == []
                    await hf.sessions.resume(session)
                    gate.touch()
                await hf.sessions.wait(session)
            assert texts((await hf.sessions.messages(session)).messages)[-1] == "gone on"


async def test_a_prompt_from_elsewhere_that_cannot_begin_is_tried_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its context cannot be read: it waits for the user, or another prompt, as one from here does."""
    monkeypatch.setattr(placement_prompts, "LOOK_S", 0.01)
    fact = Fact(UNAVAILABLE)
    async with world.open(Step(Say("one")), Step(Say("two")), host=Named("alpha")) as (alpha, _):
        await alpha.sessions.process(await world.session(alpha), "makes it an owner")
        session = await world.session(alpha)
        fact.register(alpha)
        engine = inside.engine(alpha)
        usual = engine.limits
        force_setattr(engine, "limits", replace(usual, context_wait_ms=1))
        async with world.open(host=Named("beta")) as (beta, _):
            await beta.sessions.prompt(session, "go")
            await until(lambda: is_shown(beta, session, "ContextFault"), store=beta.store)
            await alpha.sessions.wait(session)
            tried = (await beta.store.session(session)).claim
            for _ in range(3):
                await beta.sessions.update(session, lambda value: replace(value, title=value.title + "."))
                await anyio.sleep(0.1)
            assert (await beta.store.session(session)).claim == tried

            fact.value = "there"
            force_setattr(engine, "limits", usual)
            await beta.sessions.prompt(session, "and now?")
            await until(lambda: is_shown(beta, session, "two"), store=beta.store)
        await alpha.sessions.wait(session)
        assert await waiting(alpha, session) == []


@pytest.mark.parametrize("store", ["there", "away"])
async def test_a_prompt_behind_an_interrupt_from_another_process_is_worked_on(
    world: World, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """It was acknowledged after the interrupt was asked for, and before it was seen here; also if the store
    is away when it is to be looked for.
    """
    steps = Step(Wait(anyio.Event())), Step(Say("whole"))
    async with world.open(*steps) as (hf, script), world.open() as (other, _):
        session = await world.session(hf)
        gate = hold_watcher(hf, monkeypatch)
        patient = inside.coordinator(hf).patient
        repeat, refused = patient.repeat, [StoreBusy("away")] if store == "away" else []

        async def repeated(work: Any, *arguments: Any, **named: Any) -> Any:
            if work is promotion.pending and refused:
                raise refused.pop()
            return await repeat(work, *arguments, **named)

        monkeypatch.setattr(patient, "repeat", repeated)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(other.sessions.interrupt, session)
                await until(lambda: other.store.select("request", session=session, mark=Mark.OPEN))
                await hf.sessions.prompt(session, "second")
                gate.set()
            await hf.sessions.wait(session)
        assert (await waiting(hf, session), refused) == ([], [])
        assert texts((await hf.sessions.messages(session)).messages) == ["first", "second", "whole"]


@pytest.mark.parametrize("seen", ["later", "meanwhile"])
async def test_a_user_who_resumes_behind_an_interrupt_from_another_process_is_heard(
    world: World, monkeypatch: pytest.MonkeyPatch, seen: str
) -> None:
    """The interrupt was asked for before that, and is seen here later: it means the work until then."""
    steps = Step(Wait(anyio.Event())), Step(Say("two"))
    async with world.open(*steps) as (hf, script), world.open() as (other, _):
        session = await world.session(hf)
        gate = hold_watcher(hf, monkeypatch)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        await hf.sessions.prompt(session, "second", delivery="queue")
        entry, look = inside.running(hf, session), hf.store.session

        async def slowly(id: str) -> Any:
            if entry.force and not gate.is_set():
                gate.set()
                await entry.done.wait()
            return await look(id)

        if seen == "meanwhile":
            monkeypatch.setattr(hf.store, "session", slowly)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(other.sessions.interrupt, session)
                await until(lambda: other.store.select("request", session=session, mark=Mark.OPEN))
                await hf.sessions.resume(session)
                gate.set()
            await until(lambda: is_shown(hf, session, "two"), store=hf.store)
            await hf.sessions.wait(session)
        assert await waiting(hf, session) == []


async def test_a_prompt_from_before_an_interrupt_from_elsewhere_stays_in_the_inbox(world: World) -> None:
    """As with an interrupt from here: it queued behind the work that was stopped."""
    async with world.open(Step(Wait(anyio.Event()))) as (hf, script), world.open() as (other, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        await hf.sessions.prompt(session, "second", delivery="queue")
        with anyio.fail_after(60):
            assert await other.sessions.interrupt(session)
            await hf.sessions.wait(session)
        assert len(await waiting(hf, session)) == 1


async def test_work_that_was_refused_a_write_by_a_lost_lease_is_resumed(world: World) -> None:
    """The write comes before the renewal that would have told of it: nobody else notes the session."""
    world.settings(permission={"*": "allow"})
    deed = Deed(repeatable=True, ask=False)
    deed.gate = anyio.Event()
    async with world.open(Step(Call("act", {"what": "x"}, id="c")), Step(Say("done"))) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
            machine = Machine()
            machine.killed.add(inside.owner(hf))
            elsewhere = await open_store(world.store, host=machine)
            assert await elsewhere.bury("") == [inside.owner(hf)]
            await elsewhere.close()
            deed.gate.set()
            await until(lambda: len(script.requests) == 2)
            await hf.sessions.wait(session)
        assert texts((await hf.sessions.messages(session)).messages) == ["go", "done"]


async def test_an_interrupt_at_the_end_of_other_work_is_recorded_for_the_prompt_behind_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim was given back, the prompt was about to begin: it does not vanish into the inbox."""
    real, stopping = status_events.idle, anyio.Event()
    async with world.open(Step(Say("one"))) as (hf, _), anyio.create_task_group() as group:
        session = await world.session(hf)

        async def idle(*arguments: Any) -> None:
            if not stopping.is_set():
                stopping.set()
                await hf.sessions.prompt(session, "second")
                for _ in range(2):  # The second one finds nothing more to stop.
                    group.start_soon(hf.sessions.interrupt, session)
                await until(lambda: inside.running(hf, session).stop)
            await real(*arguments)

        monkeypatch.setattr(status_events, "idle", idle)
        with anyio.fail_after(60):
            await hf.sessions.prompt(session, "first")
            await stopping.wait()
            await hf.sessions.wait(session)
        assert await waiting(hf, session) == []
        page = await hf.sessions.messages(session)
    assert texts(page.messages) == ["first", "one", "second"]
    last = page.messages[-1].info
    assert isinstance(last, AssistantMessage)
    assert isinstance(last.error, AbortedFault)


async def test_a_prompt_behind_an_interrupt_that_is_seen_at_the_release_is_worked_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release finds the prompt and begins another round, which the interrupt ends, but not the prompt."""
    real, begun = drain._release, anyio.Event()
    async with (
        world.open(Step(Say("one")), Step(Say("two"))) as (hf, _),
        world.open() as (other, _),
        anyio.create_task_group() as group,
    ):
        session = await world.session(hf)

        async def release(run: Any, *, at_once: bool) -> bool:
            if not begun.is_set():
                begun.set()
                group.start_soon(other.sessions.interrupt, session)
                await until(lambda: other.store.select("request", session=session, mark=Mark.OPEN))
                await hf.sessions.prompt(session, "second")
                await until(lambda: run.interrupted)
            return await real(run, at_once=at_once)

        monkeypatch.setattr(drain, "_release", release)
        with anyio.fail_after(60):
            await hf.sessions.process(session, "first")
            await until(lambda: is_shown(hf, session, "two"), store=hf.store)
            await hf.sessions.wait(session)
        assert texts((await hf.sessions.messages(session)).messages) == ["first", "one", "second", "two"]


async def test_an_interrupt_from_here_counts_though_one_from_elsewhere_is_seen_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt came between the two: the later one means it too, and it stays in the inbox."""
    async with world.open(Step(Wait(anyio.Event()))) as (hf, script), world.open() as (other, _):
        session = await world.session(hf)
        settling, settle = anyio.Event(), drain._settle_interrupted
        gate = hold_watcher(hf, monkeypatch, seen=settling.set)

        async def slowly(run: Any, *, started: bool) -> None:
            gate.set()
            await settling.wait()
            await settle(run, started=started)

        monkeypatch.setattr(drain, "_settle_interrupted", slowly)
        await hf.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(other.sessions.interrupt, session)
                await until(lambda: other.store.select("request", session=session, mark=Mark.OPEN))
                await hf.sessions.prompt(session, "second")
                await hf.sessions.interrupt(session)
            await hf.sessions.wait(session)
        assert len(await waiting(hf, session)) == 1
        assert texts((await hf.sessions.messages(session)).messages) == ["first", "second"]


@pytest.mark.needs("bash")
async def test_a_command_that_was_refused_wakes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was away: its caller was told so, and what waits in the inbox goes on waiting."""
    monkeypatch.setattr(patience, "WAIT_S", 0.0)
    monkeypatch.setattr(resumption, "AGAIN_S", 0.01)
    async with world.open() as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "later", resume=False)
        claim, away = hf.store.claim, [StoreBusy("away")]

        async def back_later(*arguments: Any) -> Any:
            if away:
                raise away.pop()
            return await claim(*arguments)

        hf.store.claim = back_later  # type: ignore[method-assign, assignment]
        with pytest.raises(StoreBusy):
            await hf.sessions.shell(session, "true")
        await anyio.sleep(0.2)
        await hf.sessions.wait(session)
        assert len(await waiting(hf, session)) == 1


async def test_an_interrupt_does_not_look_elsewhere_for_what_this_process_has_lost(world: World) -> None:
    """The former owner of the session is not retired yet: it was this process, so nobody else is asked."""
    async with world.open(Step(Wait(anyio.Event()))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: script.requests)
        gate, retire = anyio.Event(), hf.store.retire

        async def late(owner: str) -> None:
            await gate.wait()
            await retire(owner)

        hf.store.retire = late  # type: ignore[method-assign]
        runs = inside.coordinator(hf)
        runs.lease.forget(inside.owner(hf))
        with anyio.fail_after(60):
            await until(lambda: not runs.active())
            async with anyio.create_task_group() as group:
                group.start_soon(hf.sessions.interrupt, session)
                await until(runs.active)
                gate.set()
            await hf.sessions.wait(session)
        last = (await hf.sessions.messages(session)).messages[-1].info
        assert isinstance(last, AssistantMessage)
        assert isinstance(last.error, AbortedFault)
        assert await hf.store.select("request", session=session) == []
