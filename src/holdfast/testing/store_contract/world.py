"""What every contract test uses: a place, a clock, a machine, and handles on one store."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from holdfast.store.base import Store
from holdfast.store.batch import Batch, Change, Expectation, Fence, Held, Receipt
from holdfast.store.owner import RENEW_MS, Owner
from holdfast.store.query import MessageQuery
from holdfast.store.record import Changed, Changes, MessagePage
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost

Opener = Callable[[Path, FakeClock, FakeHost], Awaitable[Store]]


class World:
    """One place with a store in it. `store` is the first handle; `another` plays another process."""

    def __init__(self, place: Path, opener: Opener) -> None:
        self.place = place
        self.clock = FakeClock()
        self.host = FakeHost()
        self.store: Store
        self._opener = opener
        self._handles: list[Store] = []

    async def another(self, *, host: FakeHost | None = None, place: Path | None = None) -> Store:
        """A second handle on the same place; or on another place, which is another store."""
        handle = await self._opener(place or self.place, self.clock, host or self.host)
        self._handles.append(handle)
        return handle

    async def reopen(self) -> Store:
        """Close every handle, as at the end of all processes, and open the place again."""
        await self.close()
        self.store = await self.another()
        return self.store

    async def close(self) -> None:
        """Close every handle."""
        while self._handles:
            await self._handles.pop().close()

    async def put(
        self, *changes: Change, expect: tuple[Expectation, ...] = (), fence: Fence | None = None
    ) -> Receipt:
        """Commit through the first handle."""
        return await self.store.commit(Batch(changes, expect, fence))

    async def owner(
        self, id: str, *, placements: tuple[str, ...] = ("here",), host: FakeHost | None = None
    ) -> Owner:
        """A registered owner of the first handle's store."""
        owner = (host or self.host).owner(id, placements=placements)
        await self.store.register(owner)
        return owner

    async def live(self, store: Store, owner: str, ms: int) -> None:
        """Let time pass while the owner keeps renewing through its handle."""
        while ms > 0:
            self.clock.advance(min(ms, RENEW_MS))
            ms -= RENEW_MS
            await store.renew(owner)


class Contract:
    """The base of every contract class: `open` is all that a backend gives."""

    pytestmark = pytest.mark.anyio

    async def open(self, place: Path, clock: FakeClock, host: FakeHost) -> Store:
        """Open the store at a place, and make it when there is none.

        Called again with the same place while the first handle is open: the second handle plays another
        process and shares nothing with the first but what is stored. The place is a directory of this test
        alone; a backend that lives elsewhere derives a name of its own from it.
        """
        raise NotImplementedError

    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[World]:
        """A fresh store, closed at the end."""
        world = World(tmp_path, self.open)
        world.store = await world.another()
        try:
            yield world
        finally:
            await world.close()


def granted(answer: Fence | Held) -> Fence:
    """The fence of a claim that was expected to succeed."""
    assert isinstance(answer, Fence), answer
    return answer


async def same_page(store: Store, query: MessageQuery) -> MessagePage:
    """A page of messages as records, as JSON and message by message, which must agree in everything."""
    page = await store.messages(query)
    json = await store.messages_json(query)
    made = await store.messages_made(query, msgspec.json.decode)
    expected = [
        {
            "info": msgspec.json.decode(each.info.json()),
            "parts": [msgspec.json.decode(part.json()) for part in each.parts],
        }
        for each in page.messages
    ]
    assert msgspec.json.decode(json.body) == expected
    assert list(made.messages) == expected
    assert (json.older, json.newer) == (page.older, page.newer) == (made.older, made.newer)
    return page


async def drain(
    store: Store, cursor: str | None, session: str | None = None, *, limit: int = 1000
) -> Changes:
    """Every page of one batch of the feed as one run of changes."""
    records: list[Changed] = []
    while True:
        page = await store.changes(cursor, session, limit=limit)
        assert isinstance(page, Changes), page
        assert len(page.records) <= limit
        records += page.records
        cursor = page.cursor
        if page.complete:
            return Changes(tuple(records), cursor, complete=True)
