"""Work that a compaction can save goes on: the tail gives way, and a count alone stops nothing."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

import holdfast
from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.runtime.compaction import carry, wording
from holdfast.schema.fault import ContextOverflowFault
from holdfast.schema.part import CompactionPart
from holdfast.schema.prompt import TextPartInput
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step
from tests.stories.compaction import BIG, LONG, OVERFLOW, SILENT, SUMMARY, shown, texts
from tests.stories.compaction_bounds import compacted, says
from tests.stories.compaction_requests import TASK, acts, requests
from tests.stories.tools import Deed
from tests.stories.world import World


def model(world: World, limit: dict[str, int] | None, **more: Any) -> None:
    """A model of this size; None: nobody knows it."""
    made = {"name": "M", "cost": {"input": 1, "output": 2}, **({} if limit is None else {"limit": limit})}
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": made},
    }
    world.settings(provider={"scripted": entry}, **more)


class Host:
    """Answers at length, counts what it likes, and takes so many characters of conversation at most."""

    def __init__(
        self, *, summary: str, takes: int | None = None, usage: Usage = SILENT, says: int = 3_000
    ) -> None:
        self._summary, self._takes, self._usage, self._says = summary, takes, usage, says
        self.kinds = ""
        """What it was asked for, in order: a turn (T) or a summary (S)."""
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        self.kinds += "T" if request.tools else "S"
        self.requests.append(request)
        step = Step(Say("y" * self._says), usage=self._usage)
        if not request.tools:
            step = Step(Say(self._summary), usage=SILENT)
        elif self._takes is not None and sum(map(len, map(str, request.messages))) > self._takes:
            step = Step(Fail(OVERFLOW))
        async for event in ScriptedProvider(step).stream(request):
            yield event


@pytest.mark.ci
@pytest.mark.parametrize(
    ("limit", "takes"),
    [
        (None, 60_000),
        (None, 64_000),
        (None, 66_000),
        ({"context": 40_000, "output": 8_000}, 36_000),
    ],
)
async def test_the_tail_gives_way_once_the_summary_is_known(
    world: World, limit: dict[str, int] | None, takes: int
) -> None:
    """The host takes less than anybody knew, and the summary is longer than what it stands for; a summary of
    the tail as well makes room. Every prompt is answered.
    """
    model(world, limit)
    host = Host(summary="s " * 4_000, takes=takes)
    async with holdfast.open(world.store, provider=host) as hf:
        session = await world.session(hf)
        answers = [await hf.sessions.process(session, f"prompt {each} " + "x" * 3_000) for each in range(14)]
    assert [each.info.error for each in answers] == [None] * 14
    assert "S" in host.kinds


async def test_a_tail_that_gave_way_is_summarised_with_the_summary_so_far(world: World) -> None:
    """The second call folds the tail into what the first one wrote, and both are paid for."""
    world.settings(compaction={"tail_turns": 1})
    steps = [
        *says(f"a {LONG}", f"b {LONG}"),
        Step(Say("s" * 2_500), usage=Usage(input=300, output=20)),
        Step(Say(SUMMARY), usage=Usage(input=400, output=30)),
        *says("c"),
    ]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        for text in ("one", "two"):
            await hf.sessions.process(session, text)
        await compacted(hf, session)
        await hf.sessions.process(session, "three")
        record = await hf.sessions.get(session)
        parts = [part for each in await shown(hf, session) for part in each.parts]
    first, second = (texts(each)[0] for each in script.requests[2:4])
    assert (f"a {LONG}" in first, f"b {LONG}" in first) == (True, False)
    assert (f"a {LONG}" in second, f"b {LONG}" in second, "s" * 2_500 in second) == (False, True, True)
    assert texts(script.requests[4])[2:] == [SUMMARY, "three"]
    assert [part.tail_start_id for part in parts if isinstance(part, CompactionPart)] == [None]
    assert record.tokens is not None
    assert (record.tokens.input, record.tokens.output) == (700 + 3 * 10, 50 + 3 * 5)


COUNTED = Usage(input=21_000, output=10_000)
"""More than the 30,000 of the model below."""
ROOM = {"context": 40_000, "output": 10_000}


async def test_a_request_that_only_a_count_speaks_against_is_sent_when_a_summary_does_not_help(
    world: World,
) -> None:
    """A short conversation, counted high: its summary is longer. Every prompt is answered, and a summary that
    did not help is not asked for again while the count is what it was.
    """
    model(world, ROOM)
    host = Host(summary="s " * 2_500, usage=COUNTED, says=1_500)
    async with holdfast.open(world.store, provider=host) as hf:
        session = await world.session(hf)
        answers = [await hf.sessions.process(session, f"prompt {each} " + "x" * 300) for each in range(6)]
        failed = [each.info for each in await shown(hf, session) if getattr(each.info, "summary", None)]
    assert [each.info.error for each in answers] == [None] * 6
    assert [type(each.error) for each in failed] == [ContextOverflowFault]
    assert host.kinds == "TSTTTTT"


async def test_a_compaction_that_did_not_lower_the_count_is_not_made_at_every_step(world: World) -> None:
    """The provider counts the same whatever is sent: one summary, and the work goes on."""
    model(world, ROOM, permission={"*": "allow"})
    steps = [Step(Say(f"a {LONG}"), Call("act", {"what": "0"}, id="c0"), usage=COUNTED), *says(SUMMARY)]
    steps += [acts(number, COUNTED) for number in range(1, 6)]
    async with world.open(*steps, *says("done")) as (hf, script):
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "work")
    assert answer.info.error is None
    assert "".join("T" if each.tools else "S" for each in script.requests) == "TSTTTTTT"


async def test_a_count_that_has_grown_since_asks_for_a_compaction_again(world: World) -> None:
    """It was above the room right after a compaction; by a tenth of the room more, and it counts again."""
    model(world, ROOM, permission={"*": "allow"}, compaction={"tail_turns": 0})
    grown = [31_000, 31_000, 33_900, 34_100]
    steps = [
        Step(Say(f"a {LONG}"), Call("act", {"what": str(number)}, id=f"c{number}"), usage=Usage(input=used))
        for number, used in enumerate(grown)
    ]
    steps[1:1] = says(SUMMARY)
    async with world.open(*steps, *says(SUMMARY, "done")) as (hf, script):
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "work")
    assert "".join("T" if each.tools else "S" for each in script.requests) == "TSTTTST"


@pytest.mark.ci
async def test_a_request_outlives_a_compaction_that_did_not_help(world: World) -> None:
    """It was sent all the same, so it is still being worked on when the next compaction carries it."""
    world.settings(permission={"*": "allow"}, compaction={"tail_turns": 0})
    steps = [
        Step(Say(f"a {LONG}"), usage=BIG),
        *says("s" * 12_000),
        acts(1),
        Step(Say(f"b {LONG}"), Call("act", {"what": "2"}, id="c2"), usage=Usage(input=120_000, output=1)),
        *says(SUMMARY, "done"),
    ]
    async with world.open(*steps) as (hf, script):
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        answer = await hf.sessions.process(session, TASK)
    assert answer.info.error is None
    assert requests(texts(script.requests[-1])) == [f"{TASK}\n"]


async def test_by_hand_it_is_not_needed_where_a_turn_would_be_sent(world: World) -> None:
    """Only a count speaks against a request that no compaction could shorten: no summary is asked for."""
    model(world, ROOM)
    async with world.open(Step(Say("ok"), usage=COUNTED)) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "hi")
        before = await shown(hf, session)
        assert await hf.sessions.compact(session) == "not needed"
        await hf.sessions.wait(session)
        assert await shown(hf, session) == before
    assert len(script.requests) == 1


async def test_a_note_is_not_the_request(world: World) -> None:
    """It asks for nothing: what was asked for is carried, and the note is summarised."""
    world.settings(compaction={"tail_turns": 0})
    async with world.open(*says(f"a {LONG}", SUMMARY, "b")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, TASK)
        await hf.sessions.prompt(session, "FYI the build box is slow", no_reply=True)
        await hf.sessions.wait(session)
        await compacted(hf, session)
        await hf.sessions.process(session, "now the tests")
    assert requests(texts(script.requests[2])) == [f"{TASK}\n"]
    assert "FYI the build box is slow" in texts(script.requests[1])[0]


async def test_what_is_not_carried_word_for_word_of_a_request_is_summarised(world: World) -> None:
    """A text that came with the person's words is none of them, but the model was told it."""
    world.settings(permission={"*": "allow"}, compaction={"tail_turns": 0})
    steps = [Step(Say(f"a {LONG}"), Call("act", {"what": "1"}, id="c1"), usage=BIG), *says(SUMMARY, "done")]
    async with world.open(*steps) as (hf, script):
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)
        words = TextPartInput(text="Do what @spec.txt says")
        await hf.sessions.process(session, [words, TextPartInput(text="spec.txt: port 7777", synthetic=True)])
    summarised = texts(script.requests[1])[0]
    assert "spec.txt: port 7777" in summarised
    assert "Do what @spec.txt says" not in summarised


