"""Following the feed: changed records after a cursor, then open parts with their text so far, then live."""

import asyncio
from pathlib import Path

import pytest

from holdfast.feed.frame import RESYNC
from holdfast.feed.tail import BEGINNING
from holdfast.store.batch import Batch, Remove
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.tables import watch
from holdfast.testing.clock import FakeClock
from holdfast.testing.store_contract.build import S1, S2, encode, msg, prt, record, session, text, user
from tests.feed.follow import delta, opening
from tests.feed.listening import WAIT_S, Listener, close, opened


async def test_a_slow_listener_is_cut_and_told_to_resync_and_then_catches_up(tmp_path: Path) -> None:
    """Overflow costs neither memory nor the writer's time, and ends with everything known."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        stream = feed.follow(BEGINNING, frames_max=10)
        first = await anext(stream)
        assert [frame.type for frame in first] == ["session.created"]
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        for n in range(1, 101):
            await store.commit(Batch((user(n),)))
        seen = await waiting
        await feed.caught_up()

        types = [frame.type for frame in seen]
        known = {frame.value()["info"]["id"] for frame in seen if frame.type == "message.updated"}
        async with asyncio.timeout(WAIT_S):
            while len(known) < 100:
                frames = await anext(stream)
                types += [frame.type for frame in frames]
                known |= {frame.value()["info"]["id"] for frame in frames if frame.type == "message.updated"}
        assert RESYNC in types
        assert known == {msg(n) for n in range(1, 101)}
        await close(stream)


async def test_a_cursor_of_another_store_ends_in_a_resync_and_the_stream_goes_on(tmp_path: Path) -> None:
    """The frame says so and carries the cursor of now; what is committed later still comes."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        listener = Listener(feed, "0123456789abcdef.1")
        assert await listener.types(1) == [RESYNC]
        assert listener.frames[0].cursor == await store.head()
        await store.commit(Batch((user(1),)))
        assert await listener.types(2) == [RESYNC, "message.updated"]
        await listener.close()


async def test_the_events_of_the_bus(tmp_path: Path) -> None:
    """Each kind of change has the event and the properties that clients of the bus know."""
    async with opened(tmp_path / "s.db") as (store, feed):
        listener = Listener(feed, await store.head())
        todos = [{"content": "do it", "status": "pending", "priority": "high"}]
        diffs = [{"file": "a.py", "additions": 1, "deletions": 0}]
        for changes in (
            (session(),),
            (session(title="Renamed"),),
            (user(1),),
            (text(2, 1, "hello"),),
            (record(S1, "todo", S1, todos),),
            (record(S1, "diff", S1, diffs),),
            (Remove(S1, "part", prt(2)),),
            (Remove(S1, "message", msg(1)),),
        ):
            count = len(listener.frames) + 1
            await store.commit(Batch(changes))
            await listener.types(count)
        await store.erase(S1)
        feed.publish(
            "session.error", S1, encode({"sessionID": S1, "error": {"name": "UnknownError", "data": {}}})
        )

        types = await listener.types(10)
        assert sorted(types[8:]) == ["session.deleted", "session.error"]
        assert types[:8] == [
            "session.created",
            "session.updated",
            "message.updated",
            "message.part.updated",
            "todo.updated",
            "session.diff",
            "message.part.removed",
            "message.removed",
        ]
        told = [frame.value() for frame in listener.frames]
        assert told[0]["info"] | {"id": S1} == told[0]["info"]
        assert told[1]["info"]["title"] == "Renamed"
        assert told[3]["part"] == {
            "id": prt(2),
            "sessionID": S1,
            "messageID": msg(1),
            "type": "text",
            "text": "hello",
        }
        assert told[4] == {"sessionID": S1, "todos": todos}
        assert told[5] == {"sessionID": S1, "diff": diffs}
        assert told[6] == {"sessionID": S1, "messageID": msg(1), "partID": prt(2)}
        assert told[7] == {"sessionID": S1, "messageID": msg(1)}
        deleted = next(frame for frame in listener.frames if frame.type == "session.deleted").value()
        assert (deleted["sessionID"], deleted["info"]["directory"]) == (S1, "/work/app")
        await listener.close()


async def test_one_may_listen_to_one_type_or_one_session(tmp_path: Path) -> None:
    """The rest does not come, yet the cursor moves on with what was left out."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), session(S2))))
        head = await store.head()
        by_type = Listener(feed, head, types={"message.part.updated"})
        by_session = Listener(feed, head, session=S2)
        await store.commit(Batch((user(1), text(2, 1))))
        await store.commit(Batch((user(3, session=S2), text(4, 3, session=S2))))

        assert await by_type.types(2) == ["message.part.updated"] * 2
        assert await by_session.types(2) == ["message.updated", "message.part.updated"]
        assert {frame.session for frame in by_session.frames} == {S2}
        assert by_type.frames[-1].cursor == await store.head()
        await by_type.close()
        await by_session.close()


async def test_a_listener_that_was_away_hears_what_changed_and_nothing_twice(tmp_path: Path) -> None:
    """From its cursor: removed, changed and new records once each, in their latest state, then live."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), text(2, 1, "old"), user(3))))
        cursor = await store.head()
        await store.commit(Batch((text(2, 1, "new"),)))
        await store.commit(Batch((text(2, 1, "newest"), user(4))))
        await store.commit(Batch((Remove(S1, "message", msg(3)),)))
        listener = Listener(feed, cursor)

        assert await listener.types(3) == ["message.removed", "message.part.updated", "message.updated"]
        assert listener.frames[1].value()["part"]["text"] == "newest"
        await store.commit(Batch((user(5),)))
        assert (await listener.types(4))[3:] == ["message.updated"]
        await listener.heard_all()
        assert len(listener.frames) == 4
        await listener.close()


