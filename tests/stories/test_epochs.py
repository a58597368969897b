"""Context Epochs: what the model is told first stays as it was, and what changes is told where it changed."""

from collections.abc import Awaitable, Callable

import anyio
import pytest
from msgspec.structs import force_setattr, replace

from holdfast.app import Holdfast
from holdfast.context.source import UNAVAILABLE, Codec, ContextSource
from holdfast.context.sources.date import today
from holdfast.context.system_context import SystemContext
from holdfast.errors import Conflict
from holdfast.provider.instructions import choose
from holdfast.provider.request.request import SystemUpdate
from holdfast.schema.fault import ContextFault
from holdfast.schema.message import AssistantMessage, SystemMessage
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from tests.loop_time import let_pass
from tests.stories import inside
from tests.stories.crashing import Machine, life
from tests.stories.epochs import Calendar, Fact, epochs, extends, says, steps, told, updates
from tests.stories.tools import Deed
from tests.stories.world import MODEL, World
from tests.until import until


async def test_the_first_turn_renders_a_baseline_and_says_nothing_twice(world: World) -> None:
    """The baseline is stored word for word, with its snapshot, and no system message repeats it."""
    (world.project / "AGENTS.md").write_text("Write tests.")
    async with world.open(*says("a")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (epoch,) = await epochs(hf, session)
        assert await told(hf, session) == []
    (request,) = script.requests
    assert epoch.baseline == request.system[-1]
    assert f"Instructions from: {world.project / 'AGENTS.md'}\nWrite tests." in epoch.baseline
    assert (epoch.cause, epoch.time.ended, epoch.begun) == ("first", None, epoch.snapshot)
    assert set(epoch.snapshot) >= {"core/environment", "core/date", "core/model", "core/instructions"}


async def test_a_date_that_changes_is_told_once_as_the_new_date(world: World) -> None:
    """The domain expert: emit the newly effective date; the old one is not repeated."""
    clock = Calendar()
    async with world.open(*says("a", "b", "c"), clock=clock) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        clock.days = 1
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        (text,) = await told(hf, session)
        kept = await steps(hf, session)
    first, second, third = script.requests
    assert text == f"The date is now {today(clock.now_ms(), None)}."
    assert updates(second) == updates(third) == [text]
    assert isinstance(second.messages[-1], SystemUpdate), "after the prompt that was promoted"
    assert extends(first, second)
    assert extends(second, third)
    assert [(each.moved, each.block) for each in kept] == [(None, None)] * 3


async def test_changes_of_several_sources_are_one_message(world: World) -> None:
    """Edited instructions come as the complete current set; a source that is new comes with its baseline."""
    agents = world.project / "AGENTS.md"
    agents.write_text("Old rule.")
    fact = Fact()
    async with world.open(*says("a", "b", "c", "d")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        agents.write_text("New rule.")
        registration = fact.register(hf)
        await hf.sessions.process(session, "two")
        agents.unlink()
        registration.close()
        await hf.sessions.process(session, "three")
        await hf.sessions.process(session, "four")
        changed, removed = await told(hf, session)
        epoch = (await epochs(hf, session))[-1]
    assert "supersedes" in changed
    assert f"Instructions from: {agents}\nNew rule." in changed
    assert "The fact is one." in changed
    assert "Old rule" not in changed
    assert "no longer apply" in removed
    assert "There is no fact any more." in removed
    assert "core/instructions" not in epoch.snapshot
    assert updates(script.requests[-1]) == [changed, removed]
    for before, after in zip(script.requests, script.requests[1:], strict=False):
        assert extends(before, after)


async def test_the_snapshot_moves_with_its_message(world: World) -> None:
    """Both are one commit, and the message keeps the snapshot that it produced."""
    fact = Fact()
    async with world.open(*says("a", "b")) as (hf, _):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value = "two"
        await hf.sessions.process(session, "two")
        (epoch,) = await epochs(hf, session)
        page = await hf.sessions.messages(session, system=True)
    (message,) = [each.info for each in page.messages if isinstance(each.info, SystemMessage)]
    assert message.text == "The fact is now two."
    assert message.snapshot == epoch.snapshot
    assert epoch.begun["story/fact"]["value"] == "one"
    assert epoch.snapshot["story/fact"]["value"] == "two"


async def test_what_is_unavailable_stays_as_it_was(world: World) -> None:
    """No removal, no update, until it is seen again."""
    fact = Fact()
    async with world.open(*says("a", "b", "c")) as (hf, script):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value = UNAVAILABLE
        await hf.sessions.process(session, "two")
        assert await told(hf, session) == []
        fact.value = "two"
        await hf.sessions.process(session, "three")
        assert await told(hf, session) == ["The fact is now two."]
    assert extends(script.requests[0], script.requests[1])


async def test_a_source_that_cannot_say_what_changed_stops_nothing(world: World) -> None:
    """Its baseline text is told in the place of the update; where that fails too, what was told stays in
    force. Both are warned about, and the work goes on.
    """
    unsaid: set[str] = set()

    def text(name: str, now: str) -> str:
        if name in unsaid:
            raise KeyError(name)
        return f"The {name} says {now}."

    fact, warnings = Fact(), list[str]()
    source = replace(
        fact.source(),
        baseline=lambda now: text("baseline", now),
        update=lambda _, now: text("update", now),
    )
    async with world.open(*says(*"abcd")) as (hf, _):
        force_setattr(inside.engine(hf), "warn", warnings.append)
        hf.context.register("story/fact", lambda: SystemContext.make(source))
        session = await world.session(hf)
        for value, broken in (("one", set()), ("two", {"update"}), ("three", {"update", "baseline"})):
            fact.value, unsaid = value, broken
            await hf.sessions.process(session, value)
        unsaid = set()
        await hf.sessions.process(session, "four")
        assert await told(hf, session) == ["The baseline says two.", "The update says three."]
        assert [each.cause for each in await epochs(hf, session)] == ["first"]
        assert {each.moved for each in await steps(hf, session)} == {None}
    problem = "context source story/fact: its {} text cannot be rendered: KeyError"
    assert warnings == [problem.format(name) for name in ("update", "baseline")]


async def test_a_plugin_that_cannot_say_what_changed_stops_nothing(world: World) -> None:
    """Nothing shows it before the change: its texts for what it says now can all be rendered."""
    folder, branch = world.home / ".config" / "holdfast" / "plugin", world.project / "branch"
    folder.mkdir(parents=True)
    (folder / "facts.py").write_text(
        f"""
from pathlib import Path
from holdfast.context.source import Codec, ContextSource
async def load(): return Path({str(branch)!r}).read_text()
sources = [ContextSource(key="mine/branch", codec=Codec(str), load=load,
    baseline=lambda now: f"The branch is {{now}}.", update=lambda before, now: {{now: now}}[before])]
"""
    )
    async with world.open(*says("a", "b")) as (hf, _):
        session = await world.session(hf)
        for name in ("main", "dev"):
            branch.write_text(name)
            await hf.sessions.process(session, name)
        assert await told(hf, session) == ["The branch is dev."]


async def test_an_unavailable_baseline_leaves_the_prompt_pending(world: World) -> None:
    """It waits visibly within a bound, then a named error says what is missing; once it can be read, the
    same prompt is answered.
    """
    fact = Fact(UNAVAILABLE)
    async with world.open(*says("a")) as (hf, script):
        fact.register(hf)
        engine = inside.engine(hf)
        usual = engine.limits
        force_setattr(engine, "limits", replace(usual, context_wait_ms=30_000))
        session = await world.session(hf)
        statuses: list[bytes] = []
        with anyio.fail_after(60):
            async for frame in hf.sessions.turn(session, "go", check=False):
                if b"system context" in frame.properties:
                    statuses.append(frame.properties)
                    if len(statuses) == 1:
                        let_pass(30)
        pending = await hf.store.select("prompt", session=session)
        assert pending[0].value().promoted is None
        assert script.requests == []
        assert statuses
        assert b"story/fact: unavailable" in statuses[0]
        page = await hf.sessions.messages(session)
        error = page.messages[-1].info
        assert isinstance(error, AssistantMessage)
        assert isinstance(error.error, ContextFault)
        assert "story/fact" in error.error.data.message
        assert await epochs(hf, session) == []

        fact.value = "there"
        force_setattr(engine, "limits", usual)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        pending = await hf.store.select("prompt", session=session)
        assert pending[0].value().promoted is not None
    assert "The fact is there." in script.requests[0].system[-1]


@pytest.mark.ci
async def test_the_wait_for_a_baseline_ends_with_its_bound_whatever_still_looks(world: World) -> None:
    """Sources and producers have a limit of their own; a look that has begun is cut off all the same."""
    looking, cut = anyio.Event(), anyio.Event()

    async def load() -> str:
        looking.set()
        try:
            await anyio.sleep_forever()
        finally:
            cut.set()
        raise AssertionError

    async with world.open() as (hf, script):
        source = replace(Fact().source(), load=load)
        hf.context.register("story/fact", lambda: SystemContext.make(source))
        engine = inside.engine(hf)
        force_setattr(engine, "limits", replace(engine.limits, context_wait_ms=1_500))
        session = await world.session(hf)
        with anyio.fail_after(60):
            answer = (await hf.sessions.process(session, "go", check=False)).info
        (pending,) = await hf.store.select("prompt", session=session)
    assert isinstance(answer, AssistantMessage)
    assert isinstance(answer.error, ContextFault)
    # Not the source's own limit, which is longer, has ended it.
    assert answer.error.data.message == (
        "what the model must be told first cannot be read: nothing answered in time"
    )
    assert looking.is_set()
    assert cut.is_set()
    assert pending.value().promoted is None
    assert script.requests == []


async def test_a_restart_and_an_upgrade_move_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline, the instruction texts and the tool definitions are those of the epoch, byte for byte."""
    async with world.open(*says("a")) as (hf, one):
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    monkeypatch.setattr(choose, "_text", lambda name: f"An improved text for {name}.")
    better = replace(Deed().tool, description="A better description.")
    async with world.open(*says("b")) as (hf, two):
        hf.tools.register(better)
        await hf.sessions.process(session, "two")
        assert [each.moved for each in await steps(hf, session)] == [None, None]
    assert extends(one.requests[0], two.requests[0])


async def test_a_tool_that_is_away_stays_in_the_request_and_fails_in_words(world: World) -> None:
    """A server that is down does not move the prefix."""
    async with world.open(*says("a")) as (hf, one):
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    async with world.open(Step(Call("act", {"what": "x"}, id="c")), Step(Say("b"))) as (hf, two):
        await hf.sessions.process(session, "two")
        page = await hf.sessions.messages(session)
    assert extends(one.requests[0], two.requests[0])
    assert "act" in {tool.name for tool in two.requests[0].tools}
    states = [part.state for message in page.messages for part in message.parts if hasattr(part, "call_id")]
    assert "There is no tool called act" in states[0].error


async def test_a_tool_that_arrives_later_moves_the_prefix_once(world: World) -> None:
    """The reason is recorded: tools."""
    async with world.open(*says("a", "b", "c")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        hf.tools.register(Deed().tool)
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        assert [each.moved for each in await steps(hf, session)] == [None, "tools", None]
    assert extends(script.requests[1], script.requests[2])


async def test_an_edited_agent_moves_the_prefix_once(world: World) -> None:
    """The reason is recorded: agent."""
    world.settings(agent={"build": {"prompt": "Be brief."}})
    async with world.open(*says("a")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    world.settings(agent={"build": {"prompt": "Be thorough."}})
    async with world.open(*says("b", "c")) as (hf, script):
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        assert [each.moved for each in await steps(hf, session)] == [None, "agent", None]
    assert "Be thorough." in script.requests[0].system[1]


async def test_a_switch_of_model_or_agent_keeps_the_epoch(world: World) -> None:
    """The new selection is told chronologically, and the prefix moves for the reason that it has."""
    model = {"name": "N", "limit": {"context": 100_000, "output": 8_000}}
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": {**model, "name": "M"}, "gpt-4": model},
    }
    world.settings(provider={"scripted": entry})
    async with world.open(*says("a", "b", "c", "d")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two", model="scripted/gpt-4")
        await hf.sessions.process(session, "three", agent="plan")
        await hf.sessions.process(session, "four", agent="build", model=MODEL)
        assert len(await epochs(hf, session)) == 1
        assert [each.moved for each in await steps(hf, session)] == [None, "model", "agent", "model"]
        texts = await told(hf, session)
    assert len(texts) == 2
    assert "scripted/gpt-4" in texts[0]


async def test_a_fork_before_a_change_is_told_of_it_again(world: World) -> None:
    """The fork restores the epoch and the snapshot in force at its cut; the source is left as it is."""
    clock = Calendar()
    async with world.open(*says("a", "b", "c"), clock=clock) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        clock.days = 1
        await hf.sessions.process(session, "two")
        page = await hf.sessions.messages(session)
        cut = page.messages[2].info.id
        forked = (await hf.sessions.fork(session, cut)).id
        (before,) = await epochs(hf, forked)
        assert before.snapshot == before.begun
        await hf.sessions.process(forked, "two again")
        assert await told(hf, forked) == await told(hf, session)
        assert [each.moved for each in await steps(hf, forked)] == [None, None]
    assert extends(script.requests[0], script.requests[2])


async def test_a_fork_after_a_change_is_not_told_again(world: World) -> None:
    """What the kept history tells is known."""
    clock = Calendar()
    async with world.open(*says("a", "b", "c"), clock=clock) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        clock.days = 1
        await hf.sessions.process(session, "two")
        forked = (await hf.sessions.fork(session)).id
        await hf.sessions.process(forked, "three")
        assert await told(hf, forked) == await told(hf, session)
    assert extends(script.requests[1], script.requests[2])


async def test_a_move_ends_the_epoch(world: World) -> None:
    """The destination renders a complete baseline before another prompt is promoted; what was told before
    stays stored and leaves the model's view.
    """
    fact = Fact()
    elsewhere = world.project / "inner"
    elsewhere.mkdir()
    async with world.open(*says("a", "b", "c")) as (hf, script):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value = "two"
        await hf.sessions.process(session, "two")
        await hf.sessions.move(session, str(elsewhere))
        await hf.sessions.process(session, "three")
        first, second = await epochs(hf, session)
        assert await told(hf, session) == ["The fact is now two."]
    assert (first.cause, second.cause) == ("first", "move")
    assert first.time.ended is not None
    assert "The fact is two." in script.requests[2].system[-1]
    assert str(elsewhere) in script.requests[2].system[-1]
    assert updates(script.requests[2]) == []


async def test_instructions_beside_a_file_that_was_read_are_told_at_the_next_boundary(world: World) -> None:
    """Once, and after a restart they are known."""
    inner = world.project / "inner"
    inner.mkdir()
    (inner / "AGENTS.md").write_text("Inner rule.")
    (inner / "a.txt").write_text("text")
    read = Step(Call("read", {"filePath": "inner/a.txt"}, id="r"))
    async with world.open(read, *says("a")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        (text,) = await told(hf, session)
        (epoch,) = await epochs(hf, session)
    assert "Inner rule." in text
    assert updates(script.requests[0]) == []
    assert updates(script.requests[1]) == [text]
    assert epoch.nested == [str(inner / "AGENTS.md")]
    async with world.open(*says("b")) as (hf, again):
        await hf.sessions.process(session, "two")
        assert await told(hf, session) == [text]
    assert extends(script.requests[1], again.requests[0])


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_instructions_beside_a_file_survive_interrupted_boundaries(world: World, times: int) -> None:
    """Interrupted while another source is slow, a boundary has told nothing; the first that is not does."""
    inner = world.project / "inner"
    inner.mkdir()
    (inner / "AGENTS.md").write_text("Inner rule.")
    (inner / "a.txt").write_text("text")
    looks = 0

    async def load() -> str:
        nonlocal looks
        looks += 1
        if 2 <= looks <= 1 + times:  # At the boundary after the reading, and at those of the next prompts.
            await anyio.sleep_forever()
        return "main"

    fact = ContextSource(
        key="test/slow",
        codec=Codec(str),
        load=load,
        baseline=lambda now: f"On {now}.",
        update=lambda before, now: f"Now on {now}.",
    )
    read = Step(Call("read", {"filePath": "inner/a.txt"}, id="r"))
    async with world.open(read, *says("a")) as (hf, script):
        hf.context.register("test/slow", lambda: SystemContext.make(fact))
        session = await world.session(hf)
        for number in range(times):
            await hf.sessions.prompt(session, f"prompt {number}")
            await until(lambda: looks > 1 + number)  # noqa: B023 - awaited in its round
            await hf.sessions.interrupt(session)
            assert await told(hf, session) == []
        await hf.sessions.process(session, "last")
        (text,) = await told(hf, session)
    assert "Inner rule." in text
    assert updates(script.requests[1]) == [text]


async def test_a_boundary_observes_each_source_once_and_an_epoch_begins_in_one_commit(world: World) -> None:
    """Also the first one, where the epoch begins: it holds what it pins from its first state on."""
    looks: list[int] = []
    fact = ContextSource(
        key="test/count",
        codec=Codec(str),
        load=lambda: _counted(looks),
        baseline=lambda now: f"On {now}.",
        update=lambda before, now: f"Now on {now}.",
    )
    async with world.open(*says("a", "b")) as (hf, script):
        hf.context.register("test/count", lambda: SystemContext.make(fact))
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        (record,) = await hf.store.select("epoch", session=session)
        assert (len(looks), record.seq) == (1, record.position)
        assert list(record.value().pins) != []
        await hf.sessions.process(session, "two")
        assert len(looks) == len(script.requests) == 2


async def _counted(looks: list[int]) -> str:
    looks.append(1)
    return "main"


async def test_a_key_that_stands_twice_is_refused_where_it_is_registered(world: World) -> None:
    """In the application and in a directory, in either order, or beneath the built-in ones; elsewhere and
    after closing it may be used again.
    """
    other = world.project / "other"
    async with world.open(*says("a")) as (hf, _):
        first = hf.context.register("mine/branch", SystemContext.empty)
        with pytest.raises(Conflict, match="has a contribution mine/branch already"):
            hf.context_at(world.project).register("mine/branch", SystemContext.empty)
        first.close()
        hf.context_at(world.project).register("mine/branch", SystemContext.empty)
        hf.context_at(other).register("mine/branch", SystemContext.empty)
        with pytest.raises(Conflict, match="has a contribution mine/branch already"):
            hf.context.register("mine/branch", SystemContext.empty)
        for registry in (hf.context, hf.context_at(other)):
            with pytest.raises(Conflict, match="core/date: keys beneath core/ are those of built-in sources"):
                registry.register("core/date", SystemContext.empty)
        answer = await hf.sessions.process(await world.session(hf), "go")
        assert isinstance(answer.info, AssistantMessage)
        assert answer.info.error is None


async def test_context_changes_never_wake_a_session(world: World) -> None:
    """Not when they happen, not while another session works, not when the process begins anew, and not when
    the session is looked at: the next boundary that comes anyway sees them.
    """
    looks: list[int] = []
    fact = Fact()
    source = fact.source()

    async def load() -> str:
        looks.append(1)
        return str(fact.value)

    def register(hf: Holdfast) -> None:
        hf.context.register("story/fact", lambda: SystemContext.make(replace(source, load=load)))

    async with world.open(*says("a", "b")) as (hf, script):
        register(hf)
        session, other = await world.session(hf), await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value = "two"
        await hf.sessions.process(other, "something else")
        assert len(looks) == len(script.requests) == 2
    async with world.open(*says("c")) as (hf, script):
        register(hf)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        assert await told(hf, session) == []
        assert (len(looks), script.requests) == (2, [])
        await hf.sessions.process(session, "two")
        assert await told(hf, session) == ["The fact is now two."]
    assert len(looks) == 3


async def test_what_was_told_is_told_unchanged_when_the_attempt_is_repeated(world: World) -> None:
    """A provider that fails does not take back the message."""
    fact = Fact()
    async with world.open(*says("a")) as (hf, _):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value = "two"
    from holdfast.errors import ProviderError
    from holdfast.testing.scripted_provider import Fail

    failing = Step(Fail(ProviderError("no", kind="auth", retryable=False)))
    async with world.open(failing, *says("b")) as (hf, script):
        fact.register(hf)
        await hf.sessions.process(session, "two", check=False)
        await hf.sessions.process(session, "three")
        assert await told(hf, session) == ["The fact is now two."]
    assert updates(script.requests[0]) == updates(script.requests[1]) == ["The fact is now two."]


async def test_lists_for_people_leave_system_messages_out(world: World) -> None:
    """They stay stored, and whoever asks for them gets them."""
    fact = Fact()
    async with world.open(*says("a", "b")) as (hf, _):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value = "two"
        await hf.sessions.process(session, "two")
        shown = [each.info for each in (await hf.sessions.messages(session)).messages]
        whole = [each.info for each in (await hf.sessions.messages(session, system=True)).messages]
    assert not any(isinstance(each, SystemMessage) for each in shown)
    assert len(whole) == len(shown) + 1


@pytest.mark.ci
@pytest.mark.parametrize("after", [False, True])
async def test_wherever_an_epoch_change_dies_the_model_is_told_once(world: World, after: bool) -> None:
    """Crash at every write of a first turn and of a change: then go on, and the request tells each fact once,
    and extends what was sent before.
    """

    async def story(hf: Holdfast, session: str, fact: Fact) -> None:
        fact.register(hf)
        fact.value = "one"
        await hf.sessions.process(session, "first")
        fact.value = "two"
        await hf.sessions.process(session, "second")

    await each_death(world, story, after=after)


async def each_death(
    world: World, story: Callable[[Holdfast, str, Fact], Awaitable[None]], *, after: bool
) -> None:
    dies_at = 1
    while True:
        machine, store = Machine(), f"{world.store}{dies_at}{after}"
        fact = Fact()
        with ScriptedProvider(*says(*"abcd")) as script:
            async with life(store, machine, provider=script) as (hf, mortal):
                session = await world.session(hf)
                mortal._left, mortal._after = mortal.writes + dies_at, after
                try:
                    with anyio.fail_after(60):
                        await story(hf, session, fact)
                except BaseException:  # noqa: BLE001 - it dies with whatever error
                    assert mortal.dead.is_set()
                died = mortal.dead.is_set()
                script._steps.clear()
        fact.value = "two"
        with ScriptedProvider(*says(*"abcd")) as again:
            async with life(store, machine, provider=again) as (hf, _):
                fact.register(hf)
                await hf.sessions.resume(session)
                await hf.sessions.wait(session)
                await hf.sessions.process(session, "last")
                again._steps.clear()
        request = again.requests[-1]
        whole = "\n".join([*request.system, *updates(request)])
        assert whole.count("The fact is now two.") + whole.count("The fact is two.") == 1, dies_at
        for one in script.requests:
            assert extends(one, request) or not died, dies_at
        if not died:
            return
        dies_at += 1
