"""Undo: files come back and messages are hidden, until the next prompt makes it last."""

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.errors import HoldfastError, NotFound, Refused
from holdfast.provider.request import prefix
from holdfast.schema.message import UserMessage
from holdfast.schema.part import ToolPart
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step, Wait
from tests.stories import inside
from tests.stories.epochs import LONG, Fact
from tests.stories.undo import ALLOWED, LINES, act, command, edit, files, outcomes, read, said, turn, write
from tests.stories.world import World, is_shown
from tests.until import until

pytestmark = pytest.mark.needs("git")


@pytest.mark.ci
async def test_a_prompt_is_taken_back(world: World) -> None:
    """The agent's files are as they were before it; `unrevert` brings files and messages back."""
    world.settings(permission=ALLOWED, snapshot=True)
    (world.project / "a").write_text("one\n")
    steps = [*turn(write("a2", "A\n")), *turn(read("a"), edit("a", "one", "two"), write("new", "N\n"))]
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        await hf.sessions.process(session, "zweitens")
        after = files(world.project)
        assert after == {"a": "two\n", "a2": "A\n", "new": "N\n"}

        undo = await hf.sessions.revert(session)

        assert files(world.project) == {"a": "one\n", "a2": "A\n"}
        assert outcomes(undo) == {"a": "restored", "new": "deleted"}
        assert await said(hf, session) == ["erstens", "done"]
        assert await said(hf, session, reverted=True) == ["erstens", "done", "zweitens", "done"]

        undo = await hf.sessions.unrevert(session)

        assert files(world.project) == after
        assert outcomes(undo) == {"a": "restored", "new": "restored"}
        assert await said(hf, session) == ["erstens", "done", "zweitens", "done"]
        assert (await hf.sessions.get(session)).revert is None


@pytest.mark.ci
async def test_the_next_prompt_commits_it(world: World) -> None:
    """The messages go, and the model is told what it was told at that point: the same request as a fork's.

    Totals are of what is left; what was spent stays spent. Files come back for 7 days.
    """
    world.settings(permission=ALLOWED, snapshot=True)
    fact = Fact()
    steps = [*turn(write("a", "1\n")), *turn(read("a"), edit("a", "1", "2")), *turn(write("b", "3\n"))]
    async with world.open(*steps, Step(Say("forked")), Step(Say("again"))) as (hf, script):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        left = await hf.sessions.get(session)
        fact.value = "two"
        await hf.sessions.process(session, "zweitens")
        point = (await hf.sessions.messages(session)).messages[3].info.id
        await hf.sessions.process(session, "third")
        fork = await hf.sessions.fork(session, point)
        await hf.sessions.process(fork.id, "other")
        spent = (await hf.sessions.get(session)).spent

        await hf.sessions.revert(session, point)
        assert files(world.project) == {"a": "1\n"}
        with pytest.raises(Refused, match="has a staged revert"):
            await hf.sessions.resume(session)
        answer = await hf.sessions.process(session, "other")

        forked, reverted = script.requests[-2:]
        assert prefix.named(reverted).names == prefix.named(forked).names
        assert answer.text == "again"
        assert await said(hf, session, reverted=True) == ["erstens", "done", "other", "again"]
        assert files(world.project) == {"a": "1\n"}
        after = await hf.sessions.get(session)
        assert after.revert is None
        assert after.tokens is not None
        assert left.tokens is not None
        assert after.tokens.output == left.tokens.output * 1.5
        assert after.spent is not None
        assert spent is not None
        assert after.spent.tokens > spent.tokens

        undo = await hf.sessions.unrevert(session, committed=True)
        assert outcomes(undo) == {"a": "restored", "b": "restored"}
        assert files(world.project) == {"a": "2\n", "b": "3\n"}
        assert await said(hf, session) == ["erstens", "done", "other", "again"]
        with pytest.raises(NotFound, match="no revert of session"):
            await hf.sessions.unrevert(session, committed=True)
    async with world.open(Step(Say("still"))) as (hf, _):
        assert (await hf.sessions.process(session, "on")).text == "still"