async def test_a_summary_that_was_cut_by_its_length_is_asked_for_once_more(world: World) -> None:
    """With a word to be shorter; what was cut is not used, and both calls are paid for."""
    cut = Step(Say("half of"), reason="length", usage=Usage(input=300, output=20))
    async with world.open(*says(f"a {LONG}"), cut, *says(SUMMARY, "b")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await compacted(hf, session)
        await hf.sessions.process(session, "two")
        record = await hf.sessions.get(session)
    first, second = (texts(each)[0] for each in script.requests[1:3])
    assert second == f"{first}\n\n{wording.SHORTER}"
    assert texts(script.requests[3])[2:] == [SUMMARY, "two"]
    assert record.tokens is not None
    assert (record.tokens.input, record.tokens.output) == (300 + 3 * 10, 20 + 3 * 5)


async def test_an_answered_request_is_not_told_as_current(world: World) -> None:
    """The work on it is over when it is carried: the model must not begin with it again."""
    world.settings(compaction={"tail_turns": 0})
    async with world.open(*says(f"Dropped. {LONG}", SUMMARY, "b")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "Drop the table users.")
        await compacted(hf, session)
        await hf.sessions.process(session, "Thanks. What time is it?")
    told = texts(script.requests[2])[1]
    assert f"{carry.OVER}:\n<request>\nDrop the table users.\n</request>" in told
    assert carry.CURRENT not in told
