"""Lists and iteration: keywords or a query, page by page, while others write."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Holdfast, SearchQuery, SessionQuery
from holdfast.sessions import iterate
from holdfast.testing import FakeClock
from tests.sessions.engines import ENGINES, store_url
from tests.sessions.filling import answer, ask


@pytest.fixture(params=ENGINES)
async def hf(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Holdfast]:
    """The library on each engine."""
    async with holdfast.open(store_url(request.param, tmp_path), clock=clock) as opened:
        yield opened


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sessions or messages a page."""
    monkeypatch.setattr(iterate, "SESSIONS", 3)
    monkeypatch.setattr(iterate, "MESSAGES", 3)


async def made(hf: Holdfast, clock: FakeClock, folder: Path, count: int) -> list[str]:
    """The ids of some sessions, the last updated first."""
    ids: list[str] = []
    for number in range(count):
        clock.advance(1000)
        ids.append((await hf.sessions.create(directory=folder, title=f"number {number}")).id)
    return ids[::-1]


async def test_a_list_takes_keywords_or_a_query(hf: Holdfast, clock: FakeClock, folder: Path) -> None:
    """The same page either way; both at once are refused, a wrong word is an error of Python's own."""
    ids = await made(hf, clock, folder, 4)
    page = await hf.sessions.list(limit=1)
    rest = await hf.sessions.list(cursor=page.next)
    named = await hf.sessions.list(title="NUMBER 2")
    here = await hf.sessions.list(directory=folder / ".." / folder.name)

    assert page == await hf.sessions.list(SessionQuery(limit=1))
    assert [each.id for each in (*page.sessions, *rest.sessions)] == ids
    assert [each.id for each in named.sessions] == [ids[1]]
    assert len(here.sessions) == 4
    with pytest.raises(holdfast.InvalidInput, match="exclude one another"):
        await hf.sessions.list(SessionQuery(limit=1), archived=None)
    with pytest.raises(TypeError, match="limmit"):
        await hf.sessions.list(limmit=1)  # type: ignore[call-arg]


async def test_a_search_takes_words_or_a_query(hf: Holdfast, clock: FakeClock, folder: Path) -> None:
    """The same hits either way."""
    ids = await made(hf, clock, folder, 2)
    hits = await hf.sessions.search("number", session=ids[0])

    assert [hit.session for hit in hits] == [ids[0]]
    assert hits == await hf.sessions.search(SearchQuery("number", session=ids[0]))
    with pytest.raises(holdfast.InvalidInput, match="exclude one another"):
        await hf.sessions.search(SearchQuery("number"), limit=1)


@pytest.mark.usefixtures("small_pages")
async def test_every_session_comes_once(hf: Holdfast, clock: FakeClock, folder: Path) -> None:
    """Over the pages, in the order of the list; with the filters of the list."""
    ids = await made(hf, clock, folder, 8)
    await hf.sessions.archive(ids[5])
    shown = [each.id async for each in hf.sessions.each()]
    hidden = [each.id async for each in hf.sessions.each(archived=True)]

    assert shown == [id for id in ids if id != ids[5]]
    assert hidden == [ids[5]]


@pytest.mark.usefixtures("small_pages")
async def test_what_is_written_meanwhile_repeats_no_session(
    hf: Holdfast, clock: FakeClock, folder: Path
) -> None:
    """New ones and touched ones are in front, where the loop has been; removed ones are gone."""
    ids = await made(hf, clock, folder, 8)
    seen = []
    async for session in hf.sessions.each():
        seen.append(session.id)
        if len(seen) == 2:
            clock.advance(1000)
            await hf.sessions.create(directory=folder, title="new")
            await hf.sessions.touch(ids[0])
            await hf.sessions.touch(ids[6])
            await hf.sessions.remove(ids[4])

    assert seen == [*ids[:4], ids[5], ids[7]]


@pytest.mark.usefixtures("small_pages")
async def test_every_message_comes_once_and_late_ones_too(
    hf: Holdfast, clock: FakeClock, folder: Path
) -> None:
    """Oldest first, also those that are written during the loop; one that is removed is left out."""
    (session,) = await made(hf, clock, folder, 1)
    (other,) = await made(hf, clock, folder, 1)
    asked = [(await ask(hf, session, f"wish {number}")).id for number in range(4)]
    await ask(hf, other, "not this")
    assert [each.id async for each in hf.sessions.each_message(session)] == asked
    seen = []
    async for message in hf.sessions.each_message(session):
        seen.append(message.text)
        if len(seen) == 1:
            await answer(hf, session, asked[3], "done")
            await hf.sessions.remove_message(session, asked[3])

    assert seen == ["wish 0", "wish 1", "wish 2", "done"]


async def test_a_session_that_is_not_there_has_no_messages(hf: Holdfast) -> None:
    """The loop says so at its beginning."""
    with pytest.raises(holdfast.NotFound, match="ses_none"):
        await anext(hf.sessions.each_message("ses_none"))
