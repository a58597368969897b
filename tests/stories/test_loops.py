"""Calls that repeat themselves, questions that outlive their runner, and work that makes no headway."""

import threading

import anyio
import anyio.to_thread
import pytest

from holdfast.provider.request.request import Assistant, ToolCall
from holdfast.schema.budget import Budget
from holdfast.schema.fault import UnknownFault
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import ToolPart
from holdfast.schema.request import PermissionAnswer, PermissionRequest
from holdfast.schema.tool_state import ToolError
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, Wait, answered
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from holdfast.toolkit.output import ToolFailure
from tests.stories import inside
from tests.stories.compaction import BIG, LONG
from tests.stories.crashing import Machine, life
from tests.stories.loops import SAME, impatient, parked, repeats
from tests.stories.permissions import asked, outcomes
from tests.stories.tools import Deed
from tests.stories.world import Attached, World
from tests.until import until


async def test_a_loop_that_waits_for_a_person_is_not_run_when_somebody_only_resumes(world: World) -> None:
    """The question stays, the call stays unrun."""
    deed = Deed(ask=False)
    session, question = await parked(world, deed)
    async with world.open(presence=Attached()) as (hf, script):
        hf.tools.register(deed.tool)
        impatient(hf)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        assert [each.id for each in await hf.sessions.requests(session)] == [question.id]
        assert (deed.done, script.requests) == (["x", "x"], [])


async def test_a_loop_that_a_person_ends_after_a_restart_is_not_run(world: World) -> None:
    """A no without words ends the work; nothing is asked of the model."""
    deed = Deed(ask=False)
    session, question = await parked(world, deed)
    async with world.open(presence=Attached()) as (hf, script):
        hf.tools.register(deed.tool)
        await hf.sessions.reply(session, question.id, "reject")
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    assert deed.done == ["x", "x"]
    assert script.requests == []
    assert outcomes(page.messages)[2] == (
        "error",
        (
            "You called act 3 times in a row with the same input, and it was not run again. The person said "
            "no to doom_loop. Look at what it answered before, and try something else."
        ),
    )


async def test_the_words_of_a_person_who_ends_a_loop_reach_the_model(world: World) -> None:
    """And the work goes on with them."""
    deed = Deed(ask=False)
    world.settings(permission={"act": "allow"})
    async with world.open(
        *repeats("c1", "c2", "c3"),
        Step(Say("ok"), expect=answered("c3", "try the tests instead")),
        presence=Attached(),
    ) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (question,) = await asked(hf, session)
        await hf.sessions.reply(session, question.id, "reject", message="try the tests instead")
        await hf.sessions.wait(session)
    assert deed.done == ["x", "x"]


async def test_a_loop_that_a_person_allows_is_run_once_even_over_a_crash(world: World) -> None:
    """The yes is heard before the call has its effect: a crash after that leaves an unknown outcome, and
    the call is not run a second time.
    """
    deed = Deed(ask=False)
    session, question = await parked(world, deed)
    machine = Machine()
    deed.gate = anyio.Event()
    deed.begun = anyio.Event()
    with ScriptedProvider() as script:
        async with life(world.store, machine, provider=script, presence=Attached()) as (hf, mortal):
            hf.tools.register(deed.tool)
            await hf.sessions.reply(session, question.id, "once")
            with anyio.fail_after(60):
                await deed.begun.wait()
            mortal.kill()
            deed.gate.set()
    assert deed.done == ["x", "x", "x"]
    with ScriptedProvider() as script:
        async with life(world.store, machine, provider=script, presence=Attached()) as (hf, _):
            hf.tools.register(deed.tool)
            await inside.wake(hf, session)
            await hf.sessions.wait(session)
            page = await hf.sessions.messages(session)
    assert deed.done == ["x", "x", "x"]
    assert outcomes(page.messages)[2][0] == "error"
    assert "unknown" in outcomes(page.messages)[2][1]


