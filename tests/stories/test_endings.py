"""However work stops, in the middle of a step and between two, its record says so before `session.idle`.

Every row is looked at in the same way: nothing is left open (messages, texts, calls, questions, reservations,
`time.compacting`, the claim), the error was told before the one `session.idle`, a bare wake goes on with
nothing, and the next request holds what the model must know of the answer.
"""

from collections.abc import Awaitable, Callable

import anyio
import pytest
from msgspec.structs import force_setattr, replace

from holdfast.app import Holdfast
from holdfast.errors import InvariantBroken, LeaseLost, ProviderError, Refused
from holdfast.runtime import drain
from holdfast.schema.budget import Budget
from holdfast.schema.message import MessageWithParts
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step
from tests.loop_time import let_pass
from tests.stories import inside
from tests.stories.crashing import Machine, life
from tests.stories.endings import LONG, PLENTY, Ending, Stage, left_open, looked_at, shortly
from tests.stories.tools import Deed
from tests.stories.world import Attached, World, shape
from tests.until import until

REFUSED = Fail(ProviderError("no such luck", kind="other"))
TIME_MS = 30_000
"""A budget of time that is used up when a story lets it pass."""
DONE = ["user Go", "model half", "user Next"]
GONE = ["user Go", "user Next"]
CALLED = ["user Go", "model half call act", "result did x", "user Next"]
CUT = ["user Go", "model half call act", "result The call was", "user Next"]


async def plainly(world: World, where: str, *steps: Step, budget: Budget = PLENTY) -> Ending:
    """Let the script run to its end."""
    stage = Stage(world)
    async with world.open(*steps) as (hf, script):
        stage.prepare(hf, "")
        stage.session = await world.session(hf)
        await hf.sessions.set_budget(stage.session, budget)
        async with stage.watched(hf):
            await hf.sessions.process(stage.session, "Go", check=False)
        return await looked_at(stage, hf, script)


async def held(
    world: World, where: str, then: Callable[[Stage, Holdfast], Awaitable[object]], budget: Budget = PLENTY
) -> Ending:
    """Hold the work at a place, and do something to it there."""
    stage = Stage(world)
    stage.deed.gate = anyio.Event() if where == "tool" else stage.deed.gate
    async with world.open(*stage.steps(where)) as (hf, script):
        stage.prepare(hf, where)
        stage.session = await world.session(hf)
        await hf.sessions.set_budget(stage.session, budget)
        async with stage.watched(hf):
            await hf.sessions.prompt(stage.session, "Go")
            await stage.reach(where)
            await then(stage, hf)
            with anyio.fail_after(60):
                await hf.sessions.wait(stage.session)
        stage.holds_boundary = False
        return await looked_at(stage, hf, script)


async def interrupt(stage: Stage, hf: Holdfast) -> None:
    with anyio.fail_after(60):
        await hf.sessions.interrupt(stage.session)


async def time_passes(stage: Stage, hf: Holdfast) -> None:
    let_pass(TIME_MS / 1_000)


async def no_time(stage: Stage, hf: Holdfast) -> None:
    """The time is used up by now."""
    await hf.sessions.set_budget(stage.session, Budget(time_ms=1))
    stage.boundary.opened.set()


async def no_tokens(stage: Stage, hf: Holdfast) -> None:
    await hf.sessions.set_budget(stage.session, Budget(tokens=1))
    stage.boundary.opened.set()


async def test_finished(world: World) -> None:
    """The model has said what it wanted."""
    ending = await plainly(world, "text", Step(Say("half")))
    assert ending == Ending([("stop", None)], [], (None, 1), DONE)


async def test_cut_by_its_length(world: World) -> None:
    """The reason of the end is the provider's."""
    ending = await plainly(world, "text", Step(Say("half"), reason="length"))
    assert ending == Ending([("length", None)], [], (None, 1), DONE)


