"""Builds every room and closes it again: the only file that knows them all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.clock import Clock, SystemClock
from holdfast.feed.tail import Feed
from holdfast.schema.ids import Mint
from holdfast.sessions.room import Room
from holdfast.sessions.service import SessionService
from holdfast.sessions.trusting import Trusting
from holdfast.store.base import Store
from holdfast.store.host import Host, ThisHost
from holdfast.store.open import open_store


class Holdfast:
    """An open runtime: its store, its feed, and what can be asked of sessions."""

    def __init__(self, store: Store, clock: Clock, host: Host) -> None:
        self.store = store
        self.clock = clock
        self.host = host
        self.mint = Mint(clock)
        self.feed = Feed(store, clock, self.mint)
        room = Room(store, clock, self.mint, host)
        self.sessions = SessionService(room)
        self.trust = Trusting(room)

    async def close(self) -> None:
        """Close every room, the highest first."""
        await self.feed.close()
        await self.store.close()


@asynccontextmanager
async def open(
    store: str | None = None,
    *,
    create: bool = True,
    adopt: bool = False,
    clock: Clock | None = None,
    host: Host | None = None,
) -> AsyncIterator[Holdfast]:
    """`async with holdfast.open() as hf:` — the store is a URL; without one, the person's own."""
    host = host or ThisHost()
    # Without a given clock each store uses its own: PostgreSQL that of the database.
    opened = await open_store(store, create=create, adopt=adopt, clock=clock, host=host)
    await opened.sweep()
    holdfast = Holdfast(opened, clock or SystemClock(), host)
    try:
        yield holdfast
    finally:
        await holdfast.close()
