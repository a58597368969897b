"""What two processes, a slow tool or a lost store must not do to a session."""

import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest

from holdfast.app import Holdfast
from holdfast.errors import StoreError
from holdfast.runtime.process import claims, coordinator, placement_prompts
from holdfast.runtime.turn import LAST_STEP
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import TextPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.store.batch import Batch, Held, Receipt
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, Wait
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories import inside
from tests.stories.crashing import Machine, life
from tests.stories.loops import impatient
from tests.stories.permissions import asked, outcomes
from tests.stories.tools import Deed
from tests.stories.world import Attached, World
from tests.until import until


async def spoken(hf: Any, session: str) -> list[str]:
    page = await hf.sessions.messages(session)
    return [part.text for message in page.messages for part in message.parts if hasattr(part, "text")]


async def begun(script: ScriptedProvider, count: int = 1) -> None:
    """Return when the model was asked so often."""
    await until(lambda: len(script.requests) >= count)


async def test_a_prompt_behind_a_runner_that_dies_is_answered_by_whoever_waits(world: World) -> None:
    """The process that admitted it goes on at once."""
    machine, gate = Machine(), anyio.Event()
    with ScriptedProvider(Step(Say("half"), Wait(gate), Say("never"))) as dying:
        async with life(world.store, machine, provider=dying) as (one, mortal):
            session = await world.session(one)
            await one.sessions.prompt(session, "first")
            await begun(dying)
            with ScriptedProvider(Step(Say("both"))) as script:
                async with life(world.store, machine, provider=script) as (two, _):
                    await two.sessions.prompt(session, "second")
                    mortal.kill()
                    machine.killed.add(inside.owner(one))
                    with anyio.fail_after(60):
                        await two.sessions.wait(session)
                    assert (await spoken(two, session))[-1] == "both"
                    prompts = [each.value() for each in await two.store.select("prompt", session=session)]
                    assert all(each.promoted is not None for each in prompts)
            gate.set()


