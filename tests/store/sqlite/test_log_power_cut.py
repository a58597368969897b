"""What a power cut leaves in a log is no damage: blocks of 4 KiB that were written and not synced reach the
disk in any order, and where one did not, there stands what was there before.
"""

import struct
from itertools import pairwise
from pathlib import Path

import apsw
import pytest

from holdfast.store.batch import Batch
from holdfast.store.owner import Owner
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.salvage.log import read_log
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.store_contract.build import S1, ses, session, text, user
from tests.store.sqlite import damage

HEAD, FRAME, BLOCK = 32, 24 + damage.PAGE, 4096
TABLE_PAGES = (0x05, 0x0D)
FULL, NAME = 13, 55
"""So many owners, with names of that length, fill a page so that it is split when their deadlines grow."""


def owner(n: int, name_length: int = 16) -> Owner:
    """An owner whose row has the same length on every machine."""
    return Owner(f"own_{n:026d}", "h" * 24, "b" * 36, 4000, "pid:[4026531836]", "1", ("p" * name_length,))


def log_of(path: Path) -> bytes:
    """The log as it is now."""
    return Path(f"{path}-wal").read_bytes()


def pages(log: bytes) -> list[tuple[int, int, int]]:
    """Of each frame: the number of its page, whether a transaction ends with it, what kind of page it is."""
    found = []
    for at in range(HEAD, len(log) - FRAME + 1, FRAME):
        number, commit = struct.unpack(">2I", log[at : at + 8])
        found.append((number, commit, log[at + 24]))
    return found


def begin_again(path: Path) -> None:
    """Let the next commit begin the log again, over what it holds."""
    db = Database(path).connect()
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    db.close()


def cuts(synced: bytes, written: bytes) -> list[bytes]:
    """What a power cut may leave: one block lost, each in turn; all up to it; all from it on but the end."""
    before = synced.ljust(len(written), b"\0")
    blocks = [
        at for at in range(0, len(written), BLOCK) if before[at : at + BLOCK] != written[at : at + BLOCK]
    ]
    ways = [blocks[i : i + 1] for i in range(len(blocks))] + [blocks[: i + 1] for i in range(len(blocks))]
    ways += [blocks[i:-2] for i in range(len(blocks))]
    left = []
    for lost in ways:
        log = bytearray(written)
        for at in lost:
            log[at : at + BLOCK] = before[at : at + BLOCK]
        left.append(bytes(log))
    return left


def troubles(logs: list[bytes]) -> set[str]:
    """What is said of them."""
    return {"" if (log := read_log(each)) is None else log.trouble for each in logs}


async def put(store: SqliteStore, n: int, length: int = 1) -> None:
    """A session with a text."""
    changes = (
        session(ses(n)),
        user(4096 + n, session=ses(n)),
        text(8192 + n, 4096 + n, "x" * length, session=ses(n)),
    )
    await store.commit(Batch(changes))


async def test_the_last_transaction_of_a_log_that_was_begun_again_may_be_torn(tmp_path: Path) -> None:
    """In the place of what was lost stand frames of a former life, which run on from one another and end."""
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    try:
        for n in range(1, 7):
            await put(store, n)
        begin_again(path)
        await put(store, 11)
        synced = log_of(path)
        await put(store, 12, 9_000)
        written = log_of(path)
    finally:
        await store.close()
    assert len(written) == len(synced)
    assert troubles(cuts(synced, written)) == {""}


@pytest.mark.parametrize("is_begun_again", [False, True])
@pytest.mark.parametrize("owners", [1, 16])
async def test_renewals_behind_the_last_commit_may_be_torn(
    tmp_path: Path, owners: int, *, is_begun_again: bool
) -> None:
    """They are not synced. With 16 owners, most of them long dead, they are on pages that were made later."""
    path = tmp_path / "store.db"
    clock = FakeClock()
    store = await SqliteStore.open(path, clock=clock)
    try:
        for n in range(owners):
            await store.register(owner(n))
        if is_begun_again:
            for n in range(2, 6):
                await put(store, n)
            begin_again(path)
        await put(store, 1)
        synced = log_of(path)
        for n in range(6):
            clock.advance(10)
            await store.renew(owner(n * 7 % owners).id)
        written = log_of(path)
    finally:
        await store.close()
    assert written != synced
    assert troubles(cuts(synced, written)) == {""}


