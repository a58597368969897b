"""Tasks beside one another: what one of them raises is no business of the others."""

import anyio
import pytest

from holdfast.errors import Refused
from holdfast.runtime.process import background
from holdfast.runtime.process.background import Background


async def test_a_task_that_fails_begins_again_and_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The listener fails twice, a short task once: the drain beside them goes on, and both are warned of."""
    monkeypatch.setattr(background, "PAUSE_S", 0.0)
    warned: list[str] = []
    begun, third, drained = 0, anyio.Event(), anyio.Event()

    async def watcher() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise ZeroDivisionError(f"look {begun}")
        third.set()
        await anyio.sleep_forever()

    async def title() -> None:
        raise KeyError("title")

    async def drain() -> None:
        await third.wait()
        drained.set()

    beside = Background(watcher, warn=warned.append)
    group = await beside.group()
    group.start_soon(drain)
    beside.start(title)
    with anyio.fail_after(60):
        await drained.wait()
    assert await beside.group() is group
    await beside.close()

    names = sorted(line.partition(" failed, and the rest goes on: ")[0].rpartition(".")[2] for line in warned)
    assert names == ["title", "watcher", "watcher"]


async def test_a_background_that_was_closed_begins_nothing() -> None:
    """Whoever asks for it then is refused, not left waiting."""
    beside = Background(warn=print)
    await beside.group()
    await beside.close()

    with pytest.raises(Refused):
        await beside.group()


async def test_who_closes_it_within_a_bound_leaves_then_and_what_runs_is_done() -> None:
    """The end of the wait does not reach into a task that settles what it has begun; nothing joins it."""
    joined = False

    async def join() -> None:
        nonlocal joined
        joined = True

    begun, gate, done, left = (anyio.Event() for _ in range(4))

    async def settle() -> None:
        with anyio.CancelScope(shield=True):
            begun.set()
            await gate.wait()
            done.set()

    async def leave() -> None:
        with anyio.CancelScope(deadline=anyio.current_time()):
            await beside.close()
        left.set()

    beside = Background(warn=print)
    (await beside.group()).start_soon(settle)
    await begun.wait()
    async with anyio.create_task_group() as group:
        group.start_soon(leave)
        try:
            with anyio.fail_after(60):
                await left.wait()
            assert not done.is_set()
            beside.start(join)
            with pytest.raises(Refused):
                await beside.group()
        finally:
            gate.set()
        with anyio.fail_after(60):
            await done.wait()
        await beside.close()
    assert not joined
