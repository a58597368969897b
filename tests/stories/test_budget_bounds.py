"""A budget holds whatever becomes of the turns: cut off, side by side, run by a process that died."""

from functools import partial

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from holdfast.app import Holdfast
from holdfast.clock import SystemClock
from holdfast.runtime.budget import spending
from holdfast.runtime.budget.spending import Moment
from holdfast.schema.budget import NOTHING, Budget, Reserved, Spent
from holdfast.schema.fault import BudgetFault
from holdfast.schema.message import AssistantMessage
from holdfast.store.owner import LEASE_MS
from holdfast.testing.clock import FakeClock
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, Wait
from tests.loop_time import let_pass
from tests.stories.crashing import Machine, life
from tests.stories.tools import Deed
from tests.stories.world import World, is_shown
from tests.until import until


async def spent(hf: Holdfast, session: str) -> Spent:
    """What the tree of a root has used."""
    return (await hf.sessions.get(session)).spent or NOTHING


async def test_a_turn_that_was_interrupted_is_not_free(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent counts by our estimate, and so does what came of the answer; nothing stays reserved."""
    monkeypatch.setattr("holdfast.runtime.answer.processor.CHECKPOINT_MS", 1)
    said = "word " * 400
    async with world.open(Step(Say(said), Wait(anyio.Event()), Say("never"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.set_budget(session, Budget(tokens=60_000))
        await hf.sessions.prompt(session, "x" * 4_000)
        await until(lambda: is_shown(hf, session, said.strip()), store=hf.store)
        held = (await spent(hf, session)).reserved
        await hf.sessions.interrupt(session)
        used = await spent(hf, session)

    (reserved,) = held.values()
    assert reserved.sent is not None
    assert reserved.sent_cost is not None
    assert used.reserved == {}
    assert reserved.sent > 1_000
    assert reserved.sent < used.tokens <= reserved.sent + len(said) / 4
    assert used.cost == pytest.approx(reserved.sent_cost + (used.tokens - reserved.sent) * 2e-6)


async def test_time_ends_a_turn_in_its_middle_by_name(world: World) -> None:
    """What was said is kept, the calls are settled, the error is stored; the next turn is not begun."""
    deed = Deed(ask=False)
    deed.gate = anyio.Event()
    steps, clock = Step(Say("so far"), Call("act", {"what": "x"})), FakeClock()
    async with world.open(steps, clock=clock) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.set_budget(session, Budget(time_ms=10_000))
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
        clock.advance(10_000)
        let_pass(10)
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
            answer = (await hf.sessions.messages(session)).messages[-1]
            after = await hf.sessions.process(session, "more", check=False)
        used = await spent(hf, session)

    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, BudgetFault)
    assert "time" in answer.info.error.data.message
    assert [part.__struct_config__.tag for part in answer.parts] == ["step-start", "text", "tool"]
    assert answer.parts[-1].state.metadata.get("outcome") == "interrupted"
    assert isinstance(after.info, AssistantMessage)
    assert isinstance(after.info.error, BudgetFault)
    assert len(script.requests) == 1
    assert (used.reserved, deed.done) == ({}, [])


@pytest.mark.ci
async def test_children_side_by_side_share_the_time_and_the_account(world: World) -> None:
    """Forty of them are counted to the last token, and their common time once."""
    count = 40
    async with world.open(*(Step(Say("ok")) for _ in range(count))) as (hf, _):
        root = await world.session(hf)
        await hf.sessions.set_budget(root, Budget(tokens=10_000_000, time_ms=3_600_000))
        children = [await world.session(hf, parent=root) for _ in range(count)]
        begun = anyio.current_time()
        answers = []

        async def one(child: str) -> None:
            answers.append(await hf.sessions.process(child, "go"))

        async with anyio.create_task_group() as group:
            for child in children:
                group.start_soon(one, child)
        took_ms = (anyio.current_time() - begun) * 1_000
        used = await spent(hf, root)

    assert [each.info.error for each in answers] == [None] * count
    assert (used.tokens, used.reserved) == (15 * count, {})
    assert used.time_ms <= took_ms + 50


def asked_often(script: ScriptedProvider, count: int) -> bool:
    """Whether the model was asked so often."""
    return len(script.requests) >= count


async def test_what_a_dead_runner_held_back_is_free_again(world: World) -> None:
    """As soon as another turn of the tree asks; what it had sent stays spent."""
    machine = Machine()
    script = ScriptedProvider(Step(Wait(anyio.Event())))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        root = await world.session(hf)
        child = await world.session(hf, parent=root)
        await hf.sessions.set_budget(root, Budget(tokens=18_000))
        await hf.sessions.prompt(child, "go")
        await until(lambda: script.requests)
        (held,) = (await spent(hf, root)).reserved.values()
        mortal.kill()
    async with life(world.store, machine, provider=ScriptedProvider(Step(Say("ok")))) as (hf, _):
        answer = await hf.sessions.process(root, "and now")
        used = await spent(hf, root)

    assert answer.info.error is None
    assert held.sent is not None
    assert (used.tokens, used.reserved) == (held.sent + 15, {})


async def test_what_a_dead_turn_of_the_same_session_held_back_is_free_again(world: World) -> None:
    """After an abort of what was left, and in the next turn in any case; time does not run for the dead."""
    for aborts in (True, False):
        url, machine = f"{world.store}-{aborts}", Machine()
        script = ScriptedProvider(Step(Wait(anyio.Event())))
        async with life(url, machine, provider=script) as (hf, mortal):
            session = await world.session(hf)
            await hf.sessions.set_budget(session, Budget(tokens=18_000, time_ms=60_000))
            await hf.sessions.prompt(session, "go")
            await until(partial(asked_often, script, 1))
            (held,) = (await spent(hf, session)).reserved.values()
            mortal.kill()
        script = ScriptedProvider(Step(Say("ok")))
        async with life(url, machine, provider=script) as (hf, _):
            if aborts:
                await hf.sessions.interrupt(session)
            answer = await hf.sessions.process(session, "and now")
            used = await spent(hf, session)

        assert answer.info.error is None
        assert held.sent is not None
        assert (used.tokens, used.reserved) == (held.sent + 15, {})
        assert used.time_ms < 60_000


@pytest.mark.ci
async def test_the_time_of_turns_that_died_counts(world: World) -> None:
    """Two of 7 s are killed under a budget of 10 s: the third is not begun."""
    machine, clock, session = Machine(), FakeClock(), None
    for _ in range(2):
        deed = Deed(ask=False)
        deed.gate = anyio.Event()
        script = ScriptedProvider(Step(Call("act", {"what": "x"})))
        async with life(world.store, machine, provider=script, clock=clock) as (hf, mortal):
            hf.tools.register(deed.tool)
            if session is None:
                session = await world.session(hf)
                await hf.sessions.set_budget(session, Budget(time_ms=10_000))
            await hf.sessions.prompt(session, "go")
            with anyio.fail_after(60):
                await deed.begun.wait()
            clock.advance(7_000)
            mortal.kill()
    assert session is not None
    async with life(world.store, machine, provider=ScriptedProvider(), clock=clock) as (hf, _):
        answer = await hf.sessions.process(session, "go", check=False)
        used = await spent(hf, session)

    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, BudgetFault)
    assert used.reserved == {}
    assert 14_000 <= used.time_ms < 20_000


async def test_what_is_stored_of_a_turn_that_died_says_how_long_it_took(world: World) -> None:
    """A call ends after a minute, the runner dies with the other, and nobody looks for a day: a lease more
    than the minute counts.
    """
    machine, clock = Machine(), Later()
    deed, other = Deed(ask=False), Deed("other", ask=False)
    deed.gate, other.gate = anyio.Event(), anyio.Event()
    script = ScriptedProvider(Step(Call("act", {"what": "x"}), Call("other", {"what": "y"})))
    async with life(world.store, machine, provider=script, clock=clock) as (hf, mortal):
        hf.tools.register(deed.tool)
        hf.tools.register(other.tool)
        session = await world.session(hf)
        await hf.sessions.set_budget(session, Budget(time_ms=3_600_000))
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
            await other.begun.wait()
            clock.later_ms += 60_000
            deed.gate.set()
            await until(lambda: is_shown(hf, session, "did x"), store=hf.store)
        mortal.kill()
    clock.later_ms += 86_400_000
    async with life(world.store, machine, provider=ScriptedProvider(), clock=clock) as (hf, _):
        await hf.sessions.interrupt(session)
        used = await spent(hf, session)

    assert used.reserved == {}
    assert 60_000 + LEASE_MS <= used.time_ms < 600_000


@pytest.mark.parametrize(
    ("held", "worked_ms", "counts"),
    [
        (Reserved(cost=0, tokens=0, boot="here", since=1_000), 0, 5_000),
        (Reserved(cost=0, tokens=0, boot="here", since=1_000), 86_400_000, 5_000),
        (Reserved(cost=0, tokens=0, boot="here", since=-60_000), 0, LEASE_MS),
        (Reserved(cost=0, tokens=0, boot="here", since=-60_000), 20_000, 20_000 + LEASE_MS),
        (Reserved(cost=0, tokens=0, boot="here", since=7_000), 500, 0),
        (Reserved(cost=0, tokens=0, boot="there", since=1_000), 500, 500),
        (Reserved(cost=0, tokens=0, boot="here", until=9_000), 500, 0),
    ],
)
def test_how_long_a_turn_took_whose_runner_died(held: Reserved, worked_ms: int, counts: int) -> None:
    """Until now, but no longer than a lease after what was last stored of it: nobody works for the dead. Of
    another boot what was stored counts, and what is no turn takes no time.
    """
    had = Spent(cost=0, tokens=0, time_ms=1, reserved={"a": held})
    assert (
        spending.after_death(had, "a", Moment("here", 6_000), answer_tokens=0, worked_ms=worked_ms).time_ms
        == 1 + counts
    )


def test_a_dead_turn_that_another_of_the_tree_finds_took_time_too() -> None:
    """Two that ran side by side count once; whoever recovers them later counts nothing again."""
    held = Reserved(cost=0, tokens=0, boot="here", since=1_000)
    had = Spent(cost=0, tokens=0, time_ms=0, reserved={"a": held, "b": held})
    now = Moment("here", 6_000)
    after = spending.still_reserved(had, now, ["a", "b"])
    assert after == Spent(cost=0, tokens=0, time_ms=5_000, reserved={})
    assert spending.after_death(after, "a", now, answer_tokens=0, worked_ms=5_000) == after


async def test_a_call_that_runs_holds_back_what_its_answer_took(world: World) -> None:
    """A child can be asked while its parent waits for it, though two longest answers would not fit."""
    gate = anyio.Event()
    deed = Deed(ask=False)
    deed.gate = gate
    async with world.open() as (hf, script):
        hf.tools.register(deed.tool)
        root = await world.session(hf)
        child = await world.session(hf, parent=root)
        await hf.sessions.set_budget(root, Budget(tokens=19_000))
        script.add(
            Step(Call("act", {"what": "x"}), session=root),
            Step(Say("parent"), session=root),
            Step(Say("child"), session=child),
        )
        await hf.sessions.prompt(root, "go")
        await deed.begun.wait()
        answer = await hf.sessions.process(child, "help")
        gate.set()
        await hf.sessions.wait(root)
        used = await spent(hf, root)

    assert answer.info.error is None
    assert (used.tokens, used.reserved) == (45, {})


async def test_a_turn_that_was_cut_off_at_an_unknown_price_is_not_free(world: World) -> None:
    """A limit in money stops after it, and says why."""
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {
            "m": {"limit": {"context": 100_000, "output": 8_000}, "cost": {"input": 1, "output": 2}},
            "free": {"limit": {"context": 100_000, "output": 8_000}},
        },
    }
    world.settings(provider={"scripted": entry})
    async with world.open(Step(Say("x"), Wait(anyio.Event()))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.set_budget(session, Budget(cost=10, unknown_price="allow"))
        await hf.sessions.prompt(session, "go", model="scripted/free")
        await until(lambda: script.requests)
        await hf.sessions.interrupt(session)
        await hf.sessions.set_budget(session, Budget(cost=10))
        refused = await hf.sessions.process(session, "more", model="scripted/m", check=False)

    assert isinstance(refused.info, AssistantMessage)
    assert isinstance(refused.info.error, BudgetFault)
    assert "some of what was spent before had no known price" in refused.info.error.data.message


@pytest.mark.ci
async def test_a_compaction_has_no_more_time_than_a_turn(world: World) -> None:
    """It is cut when the budget ends, by name, and holds nothing back."""
    long = " ".join(["word"] * 400)
    async with world.open(*(Step(Say(long)) for _ in range(3)), Step(Wait(anyio.Event()))) as (hf, script):
        session = await world.session(hf)
        for number in range(3):
            await hf.sessions.process(session, f"{number} {long}")
        await hf.sessions.set_budget(session, Budget(time_ms=(await spent(hf, session)).time_ms + 300))
        with anyio.fail_after(60):
            assert await hf.sessions.compact(session, force=True) == "admitted"
            await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
        used = await spent(hf, session)

    assert len(script.requests) == 4
    assert isinstance(page.messages[-1].info.error, BudgetFault)
    assert used.reserved == {}


def test_time_is_counted_once_while_turns_overlap() -> None:
    """One from 0 to 10, one from 5 to 20, one from 30 to 35: 25 in all, whoever ends first."""

    def begun(now: int, had: Spent, turn: str) -> Spent:
        reserved = Reserved(cost=0, tokens=0, boot="here", since=now)
        return replace(had, reserved={**had.reserved, turn: reserved})

    one = begun(0, NOTHING, "a")
    two = begun(5, one, "b")
    assert spending.worked_ms(two, Moment("here", 8)) == 8
    after_a = spending.without(two, "a", time_ms=10)
    assert (after_a.time_ms, spending.worked_ms(after_a, Moment("here", 20))) == (5, 20)
    after_b = spending.without(after_a, "b", time_ms=15)
    assert after_b.time_ms == 20
    three = spending.without(begun(30, after_b, "c"), "c", time_ms=5)
    assert three.time_ms == 25
    # The later one ends first: the earlier one counts everything.
    inner = spending.without(two, "b", time_ms=2)
    assert (inner.time_ms, spending.without(inner, "a", time_ms=10).time_ms) == (0, 10)
    # Another machine's clock says nothing here: its turn counts when it ends, and whole.
    there = replace(two, reserved={**two.reserved, "b": replace(two.reserved["b"], boot="there")})
    assert spending.worked_ms(there, Moment("here", 8)) == 8
    assert spending.without(there, "a", time_ms=10).time_ms == 10


async def test_a_clock_that_is_set_takes_nothing_from_a_budget_of_time(world: World) -> None:
    """Wall time jumps by a day in the middle of a turn, and back: the hour is as good as untouched."""
    clock = Jumping()
    day = 86_400_000
    gates = [anyio.Event(), anyio.Event()]
    steps = [Step(Wait(gate), Say("a")) for gate in gates]
    async with world.open(*steps, Step(Say("c")), clock=clock) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.set_budget(session, Budget(time_ms=3_600_000))
        for number, jump in enumerate((day, -2 * day)):
            await hf.sessions.prompt(session, "go on")
            await until(partial(asked_often, script, number + 1))
            clock.jump_ms += jump
            gates[number].set()
            await hf.sessions.wait(session)
        answer = await hf.sessions.process(session, "third")
        used = await spent(hf, session)

    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is None
    assert 0 <= used.time_ms < 60_000


@pytest.mark.parametrize("days", [1, -1])
async def test_a_clock_that_is_set_ends_no_reservation_of_a_child(world: World, days: int) -> None:
    """What a child at work has reserved is dated by the clock that cannot be set: its parent goes on."""
    clock, gate = Jumping(), anyio.Event()
    steps = Step(Wait(gate), Say("child")), Step(Say("parent")), Step(Say("again"))
    async with world.open(*steps, clock=clock) as (hf, script):
        parent = await world.session(hf)
        await hf.sessions.set_budget(parent, Budget(time_ms=3_600_000))
        child = await world.session(hf, parent=parent)
        await hf.sessions.prompt(child, "go")
        await until(partial(asked_often, script, 1))
        clock.jump_ms += days * 86_400_000
        first = await hf.sessions.process(parent, "go")
        gate.set()
        await hf.sessions.wait(child)
        second = await hf.sessions.process(parent, "go on")
        used = await spent(hf, parent)

    assert [each.info.error for each in (first, second) if isinstance(each.info, AssistantMessage)] == [
        None
    ] * 2
    assert 0 <= used.time_ms < 60_000


class Later(SystemClock):
    """Clocks that both go forward when a story says so."""

    def __init__(self) -> None:
        super().__init__()
        self.later_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.later_ms

    def boot_ms(self) -> int:
        return super().boot_ms() + self.later_ms


class Jumping(SystemClock):
    """A clock whose wall time can be set."""

    def __init__(self) -> None:
        super().__init__()
        self.jump_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.jump_ms


async def test_an_interrupted_compaction_leaves_nothing_reserved(world: World) -> None:
    """Its calls had reservations of their own."""
    world.settings(compaction={"tail_turns": 0})
    long = Step(Say("word " * 400))
    async with world.open(long, Step(Wait(anyio.Event()))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.set_budget(session, Budget(tokens=1_000_000))
        await hf.sessions.process(session, "one")
        await hf.sessions.compact(session, force=True)
        with anyio.fail_after(60):
            while len(script.requests) < 2:
                await anyio.lowlevel.checkpoint()
        assert list((await spent(hf, session)).reserved) != []
        await hf.sessions.interrupt(session)
        assert (await spent(hf, session)).reserved == {}