async def test_closing_a_process_leaves_the_work_of_another_alone(world: World) -> None:
    """What it said to that session is answered there."""
    gate = anyio.Event()
    async with world.open(Step(Say("one"), Wait(gate), Say("two")), Step(Say("three"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await begun(script)
        with anyio.fail_after(60):
            async with world.open() as (other, _):
                await other.sessions.prompt(session, "one more thing")
        gate.set()
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    answers = [each.info for each in page.messages if isinstance(each.info, AssistantMessage)]
    assert [each.error for each in answers] == [None, None]


@pytest.mark.ci
async def test_an_answer_that_comes_while_another_call_runs_is_acted_upon(world: World) -> None:
    """The wait for it had run out, but the turn had not parked yet."""
    world.settings(permission={"act": "ask", "slow": "allow"})
    act, slow = Deed("act"), Deed("slow", ask=False)
    slow.gate = anyio.Event()
    async with world.open(
        Step(Call("act", {"what": "x"}, id="a"), Call("slow", {"what": "y"}, id="b")),
        Step(Say("done")),
        presence=Attached(),
    ) as (hf, _):
        hf.tools.register(act.tool)
        hf.tools.register(slow.tool)
        impatient(hf)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (question,) = await asked(hf, session)
        with anyio.fail_after(60):
            await slow.begun.wait()
        await anyio.sleep(0.2)  # The wait for the answer is over by now.
        await hf.sessions.reply(session, question.id, "once")
        slow.gate.set()
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
    assert (act.done, slow.done) == (["x"], ["y"])


class Away:
    """A store that takes no claim back for as long as it is away."""

    def __init__(self, hf: Holdfast) -> None:
        commit = hf.store.commit
        self.is_away = True

        async def refused(batch: Batch) -> Receipt:
            if self.is_away and batch.release:
                raise StoreError("away")
            return await commit(batch)

        hf.store.commit = refused  # type: ignore[method-assign]


async def test_a_claim_that_could_not_be_given_back_is_given_back_later(world: World) -> None:
    """A store that was away for a moment does not leave a session busy for ever."""
    async with world.open(Step(Say("one")), Step(Say("two"))) as (hf, _):
        session = await world.session(hf)
        store = Away(hf)
        with pytest.raises(StoreError):
            await hf.sessions.process(session, "first")
        store.is_away = False
        with anyio.fail_after(60):
            answer = await hf.sessions.process(session, "second")
        assert not (await hf.store.session(session)).busy
    assert answer.info.error is None


@pytest.mark.ci
async def test_an_interrupt_does_not_wait_for_a_tool_that_does_not_hear(world: World) -> None:
    """It is settled as interrupted, and what the tool does later is recorded nowhere."""
    world.settings(permission={"deaf": "allow"})
    begun_, gate, late = anyio.Event(), threading.Event(), []

    @tool()
    async def deaf(context: ToolContext) -> str:
        """Work without listening."""
        begun_.set()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(gate.wait, 60)
        await context.progress(title="still here")
        late.append("done")
        return "done"

    async with world.open(Step(Call("deaf", {}, id="c"))) as (hf, _):
        hf.tools.register(deaf)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun_.wait()
        with anyio.fail_after(60):
            await hf.sessions.interrupt(session)
        assert not (await hf.store.session(session)).busy
        gate.set()
        await until(lambda: late)
        page = await hf.sessions.messages(session)
    assert outcomes(page.messages) == [("error", "The call was interrupted.")]


async def test_progress_after_the_end_changes_nothing(world: World) -> None:
    """A settled call stays settled."""
    world.settings(permission={"busy": "allow"})
    later: list[Any] = []

    @tool()
    async def busy(context: ToolContext) -> str:
        """Leave something running behind."""
        later.append(context)
        return "ok"

    async with world.open(Step(Call("busy", {}, id="c")), Step(Say("a"))) as (hf, _):
        hf.tools.register(busy)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        await later[0].progress(title="more")
        page = await hf.sessions.messages(session)
    (state,) = [part.state for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    assert isinstance(state, ToolCompleted)


async def test_two_calls_with_one_id_are_two_calls(world: World) -> None:
    """Each is recorded, run and settled by itself."""
    world.settings(permission={"act": "allow"})
    deed = Deed(ask=False)
    both = (Call("act", {"what": "one"}, id="c"), Call("act", {"what": "two"}, id="c"))
    async with world.open(Step(*both), Step(Say("done"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        page = await hf.sessions.messages(session)
    assert sorted(deed.done) == ["one", "two"]
    assert outcomes(page.messages) == [("completed", "did one"), ("completed", "did two")]


async def test_the_last_step_runs_no_tool(world: World) -> None:
    """A model that calls one all the same is stopped; it was told once."""
    world.settings(permission={"act": "allow"}, agent={"build": {"steps": 2}})
    deed = Deed(ask=False)
    calls = [Step(Call("act", {"what": str(number)}, id=f"c{number}")) for number in range(2)]
    async with world.open(*calls) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        page = await hf.sessions.messages(session, system=True)
    assert deed.done == ["0"]
    assert script.requests[1].tool_choice == "none"
    assert [each.info.text for each in page.messages if hasattr(each.info, "text")] == [LAST_STEP]
    last = [part.state for each in page.messages for part in each.parts if isinstance(part, ToolPart)][-1]
    assert isinstance(last, ToolError)


async def test_the_last_step_keeps_the_cache_of_a_provider_that_caches_by_choice(world: World) -> None:
    """Tools are not forbidden there at first: the model is told, and only one that calls is forbidden to."""
    entry = {
        "npm": "@ai-sdk/anthropic",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": {"limit": {"context": 100_000, "output": 8_000}}},
    }
    world.settings(provider={"scripted": entry}, permission={"act": "allow"}, agent={"build": {"steps": 2}})
    deed = Deed(ask=False)
    calls = [Step(Call("act", {"what": str(number)}, id=f"c{number}")) for number in range(2)]
    async with world.open(*calls, Step(Say("so be it")), *calls[:1], Step(Say("at once"))) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        stubborn = await hf.sessions.process(session, "go")
        willing = await hf.sessions.process(session, "again")
        page = await hf.sessions.messages(session, system=True)

    assert deed.done == ["0", "0"]
    assert [each.tool_choice for each in script.requests] == ["auto", "auto", "none", "auto", "auto"]
    assert [each.info.text for each in page.messages if hasattr(each.info, "text")] == [LAST_STEP] * 2
    assert [answer.info.error for answer in (stubborn, willing)] == [None, None]
    assert [part.text for part in stubborn.parts if isinstance(part, TextPart)] == ["so be it"]


async def test_a_question_survives_settings_that_cannot_be_read(world: World) -> None:
    """The call waits on, and is run once they can be read again and the answer comes."""
    world.settings(permission={"act": "ask"})
    deed = Deed()
    async with world.open(Step(Call("act", {"what": "x"}, id="c")), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        impatient(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (question,) = await asked(hf, session)
    settings = world.home / ".config" / "holdfast" / "holdfast.json"
    good = settings.read_text()
    settings.write_text("{ broken")
    async with world.open(presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        assert [each.id for each in await hf.sessions.requests(session)] == [question.id]
    settings.write_text(good)
    async with world.open(Step(Say("ok")), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        await hf.sessions.reply(session, question.id, "once")
        await hf.sessions.wait(session)
    assert deed.done == ["x"]


async def test_progress_is_live_at_once_and_stored_once_a_second(world: World) -> None:
    """Hundreds of reports are a few commits; the settlement has the last of them."""
    world.settings(permission={"chatty": "allow"})

    @tool()
    async def chatty(context: ToolContext) -> str:
        """Report a lot."""
        for number in range(300):
            await context.progress(title=f"step {number}", metadata={"number": number})
        return "ok"

    async with world.open(Step(Call("chatty", {}, id="c")), Step(Say("a"))) as (hf, _):
        hf.tools.register(chatty)
        session = await world.session(hf)
        commits = 0
        commit = hf.store.commit

        async def counted(*arguments: Any, **named: Any) -> Any:
            nonlocal commits
            commits += 1
            return await commit(*arguments, **named)

        hf.store.commit = counted  # type: ignore[method-assign]
        heard = [frame async for frame in hf.sessions.turn(session, "go")]
        page = await hf.sessions.messages(session)
    (state,) = [part.state for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    assert isinstance(state, ToolCompleted)
    assert state.metadata["number"] == 299
    assert sum(b"step 1" in each.properties for each in heard) > 10
    assert commits < 30


async def test_two_who_wait_for_a_runner_that_dies_answer_once(world: World) -> None:
    """One of them claims the session; the other waits again, and finds nothing left to do."""
    machine = Machine()
    dying = ScriptedProvider(Step(Say("half"), Wait(anyio.Event())))
    answers = [ScriptedProvider(Step(Say("one"))), ScriptedProvider(Step(Say("two")))]
    async with (
        life(world.store, machine, provider=dying) as (first, mortal),
        life(world.store, machine, provider=answers[0]) as (second, _),
        life(world.store, machine, provider=answers[1]) as (third, _),
    ):
        session = await world.session(first)
        await first.sessions.prompt(session, "go")
        await begun(dying)
        for each in (second, third):
            await each.sessions.prompt(session, "and this")
        mortal.kill()
        machine.killed.add(inside.owner(first))
        with anyio.fail_after(60):
            for each in (second, third):
                await each.sessions.wait(session)
        prompts = [each.value() for each in await second.store.select("prompt", session=session)]
    assert all(each.promoted is not None for each in prompts)
    assert sum(len(each.requests) for each in answers) == 1


async def test_a_claim_that_was_kept_is_given_back_though_nobody_asks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session is not busy for longer than the store was away."""
    monkeypatch.setattr(claims, "GIVE_BACK_S", 0.05)
    async with world.open(Step(Say("one"))) as (hf, _):
        session = await world.session(hf)
        store = Away(hf)
        with pytest.raises(StoreError):
            await hf.sessions.process(session, "first")
        assert (await hf.store.session(session)).busy
        store.is_away = False
        with anyio.fail_after(60):
            await hf.sessions.wait(session)


@pytest.mark.ci
async def test_a_claim_that_is_taken_twice_in_a_row_is_waited_for_twice(world: World) -> None:
    """Somebody else was quicker, again: the prompt is answered when the claim is there."""
    async with world.open(Step(Say("at last"))) as (hf, _):
        session = await world.session(hf)
        claim, refusals = hf.store.claim, 2

        async def late(*arguments: Any, **named: Any) -> Any:
            nonlocal refusals
            if refusals:
                refusals -= 1
                return Held(session, "somebody else")
            return await claim(*arguments, **named)

        hf.store.claim = late  # type: ignore[method-assign]
        with anyio.fail_after(60):
            await hf.sessions.process(session, "go")
        assert (refusals, (await spoken(hf, session))[-1]) == (0, "at last")


async def test_who_waits_for_a_late_owner_does_not_ask_all_the_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session is not busy, and not free before the late one is buried: each claim waits for the watch."""
    monkeypatch.setattr(coordinator, "LATE_S", 0.0)
    monkeypatch.setattr(placement_prompts, "LOOK_S", 3600.0)  # The look for what others admitted waits, too.
    async with world.open(Step(Say("at last"))) as (hf, _):
        session = await world.session(hf)
        claim, watch = hf.store.claim, hf.store.watch
        asked: list[str] = []

        async def held(name: str, owner: str) -> Any:
            asked.append("claim")
            return Held(name, "own_late") if asked.count("claim") < 6 else await claim(name, owner)

        class Noted:
            """A watch that notes who waits; its other watchers are left alone."""

            def __init__(self) -> None:
                self._watch = watch()

            async def wait(self) -> None:
                asked.append("wait")

            def close(self) -> None:
                self._watch.close()

        await hf.sessions.prompt(session, "go", resume=False)
        monkeypatch.setattr(hf.store, "claim", held)
        waiting = inside.coordinator(hf)
        monkeypatch.setattr(hf.store, "watch", Noted)
        monkeypatch.setattr(waiting.watcher, "_store", _Quiet())
        with anyio.fail_after(60):
            await waiting.wake(session)
            await waiting.wait(session)
        monkeypatch.setattr(hf.store, "watch", watch)
    assert asked == ["claim", "claim", *["wait", "claim"] * 4]


class _Quiet:
    """A store that a watcher need not look at."""

    def watch(self) -> Any:
        return self

    async def select(self, *_: Any, **__: Any) -> list[Any]:
        return []

    async def wait(self) -> None:
        await anyio.sleep_forever()

    def close(self) -> None:
        pass
