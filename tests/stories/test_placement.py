"""A session whose directory only another machine can reach."""

from typing import Any

import anyio
import pytest

from holdfast.errors import NotFound, Refused
from holdfast.runtime import drain
from holdfast.runtime.process import placement_prompts
from holdfast.schema.stored import Mark
from holdfast.sessions import prompts
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step, Wait
from tests.stories import inside
from tests.stories.places import Machine
from tests.stories.world import World, is_shown, shape
from tests.until import until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks follow one another at once."""
    monkeypatch.setattr(placement_prompts, "LOOK_S", 0.01)


async def test_what_cannot_be_run_here_is_refused_before_it_is_admitted(world: World) -> None:
    """No process at its place runs it: who would wait for an answer is refused, and no prompt is left."""
    async with world.open(host=Machine("alpha")) as (alpha, _), world.open(host=Machine("beta")) as (beta, _):
        session = await world.session(alpha)

        with pytest.raises(Refused, match="placement alpha"):
            await beta.sessions.process(session, "go")
        with pytest.raises(Refused, match="placement alpha"):
            async for _frame in beta.sessions.turn(session, "go"):
                pass
        assert await beta.store.select("prompt", session=session) == []


async def test_an_owner_takes_up_what_was_admitted_elsewhere_for_its_place(world: World) -> None:
    """The receipt says where it runs; an owner there answers it by itself, and nobody else does."""
    async with world.open(Step(Say("one")), Step(Say("two")), host=Machine("alpha")) as (alpha, _):
        session = await world.session(alpha)
        await alpha.sessions.process(session, "first")
        async with world.open(host=Machine("beta")) as (beta, _):
            admitted = await beta.sessions.prompt(session, "second")

            assert admitted.prompt.placement == "alpha"
            await until(lambda: is_shown(beta, session, count=4), store=beta.store)
            await alpha.sessions.wait(session)
        page = await alpha.sessions.messages(session)
    assert [part for _, parts in shape(page.messages) for part in parts if part[0] == "text"] == [
        ("text", "first"),
        ("text", "one"),
        ("text", "second"),
        ("text", "two"),
    ]


async def test_what_was_only_noted_is_not_taken_up(world: World) -> None:
    """`resume=False` means that nobody is to run it now, there or here."""
    async with world.open(host=Machine("alpha")) as (alpha, _), world.open(host=Machine("beta")) as (beta, _):
        session = await world.session(alpha)
        admitted = await beta.sessions.prompt(session, "later", resume=False)

        assert admitted.prompt.placement is None


async def test_one_who_waits_for_a_session_that_runs_elsewhere_is_answered(world: World) -> None:
    """A process there runs it: the prompt is admitted, and its answer is that process's."""
    gate = anyio.Event()
    steps = Step(Say("one"), Wait(gate)), Step(Say("two"))
    async with world.open(*steps, host=Machine("alpha")) as (alpha, script):
        session = await world.session(alpha)
        await alpha.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        async with world.open(host=Machine("beta")) as (beta, _), anyio.create_task_group() as group:

            async def let_go() -> None:
                await until(lambda: beta.store.select("prompt", session=session))
                gate.set()

            group.start_soon(let_go)
            with anyio.fail_after(60):
                answer = await beta.sessions.process(session, "second", delivery="queue")
            assert [part for part in shape((answer,))[0][1] if part[0] == "text"] == [("text", "two")]


@pytest.mark.ci
async def test_a_prompt_that_nobody_takes_up_is_said_to_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runner stopped before it saw the prompt, and no owner of its place is left: a bound, and a name."""
    monkeypatch.setattr(prompts, "TAKEN_UP_S", 0.0)
    async with world.open(host=Machine("alpha")) as (alpha, _), world.open(host=Machine("beta")) as (beta, _):
        session = await world.session(alpha)
        admitted = await beta.sessions.prompt(session, "go")

        with anyio.fail_after(60), pytest.raises(Refused, match="waits for a process at placement alpha"):
            await inside.taken_up(beta, admitted.prompt)


@pytest.mark.parametrize("who", ["alpha", "beta"])
async def test_what_was_queued_from_elsewhere_waits_behind_an_interrupt(world: World, who: str) -> None:
    """As one from here does, whoever interrupts: no owner there begins it by itself. It is not lost."""
    async with world.open(Step(Wait(anyio.Event())), Step(Say("both")), host=Machine("alpha")) as (
        alpha,
        script,
    ):
        session = await world.session(alpha)
        await alpha.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        async with world.open(host=Machine("beta")) as (beta, _):
            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:

                    async def refused() -> None:
                        with pytest.raises(NotFound, match="`resume` goes on with the session"):
                            await beta.sessions.process(session, "second", delivery="queue")

                    group.start_soon(refused)
                    await until(lambda: beta.store.select("prompt", session=session, mark=Mark.OPEN))
                    await (alpha if who == "alpha" else beta).sessions.interrupt(session)
                await alpha.sessions.wait(session)
                [left] = await beta.store.select("prompt", session=session, mark=Mark.OPEN)
                assert left.value().placement is None

                await alpha.sessions.resume(session)
                await until(lambda: is_shown(beta, session, "both"), store=beta.store)


async def test_what_comes_from_elsewhere_behind_an_interrupt_is_taken_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was admitted while the work before it was still being settled: the interrupt does not mean it."""
    stop, stopping, gate = drain._stop_inbox, anyio.Event(), anyio.Event()

    async def slowly(run: Any) -> None:
        stopping.set()
        await gate.wait()
        await stop(run)

    monkeypatch.setattr(drain, "_stop_inbox", slowly)
    async with world.open(Step(Wait(anyio.Event())), Step(Say("two")), host=Machine("alpha")) as (
        alpha,
        script,
    ):
        session = await world.session(alpha)
        await alpha.sessions.prompt(session, "first")
        await until(lambda: script.requests)
        async with world.open(host=Machine("beta")) as (beta, _):
            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    group.start_soon(alpha.sessions.interrupt, session)
                    await stopping.wait()
                    await until(lambda: inside.running(alpha, session).asked_at)
                    await beta.sessions.prompt(session, "second")
                    gate.set()
                await until(lambda: is_shown(beta, session, "two"), store=beta.store)
                await alpha.sessions.wait(session)


async def test_what_was_admitted_from_elsewhere_outlives_the_process_that_was_to_run_it(world: World) -> None:
    """It closes, which is no interrupt of the user's: the next owner there takes the prompt up."""
    async with world.open(host=Machine("beta")) as (beta, _):
        async with world.open(Step(Wait(anyio.Event())), host=Machine("alpha")) as (alpha, script):
            session = await world.session(alpha)
            await alpha.sessions.prompt(session, "first")
            await until(lambda: script.requests)
            await beta.sessions.prompt(session, "second", delivery="queue")
        async with world.open(Step(Say("done")), Step(Say("done")), host=Machine("alpha")) as (alpha, _):
            await alpha.sessions.process(await world.session(alpha), "makes it an owner")
            with anyio.fail_after(60):
                await until(lambda: is_shown(beta, session, "done"), store=beta.store)
            await alpha.sessions.wait(session)
