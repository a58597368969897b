"""`hf.agents.run`: any agent, with its own text or a given one, in a session that lists do not show."""

from holdfast.schema.prompt import TextPartInput
from holdfast.schema.session import AgentRun, Session
from holdfast.sessions.expired_runs import KEPT_MS
from holdfast.store.query import SessionQuery
from holdfast.testing.clock import FakeClock
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step
from tests.prefixes import blocks, first_difference
from tests.stories.world import World, shape
from tests.until import until

RUNS = SessionQuery(agent_runs=True)


async def test_a_hidden_agent_runs_with_a_text_in_the_place_of_its_own(world: World) -> None:
    """As the seeds call it: `compaction`, an input and a prompt. Its session is in no ordinary list."""
    async with world.open(Step(Say("A summary"))) as (hf, script):
        answer = await hf.agents.run(
            "compaction", "old messages", prompt="Summarise in one line.", directory=world.project
        )
        shown = (await hf.sessions.list()).sessions
        (session,) = (await hf.sessions.list(RUNS)).sessions
        named = await hf.sessions.named(session.id[:20])

    assert shape((answer,))[0][1][1] == ("text", "A summary")
    assert script.requests[0].system[0] == "Summarise in one line."
    assert (shown, named.id) == ((), session.id)
    assert session.agent_run == AgentRun(agent="compaction", prompt="Summarise in one line.")
    assert (session.agent, session.title) == ("compaction", "compaction: old messages")


async def test_a_subagent_runs_without_a_parent_and_below_one(world: World) -> None:
    """Both are marked; the child is listed among the children of its parent."""
    async with world.open(Step(Say("one")), Step(Say("two"))) as (hf, _):
        parent = await world.session(hf)
        await hf.agents.run("explore", [TextPartInput(text="Where?")], directory=world.project)
        await hf.agents.run("general", "Do it", parent=parent)
        runs = (await hf.sessions.list(RUNS)).sessions
        below = await hf.sessions.children(parent)
        shown = (await hf.sessions.list()).sessions

    assert sorted((each.title, each.parent_id) for each in runs) == [
        ("explore: Where?", None),
        ("general: Do it", parent),
    ]
    assert [each.title for each in below] == ["general: Do it"]
    assert [each.id for each in shown] == [parent]


async def test_the_given_text_outlives_a_restart(world: World) -> None:
    """The next turn of the session, in another process, extends the request before it."""
    async with world.open(Step(Say("one"))) as (hf, script):
        await hf.agents.run("explore", "Look", prompt="Be brief.", directory=world.project)
        (session,) = (await hf.sessions.list(RUNS)).sessions
        first = script.requests[0]
    async with world.open(Step(Say("two"))) as (hf, script):
        await hf.sessions.process(session.id, "Once more")
        second = script.requests[0]

    assert "Be brief." in first.system
    assert first_difference(blocks(first), blocks(second)) is None


async def test_a_restored_run_is_an_ordinary_session(world: World) -> None:
    """It is listed, and speaks with the agent's own text from then on."""
    async with world.open(Step(Say("one")), Step(Say("two"))) as (hf, script):
        await hf.agents.run("explore", "Look", prompt="Be brief.", directory=world.project)
        (session,) = (await hf.sessions.list(RUNS)).sessions
        await hf.sessions.restore(session.id)
        await hf.sessions.process(session.id, "Once more")
        shown = (await hf.sessions.list()).sessions

    assert [each.id for each in shown] == [session.id]
    assert "Be brief." not in script.requests[1].system


async def test_runs_that_were_not_used_for_a_week_are_pruned_beside_the_work(world: World) -> None:
    """By the sweep of a process that runs a session; other sessions stay, however old they are."""
    clock = FakeClock()
    async with world.open(Step(Say("one")), Step(Say("two")), clock=clock) as (hf, _):
        old = await world.session(hf)
        await hf.agents.run("explore", "Look", directory=world.project)
        (first,) = (await hf.sessions.list(RUNS)).sessions
        clock.advance(1)
        await hf.agents.run("explore", "Look again", directory=world.project)
    clock.advance(KEPT_MS - 1)
    async with world.open(Step(Say("three")), clock=clock) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "Hi")

        async def left_without_the_first() -> tuple[Session, ...]:
            left = (await hf.sessions.list(RUNS)).sessions
            return () if first.id in _ids(left) else left

        left = await until(left_without_the_first, store=hf.store)
        shown = (await hf.sessions.list()).sessions

    assert [each.title for each in left] == ["explore: Look again"]
    assert _ids(shown) == {old, session}


def _ids(sessions: tuple[Session, ...]) -> set[str]:
    return {each.id for each in sessions}