@pytest.mark.ci
async def test_a_question_that_rules_have_come_to_answer_is_heard_before_the_call_goes_on(
    world: World,
) -> None:
    """Another session's "always" allows what this one asked for: run again after a crash, the call has its
    effect once, and its question is closed.
    """
    world.settings(permission={"act": "ask"})
    deed = Deed()
    async with world.open(Step(Call("act", SAME, id="c")), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        impatient(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
    async with world.open(Step(Call("act", {"what": "y"}, id="d")), Step(Say("ok")), presence=Attached()) as (
        hf,
        _,
    ):
        hf.tools.register(deed.tool)
        other = await world.session(hf)
        await hf.sessions.prompt(other, "go")
        (question,) = await asked(hf, other)
        await hf.sessions.reply(other, question.id, "always")
        await hf.sessions.wait(other)
    machine = Machine()
    deed.gate, deed.begun = anyio.Event(), anyio.Event()
    for _ in range(2):
        with ScriptedProvider() as script:
            async with life(world.store, machine, provider=script, presence=Attached()) as (hf, mortal):
                hf.tools.register(deed.tool)
                await hf.sessions.resume(session)
                await until(lambda: deed.begun.is_set() or not inside.coordinator(hf).active())
                assert await hf.sessions.requests(session) == []
                mortal.kill()
                deed.gate.set()
    assert deed.done == ["y", "x"]


async def test_a_model_that_does_not_hear_is_stopped(world: World) -> None:
    """Nobody is there: the third identical call is refused with words, the fourth ends the work."""
    deed = Deed(ask=False)
    world.settings(permission={"act": "allow"})
    async with world.open(*repeats("c1", "c2", "c3", "c4")) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
    assert (len(script.requests), deed.done) == (4, ["x", "x"])


async def test_work_whose_calls_all_fail_comes_to_an_end_with_a_name(world: World) -> None:
    """Different calls, so it is no loop of one call; the model makes no headway all the same."""
    steps = [Step(Call("nothing", {"n": number})) for number in range(13)]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go", check=False)
    assert len(script.requests) == 13
    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, UnknownFault)
    expected = "every call of the last 13 turns failed; the model makes no headway"
    assert answer.info.error.data.message == expected


async def test_an_interrupt_closes_the_question_of_the_call(world: World) -> None:
    """Nobody is asked about a call that is over."""
    world.settings(permission={"act": "ask"})
    async with world.open(Step(Call("act", SAME, id="c")), presence=Attached()) as (hf, _):
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (question,) = await asked(hf, session)
        await hf.sessions.interrupt(session)
        assert await hf.sessions.requests(session) == []
        record = await hf.store.get(session, "request", question.id)
        page = await hf.sessions.messages(session)
    assert record is not None
    assert record.value().answer == PermissionAnswer(reply="reject", message="The call was interrupted.")
    assert outcomes(page.messages) == [("error", "The call was interrupted.")]


async def test_a_program_that_breaks_while_it_is_asked_leaves_no_question(world: World) -> None:
    """The call fails in words, the question is closed, the work goes on."""
    world.settings(permission={"act": "ask"})

    async def broken(_: PermissionRequest) -> None:
        raise ValueError("no idea")

    async with world.open(
        Step(Call("act", SAME, id="c")),
        Step(Say("ok"), expect=answered("c", "ValueError: no idea")),
        on_ask=broken,
    ) as (hf, _):
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        assert await hf.sessions.requests(session) == []


async def test_a_session_that_waits_for_a_person_can_be_interrupted(world: World) -> None:
    """Nobody runs it; its call is settled, its question closed, and nothing is asked of the model."""
    deed = Deed(ask=False)
    session, _ = await parked(world, deed)
    async with world.open(presence=Attached()) as (hf, script):
        hf.tools.register(deed.tool)
        with anyio.fail_after(60):
            await hf.sessions.interrupt(session)
        assert await hf.sessions.requests(session) == []
        page = await hf.sessions.messages(session)
        assert not (await hf.store.session(session)).busy
    assert outcomes(page.messages)[2] == ("error", "The call was interrupted.")
    assert (deed.done, script.requests) == (["x", "x"], [])


async def test_a_turn_that_another_process_takes_ends_here_too(world: World) -> None:
    """The iterator ends when the session rests, whoever worked on it."""
    gate = anyio.Event()
    steps = (Step(Say("one"), Wait(gate), Say("two")), Step(Say("three")))
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: script.requests)
        async with world.open() as (other, _):
            with anyio.fail_after(60):
                events = other.sessions.turn(session, "and this")
                seen = [(await anext(events)).type]
                gate.set()
                seen += [event.type async for event in events]
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    assert "session.idle" not in seen
    assert seen
    assert isinstance(page.messages[-1].info, AssistantMessage)