async def test_prompts_and_epochs_after_the_point_go(world: World) -> None:
    """Their records too, when the revert is committed: those that are left are those of a fork from there."""
    world.settings(permission=ALLOWED, snapshot=True, compaction={"tail_turns": 0})
    steps = [Step(Say(LONG)), Step(Say("## Goal\nAll.")), Step(Say("two")), Step(Say("three"))]
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        epochs = {each.id for each in await hf.store.select("epoch", session=session)}
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "zweitens")
        assert len(await hf.store.select("epoch", session=session)) > len(epochs)
        await hf.sessions.revert(session, (await hf.sessions.messages(session)).messages[2].info.id)
        await hf.sessions.process(session, "drittens")

        assert {each.id for each in await hf.store.select("epoch", session=session)} == epochs
        page = await hf.sessions.messages(session, reverted=True)
        asked = {each.info.id for each in page.messages if isinstance(each.info, UserMessage)}
        assert len(asked) == 2
        assert {each.id for each in await hf.store.select("prompt", session=session)} <= asked


@pytest.mark.ci
async def test_the_agent_knows_files_as_of_the_point(world: World) -> None:
    """What it wrote after it is forgotten with the messages, also by the process that ran it: a file that is
    as it was then may be edited at once, and one that was put back since has to be read.
    """
    world.settings(permission=ALLOWED, snapshot=True)
    steps = [
        *turn(write("a", "1\n"), write("b", "1\n")),
        *turn(edit("a", "1", "2"), edit("b", "1", "2")),
        *turn(edit("a", "1", "3"), edit("b", "1", "3")),
    ]
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        await hf.sessions.process(session, "zweitens")
        await hf.sessions.revert(session)
        (world.project / "b").write_text("2\n")
        await hf.sessions.process(session, "drittens")
    assert files(world.project) == {"a": "3\n", "b": "2\n"}


