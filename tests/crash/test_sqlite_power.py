"""SQLite under power cuts: stopped at the n-th write, n = 1, 2, 3 … until the lifecycle completes."""

import contextlib
from pathlib import Path

import pytest

from holdfast.errors import HoldfastError
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost
from tests.crash.lifecycle import Dump, dump, steps
from tests.crash.power import PowerCut


async def states(place: Path) -> list[Dump]:
    """What a healthy store holds before the first step and after each."""
    store = await SqliteStore.open(place / "healthy.db", clock=FakeClock(), host=FakeHost())
    host = FakeHost()
    found = [await dump(store)]
    for step in steps():
        await step(store, host)
        found.append(await dump(store))
    await store.close()
    return found


async def run_until_cut(place: Path, vfs: PowerCut) -> int:
    """Run the lifecycle on the failing disk; how many steps were acknowledged."""
    database = Database(place, vfs=vfs.name)
    acknowledged = 0
    host = FakeHost()
    try:
        store = await SqliteStore.open(place, clock=FakeClock(), host=host, database=database)
    except HoldfastError:
        return 0
    try:
        for step in steps():
            await step(store, host)
            acknowledged += 1
    except HoldfastError:
        pass
    finally:
        with contextlib.suppress(HoldfastError):
            await store.close()
    return acknowledged


# SQLite's own clean-up meets the dead disk in places where an exception cannot be passed on.
@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_nothing_acknowledged_is_lost_wherever_the_power_goes(tmp_path: Path) -> None:
    """After a cut at any write the store opens, is sound, and holds exactly the acknowledged steps.

    The step under way at the cut may be there as a whole; never a part of it.
    """
    expected = await states(tmp_path)
    acknowledged = 0
    cut_at = 0
    while acknowledged < len(expected) - 1:
        cut_at += 1
        place = tmp_path / f"cut-{cut_at}.db"
        vfs = PowerCut(f"power-{cut_at}", cut_at, seed=cut_at)
        acknowledged = await run_until_cut(place, vfs)
        vfs.settle()
        vfs.unregister()
        for leftover in tmp_path.glob(f"cut-{cut_at}.db-shm"):
            leftover.unlink()

        store = await SqliteStore.open(place, clock=FakeClock(), host=FakeHost())
        after = await dump(store)
        report = await store.examine()
        await store.close()

        possible = expected[acknowledged : acknowledged + 2]
        assert after in possible, f"cut at write {cut_at}, {acknowledged} acknowledged"
        assert [finding.what for finding in report.findings if "JSON" not in finding.what] == []
    assert cut_at > 30
