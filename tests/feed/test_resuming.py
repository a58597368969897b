"""Coming back with a cursor that stands inside a batch: nothing is missed, nothing comes twice."""

import asyncio
from pathlib import Path
from typing import Any

from holdfast.errors import StoreBusy
from holdfast.feed.frame import RESYNC, Frame
from holdfast.feed.tail import BEGINNING
from holdfast.store.batch import Batch, Remove
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import S1, msg, prompt, session, text, user
from tests.feed.follow import opening
from tests.feed.listening import WAIT_S, Client, Listener, close, opened
from tests.feed.trouble import before_changes


def in_small_pages(store: SqliteStore, limit: int) -> None:
    """Let every look at the changes answer a few at a time."""
    plain = store.changes

    async def changes(cursor: str | None, session: str | None = None, **_: Any) -> Any:
        return await plain(cursor, session, limit=limit)

    store.changes = changes  # type: ignore[method-assign]


def names(frames: list[Frame]) -> list[tuple[str, str]]:
    """What happened to which message."""
    told = [(frame.type, frame.value()) for frame in frames]
    return [(type, value.get("messageID") or value["info"]["id"]) for type, value in told]


async def test_what_changed_while_one_was_away_in_the_middle_of_a_batch_is_told(tmp_path: Path) -> None:
    """The rest of the batch, then everything since it began: a change, a removal, a new one, each once."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), *(user(n) for n in range(1, 6)))))
        in_small_pages(store, 4)
        stream = feed.follow(BEGINNING)
        first = await anext(stream)
        await close(stream)
        assert names(first)[1:] == [("message.updated", msg(n)) for n in (1, 2, 3)]
        await store.commit(Batch((user(1, agent="other"),)))
        await store.commit(Batch((Remove(S1, "message", msg(2)), user(9))))

        listener = Listener(feed, first[-1].cursor)
        await listener.types(5)
        await store.commit(Batch((user(10),)))
        await listener.types(6)

        assert names(listener.frames) == [
            ("message.updated", msg(4)),
            ("message.updated", msg(5)),
            ("message.removed", msg(2)),
            ("message.updated", msg(1)),
            ("message.updated", msg(9)),
            ("message.updated", msg(10)),
        ]
        await listener.close()


async def test_one_who_is_cut_in_the_middle_of_a_batch_misses_nothing(tmp_path: Path) -> None:
    """The rest of the batch tells nothing to the bus, so its cursor stands inside; what changed comes."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), user(2), user(3), prompt(5))))
        in_small_pages(store, 4)
        client, types = Client(), list[str]()
        stream = feed.follow(BEGINNING, frames_max=2)
        for frame in await anext(stream):
            client.take(frame)
        for n in range(1, 4):
            await store.commit(Batch((user(n, agent="other"),)))
        await feed._pump.advance()
        async with asyncio.timeout(WAIT_S):
            while RESYNC not in types or {client.messages[msg(n)]["agent"] for n in (1, 2, 3)} != {"other"}:
                for frame in await anext(stream):
                    types.append(frame.type)
                    client.take(frame)
        await close(stream)
        assert set(client.messages) == {msg(n) for n in (1, 2, 3)}


async def test_the_tail_that_failed_in_the_middle_of_a_batch_comes_up_to_now(tmp_path: Path) -> None:
    """Before anybody joins, the tail has told everything: a joiner hears of a change once."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        first = Listener(feed, BEGINNING)
        await first.types(1)
        looks = 0

        async def fail_once(_: str | None) -> None:
            nonlocal looks
            looks += 1
            if looks == 2:
                raise StoreBusy("a hiccup")

        in_small_pages(store, 2)
        async with feed._pump._lock:  # The tail must find all of it at once.
            await store.commit(Batch(tuple(user(n) for n in range(1, 5))))
            before_changes(store, fail_once)
        async with asyncio.timeout(WAIT_S):
            while not feed._pump._midway:
                await asyncio.sleep(0)
        await store.commit(Batch((user(9),)))
        await feed._pump.advance()
        assert feed._pump._cursor == await store.head()
        await first.until(lambda it: msg(9) in it.client.messages)
        assert names(first.frames)[1:] == [("message.updated", msg(n)) for n in (1, 2, 3, 4, 9)]
        await first.close()


async def test_a_part_is_not_shown_when_the_frame_of_its_message_was_dropped(tmp_path: Path) -> None:
    """A queue that overflowed while one caught up: open parts wait, and come behind their messages."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        stream = feed.follow(BEGINNING, frames_max=2)
        client = Client()
        for frame in await anext(stream):
            client.take(frame)
        await store.commit(Batch((user(1), text(2, 1), opening(3, 1, "so far"))))
        await feed._pump.advance()
        async with asyncio.timeout(WAIT_S):
            while len(client.parts) < 2:
                for frame in await anext(stream):
                    client.take(frame)
        await close(stream)
        assert client.faults == []