async def test_a_turn_that_wants_no_reply_ends(world: World) -> None:
    """There is nothing to wait for."""
    async with world.open() as (hf, _):
        session = await world.session(hf)
        with anyio.fail_after(60):
            async for _ in hf.sessions.turn(session, "remember this", no_reply=True):
                pass


async def test_an_interrupt_from_elsewhere_and_a_prompt_from_here_do_not_lose_each_other(
    world: World,
) -> None:
    """What is said while the session is being stopped is worked on after it."""
    deed = Deed(ask=False)
    deed.gate = anyio.Event()
    world.settings(permission={"act": "allow"})
    async with world.open(Step(Call("act", SAME, id="c")), Step(Say("after"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
        entry = inside.running(hf, session)
        async with world.open() as (other, _):
            await other.sessions.interrupt(session)
        assert entry.stop
        await hf.sessions.prompt(session, "again")
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    assert page.messages[-1].parts[1].text == "after"


async def test_a_title_stays_within_the_budget(world: World) -> None:
    """A tree that has nothing left is not named by a model either."""
    async with world.open() as (hf, script):
        session = (await hf.sessions.create(directory=world.project)).id
        await hf.sessions.set_budget(session, Budget(tokens=10))
        await hf.sessions.process(session, "a prompt", check=False)
        record = await hf.store.session(session)
    assert script.requests == []
    assert record is not None
    assert record.value().spent is None or record.value().spent.reserved == {}


@pytest.mark.ci
@pytest.mark.parametrize("after", [False, True])
async def test_a_child_s_reservation_never_outlives_its_turn(world: World, after: bool) -> None:
    """Wherever the process dies, the root holds no reservation once the child has gone on."""
    dies_at = 1
    while True:
        machine = Machine()
        store = f"{world.store}{dies_at}{after}"
        with ScriptedProvider(Step(Say("one"))) as script:
            async with life(store, machine, provider=script, dies_at=None) as (hf, mortal):
                root = await world.session(hf)
                await hf.sessions.set_budget(root, Budget(tokens=1_000_000))
                child = await world.session(hf, parent=root)
                mortal._left, mortal._after = mortal.writes + dies_at, after
                try:
                    with anyio.move_on_after(60):
                        await hf.sessions.process(child, "go")
                except BaseException:  # noqa: BLE001 - it dies with whatever error
                    pass
                died = mortal.dead.is_set()
                script._steps.clear()
        with ScriptedProvider(*[Step(Say("again"))] * 3) as script:
            async with life(store, machine, provider=script) as (hf, _):
                await hf.sessions.resume(child)
                await hf.sessions.wait(child)
                record = await hf.store.session(root)
                script._steps.clear()
        assert record is not None
        spent = record.value().spent
        assert spent is None or spent.reserved == {}, dies_at
        if not died:
            return
        dies_at += 1


async def test_an_interrupt_does_not_wait_for_whoever_is_asked_about_a_loop(world: World) -> None:
    """A program that reads from a terminal cannot be stopped: the call is settled, and it is left behind."""
    world.settings(permission={"act": "allow"})
    asked_, typed = anyio.Event(), threading.Event()

    async def reads(_: PermissionRequest) -> PermissionAnswer:
        asked_.set()
        await anyio.to_thread.run_sync(typed.wait)
        return PermissionAnswer(reply="once")

    deed = Deed(ask=False)
    async with world.open(*repeats("c1", "c2", "c3"), on_ask=reads) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        try:
            await hf.sessions.prompt(session, "go")
            with anyio.fail_after(60):
                await asked_.wait()
            with anyio.fail_after(60):
                await hf.sessions.interrupt(session)
        finally:
            typed.set()
        assert await hf.sessions.requests(session) == []
        page = await hf.sessions.messages(session)
    assert outcomes(page.messages)[2] == ("error", "The call was interrupted.")
    assert deed.done == ["x", "x"]


STOPPED = (
    "the model called act 10 times in a row with the same input, and got the same answer; the permission "
    "`doom_loop: allow` lets it go on"
)


class Poll:
    """A tool whose answer is another each time."""

    def __init__(self) -> None:
        self.count = 0

        @tool(name="act")
        async def act(context: ToolContext, what: str) -> str:
            """Look how far it is."""
            self.count += 1
            return f"{self.count} % are done"

        self.tool = act


async def test_calls_whose_answers_differ_are_no_loop(world: World) -> None:
    """The model polls: nobody is asked, however often it does."""
    world.settings(permission={"act": "allow"})
    poll = Poll()
    async with world.open(*repeats(*map(str, range(12))), Step(Say("done"))) as (hf, _):
        hf.tools.register(poll.tool)
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go")
    assert poll.count == 12
    assert isinstance(answer.info, AssistantMessage)
    assert (answer.info.finish, answer.info.error) == ("stop", None)


async def test_many_identical_calls_in_one_answer_are_no_loop(world: World) -> None:
    """The model made them before it could know what any of them gives: all are run, though `*` is allowed."""
    world.settings(permission={"*": "allow"})
    poll = Poll()
    ten = Step(*(Call("act", SAME, id=str(number)) for number in range(10)))
    async with world.open(ten, Step(Say("done"))) as (hf, _):
        hf.tools.register(poll.tool)
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go")
    assert poll.count == 10
    assert isinstance(answer.info, AssistantMessage)
    assert (answer.info.finish, answer.info.error) == ("stop", None)


async def test_a_refusal_is_read_by_the_model_before_it_ends_the_work(world: World) -> None:
    """Nobody is there: the third answer with the call is refused, however often it holds it; the fourth ends
    the work.
    """
    world.settings(permission={"act": "allow"})
    deed = Deed(ask=False)
    steps = [Step(*(Call("act", SAME, id=f"{n}-{m}") for m in range(4))) for n in range(4)]
    async with world.open(*steps) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        page = await hf.sessions.messages(session)
    assert (len(script.requests), deed.done) == (4, ["x"] * 8)
    states = [part.state for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    assert [state.metadata for state in states[8:] if isinstance(state, ToolError)] == [
        *[{"outcome": "denied", "doom_loop": 3}] * 4,
        *[{"outcome": "denied", "doom_loop": 4, "stopped": True}] * 4,
    ]


async def test_words_against_a_loop_that_was_allowed_before_reach_the_model(world: World) -> None:
    """A person allows the third call and rejects the fourth with a message: the work goes on with it."""
    world.settings(permission={"act": "allow"})
    deed = Deed(ask=False)
    last = Step(Say("ok"), expect=answered("c4", "that is enough"))
    async with world.open(*repeats("c1", "c2", "c3", "c4"), last, presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (question,) = await asked(hf, session)
        await hf.sessions.reply(session, question.id, "once")
        (question,) = await asked(hf, session)
        await hf.sessions.reply(session, question.id, "reject", message="that is enough")
        await hf.sessions.wait(session)
    assert deed.done == ["x"] * 3


async def test_a_loop_that_everything_is_allowed_to_ends_at_ten_with_a_name(world: World) -> None:
    """A person who allows `*` has not thought of it: the tenth call is not run, and the work ends."""
    world.settings(permission={"*": "allow"})
    deed = Deed(ask=False)
    async with world.open(*repeats(*map(str, range(10)))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go", check=False)
    assert deed.done == ["x"] * 9
    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, UnknownFault)
    assert answer.info.error.data.message == STOPPED
    assert outcomes((answer,)) == [("error", f"It was not run: {STOPPED}.")]


@pytest.mark.parametrize(("allowed", "answers"), [("*", 10), ("act", 4)])
async def test_the_same_two_calls_in_each_answer_are_a_loop(world: World, allowed: str, answers: int) -> None:
    """Each has a neighbour that is as old as itself. Under `*` the tenth answer ends the work; else the third
    is refused, where nobody can be asked, and the fourth ends it.
    """
    world.settings(permission={allowed: "allow"})
    deed = Deed(ask=False)
    steps = [Step(*(Call("act", {"what": each}, id=f"{n}-{each}") for each in "xy")) for n in range(answers)]
    async with world.open(*steps) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go", check=False)
    assert (len(script.requests), sorted(deed.done)) == (answers, sorted("xy" * {10: 9, 4: 2}[answers]))


async def test_a_call_whose_neighbours_are_new_is_no_loop(world: World) -> None:
    """A check that fails in the same way after each edit, in one answer with it, is run again."""
    world.settings(permission={"*": "allow"})
    deed = Deed(ask=False)
    steps = [
        Step(*(Call("act", {"what": each}, id=f"{n}-{each}") for each in ("x", str(n)))) for n in range(11)
    ]
    async with world.open(*steps, Step(Say("done"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
    assert deed.done.count("x") == 11


async def test_a_call_that_fails_with_the_same_long_error_is_a_loop(world: World) -> None:
    """The error is kept in a file of another name each time, and the third call is refused."""
    world.settings(permission={"act": "allow"})
    ran = 0

    @tool(name="act")
    async def act(context: ToolContext, what: str) -> str:
        """Fail at length."""
        nonlocal ran
        ran += 1
        raise ToolFailure("the same line\n" * 8_000)

    async with world.open(*repeats("1", "2", "3", "4")) as (hf, script):
        hf.tools.register(act)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
    assert (len(script.requests), ran) == (4, 2)


async def test_a_loop_that_is_allowed_by_name_goes_on(world: World) -> None:
    """Whatever stands beside it."""
    world.settings(permission={"*": "allow", "doom_loop": "allow"})
    deed = Deed(ask=False)
    async with world.open(*repeats(*map(str, range(12))), Step(Say("done"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
    assert deed.done == ["x"] * 12


@pytest.mark.parametrize("polls", [False, True], ids=["same answers", "other answers"])
@pytest.mark.parametrize("tail", [0, 1], ids=["no tail", "a tail"])
async def test_a_compaction_in_between_sets_nothing_back(world: World, polls: bool, tail: int) -> None:
    """What was answered before it is still compared with what is answered after it, and the calls of a tail
    that it keeps count once.
    """
    kept = {"tail_turns": tail, "preserve_recent_tokens": 300}
    world.settings(permission={"*": "allow"}, compaction=kept)
    deed, poll = Deed(ask=False), Poll()
    first = Step(Say(LONG), Call("act", SAME, id="1"))
    full = Step(Call("act", SAME, id="5"), usage=BIG)
    before, after = repeats("2", "3", "4"), repeats("6", "7", "8", "9", "10")
    steps = [first, *before, full, Step(Say("summary")), *after]
    more = [*repeats("11"), Step(Say("done"))] if polls else []
    async with world.open(*steps, *more) as (hf, script):
        hf.tools.register(poll.tool if polls else deed.tool)
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go", check=False)
    assert not script.requests[5].tools, "it was a compaction"
    answers = [each for each in script.requests[6].messages if isinstance(each, Assistant)]
    calls = [each for answer in answers for each in answer.content if isinstance(each, ToolCall)]
    assert bool(calls) is bool(tail), "it kept a tail"
    assert (len(deed.done), poll.count) == ((0, 11) if polls else (9, 0))
    assert isinstance(answer.info, AssistantMessage)
    assert (answer.info.error is None) is polls
