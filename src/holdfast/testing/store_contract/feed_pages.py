"""Pages inside a batch of the feed, and cursors that mean nothing any more."""

import pytest

from holdfast.store.base import TOMBSTONE_MS
from holdfast.store.batch import Batch, Remove
from holdfast.store.record import Resync
from holdfast.testing.store_contract.build import S1, S2, S3, msg, prompt, prt, session, text, user
from holdfast.testing.store_contract.feed import told
from holdfast.testing.store_contract.replica import Replica, contents
from holdfast.testing.store_contract.world import Contract, World, drain


class Batching(Contract):
    """Pages inside a batch, while the store keeps changing."""

    @pytest.mark.parametrize("limit", [1, 2, 3, 5])
    async def test_small_pages_add_up(self, world: World, limit: int) -> None:
        """Page by page or at once, a batch has the same records; only its last page is complete."""
        await world.put(session(), user(1), text(2, 1), user(3), session(S2), user(4, session=S2), prompt(9))
        await world.put(session(S3), user(5, session=S3))
        head = await world.store.head()
        await world.put(Remove(S1, "message", msg(1)), text(6, 3), user(7), user(3, agent="plan"))
        await world.store.erase(S3)
        await world.put(user(8, session=S2), Remove(S1, "prompt", msg(9)))

        for cursor in (None, head):
            at_once = await drain(world.store, cursor)
            paged = await drain(world.store, cursor, limit=limit)
            assert paged.records == at_once.records
            assert (await drain(world.store, paged.cursor)).records == ()
        for id in (S1, S2, S3):
            assert (await drain(world.store, head, id, limit=limit)).records == (
                await drain(world.store, head, id)
            ).records

    @pytest.mark.parametrize("limit", [1, 2, 3])
    async def test_what_changes_between_pages_comes_again(self, world: World, limit: int) -> None:
        """Creates, updates, removals and re-created ids between any two pages: the replica ends equal."""
        await world.put(session(), session(S2))
        for n in range(1, 5):
            await world.put(user(n), text(10 + n, n), user(n, session=S2), text(10 + n, n, session=S2))
        replica = Replica()
        edits = [
            Batch((user(1, agent="e1"), text(30, 1))),
            Batch((Remove(S1, "message", msg(2)), user(5, session=S2))),
            Batch((text(13, 3, "e3"), Remove(S2, "part", prt(11)))),
            Batch((user(2), text(31, 2), text(12, 2))),
            Batch((Remove(S2, "message", msg(4)), session(title="e5"))),
            Batch((user(4, session=S2), session(S3, parent=S2), user(1, session=S3))),
            Batch((Remove(S1, "message", msg(1)), user(1), text(30, 1, "e7"))),
        ]
        for edit in edits:
            await replica.follow(world.store, limit=limit)
            await world.store.commit(edit)
        await replica.catch_up(world.store, limit=limit)
        await replica.catch_up(world.store, limit=limit)

        assert replica.records == await contents(world.store)
        assert (await drain(world.store, replica.cursor)).records == ()

    @pytest.mark.parametrize("limit", [1, 2, 1000])
    async def test_a_session_erased_between_pages_is_gone_in_the_end(self, world: World, limit: int) -> None:
        """Half of it was delivered; the next batch brings its tombstone."""
        await world.put(session(), user(1), user(2), session(S2, parent=S1), user(3, session=S2))
        replica = Replica()
        await replica.follow(world.store, limit=limit)
        await world.store.erase(S1)
        await world.put(session(S3), user(4, session=S3))
        await replica.catch_up(world.store, limit=limit)
        await replica.catch_up(world.store, limit=limit)

        assert replica.records == await contents(world.store)

    async def test_a_batch_told_once_is_not_told_again(self, world: World) -> None:
        """Between completed batches nothing is repeated."""
        replica = Replica()
        await world.put(session(), user(1))
        for n in range(2, 8):
            await world.put(user(n), text(20 + n, n))
            await replica.catch_up(world.store, limit=2)
        await replica.catch_up(world.store)

        assert (replica.repeated, replica.delivered) == (0, 14)
        assert replica.records == await contents(world.store)


