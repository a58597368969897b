"""A session whose directory only another machine can reach."""

import anyio
import pytest

from holdfast.errors import Refused
from holdfast.runtime.process import coordinator
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
    monkeypatch.setattr(coordinator, "LOOK_S", 0.01)


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