@pytest.mark.parametrize(
    ("where", "ended", "next_"),
    [
        ("text", [("content-filter", "ContentFilterError")], GONE),
        ("tool", [("content-filter", "ContentFilterError")], CALLED),
        ("boundary", [("tool-calls", None), ("content-filter", "ContentFilterError")], CALLED),
    ],
)
async def test_refused(
    world: World, where: str, ended: list[tuple[str | None, str | None]], next_: list[str]
) -> None:
    """The provider's filter ends an answer; a call that ran in it is told to the model."""
    said = () if where != "text" else (Say(""),)
    steps = Stage(world).steps(where, *said, reason="content-filter")
    ending = await plainly(world, where, *steps)
    calls = [] if where == "text" else ["completed"]
    assert ending == Ending(ended, calls, ("ContentFilterError", 1), next_)


@pytest.mark.parametrize(
    ("where", "ended", "next_"),
    [
        ("text", [("error", "APIError")], GONE),
        ("tool", [("error", "APIError")], CALLED),
        ("boundary", [("tool-calls", None), ("error", "APIError")], CALLED),
    ],
)
async def test_failed(
    world: World, where: str, ended: list[tuple[str | None, str | None]], next_: list[str]
) -> None:
    """The provider fails for good: in a text, behind a call, and before the first word of the next step."""
    ending = await plainly(world, where, *Stage(world).steps(where, REFUSED))
    calls = [] if where == "text" else ["completed"]
    assert ending == Ending(ended, calls, ("APIError", 1), next_)


@pytest.mark.parametrize(
    ("where", "ended", "calls", "next_"),
    [
        ("text", [(None, "MessageAbortedError")], [], DONE),
        ("tool", [(None, "MessageAbortedError")], ["interrupted"], CUT),
        ("boundary", [("tool-calls", None), ("error", "MessageAbortedError")], ["completed"], CALLED),
    ],
)
async def test_interrupted(
    world: World,
    where: str,
    ended: list[tuple[str | None, str | None]],
    calls: list[str],
    next_: list[str],
) -> None:
    """A person stops the work; also between a tool and the next request it is recorded."""
    ending = await held(world, where, interrupt)
    assert ending == Ending(ended, calls, ("MessageAbortedError", 1), next_)


@pytest.mark.parametrize(
    ("where", "ended", "calls", "next_"),
    [
        ("text", [(None, "BudgetExceededError")], [], GONE),
        ("tool", [(None, "BudgetExceededError")], ["interrupted"], CUT),
        ("boundary", [("tool-calls", None), ("error", "BudgetExceededError")], ["completed"], CALLED),
    ],
)
async def test_out_of_time(
    world: World,
    where: str,
    ended: list[tuple[str | None, str | None]],
    calls: list[str],
    next_: list[str],
) -> None:
    """The tree's time is used up: in a text, in a tool, and before the next request."""
    between = where == "boundary"
    ending = await held(
        world, where, no_time if between else time_passes, PLENTY if between else Budget(time_ms=TIME_MS)
    )
    assert ending == Ending(ended, calls, ("BudgetExceededError", 1), next_)


async def test_out_of_budget(world: World) -> None:
    """The next request would cost more than what is left."""
    ending = await held(world, "boundary", no_tokens)
    ended: list[tuple[str | None, str | None]] = [("tool-calls", None), ("error", "BudgetExceededError")]
    assert ending == Ending(ended, ["completed"], ("BudgetExceededError", 1), CALLED)


async def test_out_of_budget_before_the_first_word(world: World) -> None:
    """Nothing was asked of the model, and the prompt has its answer all the same."""
    ending = await plainly(world, "text", budget=Budget(tokens=1))
    assert ending == Ending([("error", "BudgetExceededError")], [], ("BudgetExceededError", 1), GONE)


