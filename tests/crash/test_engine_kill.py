"""Real processes that run sessions, killed in the middle of a stream and of a tool, and gone on with.

Each process goes on with what the killed one before it left, and is killed in its turn.
"""

import asyncio
import random
import time

import anyio
import pytest

from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import TextPart, ToolPart
from holdfast.store.query import SessionQuery
from holdfast.testing.mock_provider import Call, MockProvider, Reply, Say
from tests.stories.processes import Place, Worker, calls, left_open, messages, problems
from tests.until import until

TEXT_KILLS, TOOL_KILLS = 8, 9
PACE_MS = 4
KEPT_WITHIN_S = 1.0
"""What was heard longer ago than this is on disk."""
SLACK_S = 1.0
"""And what two busy cores may add: the commit itself, the pipe, the reading here."""


def long_text(number: int) -> str:
    """Text whose every piece is different, so that a gap or a repeat would show."""
    return f"<{number}> " + " ".join(f"{number}.{word}" for word in range(900))


async def heard(process: asyncio.subprocess.Process, beginning: str, for_s: float) -> list[tuple[float, str]]:
    """What the process prints, with the time, from the beginning of its answer on for this long.

    What recovery closed before may be shown first.
    """
    assert process.stdout is not None
    before = ""
    with anyio.fail_after(60):
        while beginning not in before:
            before += (await process.stdout.read(65536)).decode()
    said = [(time.monotonic(), before[before.index(beginning) :])]
    with anyio.move_on_after(for_s):
        while chunk := await process.stdout.read(65536):
            said.append((time.monotonic(), chunk.decode()))
    return said


def last_text(history: tuple[MessageWithParts, ...]) -> str:
    """What the last answer says."""
    last = [each for each in history if isinstance(each.info, AssistantMessage)][-1]
    return "".join(part.text for part in last.parts if isinstance(part, TextPart))


def prompts(history: tuple[MessageWithParts, ...]) -> list[str]:
    """What the person said."""
    users = [each for each in history if isinstance(each.info, UserMessage)]
    return [part.text for each in users for part in each.parts if isinstance(part, TextPart)]


@pytest.mark.ci
async def test_text_is_kept_to_within_a_second_and_gone_on_from(place: Place, mock: MockProvider) -> None:
    """`holdfast run` and `session resume`, killed at any moment of their streams.

    What was shown more than a second before is on disk, as a beginning of what the provider said; no prompt
    is lost or doubled; the model is asked again with all of it, validly; the store is sound.
    """
    moments = [2.8 * (number + 0.5) / TEXT_KILLS for number in range(TEXT_KILLS)]
    random.Random(11).shuffle(moments)
    said: list[str] = []
    session = ""
    kept: list[str] = []
    for number in range(TEXT_KILLS):
        mock.play(Reply((Say(long_text(number)),), pace_ms=PACE_MS))
        if number % 2 == 0:
            said.append(f"prompt {number}")
            goes_on = ("--session", session) if session else ()
            process = await place.start("run", *goes_on, said[-1])
        else:
            process = await place.start("session", "resume", session)
        if number % 5 == 3:  # Before the first word.
            await until(lambda: len(mock.requests) > number)  # noqa: B023 - waited for here
            shown = []
        else:
            shown = await heard(process, f"<{number}>", moments[number])
        process.kill()
        killed = time.monotonic()
        await process.wait()

        async with place.opened() as store:
            session = session or (await store.sessions(SessionQuery())).sessions[0].id
            record = await store.session(session)
            history = await messages(store, session)
        assert record is not None
        assert not record.busy
        on_disk = last_text(history)
        old = "".join(text for when, text in shown if when < killed - KEPT_WITHIN_S - SLACK_S)
        assert prompts(history) == said
        assert long_text(number).startswith(on_disk)
        assert on_disk.startswith(old.rstrip("\n")), (number, len(on_disk), len(old))
        kept.append(on_disk)

    mock.play(Reply((Say("The end."),)))
    code, out, _ = await place.command("session", "resume", session)
    history = await place.messages(session)
    assert (code, out[-9:]) == (0, "The end.\n")
    assert left_open(history) == []
    assert prompts(history) == said
    texts = [part.text for each in history for part in each.parts if isinstance(part, TextPart)]
    assert [text for text in texts if text.startswith("<")] == [text for text in kept if text]
    assert [problems(request) for request in mock.requests] == [[]] * (TEXT_KILLS + 1)
    # What the model was told of its own words is what is on disk.
    told = str(mock.requests[-1].json)
    assert all(text in told for text in kept)
    assert (await place.command("doctor"))[0] == 0
    assert mock.unexpected == []


@pytest.mark.ci
async def test_no_call_is_left_running_or_settled_twice(place: Place, mock: MockProvider) -> None:
    """A process is killed as its tool begins, runs or ends; the next one goes on from there.

    A call that may have happened is *unknown* and never run again; one that does no harm twice is run again;
    what was settled once never changes; each request is valid; the store is sound.
    """
    chance = random.Random(23)
    settled: dict[str, ToolPart] = {}
    worker = await Worker.start(place)
    session = await worker.do("create", directory=str(place.project))
    for number in range(TOOL_KILLS):
        place.gate.unlink(missing_ok=True)
        name = "again" if number % 3 == 2 else "slow"
        call = Call(name, {"what": f"deed {number}"}, id=f"c{number}")
        mock.play(Reply((Say(f"Step {number}."), call)))
        await worker.do("prompt", session=session, text=f"prompt {number}")
        await until(lambda: begun(place, f"deed {number}") > 0)  # noqa: B023 - waited for here
        if number % 2:
            place.gate.touch()  # It ends about when its process does.
            mock.play(Reply((Say("It is done."),), pace_ms=30))
        await anyio.sleep(chance.uniform(0.0, 0.04))
        await worker.kill()
        mock._turns.clear()

        worker = await Worker.start(place)
        if name == "again":
            place.gate.touch()
        mock.play(Reply((Say(f"Went on after {number}."),)))
        await worker.do("resume", session=session)
        await worker.do("wait", session=session)
        mock._turns.clear()
        history = await place.messages(session)
        assert left_open(history) == []
        now = calls(history)
        assert {id: now[id] for id in settled} == settled
        settled = now
        assert len(settled) == number + 1
    await worker.kill()

    for number in range(TOOL_KILLS):
        part, times = settled[f"c{number}"], begun(place, f"deed {number}")
        state = part.state.__struct_config__.tag
        outcome = (getattr(part.state, "metadata", None) or {}).get("outcome")
        if part.tool == "slow":
            assert times == 1
            assert (state, outcome) in {("completed", None), ("error", "unknown")}
        else:
            assert (state, outcome) == ("completed", None)
            assert times <= 2
    history = await place.messages(session)
    assert prompts(history) == [f"prompt {number}" for number in range(TOOL_KILLS)]
    assert [problems(request) for request in mock.requests if problems(request)] == []
    assert mock.unexpected == []
    assert (await place.command("doctor"))[0] == 0


def begun(place: Place, what: str) -> int:
    """How often a tool has begun this."""
    return [each for _, each in place.lines("begin")].count(what)
