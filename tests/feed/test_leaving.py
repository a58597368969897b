"""Leaving the feed, just as something comes: nobody waits for ever, and no cancellation is lost."""

import asyncio
from pathlib import Path

import pytest

from holdfast.feed.tail import BEGINNING, Feed
from holdfast.store.batch import Batch
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import msg, session, user
from tests.feed.listening import WAIT_S, Listener, opened

TURNS = range(6)
"""Turns of the event loop between the two: each meets another moment."""


async def resting(store: SqliteStore, feed: Feed) -> None:
    """Wait until the tail waits for the next commit."""
    async with asyncio.timeout(WAIT_S):
        while not store._wakes._watches or feed._pump._lock.locked() or not feed._pump.rounds:
            await asyncio.sleep(0)
        for _ in TURNS:
            await asyncio.sleep(0)


@pytest.mark.parametrize("turns", TURNS)
async def test_the_last_listener_may_leave_just_as_a_commit_comes(tmp_path: Path, turns: int) -> None:
    """Its leaving ends, and the feed serves the next one."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        listener = Listener(feed, BEGINNING)
        await listener.types(1)
        await resting(store, feed)
        store._wakes.wake()  # What a commit does.
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(WAIT_S):
            await listener.close()

        another = Listener(feed, BEGINNING)
        await store.commit(Batch((user(1),)))
        await another.until(lambda it: msg(1) in it.client.messages)
        await another.close()


@pytest.mark.parametrize("turns", TURNS)
async def test_a_wait_that_is_cancelled_as_it_is_woken_is_cancelled(tmp_path: Path, turns: int) -> None:
    """A wake that came at the same moment does not swallow the cancellation."""
    async with opened(tmp_path / "s.db") as (store, _):
        watch = store.watch()
        waiting = asyncio.create_task(watch.wait())
        for _ in TURNS:
            await asyncio.sleep(0)
        store._wakes.wake()
        for _ in range(turns):
            await asyncio.sleep(0)
        if waiting.cancel():  # Else it was over already.
            await asyncio.wait([waiting], timeout=WAIT_S)
            assert waiting.cancelled()
        watch.close()


async def test_a_tail_ends_although_its_cancellation_was_lost(tmp_path: Path) -> None:
    """A watch that swallows it costs the one who leaves a wait, and no more."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        plain = store.watch

        def deaf() -> object:
            watch = plain()
            wait = watch.wait

            async def swallow() -> None:
                try:
                    await wait()
                except asyncio.CancelledError:
                    return

            watch.wait = swallow  # type: ignore[method-assign]
            return watch

        store.watch = deaf  # type: ignore[assignment, method-assign]
        listener = Listener(feed, BEGINNING)
        await listener.types(1)
        await resting(store, feed)
        async with asyncio.timeout(WAIT_S):
            await listener.close()
        assert store._wakes._watches == set()


@pytest.mark.parametrize("turns", TURNS)
async def test_who_closes_the_feed_may_be_cancelled(tmp_path: Path, turns: int) -> None:
    """The closer hears of its own cancellation; closing again closes."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        listener = Listener(feed, BEGINNING)
        await listener.types(1)
        await resting(store, feed)
        closing = asyncio.create_task(feed.close())
        for _ in range(turns):
            await asyncio.sleep(0)
        if closing.cancel():
            await asyncio.wait([closing], timeout=WAIT_S)
            assert closing.cancelled()
        await feed.close()
        await listener.ended()
        assert store._wakes._watches == set()
