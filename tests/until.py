"""Waiting until something is so that no event announces: looked for again and again, but not for ever."""

import inspect
from collections.abc import Callable
from typing import Any

import anyio

from holdfast.store.base import Store

WITHIN_S = 60.0
"""Only a test that fails waits for so long: a machine that stalls must not fail one that passes."""
PAUSE_S = 0.005
MISSED_S = 0.25
"""A watch is a hint, and may be missed; then this long passes."""


async def until(look: Callable[[], Any], *, store: Store | None = None, within_s: float = WITHIN_S) -> Any:
    """The first answer of `look` that is true. It may be awaitable. `store`: look again after each commit."""
    watch = None if store is None else store.watch()
    try:
        with anyio.fail_after(within_s):
            while True:
                found = look()
                if inspect.isawaitable(found):
                    found = await found
                if found:
                    return found
                if watch is None:
                    await anyio.sleep(PAUSE_S)
                else:
                    with anyio.move_on_after(MISSED_S):
                        await watch.wait()
    finally:
        if watch is not None:
            watch.close()
