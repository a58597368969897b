"""What the shadow repositories may take, and whose they are."""

import os
from pathlib import Path

import pytest

from holdfast.errors import ContextError
from holdfast.location.shadow import budget, place, stored
from holdfast.location.shadow.repository import GIVEN_UP, Shadow
from holdfast.location.shadow.shadows import Shadows

MIB = 1 << 20


def noise() -> bytes:
    """What cannot be made smaller."""
    return os.urandom(MIB // 4)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path)) / "data"


def shadow_at(data: Path, name: str) -> Shadow:
    top = data.parent / name
    top.mkdir()
    return Shadow(place.git_dir(data, "global", top), top)


@pytest.mark.ci
def test_the_oldest_go_first_and_what_is_staged_stays(data: Path) -> None:
    """Down to less than the budget; what is left can be read, and git finds no fault."""
    shadow = shadow_at(data, "p")
    staged = shadow.keep_contents(place.staged_of("s"), [noise()])
    os.utime(shadow.git_dir / "refs" / place.staged_of("s") / staged[0], (0, 0))
    ids = []
    for number in range(24):
        ids += shadow.keep_contents(place.folder_of("s"), [noise()])
        path = shadow.git_dir / "refs" / place.folder_of("s") / ids[-1]
        os.utime(path, (number, number))

    assert not budget.enforce(shadow, 10 * MIB)
    assert budget.enforce(shadow, 4 * MIB)
    assert not budget.enforce(shadow, 4 * MIB)
    left = [each.id for each in shadow.kept() if each.folder == place.folder_of("s")]
    assert ids[-len(left) :] == left
    assert 0 < len(left) < 16
    assert [len(shadow.content(id)) for id in (*staged, *left)] == [MIB // 4] * (1 + len(left))
    assert shadow.size() < 4 * MIB


@pytest.mark.ci
def test_a_staged_revert_that_is_larger_than_the_budget_stays(data: Path) -> None:
    """Nothing else is kept, and the repository is not given up."""
    shadow = shadow_at(data, "p")
    staged = shadow.keep_contents(place.staged_of("s"), [noise() for _ in range(8)])
    shadow.keep_contents(place.folder_of("s"), [noise()])

    assert budget.enforce(shadow, MIB)

    assert sorted(each.id for each in shadow.kept()) == sorted(staged)
    assert [len(shadow.content(id)) for id in staged] == [MIB // 4] * 8


@pytest.mark.ci
def test_a_worktree_that_is_too_large_is_given_up(data: Path) -> None:
    """One moment of it takes more than the budget: nothing is kept, and for a day nothing is tried."""
    shadow = shadow_at(data, "p")
    for number in range(12):
        (shadow.worktree / str(number)).write_bytes(noise())
    shadow.take(place.folder_of("s"))

    assert budget.enforce(shadow, 2 * MIB)
    assert shadow.size() < MIB // 4
    with pytest.raises(ContextError, match="take more than the 2 MiB that snapshots may take"):
        shadow.take()
    shadow.keep_contents(place.folder_of("s"), [b"of a tool"])
    os.utime(shadow.git_dir / GIVEN_UP, (0, 0))
    assert shadow.take().id


def test_whose_they_are(data: Path) -> None:
    """Sessions that are unknown and worktrees that are gone are named; what is forgotten gives room back."""
    one, two = shadow_at(data, "one"), shadow_at(data, "two")
    (kept,) = one.keep_contents(place.folder_of("s1"), [noise()])
    (gone,) = one.keep_contents(place.folder_of("s2"), [noise()])
    one.keep_contents(place.staged_of("s2"), [b"staged"])
    two.keep_contents(place.folder_of("s1"), [noise()])
    two.worktree.rmdir()
    (data / "snapshot" / "stranger").mkdir()
    before = stored.size(data)

    found = {each.worktree: (each.is_gone, each.sessions) for each in stored.orphans(data, {"s1"})}
    assert found == {str(one.worktree): (False, ("s2",)), str(two.worktree): (True, ())}
    stored.forget(data, {"s2", "s3"})
    assert stored.size(data) < before - MIB // 8
    assert len(one.content(kept)) == MIB // 4
    with pytest.raises(ContextError):
        one.content(gone)
    assert [each.is_gone for each in stored.orphans(data, {"s1"})] == [True]


@pytest.mark.ci
async def test_the_room_is_looked_at_while_trees_are_taken(data: Path) -> None:
    """After a share of the budget was read, or after many trees; small ones do not make it due."""
    top = data.parent / "p"
    top.mkdir()
    worker = Shadows(data).at("global", top)
    worker.budget = 2 * MIB
    for number in range(40):
        (top / "noise").write_bytes(os.urandom(MIB // 8))
        await worker.take(place.folder_of("s"), within_s=60)
        if number == 0:
            assert worker.shadow.size() > MIB // 8

    assert worker.shadow.size() < 3 * MIB