async def test_settings_that_break_between_two_steps(world: World) -> None:
    """An error that nobody foresaw, after a tool settled and before the next request."""
    stage = Stage(world)
    stage.deed.gate = anyio.Event()
    settings = world.home / ".config/holdfast/holdfast.json"
    good = settings.read_text()
    async with world.open(*stage.steps("tool")) as (hf, script):
        stage.prepare(hf, "tool")
        stage.session = await world.session(hf)
        async with stage.watched(hf):
            await hf.sessions.prompt(stage.session, "Go")
            await stage.reach("tool")
            settings.write_text('{"model": ')
            inside.forget_workspaces(hf)
            stage.deed.gate.set()
            await hf.sessions.wait(stage.session)
        settings.write_text(good)
        inside.forget_workspaces(hf)
        ending = await looked_at(stage, hf, script)
    ended: list[tuple[str | None, str | None]] = [("tool-calls", None), ("error", "UnknownError")]
    assert ending == Ending(ended, ["completed"], ("UnknownError", 1), CALLED)


async def test_interrupted_behind_a_system_message(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The boundary has told of a change when the work is stopped: the prompt has an answer that says so."""
    stage, behind = Stage(world), Stage(world).boundary
    from holdfast.runtime.epoch import pruning

    real = pruning.prune
    calls = []

    async def slow(*arguments: object, **named: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            await behind.wait()
        return await real(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(pruning, "prune", slow)
    (world.project / "AGENTS.md").write_text("one")
    async with world.open(Step(Say("first"))) as (hf, script):
        stage.prepare(hf, "")
        stage.session = await world.session(hf)
        await hf.sessions.process(stage.session, "Go")
        (world.project / "AGENTS.md").write_text("two")
        async with stage.watched(hf):
            await hf.sessions.prompt(stage.session, "Again")
            with anyio.fail_after(60):
                await behind.reached.wait()
            await interrupt(stage, hf)
        ending = await looked_at(stage, hf, script)
    assert ending.answers == [("stop", None), ("error", "MessageAbortedError")]
    assert ending.told == ("MessageAbortedError", 1)
    assert ending.next[:3] == ["user Go", "model first", "user Again"]


@pytest.mark.parametrize("how", ["interrupt", "budget"])
async def test_a_compaction_goes_on_with_nothing_that_was_stopped(world: World, how: str) -> None:
    """Work that ended between two steps stays ended when its session is compacted by hand."""
    stage = Stage(world)
    async with world.open(Step(Say(LONG)), *stage.steps("boundary")) as (hf, script):
        stage.prepare(hf, "boundary")
        stage.session = await world.session(hf)
        await hf.sessions.process(stage.session, LONG)
        await hf.sessions.set_budget(stage.session, PLENTY)
        await hf.sessions.prompt(stage.session, "Go")
        await stage.reach("boundary")
        if how == "interrupt":
            await interrupt(stage, hf)
        else:
            await no_tokens(stage, hf)
        await hf.sessions.wait(stage.session)
        stage.holds_boundary = False
        await hf.sessions.set_budget(stage.session, None)
        script.add(Step(Say("summary")))
        await hf.sessions.compact(stage.session, force=True)
        await hf.sessions.wait(stage.session)
    assert [bool(request.tools) for request in script.requests] == [True, True, False]
    assert stage.deed.done == ["x"]


@pytest.mark.parametrize(
    ("how", "summary", "work"),
    [
        ("interrupt", (None, "MessageAbortedError"), [("error", "MessageAbortedError")]),
        ("time", (None, "BudgetExceededError"), [("error", "BudgetExceededError")]),
        ("failed", ("error", "APIError"), []),
    ],
)
async def test_ended_while_compacting(
    world: World,
    how: str,
    summary: tuple[str | None, str | None],
    work: list[tuple[str | None, str | None]],
) -> None:
    """Half a summary counts for nothing, and the work that it was for ends with it."""
    stage = Stage(world)
    steps = stage.steps("compaction", *([REFUSED] if how == "failed" else []))
    async with world.open(*steps) as (hf, script):
        stage.prepare(hf, "compaction")
        stage.session = await world.session(hf)
        await hf.sessions.set_budget(stage.session, Budget(time_ms=TIME_MS) if how == "time" else PLENTY)
        async with stage.watched(hf):
            await hf.sessions.prompt(stage.session, "Go")
            if how != "failed":
                await stage.reach("compaction")
                await (interrupt if how == "interrupt" else time_passes)(stage, hf)
            with anyio.fail_after(60):
                await hf.sessions.wait(stage.session)
        script.add(Step(Say("summary")))
        ending = await looked_at(stage, hf, script)
    assert ending.answers == [("tool-calls", None), summary, *work]
    assert ending.told == ((work or [summary])[-1][1], 1)
    assert ending.next[1] == "model summary"
    assert ending.next[-1] == "user The conversation was"


@pytest.mark.ci
@pytest.mark.parametrize("where", ["text", "tool", "boundary", "compaction"])
async def test_abandoned(world: World, where: str) -> None:
    """The lease is lost: not a word is written or published more, whoever waits is told so, and the next
    prompt finds a session that is put in order like one that a crash left.
    """
    stage = Stage(world)
    stage.deed.gate = anyio.Event() if where == "tool" else stage.deed.gate
    async with world.open(*stage.steps(where)) as (hf, script):
        stage.prepare(hf, where)
        stage.session = await world.session(hf)
        await hf.sessions.set_budget(stage.session, PLENTY)
        raised: list[BaseException] = []
        published: list[str] = []

        async def process() -> None:
            try:
                await hf.sessions.process(stage.session, "Go")
            except LeaseLost as error:
                raised.append(error)
            await hf.feed.caught_up()
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

        async def listen() -> None:
            async for frames in hf.feed.follow(await hf.store.head(), session=stage.session):
                published.extend(frame.type for frame in frames)

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await until(lambda: inside.followers(hf))
            group.start_soon(process)
            await stage.reach(where)
            page = await hf.sessions.messages(stage.session, system=True)
            coordinator = inside.coordinator(hf)
            owner = coordinator.lease.id
            assert owner is not None
            await hf.store.retire(owner)
            coordinator.resumption.close()
            coordinator.lease.forget(owner)
        stage.holds_boundary = False
        assert await hf.sessions.messages(stage.session, system=True) == page
        assert "session.status" in published
        assert "session.idle" not in published
        assert [str(error).split(":")[0] for error in raised] == [f"session {stage.session}"]
        script.add(*[Step(Say("summary"))] * (where == "compaction"), Step(Say("and so on")))
        await hf.sessions.process(stage.session, "Next")
        assert await left_open(hf, stage.session) == []
    expected = {
        "text": ["user Go", "system The connection to", "user Next"],
        "tool": ["user Go", "model half call act", "result The process that", "user Next"],
        "boundary": CALLED,
    }
    if where in expected:
        assert shortly(script.requests[-1]) == expected[where]


async def test_abandoned_and_finished_by_another_process(world: World) -> None:
    """Whoever waited for the answer gets it, from the store."""
    stage = Stage(world)
    answers: list[MessageWithParts] = []
    async with world.open(*stage.steps("text")) as (hf, _), world.open(Step(Say("on"))) as (other, _):
        stage.session = await world.session(hf)
        taken_over = anyio.Event()
        coordinator = inside.coordinator(hf)
        real = coordinator.wait

        async def slow(session: str) -> None:
            try:
                await real(session)
            except LeaseLost:
                await taken_over.wait()
                raise

        coordinator.wait = slow  # type: ignore[method-assign]

        async def wait() -> None:
            answers.append(await hf.sessions.process(stage.session, "Go"))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await stage.reach("text")
            owner = str(coordinator.lease.id)
            await hf.store.retire(owner)
            coordinator.resumption.close()
            coordinator.lease.forget(owner)
            await other.sessions.resume(stage.session)
            await other.sessions.wait(stage.session)
            taken_over.set()
    assert [part for part in shape(tuple(answers))[0][1] if part[0] == "text"] == [("text", "on")]


@pytest.mark.parametrize(
    ("where", "next_"),
    [
        ("text", ["user Go", "system The connection to"]),
        ("tool", ["user Go", "model half call act", "result The process that"]),
        ("boundary", ["user Go", "model half call act", "result did x"]),
    ],
)
async def test_recovered(world: World, where: str, next_: list[str]) -> None:
    """A crash leaves the work unfinished: `resume` goes on with it, and nothing of the first life is open."""
    machine, stage = Machine(), Stage(world)
    stage.deed.gate = anyio.Event() if where == "tool" else stage.deed.gate
    script = ScriptedProvider(*stage.steps(where))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        stage.prepare(hf, where)
        stage.session = await world.session(hf)
        await hf.sessions.set_budget(stage.session, PLENTY)
        await hf.sessions.prompt(stage.session, "Go")
        await stage.reach(where)
        mortal.kill()
    stage.holds_boundary = False
    with ScriptedProvider(Step(Say("on"))) as script:
        async with life(world.store, machine, provider=script) as (hf, _):
            stage.prepare(hf, "")
            async with stage.watched(hf):
                await hf.sessions.resume(stage.session)
                await hf.sessions.wait(stage.session)
            assert await left_open(hf, stage.session) == []
    assert shortly(script.requests[0]) == next_
    assert stage.frames[-2:] == [("answer", None), ("idle", None)]


@pytest.mark.parametrize("fails", [False, True], ids=["made", "refused"])
async def test_a_compaction_does_not_go_on_after_an_unknown_outcome(world: World, fails: bool) -> None:
    """It settles the call, summarises or does not, and stops: only a prompt or `resume` goes on."""
    machine, stage = Machine(), Stage(world)
    world.settings(permission={"*": "allow"})
    stage.deed.gate = anyio.Event()
    script = ScriptedProvider(Step(Say(LONG)), *stage.steps("tool"))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        stage.prepare(hf, "tool")
        stage.session = await world.session(hf)
        await hf.sessions.process(stage.session, LONG)
        await hf.sessions.prompt(stage.session, "Go")
        await stage.reach("tool")
        mortal.kill()
    with ScriptedProvider(Step(REFUSED if fails else Say("summary"))) as script:
        async with life(world.store, machine, provider=script) as (hf, _):
            stage.prepare(hf, "")
            await hf.sessions.compact(stage.session, force=True)
            await hf.sessions.wait(stage.session)
            await inside.wake(hf, stage.session)
            await hf.sessions.wait(stage.session)
            assert [bool(request.tools) for request in script.requests] == [False]
            assert (await hf.sessions.state(stage.session)).recoverable
            script.add(Step(Say("let me look")))
            await hf.sessions.resume(stage.session)
            await hf.sessions.wait(stage.session)
            assert await left_open(hf, stage.session) == []
    assert "unknown" in str(script.requests[1].messages)
    assert stage.deed.done == []


async def test_a_runtime_that_breaks_is_no_answer(world: World) -> None:
    """Everything that it ran is cut off: whoever waits for an answer is told so, by name."""
    stage = Stage(world)
    async with world.open(*stage.steps("text")) as (hf, _):
        stage.session = await world.session(hf)
        async with anyio.create_task_group() as group:

            async def process() -> None:
                with pytest.raises(Refused, match="cut off"):
                    await hf.sessions.process(stage.session, "Go")

            group.start_soon(process)
            await stage.reach("text")
            inside.cancel_all(hf)


async def test_a_compaction_does_not_go_on_with_what_a_crash_left(world: World) -> None:
    """Killed between two steps, with every call settled: it is summarised, and goes on when it is resumed."""
    machine, stage = Machine(), Stage(world)
    script = ScriptedProvider(Step(Say(LONG)), *stage.steps("boundary"))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        stage.prepare(hf, "boundary")
        stage.session = await world.session(hf)
        await hf.sessions.process(stage.session, LONG)
        await hf.sessions.prompt(stage.session, "Go")
        await stage.reach("boundary")
        mortal.kill()
    stage.holds_boundary = False
    with ScriptedProvider(Step(Say("summary"))) as script:
        async with life(world.store, machine, provider=script) as (hf, _):
            stage.prepare(hf, "")
            await hf.sessions.compact(stage.session, force=True)
            await hf.sessions.wait(stage.session)
            assert [bool(request.tools) for request in script.requests] == [False]
            script.add(Step(Say("on")))
            await hf.sessions.resume(stage.session)
            await hf.sessions.wait(stage.session)
            assert await left_open(hf, stage.session) == []
    assert shortly(script.requests[-1])[-1] == "user The conversation was"


async def test_an_answer_goes_on_though_a_compaction_waits(world: World) -> None:
    """The session waited for a person: the call is run, the compaction made, and the work goes on."""
    stage = Stage(world)
    world.settings(permission={"act": "ask"}, compaction={"tail_turns": 0})
    stage.deed = Deed()
    async with world.open(Step(Say(LONG)), *stage.steps("tool"), presence=Attached()) as (hf, script):
        stage.prepare(hf, "")
        engine = inside.engine(hf)
        force_setattr(engine, "limits", replace(engine.limits, answer_wait_ms=20))
        stage.session = await world.session(hf)
        await hf.sessions.process(stage.session, LONG)
        await hf.sessions.process(stage.session, "Go")
        await hf.sessions.compact(stage.session, force=True)
        await hf.sessions.wait(stage.session)
        script.add(Step(Say("summary")), Step(Say("on")))
        (question,) = await hf.sessions.requests(stage.session)
        await hf.sessions.reply(stage.session, question.id, "once")
        await hf.sessions.wait(stage.session)
        assert await left_open(hf, stage.session) == []
    assert stage.deed.done == ["x"]
    assert [bool(request.tools) for request in script.requests] == [True, True, False, True]


async def process(hf: Holdfast, session: str) -> None:
    await hf.sessions.process(session, "And this")


async def turn(hf: Holdfast, session: str) -> None:
    async for _ in hf.sessions.turn(session, "And this"):
        pass


@pytest.mark.ci
@pytest.mark.parametrize("waits", [process, turn])
async def test_an_answer_that_another_process_left_unfinished_is_no_answer(
    world: World, waits: Callable[[Holdfast, str], Awaitable[None]]
) -> None:
    """It has taken the prompt up when it is killed, so the process that admitted the prompt does not go on
    with it, and tells its caller.
    """
    machine, stage = Machine(), Stage(world)
    stage.deed.gate = anyio.Event()
    script = ScriptedProvider(*stage.steps("tool"), *stage.steps("text"))
    async with (
        life(world.store, machine, provider=script) as (hf, mortal),
        life(world.store, machine, provider=ScriptedProvider()) as (other, _),
    ):
        stage.prepare(hf, "tool")
        stage.session = await world.session(hf)
        await hf.sessions.prompt(stage.session, "Go")
        await stage.reach("tool")

        async def wait() -> None:
            with pytest.raises(LeaseLost, match="unfinished"):
                await waits(other, stage.session)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            watch = hf.store.watch()
            while len(await hf.store.select("prompt", session=stage.session)) < 2:
                await watch.wait()
            watch.close()
            stage.deed.gate.set()
            await stage.reach("text")
            mortal.kill()
            machine.killed.add(inside.owner(hf))


async def test_work_that_cannot_even_be_settled_gives_its_session_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be put in order waits for recovery; a living process must not hold it for ever."""

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no luck")

    for name in ("turn", "_settle_all"):
        monkeypatch.setattr(drain, name, broken)
    async with world.open() as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60), pytest.raises(InvariantBroken, match="no luck"):
            await hf.sessions.wait(session)
        record = await hf.store.session(session)
        assert record is not None
        assert not record.busy
