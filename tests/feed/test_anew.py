"""Ids that are removed and made anew between two looks: nothing of the former life stays with a listener."""

import asyncio
from pathlib import Path

from holdfast.feed.tail import BEGINNING
from holdfast.store.batch import Batch, Remove
from holdfast.testing.store_contract.build import S1, msg, prt, session, text, user
from tests.feed.listening import WAIT_S, Listener, close, opened


async def test_a_message_made_anew_is_told_as_removed_first(tmp_path: Path) -> None:
    """In one batch, live and to one who was away: the parts of the former life go."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), text(2, 1, "old"))))
        cursor = await store.head()
        live = Listener(feed, BEGINNING)
        await live.types(3)
        await store.commit(Batch((Remove(S1, "message", msg(1)), user(1), text(3, 1, "new"))))
        await live.until(lambda it: prt(3) in it.client.parts)
        away = Listener(feed, cursor)
        types = ["message.removed", "message.updated", "message.part.updated"]

        assert await away.types(3) == types
        assert (await live.types(6))[3:] == types
        assert sorted(live.client.parts) == [prt(3)]
        await asyncio.gather(live.close(), away.close())


async def test_one_who_begins_hears_of_no_former_life(tmp_path: Path) -> None:
    """From the beginning nobody knows what was removed."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1))))
        await store.commit(Batch((Remove(S1, "message", msg(1)), user(1))))
        listener = Listener(feed, BEGINNING)

        assert await listener.types(2) == ["session.created", "message.updated"]
        await listener.close()


async def test_a_session_made_anew_while_one_joins_is_created_once_more(tmp_path: Path) -> None:
    """What the joiner read was the former life: it is deleted, then another one is created."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), text(2, 1, "old life"))))
        stream = feed.follow(BEGINNING)
        frames = list(await anext(stream))
        async with feed._pump._lock:  # Both within one look of the tail.
            await store.erase(S1)
            await store.commit(Batch((session(title="second life"), user(9))))
        async with asyncio.timeout(WAIT_S):
            while len(frames) < 6:
                frames += await anext(stream)
        await close(stream)
        assert [frame.type for frame in frames[3:]] == [
            "session.deleted",
            "session.created",
            "message.updated",
        ]


async def test_a_joiner_that_has_read_the_new_life_keeps_it(tmp_path: Path) -> None:
    """The tail is behind and tells of both lives at once; the joiner drops nothing that it has read."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), text(2, 1, "old"))))
        other = Listener(feed, BEGINNING)
        await other.types(3)
        stream = feed.follow(BEGINNING)
        plain, armed = store.changes, True

        async def changes(cursor: str | None, *arguments: object, **options: object) -> object:
            nonlocal armed
            if cursor is not None or not armed:
                return await plain(cursor, *arguments, **options)  # type: ignore[arg-type]
            armed = False
            async with feed._pump._lock:
                await store.erase(S1)
                await store.commit(Batch((session(), user(1), text(3, 1, "new"))))
                found = await plain(cursor)
                await store.commit(Batch((session(title="later"), user(1, agent="later"))))
            return found

        store.changes = changes  # type: ignore[assignment, method-assign]
        frames = list(await anext(stream))
        async with asyncio.timeout(WAIT_S):
            while len(frames) < 5:
                frames += await anext(stream)
        await close(stream)
        assert [frame.type for frame in frames] == [
            "session.created",
            "message.updated",
            "message.part.updated",
            "session.updated",
            "message.updated",
        ]
        await other.until(lambda it: sorted(it.client.parts) == [prt(3)])
        await other.close()