class Resyncing(Contract):
    """Cursors that mean nothing here, or mean too little by now."""

    @pytest.mark.parametrize("cursor", ["", "x", "0", "\x00", "../x", "0" * 10_000, "ffffffffffffffff.1"])
    async def test_text_that_is_no_cursor_means_begin_again(self, world: World, cursor: str) -> None:
        """A client with a foreign or broken cursor gets `Resync`, not an error."""
        await world.put(session())

        assert isinstance(await world.store.changes(cursor), Resync)
        assert isinstance(await world.store.changes(cursor, S1), Resync)

    async def test_a_cursor_of_another_store_means_begin_again(self, world: World) -> None:
        """Every store has an incarnation of its own."""
        other = await world.another(place=world.place / "other")
        await world.put(session(), user(1))
        await other.commit(Batch((session(), user(1))))

        assert isinstance(await other.changes(await world.store.head()), Resync)
        assert isinstance(await world.store.changes(await other.head()), Resync)

    async def test_a_cursor_below_the_horizon_means_begin_again(self, world: World) -> None:
        """Once a removal is forgotten, a follower that lacks it must start over; the others continue."""
        await world.put(session(), user(1), user(2))
        before = await world.store.head()
        await world.put(Remove(S1, "message", msg(1)))
        after = await world.store.head()

        world.clock.advance(TOMBSTONE_MS)
        await world.store.sweep()
        assert told(await drain(world.store, before)) == [("message", msg(1), "removed")]

        world.clock.advance(1)
        await world.store.sweep()
        assert isinstance(await world.store.changes(before), Resync)
        assert isinstance(await world.store.changes(before, S1), Resync)
        assert (await drain(world.store, after)).records == ()
        await world.put(user(3))
        assert told(await drain(world.store, after)) == [("message", msg(3), "created")]
        assert told(await drain(world.store, None)) == [
            ("session", S1, "created"),
            ("message", msg(2), "created"),
            ("message", msg(3), "created"),
        ]

    async def test_an_erased_session_is_forgotten_too(self, world: World) -> None:
        """A session's tombstone has the same term, and its id is free afterwards."""
        await world.put(session(), session(S2))
        before = await world.store.head()
        old = await world.put(user(1))
        await world.store.erase(S1)
        world.clock.advance(TOMBSTONE_MS + 1)
        await world.store.sweep()

        assert isinstance(await world.store.changes(before), Resync)
        assert told(await drain(world.store, None)) == [("session", S2, "created")]
        await world.put(session(), user(1))
        assert old.seq > 0

    async def test_the_horizon_never_falls(self, world: World) -> None:
        """After the clock was set back a later removal is swept first; no number is given twice for that."""
        await world.put(session(), user(1), session(S2))
        await world.put(Remove(S1, "message", msg(1)))
        removed_ms = world.clock.now_ms()
        world.clock.set_wall(removed_ms - 3_600_000)
        before = await world.store.head()
        await world.store.erase(S2)
        top = (await world.put(user(2))).seq
        world.clock.set_wall(removed_ms - 3_600_000 + TOMBSTONE_MS + 1)
        await world.store.sweep()
        assert isinstance(await world.store.changes(before), Resync)

        world.clock.set_wall(removed_ms + TOMBSTONE_MS + 1)
        await world.store.sweep()
        assert isinstance(await world.store.changes(before), Resync)
        assert (await world.put(user(3))).seq > top

    async def test_a_sweep_without_old_tombstones_changes_nothing(self, world: World) -> None:
        """Cursors of any age stay good while nothing was removed."""
        await world.put(session(), user(1))
        before = await world.store.head()
        world.clock.advance(3 * TOMBSTONE_MS)
        await world.put(user(2))
        await world.store.sweep()

        assert told(await drain(world.store, before)) == [("message", msg(2), "created")]
