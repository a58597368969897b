"""The 48-bit wrap of ids, and clocks that are wrong by years: order is a number, never a clock or an id."""

from pathlib import Path

import pytest

from holdfast.app import Holdfast
from holdfast.feed.tail import BEGINNING
from holdfast.schema import ids
from holdfast.schema.message import AssistantMessage
from holdfast.store.query import SearchQuery
from holdfast.testing.clock import FakeClock
from tests.sessions.filling import answer, ask

WRAP_MS = 1_786_706_395_136  # 2026-08-14T11:19:55.136Z
YEARS_MS = 10 * 365 * 24 * 3600 * 1000

MOMENTS = {
    "before the wrap": WRAP_MS - 1,
    "at the wrap": WRAP_MS,
    "after the wrap": WRAP_MS + 1,
    "ten years on": WRAP_MS + YEARS_MS,
    "ten years back": WRAP_MS - YEARS_MS,
    "back at the wrap": WRAP_MS - 1,
    "and past it": WRAP_MS + 60_000,
}


@pytest.mark.parametrize("order", [list(MOMENTS), list(reversed(MOMENTS))], ids=["forth", "back"])
async def test_nothing_orders_wrongly_whatever_the_clock_says(
    hf: Holdfast, folder: Path, clock: FakeClock, order: list[str]
) -> None:
    """Messages, parts, pages, forks, search and feed keep the order of commits at every moment."""
    session = (await hf.sessions.create(directory=folder)).id
    made: list[str] = []
    for moment in order:
        clock.set_wall(MOMENTS[moment])
        asked = await ask(hf, session, f"question {moment}")
        answered = await answer(hf, session, asked.id, f"answer {moment}")
        made += [asked.id, answered.id]

    page = await hf.sessions.messages(session)
    assert [message.info.id for message in page.messages] == made
    assert made == sorted(made), "a client that inserts by binary search on ids sees the same order"
    for message in page.messages:
        parts = [part.id for part in message.parts]
        assert parts == sorted(parts)
        if isinstance(message.info, AssistantMessage):
            assert made.index(message.info.parent_id) == made.index(message.info.id) - 1

    walked: list[str] = []
    cursor = None
    while True:
        step = await hf.sessions.messages(session, limit=3, before=cursor)
        walked = [message.info.id for message in step.messages] + walked
        cursor = step.older
        if cursor is None:
            break
    assert walked == made

    forked = await hf.sessions.fork(session, made[4])
    copied = [message.info.id for message in (await hf.sessions.messages(forked.id)).messages]
    assert len(copied) == 4
    assert copied == sorted(copied)

    hits = await hf.sessions.search(SearchQuery("question", session=session, order="newest"))
    assert [hit.message for hit in hits] == list(reversed(made[::2]))

    seen = []
    async for frames in hf.feed.follow(BEGINNING, session=session, types={"message.updated"}):
        seen += [frame.value()["info"]["id"] for frame in frames]
        if len(seen) >= len(made):
            break
    assert seen == made


async def test_an_id_tells_its_time_only_beside_a_reference(hf: Holdfast, clock: FakeClock) -> None:
    """36 bits of it are stored: the nearest moment to the reference is meant, on both sides of the wrap."""
    for moment in MOMENTS.values():
        clock.set_wall(moment)
        fresh = ids.Mint(clock).ascending("msg")
        assert ids.timestamp(fresh, moment) == moment
        assert ids.timestamp(fresh, moment + 86_400_000) == moment
        assert ids.timestamp(fresh, moment - 86_400_000) == moment