async def test_deltas_come_after_the_record_of_their_part(tmp_path: Path) -> None:
    """However early the text is published, a client has heard of the part before, and misses no letter."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        listener = Listener(feed, BEGINNING)
        await listener.types(1)
        await store.commit(Batch((user(1), opening(2, 1, ""))))
        words = [f"word{n} " for n in range(50)]
        offset = 0
        for word in words:
            feed.delta(delta(2, 1, offset, word))
            offset += len(word)
            if offset % 3 == 0:
                await asyncio.sleep(0)
        whole = "".join(words)
        await listener.until(lambda it: it.client.parts.get(prt(2), {}).get("text") == whole)
        await store.commit(Batch((text(2, 1, whole),)))
        await listener.until(lambda it: "time" not in it.client.parts[prt(2)])

        assert listener.client.faults == []
        assert listener.client.parts[prt(2)]["text"] == whole
        await listener.close()


async def test_a_checkpoint_never_throws_a_listener_back(tmp_path: Path) -> None:
    """The store is a second behind the live text; who listens live does not notice."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), opening(2, 1, ""))))
        listener = Listener(feed, BEGINNING)
        await listener.until(lambda it: prt(2) in it.client.parts)
        feed.delta(delta(2, 1, 0, "abc"))
        feed.delta(delta(2, 1, 3, "def"))
        await store.commit(Batch((opening(2, 1, "abc"),)))
        feed.delta(delta(2, 1, 6, "ghi"))
        await listener.until(lambda it: it.client.parts[prt(2)]["text"] == "abcdefghi")
        await listener.heard_all()

        assert listener.client.faults == []
        assert listener.client.parts[prt(2)]["text"] == "abcdefghi"
        await listener.close()


async def test_who_joins_in_the_middle_gets_the_text_so_far_and_goes_on_without_a_gap(tmp_path: Path) -> None:
    """An open part is shown with what was streamed after its checkpoint, then its deltas follow."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), opening(2, 1, "abc"))))
        feed.delta(delta(2, 1, 3, "def"))
        listener = Listener(feed)
        await listener.types(1)
        assert listener.frames[0].value()["part"]["text"] == "abcdef"
        feed.delta(delta(2, 1, 6, "ghi"))
        await listener.types(2)

        assert [frame.type for frame in listener.frames] == ["message.part.updated", "message.part.delta"]
        assert listener.client.parts[prt(2)]["text"] == "abcdefghi"
        await listener.close()


async def test_a_part_that_was_closed_is_not_remembered(tmp_path: Path) -> None:
    """Without a listener too: live text is kept only while its part is open."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), user(1), opening(2, 1, ""))))
        feed.delta(delta(2, 1, 0, "abc"))
        await store.commit(Batch((text(2, 1, "abc"),)))
        feed.closed(S1, prt(2))
        assert feed._pump.open_parts.known() == set()

        listener = Listener(feed)
        await listener.heard_all()
        assert listener.frames == []
        await listener.close()


async def test_commits_of_another_process_arrive_without_a_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another handle on the same file stands for the other process; the wake file tells of it."""
    monkeypatch.setattr(watch, "POLL_S", 600.0)
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        other = await SqliteStore.open(tmp_path / "s.db", clock=FakeClock())
        listener = Listener(feed, BEGINNING)
        await listener.types(1)
        for n in range(1, 11):
            await other.commit(Batch((user(n),)))
            await listener.types(n + 1)
        await listener.close()
        await other.close()


async def test_closing_the_feed_ends_every_stream(tmp_path: Path) -> None:
    """A listener that waits is let go."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(),)))
        listener = Listener(feed, BEGINNING)
        await listener.types(1)
        await feed.close()
        await listener.ended()


@pytest.mark.ci
async def test_joining_at_any_moment_of_a_storm_gives_the_same_picture(tmp_path: Path) -> None:
    """Several writers create, change, remove and make anew; each joiner ends with what the store holds."""
    async with opened(tmp_path / "s.db") as (store, feed):
        await store.commit(Batch((session(), session(S2))))
        listeners: list[Listener] = []

        async def write(session: str, first: int) -> None:
            for n in range(60):
                a = first + 10 * (n % 7)
                await store.commit(Batch((user(a, session=session), text(a + 1, a, f"{n}", session=session))))
                if n % 3 == 0:
                    await store.commit(Batch((Remove(session, "part", prt(a + 1)),)))
                if n % 4 == 0:
                    await store.commit(Batch((Remove(session, "message", msg(a)),)))
                    await store.commit(Batch((user(a, session=session, agent=f"again{n}"),)))

        async def join() -> None:
            for _ in range(12):
                listeners.append(Listener(feed, BEGINNING))
                await asyncio.sleep(0.01)

        await asyncio.gather(write(S1, 1000), write(S2, 2000), write(S1, 3000), join())
        expected = Listener(feed, BEGINNING)
        for listener in (*listeners, expected):
            await listener.heard_all()
        for listener in listeners:
            assert listener.client.faults == []
            assert listener.client.messages == expected.client.messages
            assert listener.client.parts == expected.client.parts
        await asyncio.gather(*(listener.close() for listener in (*listeners, expected)))
