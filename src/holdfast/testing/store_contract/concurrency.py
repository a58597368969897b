"""Many at once: committers that wait together, handles that write together, and the wakes between them."""

import asyncio
import contextlib
import time

import anyio
import msgspec
import pytest

from holdfast.errors import Conflict, NotFound
from holdfast.schema.stored import Kind
from holdfast.store.base import Store, Watch
from holdfast.store.batch import Batch, Put, Receipt, Remove, Unchanged
from holdfast.store.query import MessageQuery
from holdfast.testing.store_contract.build import S1, S2, msg, part, prt, record, ses, session, text, user
from holdfast.testing.store_contract.replica import Replica, contents
from holdfast.testing.store_contract.world import Contract, World

WAKE_S = 0.5
ANSWER_S = 60.0


class Racing(Contract):
    """Nothing is lost, doubled or half visible."""

    async def test_many_waiting_committers_all_land(self, world: World) -> None:
        """A hundred commits at once into one session: every one answered, every number its own."""
        await world.put(session())
        receipts: list[Receipt] = []

        async def commit(n: int) -> None:
            receipts.append(await world.put(user(n), text(1000 + n, n)))

        async with anyio.create_task_group() as group:
            for n in range(1, 101):
                group.start_soon(commit, n)

        numbers = [number for receipt in receipts for number in receipt.numbers]
        assert (len(receipts), len(set(numbers))) == (100, 200)
        page = await world.store.messages(MessageQuery(S1))
        assert {each.info.id: [each.id for each in each.parts] for each in page.messages} == {
            msg(n): [prt(1000 + n)] for n in range(1, 101)
        }
        assert [each.info.position for each in page.messages] == sorted(
            receipt.numbers[0] for receipt in receipts
        )

    async def test_one_bad_batch_among_many_fails_alone(self, world: World) -> None:
        """Batches that share a sync do not share a fate."""
        await world.put(session(), session(S2))
        outcomes: dict[int, str] = {}

        async def commit(n: int) -> None:
            bad = text(900 + n, 5000)
            good = user(n, session=S1 if n % 2 else S2)
            try:
                await world.store.commit(Batch((good, bad) if n % 5 == 0 else (good,)))
                outcomes[n] = "written"
            except NotFound:
                outcomes[n] = "refused"

        async with anyio.create_task_group() as group:
            for n in range(1, 41):
                group.start_soon(commit, n)

        assert outcomes == {n: "refused" if n % 5 == 0 else "written" for n in range(1, 41)}
        for id, odd in ((S1, 1), (S2, 0)):
            page = await world.store.messages(MessageQuery(id))
            assert {each.info.id for each in page.messages} == {
                msg(n) for n in range(1, 41) if n % 2 == odd and n % 5
            }

    async def test_of_two_writers_with_one_expectation_one_wins(self, world: World) -> None:
        """Read, expect unchanged, write: no update is lost, from whichever process it comes."""
        receipt = await world.put(session(title="0"))
        other = await world.another()
        wins = 0

        async def count(store: Store) -> None:
            nonlocal wins
            for _ in range(15):
                while True:
                    found = await store.get(S1, "session", S1)
                    assert found is not None
                    title = str(int(_title(found.json())) + 1)
                    expect = (Unchanged(S1, "session", S1, found.seq),)
                    try:
                        await store.commit(Batch((session(title=title),), expect))
                    except Conflict:
                        continue
                    wins += 1
                    break

        async with anyio.create_task_group() as group:
            for store in (world.store, other):
                group.start_soon(count, store)
                group.start_soon(count, store)

        found = await world.store.get(S1, "session", S1)
        assert found is not None
        assert (wins, _title(found.json())) == (60, "60")
        assert found.seq > receipt.seq

    @pytest.mark.parametrize("kind", ["todo", "part"])
    async def test_no_update_of_a_record_is_lost(self, world: World, kind: Kind) -> None:
        """A counter in a record that four processes raise: what was acknowledged was counted."""
        await world.put(session(), user(1), _counter(kind, 0))
        stores = [world.store, *[await world.another() for _ in range(3)]]
        id = _counter(kind, 0).id

        async def count(store: Store) -> None:
            counted = 0
            while counted < 15:
                found = await store.get(S1, kind, id)
                assert found is not None
                number = msgspec.json.decode(found.data)["metadata"]["count"]
                expect = (Unchanged(S1, kind, id, found.seq),)
                with contextlib.suppress(Conflict):
                    await store.commit(Batch((_counter(kind, number + 1),), expect))
                    counted += 1

        async with anyio.create_task_group() as group:
            for store in stores:
                group.start_soon(count, store)

        found = await world.store.get(S1, kind, id)
        assert found is not None
        assert msgspec.json.decode(found.data)["metadata"]["count"] == 60

    async def test_batches_over_crossing_sessions_do_not_block_each_other(self, world: World) -> None:
        """Sessions named in opposite orders by two processes: both finish."""
        await world.put(session(), session(S2))
        other = await world.another()

        async def write(store: Store, first: str, second: str, base: int) -> None:
            for n in range(base, base + 25):
                await store.commit(Batch((user(n, session=first), user(n, session=second))))

        async with anyio.create_task_group() as group:
            group.start_soon(write, world.store, S1, S2, 100)
            group.start_soon(write, other, S2, S1, 200)
            group.start_soon(write, world.store, S2, S1, 300)

        for id in (S1, S2):
            assert len((await world.store.messages(MessageQuery(id))).messages) == 75

    async def test_a_follower_of_two_writers_misses_nothing(self, world: World) -> None:
        """A replica fed in pages while two processes write, remove and re-create ends equal to the store."""
        other = await world.another()
        await world.put(session(), session(S2))
        replica = Replica()
        writing = 2

        async def write(store: Store, own: int) -> None:
            nonlocal writing
            for n in range(own, own + 40):
                shared = S1 if n % 2 else S2
                await store.commit(Batch((user(n, session=shared), text(500 + n, n, session=shared))))
                if n % 3 == 0:
                    await store.commit(Batch((Remove(shared, "message", msg(n)),)))
                if n % 6 == 0:
                    await store.commit(Batch((user(n, session=shared),)))
                if n % 10 == 0:
                    await store.commit(Batch((session(ses(n), parent=shared), user(1, session=ses(n)))))
                if n % 20 == 0:
                    await store.erase(ses(n))
            writing -= 1

        async def follow() -> None:
            while writing:
                await replica.follow(world.store, limit=7)

        async with anyio.create_task_group() as group:
            group.start_soon(write, world.store, 100)
            group.start_soon(write, other, 200)
            group.start_soon(follow)
        await replica.catch_up(world.store, limit=7)
        await replica.catch_up(world.store)

        assert replica.records == await contents(world.store)

    async def test_a_cancelled_close_still_closes(self, world: World) -> None:
        """What was submitted before is written and answered; closing again waits for the end."""
        store = await world.another()
        await world.put(session())
        commits = [asyncio.create_task(store.commit(Batch((user(n),)))) for n in range(1, 4)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        closing.cancel()
        async with asyncio.timeout(ANSWER_S):
            await asyncio.gather(*commits)
            with contextlib.suppress(asyncio.CancelledError):
                await closing
            await store.close()

        page = await world.store.messages(MessageQuery(S1))
        assert {each.info.id for each in page.messages} == {msg(n) for n in range(1, 4)}

    async def test_a_cancelled_wait_leaves_a_whole_batch_or_none(self, world: World) -> None:
        """Giving up on a commit does not tear it, and does not harm the committers beside it."""
        await world.put(session())

        async def impatient(n: int) -> None:
            with anyio.move_on_after(0.0001 * (n % 7)):
                await world.put(user(n), text(1000 + n, n))

        async with anyio.create_task_group() as group:
            for n in range(1, 30):
                group.start_soon(impatient, n)
            for n in range(30, 40):
                group.start_soon(world.put, user(n), text(1000 + n, n))

        await world.put(user(99), text(1099, 99))
        page = await world.store.messages(MessageQuery(S1))
        found = {each.info.id: [part.id for part in each.parts] for each in page.messages}
        assert found == {id: [f"prt_{int(id[4:16], 16) + 1000:012x}{id[16:]}"] for id in found}
        assert {msg(n) for n in (*range(30, 40), 99)} <= set(found)


async def woken_within(watch: Watch, store: Store, n: int, *, before: bool) -> float:
    """Seconds from a commit to the wake, when the commit comes before the wait or during it."""
    batch = Batch((user(n),))
    if before:
        await store.commit(batch)
        start = time.monotonic()
        await watch.wait()
        return time.monotonic() - start
    start = 0.0
    async with anyio.create_task_group() as group:
        waiting = anyio.Event()

        async def wait() -> None:
            waiting.set()
            await watch.wait()

        group.start_soon(wait)
        await waiting.wait()
        await store.commit(batch)
        start = time.monotonic()
    return time.monotonic() - start


class Watching(Contract):
    """Wakes: whichever process commits, they come soon and are never lost."""

    @pytest.mark.parametrize("before", [True, False], ids=["before the wait", "during the wait"])
    @pytest.mark.parametrize("own", [True, False], ids=["own commits", "another process"])
    async def test_a_commit_wakes(self, world: World, own: bool, before: bool) -> None:  # noqa: FBT001
        """Own commits and those of another process wake a watch long before it would look by itself."""
        other = await world.another()
        await world.put(session())
        watch = world.store.watch()
        try:
            spent = []
            for n in range(1, 6):
                store = world.store if own else other
                spent.append(await woken_within(watch, store, n, before=before))
        finally:
            watch.close()

        # Most of them: a busy machine may make one late, but not a watch that looks by itself early.
        assert sorted(spent)[len(spent) // 2] < WAKE_S

    async def test_every_watch_is_woken(self, world: World) -> None:
        """Several watches of one handle are independent of each other."""
        await world.put(session())
        watches = [world.store.watch() for _ in range(3)]
        spent = []
        for n in range(1, 6):
            await world.put(user(n))
            start = time.monotonic()
            for watch in watches:
                await watch.wait()
            spent.append(time.monotonic() - start)
        for watch in watches:
            watch.close()

        assert sorted(spent)[len(spent) // 2] < WAKE_S

    async def test_a_wait_without_news_ends(self, world: World) -> None:
        """Nothing waits for ever: a wait returns about once a second in any case."""
        watch = world.store.watch()
        with anyio.fail_after(5):
            for _ in range(2):
                await watch.wait()
        watch.close()


def _counter(kind: Kind, count: int) -> Put:
    value: dict[str, object] = {"type": "text", "text": "", "metadata": {"count": count}}
    return part(2, 1, value) if kind == "part" else record(S1, kind, S1, value)


def _title(json: bytes) -> str:
    return str(msgspec.json.decode(json)["title"])
