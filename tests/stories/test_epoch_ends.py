"""What ends a Context Epoch, and what the model is told then: all that was in force, and why."""

from functools import partial
from pathlib import Path

import anyio
import pytest
from msgspec.structs import force_setattr, replace

from holdfast.app import Holdfast
from holdfast.context.source import UNAVAILABLE, Codec
from holdfast.context.system_context import SystemContext
from holdfast.schema.fault import ContextFault
from holdfast.schema.message import AssistantMessage
from holdfast.store.batch import Batch
from holdfast.store.put import put
from tests.stories import inside
from tests.stories.epochs import LONG, Calendar, Fact, compacted, epochs, extends, says, steps, told, updates
from tests.stories.tools import Deed
from tests.stories.world import World


@pytest.mark.ci
@pytest.mark.parametrize(
    "how", ["its producer fails", "its value is of another version", "its text cannot be rendered"]
)
async def test_after_a_compaction_the_model_is_told_all_that_was_in_force(world: World, how: str) -> None:
    """A source that cannot be seen then is told as it was told last, in a fresh baseline, like everything
    else that updates had told; seen again it is no news.
    """
    world.settings(compaction={"tail_turns": 0})
    clock, fact = Calendar(), Fact()
    agents = world.project / "AGENTS.md"
    async with world.open(*says(f"a {LONG}", "b", "## Goal\nAll."), clock=clock) as (hf, _):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value, clock.days = "two", 1
        agents.write_text("New rule.")
        await hf.sessions.process(session, "two")
        (text,) = await told(hf, session)
        await compacted(hf, session)
    assert "The fact is now two." in text
    async with world.open(*says("c", "d", "e"), clock=clock) as (hf, script):
        hidden = Fact(UNAVAILABLE).source()
        others = {
            "its value is of another version": replace(hidden, codec=Codec(int)),
            "its text cannot be rendered": replace(hidden, baseline=_unsaid),
        }
        broken = hf.context.register(
            "story/fact", _failing if how == "its producer fails" else lambda: SystemContext.make(others[how])
        )
        await hf.sessions.process(session, "three")
        await hf.sessions.process(session, "four")
        broken.close()
        fact.register(hf)
        await hf.sessions.process(session, "five")
        first, second = await epochs(hf, session)
        assert await told(hf, session) == [text]
        kept = await steps(hf, session)
    third, fourth, fifth = script.requests
    baseline = third.system[-1]
    assert (first.cause, second.cause) == ("first", "compaction")
    assert first.time.ended is not None
    assert second.snapshot["story/fact"] == first.snapshot["story/fact"]
    assert "New rule." in baseline
    assert baseline.count("The fact is now two.") == 1
    assert f"Today's date is {text.partition('The date is now ')[2][:10]}." in baseline
    assert updates(third) == updates(fifth) == []
    assert extends(third, fourth)
    assert extends(fourth, fifth)
    assert {each.moved for each in kept} == {None}


def _failing() -> SystemContext:
    raise OSError("down")


def _unsaid(*_: object) -> str:
    raise KeyError("unsaid")


