"""Following in bad weather: a store that fails, listeners that come and go, text that was overtaken."""

import asyncio
import random
from pathlib import Path

import anyio
import pytest

from holdfast.errors import StoreBusy
from holdfast.feed.frame import Delta
from holdfast.feed.tail import BEGINNING
from holdfast.store.batch import Batch, Remove
from holdfast.testing.store_contract.build import S1, S2, msg, prt, session, text, user
from tests.feed.follow import delta, opening
from tests.feed.listening import WAIT_S, Listener, close, opened
from tests.feed.trouble import before_changes
from tests.until import until


@pytest.mark.ci
async def test_a_store_that_fails_for_a_moment_does_not_end_the_feed(tmp_path: Path) -> None:
    """Those who listen hear of everything once it can be read again, and newcomers too."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        listener = Listener(feed, BEGINNING)
        await listener.types(1)
        failed = 0

        async def fail(_: str | None) -> None:
            nonlocal failed
            if failed < 2:
                failed += 1
                raise StoreBusy("a hiccup")

        before_changes(store, fail)
        await store.commit(Batch((user(1),)))
        await until(lambda: failed)  # A look that was under way may have delivered the first one.
        await store.commit(Batch((user(2),)))
        assert await listener.types(3) == ["session.created", "message.updated", "message.updated"]
        assert failed == 2
        await listener.close()


@pytest.mark.ci
async def test_a_fault_of_ours_ends_every_stream_with_that_fault(tmp_path: Path) -> None:
    """Nobody waits for ever for a tail that is gone; the next one to follow begins it anew."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        listener = Listener(feed, BEGINNING)
        await listener.types(1)
        broken = True

        async def fail(_: str | None) -> None:
            if broken:
                raise ZeroDivisionError("our bug")

        before_changes(store, fail)
        await store.commit(Batch((user(1),)))
        with pytest.raises(ZeroDivisionError):
            await listener.ended()
        broken = False
        another = Listener(feed, BEGINNING)
        assert await another.types(2) == ["session.created", "message.updated"]
        await another.close()


async def test_one_who_comes_while_the_last_one_leaves_is_served(tmp_path: Path) -> None:
    """The tail is ended only if nobody has begun to listen meanwhile."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))

        reading, gate = asyncio.Event(), asyncio.Event()

        async def slow(_: str | None) -> None:
            reading.set()
            await gate.wait()

        first = Listener(feed)
        await first.heard_all()
        before_changes(store, slow)
        await store.commit(Batch((user(1),)))
        await reading.wait()
        second = Listener(feed)
        leaving = asyncio.create_task(first.close())
        await anyio.wait_all_tasks_blocked()
        gate.set()
        await leaving
        await second.heard_all()
        await store.commit(Batch((user(2),)))
        await second.until(lambda it: msg(2) in it.client.messages)
        await second.close()


async def test_an_open_part_never_comes_before_its_message(tmp_path: Path) -> None:
    """Made between the catch-up and the join, both come from the queue, in their order."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        stream = feed.follow(BEGINNING)
        frames = await anext(stream)
        await store.commit(Batch((user(1), opening(2, 1, "hel"))))
        await feed.caught_up()
        feed.delta(delta(2, 1, 3, "lo"))
        async with asyncio.timeout(WAIT_S):
            while len(frames) < 4:
                frames += await anext(stream)
        assert [frame.type for frame in frames] == [
            "session.created",
            "message.updated",
            "message.part.updated",
            "message.part.delta",
        ]
        await close(stream)


async def test_text_of_a_part_that_was_read_as_finished_is_not_told_again(tmp_path: Path) -> None:
    """Deltas that were queued before the store was read are part of what was read."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), opening(2, 1, "hello"))))
        other = Listener(feed)
        await other.types(1)
        armed = True

        async def finish(cursor: str | None) -> None:
            nonlocal armed
            if armed and cursor is None:
                armed = False
                feed.delta(delta(2, 1, 5, " world"))
                await store.commit(Batch((text(2, 1, "hello world"),)))
                await other.until(lambda it: it.client.parts[prt(2)]["text"] == "hello world")

        before_changes(store, finish)
        listener = Listener(feed, BEGINNING)
        await listener.heard_all()
        assert listener.client.faults == []
        assert listener.client.parts[prt(2)]["text"] == "hello world"
        await other.close()
        await listener.close()


async def test_a_record_that_knows_more_than_the_live_text_wins(tmp_path: Path) -> None:
    """Another process took the part over; what was streamed here before is only the beginning."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), opening(2, 1, "ab"))))
        listener = Listener(feed, BEGINNING)
        await listener.until(lambda it: prt(2) in it.client.parts)
        feed.delta(delta(2, 1, 2, "cd"))
        await listener.until(lambda it: it.client.parts[prt(2)]["text"] == "abcd")
        await store.commit(Batch((opening(2, 1, "abcdefgh"),)))
        await listener.until(lambda it: it.client.parts[prt(2)]["text"] == "abcdefgh")
        feed.delta(delta(2, 1, 8, "ij"))
        await listener.until(lambda it: it.client.parts[prt(2)]["text"] == "abcdefghij")
        assert listener.client.faults == []
        await listener.close()


