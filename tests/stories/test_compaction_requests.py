"""The current request is carried over word for word: all of it, as long as it is being worked on."""

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.schema.part import CompactionPart
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Fail, Step, Wait
from tests.stories.compaction import BIG, LONG, OVERFLOW, SILENT, SUMMARY, shown, small, texts
from tests.stories.compaction_bounds import compacted, says
from tests.stories.compaction_requests import LITTLE, TASK, acts, requests
from tests.stories.tools import Deed
from tests.stories.world import World
from tests.until import until


async def steered(hf: Holdfast, session: str, deed: Deed, words: str) -> None:
    """Say something while the tool runs, and wait for the end."""
    with anyio.fail_after(60):
        await deed.begun.wait()
        await hf.sessions.prompt(session, words)
        deed.gate.set()
        await hf.sessions.wait(session)


async def test_a_steer_joins_the_request_that_is_being_worked_on(world: World) -> None:
    """A word in between does not displace the task, which then stands nowhere else."""
    world.settings(permission={"*": "allow"}, compaction={"tail_turns": 0})
    deed = Deed(ask=False)
    deed.gate = anyio.Event()
    async with world.open(*says("a"), acts(1), acts(2, BIG), *says(SUMMARY, "done")) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, f"hello {LONG}")
        await hf.sessions.prompt(session, TASK)
        await steered(hf, session, deed, "use tabs")
    assert requests(texts(script.requests[-1])) == [f"{TASK}\n\nuse tabs\n"]
    assert TASK not in texts(script.requests[-2])[0], "what is carried word for word is not summarised too"


@pytest.mark.ci
async def test_a_carried_request_stays_until_it_is_answered(world: World) -> None:
    """A steer after one compaction, and another compaction: both are carried. Once the work has ended, the
    next request stands alone, and what was carried until then is summarised.
    """
    world.settings(permission={"*": "allow"}, compaction={"tail_turns": 0})
    deed = Deed(ask=False)
    deed.gate = anyio.Event()
    script_ = [
        Step(Say("a"), usage=BIG),
        Step(Say("first summary")),
        acts(1),
        acts(2, BIG),
        *says("second summary", "done", f"b {LONG}", "third summary", "c"),
    ]
    async with world.open(*script_) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, f"hello {LONG}")
        await hf.sessions.prompt(session, TASK)
        await steered(hf, session, deed, f"use tabs {LONG}")
        await hf.sessions.process(session, "now the tests")
        await compacted(hf, session)
        await hf.sessions.process(session, "good")
    assert requests(texts(script.requests[5])) == [f"{TASK}\n\nuse tabs {LONG}\n"]
    third = texts(script.requests[7])[0]
    assert TASK in third
    assert requests(texts(script.requests[8])) == ["now the tests\n"]


async def test_what_was_asked_for_during_a_compaction_does_not_displace_the_request(world: World) -> None:
    """The request that the compaction carried was not answered yet when the next one came."""
    world.settings(compaction={"tail_turns": 0})
    gate = anyio.Event()
    steps = [Step(Say("a"), usage=BIG), Step(Wait(gate), Say(SUMMARY)), *says("second summary", "b")]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, f"one {LONG}")
        await hf.sessions.prompt(session, "two")
        with anyio.fail_after(60):
            await until(lambda: len(script.requests) >= 2)
            await hf.sessions.prompt(session, f"and this {LONG}")
            await hf.sessions.compact(session, force=True)
            gate.set()
            await hf.sessions.wait(session)
        asked = [p for m in await shown(hf, session) for p in m.parts if isinstance(p, CompactionPart)]
    assert [part.auto for part in asked] == [True, False]
    assert requests(texts(script.requests[-1])) == [f"two\n\nand this {LONG}\n"]


async def test_a_request_that_stands_in_the_kept_tail_is_carried_once(world: World) -> None:
    """The next compaction finds it both in the tail of the one before and among what that one carried."""
    world.settings(permission={"*": "allow"}, compaction={"tail_turns": 1})
    gate = anyio.Event()
    held = Step(Wait(gate), Call("act", {"what": LONG}, id="held"), usage=LITTLE)
    steps = [*says(f"a {LONG}"), acts(1, BIG), *says(SUMMARY), held, acts(3, BIG), *says(SUMMARY, "done")]
    async with world.open(*steps) as (hf, script):
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "hello")
        await hf.sessions.prompt(session, TASK)
        with anyio.fail_after(60):
            await until(lambda: len(script.requests) >= 4)
            await hf.sessions.prompt(session, "use tabs")
            gate.set()
            await hf.sessions.wait(session)
    first, last = texts(script.requests[3]), texts(script.requests[6])
    assert requests(first) == [f"{TASK}\n"]
    assert TASK in first, "the first compaction kept it in its tail"
    assert requests(last) == [f"{TASK}\n\nuse tabs\n"]
    assert TASK not in texts(script.requests[5])[0], "what is carried word for word is not summarised too"


async def test_a_request_that_cannot_be_carried_does_not_stand_in_the_way_of_the_next(world: World) -> None:
    """It was refused by name; the person's next word is answered, and the refused one is summarised."""
    small(world)
    steps = [Step(Say(text), usage=SILENT) for text in ("a", SUMMARY, SUMMARY, SUMMARY, "b")]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        refused = await hf.sessions.process(session, "x" * 200_000, check=False)
        answer = await hf.sessions.process(session, "only this")
    assert refused.info.error is not None
    assert answer.info.error is None
    assert requests(texts(script.requests[-1])) == ["only this\n"]
    assert "x" * 1_000 in texts(script.requests[2])[0]


async def test_an_overflow_does_not_end_the_request(world: World) -> None:
    """The provider's refusal is no answer: the steer before it and the task are both carried."""
    world.settings(permission={"*": "allow"}, compaction={"tail_turns": 0})
    deed = Deed(ask=False)
    deed.gate = anyio.Event()
    steps = [*says("a"), acts(1), Step(Fail(OVERFLOW)), *says(SUMMARY, "done")]
    async with world.open(*steps) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, f"hello {LONG}")
        await hf.sessions.prompt(session, TASK)
        await steered(hf, session, deed, "use tabs")
    assert requests(texts(script.requests[-1])) == [f"{TASK}\n\nuse tabs\n"]
