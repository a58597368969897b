"""A process that is killed in the middle of an undo: between any two writes."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.app import Holdfast
from holdfast.location import write_path
from holdfast.location.shadow.repository import Shadow
from holdfast.sessions.undo import write_files
from holdfast.testing.clock import FakeClock
from tests.examples import EXPLORES
from tests.sessions.undo_world import LINES, UndoWorld, configure, edited

pytestmark = pytest.mark.needs("git")

BEFORE = {"a": LINES, "b": b"0\n", "gone": b"was\n"}
FIRST = {"first": b"first\n", "b": b"1\n"}
SECOND = {"a": edited((3, "agent\n")), "b": b"2\n", "new": b"new\n", "gone": None}
USER = edited((3, "agent\n"), (12, "user\n"))
DONE = {"first": b"first\n", "a": USER, "b": b"2\n", "new": b"new\n"}
LAST = {"first": b"first\n", "a": edited((12, "user\n")), "b": b"1\n", "gone": b"was\n"}
ALL = {"a": edited((12, "user\n")), "b": b"0\n", "gone": b"was\n"}
BEGIN = {"revert": DONE, "move": LAST, "unrevert": LAST}
END = {"revert": LAST, "move": ALL, "unrevert": DONE}


class Killed(BaseException):
    """The process ends here."""


class Steps:
    """Counts what is written, and kills the process at the n-th step."""

    def __init__(self) -> None:
        self.left = -1

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            self.step()
            return work(*given, **named)

        return wrapped

    @asynccontextmanager
    async def at(self, n: int) -> AsyncIterator[None]:
        """Kill the process at the n-th step of what is done here."""
        self.left = n
        try:
            yield
        finally:
            self.left = -1


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    made = Steps()
    for holder, name in ((write_path, "put"), (write_path, "remove"), (Shadow, "keep_contents")):
        monkeypatch.setattr(holder, name, made.around(getattr(holder, name)))
    monkeypatch.setattr(write_files, "_set_mode", made.around(write_files._set_mode))
    return made


@asynccontextmanager
async def opened(place: Path, steps: Steps, clock: FakeClock) -> AsyncIterator[Holdfast]:
    """A process: its commits count."""
    async with holdfast.open(f"sqlite://{place}/store.db", clock=clock) as hf:
        store = hf.sessions.access.store
        commit = store.commit

        async def counted(batch: Any) -> Any:
            steps.step()
            return await commit(batch)

        store.commit = counted  # type: ignore[method-assign]
        yield hf


async def changed(hf: Holdfast, clock: FakeClock, top: Path) -> UndoWorld:
    """A project in which the agent, and then the user, changed something."""
    top.mkdir()
    world = await UndoWorld(hf, clock, top).begin()
    for name, data in BEFORE.items():
        world.put(name, data)
    await world.prompt()
    await world.agent(FIRST)
    await world.prompt()
    await world.agent(SECOND)
    world.put("a", USER)
    return world


async def revert_all(world: UndoWorld) -> None:
    await world.revert((await world.said(reverted=True))[0])


async def revert_last(world: UndoWorld) -> None:
    await world.revert((await world.said(reverted=True))[2])


async def unrevert(world: UndoWorld) -> None:
    await world.unrevert()


WORKS = {"revert": revert_last, "move": revert_all, "unrevert": unrevert}


def states(*all_: dict[str, bytes]) -> dict[str, set[bytes | None]]:
    """What each file may hold."""
    names = {name for each in all_ for name in each}
    return {name: {each.get(name) for each in all_} for name in names}


THEN = ("again", "opposite", "prompt")


@pytest.mark.ci
@pytest.mark.parametrize("how", ["revert", "move", "unrevert"])
async def test_killed_at_every_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: Steps, how: str
) -> None:
    """Each file holds what it held, or what it becomes. The next process finishes, or undoes, it exactly:
    whether it is told to do the same again, the opposite, or to go on with a prompt.
    """
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    configure(tmp_path / "home")
    clock = FakeClock()
    n, killed = 0, True
    while killed:
        n += 1
        # In turn; each after each where that is cheap, and in the long run.
        for then in THEN if EXPLORES or how == "move" else (THEN[(n + len(how)) % 3],):
            killed = False
            async with opened(tmp_path, steps, clock) as hf:
                world = await changed(hf, clock, tmp_path / f"{n}-{then}")
                if how != "revert":
                    await revert_last(world)
                assert world.files() == BEGIN[how]
                try:
                    async with steps.at(n):
                        await WORKS[how](world)
                except Killed:
                    killed = True
            found = world.files()
            allowed = states(BEGIN[how], END[how])
            assert all(found.get(name) in allowed[name] for name in allowed)
            assert found.keys() <= allowed.keys()
            async with opened(tmp_path, steps, clock) as hf:
                world.hf = hf
                await finished(world, how, then)
    assert n >= {"revert": 9, "move": 6, "unrevert": 9}[how]  # The last ones write the diffs.


async def finished(world: UndoWorld, how: str, then: str) -> None:
    """What another process makes of it; a preview of it names no conflict, since there is none."""
    first = (await world.said(reverted=True))[0]
    for preview in (
        await world.hf.sessions.revert(world.session, first, preview=True),
        await world.hf.sessions.unrevert(world.session, preview=True),
    ):
        assert preview.conflicts == []
    staged = (await world.hf.sessions.get(world.session)).revert
    if staged is not None and staged.leaving:  # Then the last prompt is the one that is taken back next.
        preview = await world.hf.sessions.revert(world.session, preview=True)
        assert {each.path for each in preview.files} == {"a", "b", "gone", "new"}
    if then == "prompt":
        kept = await world.said() if staged is None or not staged.leaving else await world.said(reverted=True)
        await world.hf.sessions.prompt(world.session, "on", no_reply=True)
        assert (await world.hf.sessions.get(world.session)).revert is None
        assert (await world.said(reverted=True))[:-1] == kept
        assert world.files() == {0: ALL, 2: LAST, 4: DONE}[len(kept)]
    elif then == "again":
        await WORKS[how](world)
        assert world.files() == END[how]
    else:
        await WORKS["revert" if how == "unrevert" else "unrevert"](world)
        assert world.files() == (LAST if how == "unrevert" else DONE)
        assert len(await world.said(reverted=True)) == 4
