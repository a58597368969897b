"""One call under way: its time, and what its server asks the user meanwhile."""

import math
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import anyio

from holdfast.tools.mcp.elicitation import Elicitation, ElicitationAnswer
from holdfast.tools.mcp.server import CALL_S_MAX

ASKS_MAX: Final = 30
"""How often one call may ask the user; a server that asks on gets no answer."""

Ask = Callable[[Elicitation], Awaitable[ElicitationAnswer]]
"""Puts a form to the user of a call."""


class Progress(Protocol):
    """Takes a report of how far a call has come."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class CallUnderWay:
    """A call under way. `session` is whose call it is."""

    def __init__(self, session: str, ask: Ask, limit: anyio.CancelScope, wait_s: float) -> None:
        self.session = session
        self._ask = ask
        self._limit = limit
        self._wait_s = wait_s
        self._last = anyio.current_time() + CALL_S_MAX
        self._asking: list[anyio.CancelScope] = []
        self._asked = 0
        self._turn = anyio.Lock()

    def extend(self) -> None:
        """The server is at work: it has its time again, within the bound of all calls."""
        self._limit.deadline = min(anyio.current_time() + self._wait_s, self._last)

    async def ask(self, asked: Elicitation) -> ElicitationAnswer:
        """Ask the user, one thing after the other; meanwhile the call's time stands still.

        What the call leaves open is withdrawn.
        """
        self._asked += 1
        if self._asked > ASKS_MAX:
            return ElicitationAnswer(action="cancel")
        self._limit.deadline = math.inf
        with anyio.CancelScope() as scope:
            self._asking.append(scope)
            try:
                async with self._turn:
                    return await self._ask(asked)
            finally:
                self._asking.remove(scope)
                if not self._asking:
                    self._last = anyio.current_time() + CALL_S_MAX
                    self.extend()
        return ElicitationAnswer(action="cancel")

    def end(self) -> None:
        """The call is over: its questions are withdrawn."""
        for scope in self._asking:
            scope.cancel()