async def test_repeats_are_cut_off_and_gaps_wait_for_the_next_checkpoint(tmp_path: Path) -> None:
    """By its offset a delta is joined, shortened or held back; never shown in the wrong place."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), opening(2, 1, "abc"))))
        listener = Listener(feed, BEGINNING)
        await listener.until(lambda it: prt(2) in it.client.parts)
        feed.delta(delta(2, 1, 1, "bcde"))
        feed.delta(delta(2, 1, 0, "ab"))
        feed.delta(delta(2, 1, 9, "lost"))
        await listener.until(lambda it: it.client.parts[prt(2)]["text"] == "abcde")
        await store.commit(Batch((opening(2, 1, "abcdefghilost"),)))
        await listener.until(lambda it: it.client.parts[prt(2)]["text"] == "abcdefghilost")
        assert listener.client.faults == []
        await listener.close()


async def test_parts_of_one_id_in_two_sessions_are_two_parts(tmp_path: Path) -> None:
    """Live text belongs to a part of a session."""
    async with opened(tmp_path / "s.db") as (store, feed):
        twin = opening(2, 1, "other")
        await store.commit(Batch((session(), user(1), opening(2, 1, "one"))))
        await store.commit(
            Batch(
                (
                    session(S2),
                    user(1, session=S2),
                    type(twin)(S2, "part", twin.id, twin.data, msg(1), twin.mark),
                )
            )
        )
        feed.delta(Delta(S1, msg(1), prt(2), "text", 3, "!"))
        listener = Listener(feed)
        await listener.types(2)
        told = {frame.session: frame.value()["part"]["text"] for frame in listener.frames}
        assert told == {S1: "one!", S2: "other"}
        await listener.close()


@pytest.mark.parametrize("frames_max", [10_000, 12])
async def test_a_storm_with_open_parts_and_small_queues(tmp_path: Path, frames_max: int) -> None:
    """Writers, deltas, checkpoints, removals; listeners that join at any time, some too slow."""
    chance = random.Random(frames_max)
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        listeners: list[Listener] = []

        async def talk(first: int) -> None:
            for n in range(12):
                message, part = first + 10 * n, first + 10 * n + 1
                await store.commit(Batch((user(message), opening(part, message, ""))))
                whole = ""
                for _ in range(8):
                    word = f"word{chance.randrange(100)} "
                    feed.delta(delta(part, message, len(whole), word))
                    whole += word
                    if chance.random() < 0.2:
                        await store.commit(Batch((opening(part, message, whole),)))
                    await asyncio.sleep(0)
                await store.commit(Batch((text(part, message, whole),)))
                feed.closed(S1, prt(part))
                if n % 5 == 4:
                    await store.commit(Batch((Remove(S1, "message", msg(message)),)))

        async def join() -> None:
            for _ in range(10):
                listeners.append(Listener(feed, BEGINNING, frames_max=frames_max))
                await asyncio.sleep(chance.uniform(0, 0.02))

        await asyncio.gather(talk(1000), talk(5000), talk(9000), join())
        last = Listener(feed, BEGINNING)
        await store.commit(Batch((user(99_999),)))
        for listener in (*listeners, last):
            await listener.until(lambda it: msg(99_999) in it.client.messages)
            await listener.heard_all()
        for listener in listeners:
            assert listener.client.faults == []
            for id, part in last.client.parts.items():
                assert listener.client.parts.get(id) == part, [
                    (frame.type, frame.cursor, frame.value())
                    for frame in listener.frames
                    if id in frame.properties.decode() or frame.type.startswith("holdfast")
                ]
            assert listener.client.parts == last.client.parts
            assert listener.client.messages == last.client.messages
        await asyncio.gather(*(listener.close() for listener in (*listeners, last)))
