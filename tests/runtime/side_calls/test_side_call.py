"""A small call beside the work gives back what it reserved."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from holdfast.runtime.budget import reservations
from holdfast.runtime.side_calls import side_call


async def test_what_was_reserved_is_given_back_though_the_call_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that closes in the middle of a title leaves no reservation that others would count."""
    asked, forgotten = anyio.Event(), list[str]()

    async def reserve(*_: object, **__: object) -> None:
        """There is enough."""

    async def heard(*_: object) -> str:
        asked.set()
        await anyio.sleep_forever()
        return "never"

    async def forget(engine: object, session: object, key: str) -> None:
        await anyio.lowlevel.checkpoint()
        forgotten.append(key)

    monkeypatch.setattr(reservations, "reserve", reserve)
    monkeypatch.setattr(reservations, "forget", forget)
    monkeypatch.setattr(side_call, "_complete", heard)
    nothing: Any = None
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(side_call.ask, nothing, nothing, nothing, nothing, "title")
            await asked.wait()
            group.cancel_scope.cancel()

    assert forgotten == ["title"]