async def test_damage_before_renewals_is_damage(tmp_path: Path) -> None:
    """They were written upon a commit that was synced, so all of it was on the disk."""
    path = tmp_path / "store.db"
    clock = FakeClock()
    store = await SqliteStore.open(path, clock=clock)
    try:
        await store.register(owner(1))
        await put(store, 1)
        await put(store, 2)
        synced = len(log_of(path))
        clock.advance(10)
        await store.renew(owner(1).id)
        log = bytearray(log_of(path))
    finally:
        await store.close()
    log[synced - FRAME + 24 + 99] ^= 1
    assert troubles([bytes(log)]) == {f"the log is damaged at frame {synced // FRAME} of {len(log) // FRAME}"}


async def test_a_renewal_writes_no_page_of_a_table(tmp_path: Path) -> None:
    """That is how it is told from what was synced, also where it splits a page: the deadline needs more bytes
    once the machine has run for long. Commits write one, as do claims and what is one page long.
    """
    path = tmp_path / "store.db"
    clock = FakeClock(boot_ms=1)
    store = await SqliteStore.open(path, clock=clock)
    try:
        await store.commit(Batch((session(placement=None),)))
        for n in range(FULL):
            await store.register(owner(n, NAME))
        begin = len(log_of(path)) // FRAME
        clock.advance(1 << 32)
        for n in range(FULL):
            await store.renew(owner(n, NAME).id)
        renewed = pages(log_of(path))[begin:]

        fence = await store.claim(S1, owner(1).id)
        claimed = pages(log_of(path))[begin + len(renewed) :]
        await store.renumber(fence)  # type: ignore[arg-type]
        numbered = pages(log_of(path))[begin + len(renewed) + len(claimed) :]
    finally:
        await store.close()
    ends = [-1, *(i for i, (_, commit, _) in enumerate(renewed) if commit)]
    assert max(end - before for before, end in pairwise(ends)) > 2
    assert not [kind for _, _, kind in renewed if kind in TABLE_PAGES]
    assert [len(claimed), len(numbered)] == [2, 1]
    for each in (claimed, numbered):
        assert [kind for _, _, kind in each if kind in TABLE_PAGES] == [0x0D]


async def test_a_renewal_that_splits_a_page_may_be_torn(tmp_path: Path) -> None:
    """It writes several pages, and was not synced either."""
    path = tmp_path / "store.db"
    clock = FakeClock(boot_ms=1)
    store = await SqliteStore.open(path, clock=clock)
    try:
        await put(store, 1)
        for n in range(FULL):
            await store.register(owner(n, NAME))
        await put(store, 2)
        synced = log_of(path)
        clock.advance(1 << 32)
        for n in range(FULL):
            await store.renew(owner(n, NAME).id)
        written = log_of(path)
    finally:
        await store.close()
    assert len(pages(written)) - len(pages(synced)) > FULL
    assert troubles(cuts(synced, written)[::3]) == {""}


async def test_a_frame_of_which_only_the_end_of_its_head_was_written_is_no_sign(tmp_path: Path) -> None:
    """Its number is of a former life, its salts are the log's: so it is where a block ends in the head."""
    path = tmp_path / "store.db"
    clock = FakeClock()
    store = await SqliteStore.open(path, clock=clock)
    try:
        await store.register(owner(1))
        await put(store, 1)
        synced = len(log_of(path))
        for _ in range(4):
            clock.advance(10)
            await store.renew(owner(1).id)
        log = bytearray(log_of(path))
    finally:
        await store.close()
    log[synced : synced + 8] = (3).to_bytes(4) + bytes(4)
    log[synced + 24] = 0x0D
    assert troubles([bytes(log)]) == {""}