@pytest.mark.ci
async def test_a_snapshot_that_cannot_be_read_ends_its_epoch_as_incompatible(world: World) -> None:
    """The reason is the true one: nothing was compacted."""
    async with world.open(*says("a")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        (epoch,) = await epochs(hf, session)
        harmed = replace(epoch, snapshot={"core/date": 5})
        await hf.store.commit(Batch((put(harmed),)))
    async with world.open(*says("b")) as (hf, script):
        await hf.sessions.process(session, "two")
        assert [each.cause for each in await epochs(hf, session)] == ["first", "incompatible"]
    assert "Today's date" in script.requests[0].system[-1]


async def test_what_can_be_read_of_a_harmed_snapshot_stays_in_force(world: World) -> None:
    """A source that cannot be seen just then is told as before in the new baseline; seen again, it is no
    news. So is one of a plugin, which would be left out had it never been told.
    """
    folder, away = world.home / ".config" / "holdfast" / "plugin", world.project / "away"
    folder.mkdir(parents=True)
    (folder / "facts.py").write_text(
        f"""
from pathlib import Path
from holdfast.context.source import Codec, ContextSource
async def load():
    if Path({str(away)!r}).exists(): raise OSError("away")
    return "main"
sources = [ContextSource(key="mine/branch", codec=Codec(str), load=load,
    baseline=lambda now: f"The branch is {{now}}.", update=lambda before, now: now)]
"""
    )
    fact = Fact()
    async with world.open(*says("a")) as (hf, _):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        (epoch,) = await epochs(hf, session)
        harmed = replace(epoch, snapshot={**epoch.snapshot, "core/date": 5})
        await hf.store.commit(Batch((put(harmed),)))
    async with world.open(*says("b", "c")) as (hf, script):
        fact.register(hf)
        fact.value = UNAVAILABLE
        away.touch()
        await hf.sessions.process(session, "two")
        fact.value = "one"
        away.unlink()
        await hf.sessions.process(session, "three")
        assert [each.cause for each in await epochs(hf, session)] == ["first", "incompatible"]
        assert await told(hf, session) == []
    assert script.requests[0].system[-1] == epoch.baseline
    assert extends(*script.requests)


@pytest.mark.parametrize("how", ["move", "update"])
async def test_a_session_that_moves_and_comes_back_begins_an_epoch(world: World, how: str) -> None:
    """The move ends the epoch, not the place; so it does in a fork that is made before the next turn."""
    elsewhere = world.project / "inner"
    elsewhere.mkdir()

    async def move(hf: Holdfast, directory: str) -> None:
        if how == "move":
            await hf.sessions.move(session, directory)
        else:
            await hf.sessions.update(session, lambda old: replace(old, directory=directory))

    async with world.open(*says("a", "b", "c", "d")) as (hf, _):
        session = await world.session(hf)
        here = (await hf.sessions.get(session)).directory
        await hf.sessions.process(session, "one")
        await move(hf, str(elsewhere))
        await move(hf, here)
        forked = (await hf.sessions.fork(session)).id
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        await hf.sessions.process(forked, "two")
        found = [(epoch.cause, epoch.time.ended is not None) for epoch in await epochs(hf, session)]
        there = [(epoch.cause, epoch.time.ended is not None) for epoch in await epochs(hf, forked)]
    assert found == there == [("first", True), ("move", False)]


async def test_a_fork_from_before_a_move_goes_on_with_the_epoch_of_then(world: World) -> None:
    """The session came back and went on there; the fork from before the move extends what was sent before."""
    elsewhere = world.project / "inner"
    elsewhere.mkdir()
    async with world.open(*says("a", "b", "c")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.move(session, str(elsewhere))
        await hf.sessions.move(session, str(world.project))
        await hf.sessions.process(session, "two")
        cut = (await hf.sessions.messages(session)).messages[2].info.id
        forked = (await hf.sessions.fork(session, cut)).id
        await hf.sessions.process(forked, "two again")
        assert [epoch.cause for epoch in await epochs(hf, forked)] == ["first"]
    assert extends(script.requests[0], script.requests[2])


async def test_a_message_in_the_kept_tail_of_a_compaction_leaves_the_view(world: World) -> None:
    """Its words are in the new baseline; the turn around it is sent without it, and it stays stored."""
    world.settings(compaction={"tail_turns": 1})
    fact = Fact()
    async with world.open(*says(f"a {LONG}", "b", "## Goal\nAll.", "c")) as (hf, script):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value = "two"
        await hf.sessions.process(session, "the second prompt")
        await compacted(hf, session)
        await hf.sessions.process(session, "three")
        assert await told(hf, session) == ["The fact is now two."]
    last = script.requests[-1]
    assert "the second prompt" in str(last.messages), "the tail was kept"
    assert updates(last) == []
    assert "The fact is two." in last.system[-1]


def repository(folder: Path, rule: str) -> Path:
    """A worktree with an instruction file at its top, and a folder in it."""
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "AGENTS.md").write_text(rule)
    return folder


async def test_a_session_that_moves_to_another_worktree_has_what_is_there(
    world: World, tmp_path: Path
) -> None:
    """Instructions, contributions, tools and settings are those of the new place, and none of the old one."""
    here, there = (repository(tmp_path / name, f"The rule of {name}.") for name in ("here", "there"))
    (there / "src" / "holdfast.json").write_text('{"agent": {"local": {"description": "of this place"}}}')
    async with world.open(*says("a", "b")) as (hf, script):
        for place in (here, there):
            source = replace(Fact(place.name).source(), key=f"story/{place.name}")
            hf.context_at(place / "src").register(source.key, partial(SystemContext.make, source))
            hf.tools_at(place / "src").register(Deed(f"only_{place.name}").tool)
        session = (await hf.sessions.create(directory=here / "src", title="A story")).id
        await hf.sessions.process(session, "one")
        await hf.sessions.move(session, str(there / "src"))
        await hf.sessions.process(session, "two", agent="local")
    for request, place, other in zip(script.requests, (here, there), (there, here), strict=True):
        system, names = request.system[-1], {tool.name for tool in request.tools}
        assert f"Instructions from: {place / 'AGENTS.md'}\nThe rule of {place.name}." in system
        assert f"The fact is {place.name}." in system
        assert str(other) not in system
        assert f"The fact is {other.name}." not in system
        assert (f"only_{place.name}" in names, f"only_{other.name}" in names) == (True, False)


async def test_what_cannot_be_read_after_a_move_leaves_the_prompt_pending(world: World) -> None:
    """What the model was told before the move does not stand in for it: the place is another one."""
    fact = Fact()
    elsewhere = world.project / "inner"
    elsewhere.mkdir()
    async with world.open(*says("a", "b")) as (hf, script):
        fact.register(hf)
        engine = inside.engine(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.move(session, str(elsewhere))
        fact.value, usual = UNAVAILABLE, engine.limits
        force_setattr(engine, "limits", replace(usual, context_wait_ms=100))
        with anyio.fail_after(60):
            answer = (await hf.sessions.process(session, "two", check=False)).info
        assert isinstance(answer, AssistantMessage)
        assert isinstance(answer.error, ContextFault)
        (pending,) = [
            each for each in await hf.store.select("prompt", session=session) if each.value().promoted is None
        ]
        assert len(script.requests) == 1

        fact.value = "there"
        force_setattr(engine, "limits", usual)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        assert [epoch.cause for epoch in await epochs(hf, session)] == ["first", "move"]
        assert (await hf.store.get(session, "prompt", pending.id)).value().promoted is not None
    assert "The fact is there." in script.requests[1].system[-1]
