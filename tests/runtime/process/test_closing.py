"""What is closed behind the drains, when they have used up the time."""

from types import SimpleNamespace
from typing import Any, cast

import anyio

from holdfast.runtime.process.closing import close_behind


async def test_each_has_a_moment_of_its_own_when_the_time_is_over_and_none_has_more() -> None:
    """In their order; the first hangs, and is left."""
    told: list[str] = []

    def takes(name: str, time_s: float) -> Any:
        async def close(*_: object) -> None:
            told.append(name)
            await anyio.sleep(time_s)
            told.append(f"{name} has ended")

        return SimpleNamespace(close=close)

    def guard_close(*, wait_s: float) -> None:
        told.append(f"guard, {wait_s} s")

    engine = SimpleNamespace(
        background=takes("programs", 60.0),
        guard=SimpleNamespace(close=guard_close),
        ending=takes("ending", 0.01),
        boxes=takes("boxes", 0.01),
    )
    with anyio.fail_after(30):
        await close_behind(cast("Any", engine), takes("tasks", 0.01), anyio.current_time() - 1.0)

    assert told == [
        "programs",
        "tasks",
        "tasks has ended",
        "guard, 0.0 s",
        "ending",
        "ending has ended",
        "boxes",
        "boxes has ended",
    ]
