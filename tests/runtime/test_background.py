"""Tasks beside one another: what one of them raises is no business of the others."""

import anyio
import pytest

from holdfast.runtime import background
from holdfast.runtime.background import Background


async def test_a_task_that_fails_begins_again_and_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The listener fails twice, a short task once: the drain beside them goes on, and both are warned of."""
    monkeypatch.setattr(background, "PAUSE_S", 0.0)
    warned: list[str] = []
    begun, third, drained = 0, anyio.Event(), anyio.Event()

    async def listener() -> None:
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

    beside = Background(listener, warn=warned.append)
    group = await beside.group()
    group.start_soon(drain)
    beside.start(title)
    with anyio.fail_after(5):
        await drained.wait()
    assert await beside.group() is group
    await beside.close()

    names = sorted(line.partition(" failed, and the rest goes on: ")[0].rpartition(".")[2] for line in warned)
    assert names == ["listener", "listener", "title"]


async def test_a_background_that_was_closed_begins_nothing() -> None:
    """Whoever asks for it then is refused, not left waiting."""
    from holdfast.errors import Refused

    beside = Background(warn=print)
    await beside.group()
    await beside.close()

    with pytest.raises(Refused):
        await beside.group()
