"""Closes what was opened, the highest room first, each even when another cannot be closed."""

from collections.abc import Awaitable, Callable

import anyio


class Closing:
    """What is open, by name; `order` says which is closed before which."""

    def __init__(self, *order: str) -> None:
        self._order = order
        self._closes: dict[str, Callable[[], Awaitable[None]]] = {}

    def add(self, name: str, close: Callable[[], Awaitable[None]]) -> None:
        """Close this too."""
        assert name in self._order, f"{name} has no place in the order of closing"
        self._closes[name] = close

    async def close(self) -> None:
        """Close everything, also for a caller that is cancelled meanwhile. The first error is raised then."""
        errors: list[Exception] = []
        with anyio.CancelScope(shield=True):
            for name in self._order:
                if (close := self._closes.pop(name, None)) is not None:
                    try:
                        await close()
                    except Exception as error:  # noqa: BLE001 - raised when the rest is closed
                        errors.append(error)
        if errors:
            raise errors[0]
