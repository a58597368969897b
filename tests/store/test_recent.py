"""What a process remembers of its own commits is what the tables would tell."""

import asyncio
import random
from pathlib import Path

import pytest

from holdfast.store.batch import Batch, Change, Remove
from holdfast.store.record import Changes
from holdfast.store.sqlite.recent import BYTES_MAX, SPANS_MAX
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import S1, S2, msg, session, text, user

pytestmark = pytest.mark.anyio


async def told(store: SqliteStore, cursor: str, session: str | None = None) -> tuple[Changes, Changes]:
    """What is remembered, or read where it is not, and what the tables say."""
    recent = await store.changes(cursor, session, recent=True)
    whole = await store.changes(cursor, session)
    assert isinstance(recent, Changes)
    assert isinstance(whole, Changes)
    return recent, whole


def unread(store: SqliteStore) -> SqliteStore:
    """The store, which cannot be read any more: whoever asks it is answered from memory."""

    async def read(work: object) -> object:
        raise AssertionError(f"read: {work}")

    store.read = read  # type: ignore[method-assign,assignment]
    return store


@pytest.mark.parametrize("seed", range(20))
async def test_what_is_remembered_is_what_the_tables_say(tmp_path: Path, seed: int) -> None:
    """For every cursor on the way, of the store and of a session, whatever was written and removed, with
    commits of another process in between.
    """
    dice = random.Random(seed)
    store, other = [await SqliteStore.open(tmp_path / "store.db") for _ in range(2)]
    await store.commit(Batch((session(), session(S2))))
    cursors = [await store.head()]
    known: dict[str, list[int]] = {S1: [], S2: []}
    for number in range(1, 40):
        place = dice.choice((S1, S2))
        change: list[Change] = [user(number, session=place)]
        if known[place]:
            again = dice.choice(known[place])
            change += [user(again, session=place), text(100 + number, again, session=place)]
        if known[place] and dice.random() < 0.1:
            change = [Remove(place, "message", msg(known[place].pop()))]
        else:
            known[place].append(number)
        foreign = dice.random() < 0.15
        await (other if foreign else store).commit(Batch(tuple(change)))
        if not foreign:
            recent, whole = await told(store, dice.choice(cursors), dice.choice((None, S1, S2)))
            assert recent == whole
            recent, whole = await told(store, whole.cursor)
            assert recent == whole == Changes((), whole.cursor, complete=True)
        cursors.append(await store.head())
    await store.close()
    await other.close()


async def test_a_follower_of_its_own_process_reads_nothing(tmp_path: Path) -> None:
    """Two commits after the cursor are told without the tables, each record once, in its latest state."""
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.commit(Batch((session(),)))
    cursor = await store.head()
    await store.commit(Batch((user(1), text(2, 1))))
    await store.commit(Batch((user(1),)))
    whole = await store.changes(cursor)

    assert await unread(store).changes(cursor, recent=True) == whole
    del store.read
    await store.close()


async def test_a_group_that_failed_in_part_is_told_in_part(tmp_path: Path) -> None:
    """Of commits that shared a transaction, those that were refused are not remembered."""
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.commit(Batch((session(),)))
    cursor = await store.head()
    batches = [Batch((user(number),) if number % 2 else (text(50 + number, 99),)) for number in range(1, 9)]
    done = await asyncio.gather(*map(store.commit, batches), return_exceptions=True)
    assert [isinstance(each, Exception) for each in done] == [False, True] * 4

    recent, whole = await told(store, cursor)
    assert recent == whole
    assert [changed.record.id for changed in recent.records] == [msg(number) for number in (1, 3, 5, 7)]
    await store.close()


async def test_what_another_process_wrote_is_heard_with_the_next_look(tmp_path: Path) -> None:
    """A commit that came after our own is told as soon as the watch has woken."""
    store, other = [await SqliteStore.open(tmp_path / "store.db") for _ in range(2)]
    await store.commit(Batch((session(),)))
    cursor = await store.head()
    watch = store.watch()
    await store.commit(Batch((user(1),)))
    await other.commit(Batch((user(2),)))
    async with asyncio.timeout(60):
        while True:
            await watch.wait()
            changes = await store.changes(cursor, recent=True)
            assert isinstance(changes, Changes)
            cursor = changes.cursor
            if msg(2) in [changed.record.id for changed in changes.records]:
                break
    watch.close()
    await store.close()
    await other.close()


async def test_what_is_remembered_is_bounded(tmp_path: Path) -> None:
    """In commits and in bytes; what lies further back is read."""
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.commit(Batch((session(),)))
    cursor = await store.head()
    for number in range(SPANS_MAX + 1):
        await store.commit(Batch((user(number + 1),)))
    assert store._recent.changes(cursor, None, 1_000) is None
    near = await store.head()
    await store.commit(Batch((user(500),)))
    assert store._recent.changes(near, None, 1_000) is not None
    await store.commit(Batch((text(501, 500, words="x" * BYTES_MAX),)))
    assert store._recent.changes(near, None, 1_000) is None
    recent, whole = await told(store, near)
    assert recent == whole
    await store.close()
