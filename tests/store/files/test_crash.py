"""The files store is stopped at every effect it has on the disk, and opened again."""

import random
import shutil
from pathlib import Path

import pytest

from holdfast.errors import StoreError
from holdfast.store.files import journal
from holdfast.store.files.disk import TornWrite
from holdfast.testing.store_contract.build import S1, prt
from tests.store.files.lifecycle import Crash, Life, Stop, abandon, seen, tree

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def short_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that is trimmed every few commits, so that trimming is interrupted too."""
    monkeypatch.setattr(journal, "SIZE", 1 << 16)
    monkeypatch.setattr("holdfast.store.files.connections.TRIM_BYTES", 8 << 10)
    monkeypatch.setattr("holdfast.store.files.connections.CLOSE_BYTES", 1 << 10)


async def history(place: Path) -> list[tuple[dict[str, bytes], dict[str, object]]]:
    """What is to be seen after each step of a life that nothing interrupts."""
    life = Life(place)
    states = []
    store = await life.open()
    states.append((tree(life.root), await seen(store)))
    for step in life.steps():
        await step(store)
        states.append((tree(life.root), await seen(store)))
    await store.close()
    return states


async def crash(life: Life, failpoint: Crash) -> int:
    """Live until the failpoint ends it; how many steps were acknowledged (-1: not even the opening)."""
    done = -1
    try:
        store = await life.open(failpoint)
    except (Stop, TornWrite):
        return done
    done = 0
    try:
        for step in life.steps():
            await step(store)
            done += 1
    except (Stop, TornWrite):
        pass
    await abandon(store)
    return done


async def check(life: Life, states: list[tuple[dict[str, bytes], dict[str, object]]], done: int) -> None:
    """What was acknowledged is there, what was not is there whole or not at all, and life goes on."""
    store = await life.open()
    now = (tree(life.root), await seen(store))
    reached = next((at for at in (max(done, 0), done + 1) if at < len(states) and states[at] == now), None)
    assert reached is not None, f"after {done} steps: neither the state before nor the one after the next"
    assert (await store.examine()).findings == ()
    for step in life.steps()[reached:]:
        await step(store)
    assert (tree(life.root), await seen(store)) == states[-1]
    await store.close()
    store = await life.open()
    assert (await store.examine()).findings == ()
    await store.close()


async def run(tmp_path: Path, numbers: range, *, torn: bool, cut: bool, lost_index: bool) -> bool:
    """Crash at each of these effects; whether the last of them was beyond the end."""
    states = await history(tmp_path / "whole")
    chance = random.Random(7)
    for number in numbers:
        life = Life(tmp_path / f"{number}")
        failpoint = Crash(number, torn=torn, root=life.root if cut else None)
        done = await crash(life, failpoint)
        if not failpoint.stopped:
            return True
        if cut:
            cut_power(life, failpoint, chance)
        if lost_index and (life.root / "holdfast.json").exists():
            (life.root / "index.db").unlink(missing_ok=True)
        await check(life, states, done)
        shutil.rmtree(life.root)
    return False


def cut_power(life: Life, failpoint: Crash, chance: random.Random) -> None:
    """Undo, halve or keep each write that was not synced, as the disk happened to be; then boot again."""
    life.host._boot = "boot2"
    if not (life.root / "holdfast.json").exists():
        return
    for path, before in failpoint.unsynced.items():
        file = life.root / path
        match chance.choice(("undone", "halved", "kept")):
            case "undone":
                if before is None:
                    file.unlink(missing_ok=True)
                else:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(before)
            case "halved" if file.exists():
                file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
            case _:
                pass


ALL, ODD, EVEN = range(1, 2000), range(1, 2000, 2), range(2, 2000, 2)


# A torn stop finds what a clean one finds, and more.
@pytest.mark.parametrize(
    ("torn", "effects"),
    [
        pytest.param(True, ODD, marks=pytest.mark.ci, id="torn, each second"),
        pytest.param(True, ALL, marks=pytest.mark.long, id="torn"),
        pytest.param(False, ALL, marks=pytest.mark.long, id="clean"),
    ],
)
async def test_stopped_at_each_effect(tmp_path: Path, torn: bool, effects: range) -> None:
    """No acknowledged commit is lost, no half batch is seen, the store opens and is clean."""
    assert await run(tmp_path, effects, torn=torn, cut=False, lost_index=False)


@pytest.mark.parametrize(
    "effects",
    [
        pytest.param(EVEN, marks=pytest.mark.ci, id="each second"),
        pytest.param(ALL, marks=pytest.mark.long, id="all"),
    ],
)
async def test_the_power_is_cut_at_each_effect(tmp_path: Path, effects: range) -> None:
    """The same when whatever was not synced is lost, half there or there, and the machine booted again."""
    assert await run(tmp_path, effects, torn=True, cut=True, lost_index=False)


@pytest.mark.ci
async def test_stopped_and_the_index_lost(tmp_path: Path) -> None:
    """The same when the index is gone afterwards: tree and journal are enough."""
    assert await run(tmp_path, range(1, 2000, 3), torn=True, cut=False, lost_index=True)


async def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """A commit that is in the journal stands, though the tree has no room; with room it is read."""
    full = False

    def failpoint(step: str) -> None:
        if full and step.startswith("write "):
            raise OSError(28, "No space left on device")

    life = Life(tmp_path / "store")
    store = await life.open(failpoint)
    first, second, third = life.steps()[:3]
    await first(store)
    full = True
    await second(store)
    with pytest.raises(StoreError, match="No space left"):
        await store.get(S1, "part", prt(4))
    with pytest.raises(StoreError, match="No space left"):
        await third(store)
    full = False
    assert await store.get(S1, "part", prt(4)) is not None
    await third(store)
    assert (await store.examine()).findings == ()
    await store.close()


@pytest.mark.ci
async def test_replaying_twice_is_replaying_once(tmp_path: Path) -> None:
    """A recovery that is itself interrupted, at each of its effects, ends in the same state."""
    states = await history(tmp_path / "whole")
    life = Life(tmp_path / "store")
    done = await crash(life, Crash(150, torn=True))
    for number in range(1, 100):
        failpoint = Crash(number, torn=True)
        try:
            store = await life.open(failpoint)
        except (Stop, TornWrite):
            continue
        try:
            await seen(store)
            break
        except (Stop, TornWrite):
            pass
        finally:
            await abandon(store)
    await check(life, states, done)