async def test_a_prompt_that_is_refused_commits_nothing(world: World) -> None:
    """The revert stays staged, and can be undone."""
    world.settings(permission=ALLOWED, snapshot=True)
    async with world.open(*turn(write("a", "1\n"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        await hf.sessions.revert(session)
        with pytest.raises(HoldfastError):
            await hf.sessions.prompt(session, "no", agent="nobody")
        await hf.sessions.unrevert(session)
        assert (await said(hf, session), files(world.project)) == (["erstens", "done"], {"a": "1\n"})


@pytest.mark.ci
async def test_what_a_staged_revert_hides_from_whom(world: World) -> None:
    """From lists, the state, the model's context, a fork and a compaction; a message by its id is there."""
    world.settings(permission=ALLOWED, snapshot=True, compaction={"tail_turns": 0})
    steps = [*turn(write("a", "1\n")), *turn(write("b", "2\n"))]
    async with world.open(*steps, Step(Say("a fork"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        await hf.sessions.process(session, "zweitens")
        last = (await hf.sessions.messages(session)).messages[-1]
        await hf.sessions.revert(session)

        assert await said(hf, session) == ["erstens", "done"]
        each = [message async for message in hf.sessions.each_message(session)]
        assert len(each) == 3
        assert len([_ async for _ in hf.sessions.each_message(session, reverted=True)]) == 6
        assert len((await hf.sessions.state(session)).messages.messages) == 3
        texts = [block.text for block in (await hf.sessions.context(session)).blocks]
        assert not any("zweitens" in text for text in texts)
        assert any("erstens" in text for text in texts)
        assert await hf.sessions.message(session, last.info.id) == last
        fork = await hf.sessions.fork(session)
        await hf.sessions.process(fork.id, "on")
        assert await said(hf, fork.id) == ["erstens", "done", "on", "a fork"]
        assert "zweitens" not in str(script.requests[-1].messages)


async def test_a_session_rests_while_a_revert_is_staged(world: World) -> None:
    """Woken, it does nothing, although what is shown of its answer asks for more; nor does it forget what is
    hidden: after `unrevert` the model is sent all of it.
    """
    world.settings(permission=ALLOWED, snapshot=True)
    async with world.open(*turn(write("a", "1\n"), write("b", "1\n")), Step(Say("on"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        first = (await hf.sessions.messages(session)).messages[1]
        (call,) = [part.id for part in first.parts if isinstance(part, ToolPart)]
        after = first.parts[[part.id for part in first.parts].index(call) + 1].id
        await hf.sessions.revert(session, first.info.id, part=after)
        assert files(world.project) == {"a": "1\n"}

        await inside.wake(hf, session)
        await hf.sessions.wait(session)
        assert len(script.requests) == 3

        await hf.sessions.unrevert(session)
        await hf.sessions.process(session, "zweitens")
        named = [prefix.named(each).names for each in script.requests[-2:]]
        assert named[1][: len(named[0])] == named[0]
        assert "done" in str(script.requests[-1].messages)


@pytest.mark.parametrize("how", ["command", "compaction"])
async def test_what_else_commits_it(world: World, how: str) -> None:
    """A command of the user's own, and a compaction."""
    world.settings(permission=ALLOWED, snapshot=True, compaction={"tail_turns": 0})
    summary = [Step(Say("## Goal\nAll."))] if how == "compaction" else []
    steps = [Step(Say(LONG)), *turn(write("b", "2\n")), *summary]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        await hf.sessions.process(session, "zweitens")
        await hf.sessions.revert(session)
        if how == "command":
            await hf.sessions.shell(session, "true")
        else:
            await hf.sessions.compact(session, force=True)
            await hf.sessions.wait(session)
            assert "zweitens" not in str(script.requests[-1].messages)

        assert "zweitens" not in await said(hf, session, reverted=True)
        after = await hf.sessions.get(session)
        assert (after.revert, len(after.reverted or ())) == (None, 1)


async def test_what_a_command_changed_is_observed_and_merged(world: World) -> None:
    """Also what no tool noted; a file that the user has changed since is merged."""
    world.settings(permission=ALLOWED, snapshot=True)
    (world.project / "a").write_text(LINES)
    line = "p = __import__('pathlib').Path; p('new').write_text('x'); t = p('a').read_text(); p('a').write_text(t.replace('line 3', 'agent'))"  # noqa: E501
    async with world.open(*turn(act(line))) as (hf, _):
        hf.tools.register(command())
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        text = (world.project / "a").read_text()
        assert "agent\n" in text
        (world.project / "a").write_text(text.replace("line 12", "user"))

        undo = await hf.sessions.revert(session)

        assert {(each.path, each.outcome, each.observed) for each in undo.files} == {
            ("a", "merged", True), ("new", "deleted", True),
        }  # fmt: skip
        assert files(world.project) == {"a": LINES.replace("line 12", "user")}


async def test_a_session_that_works_is_not_reverted(world: World) -> None:
    """Nor one with a prompt that waits."""
    world.settings(permission=ALLOWED, snapshot=True)
    gate = anyio.Event()
    async with world.open(Step(Wait(gate), Say("done"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "erstens", resume=False)
        with pytest.raises(Refused, match="a prompt waits in session"):
            await hf.sessions.revert(session)
        await hf.sessions.resume(session)
        await until(lambda: is_shown(hf, session, count=2))
        with pytest.raises(Refused, match="is busy"):
            await hf.sessions.revert(session)
        with pytest.raises(Refused, match="is busy"):
            await hf.sessions.unrevert(session)
        gate.set()
        await hf.sessions.wait(session)


@pytest.mark.ci
async def test_what_was_taken_back_is_in_no_total(world: World) -> None:
    """Also when the prompt that commits the revert changes no file."""
    world.settings(permission=ALLOWED, snapshot=True)
    steps = [*turn(write("a", "1\n")), *turn(write("b", "2\n")), Step(Say("nothing"))]
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "erstens")
        await hf.sessions.process(session, "zweitens")
        await until(lambda: _counts(hf, session, 2))
        await hf.sessions.revert(session)
        await hf.sessions.process(session, "third")
        await until(lambda: _counts(hf, session, 1))


async def _counts(hf: Holdfast, session: str, files: int) -> bool:
    summary = (await hf.sessions.get(session)).summary
    return summary is not None and summary.files == files
