"""Continues the sessions that were cut off when this process lost its lease, once the store is reachable.

By the `recovery` setting of each session's directory at that moment: `auto` continues it, `ask` publishes
that it waits for `resume`, `off` does nothing. What must stay true: nothing continues after an unknown
outcome; only the user decides about that.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from holdfast.errors import HoldfastError, StoreError
from holdfast.log import event
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.engine import Engine
from holdfast.schema.config import Recovery
from holdfast.schema.fault import UnknownData, UnknownFault

AGAIN_S: Final = 0.5
"""The pause between two checks whether the store is reachable again."""


class Resumption:
    """The sessions that were cut off. `owner` registers this process again; `wake` starts a drain."""

    def __init__(
        self, engine: Engine, owner: Callable[[], Awaitable[str]], wake: Callable[..., Awaitable[None]]
    ) -> None:
        self._engine = engine
        self._owner = owner
        self._wake = wake
        self._sessions: dict[str, bool | None] = {}
        self._lost = anyio.Event()
        self._closed = False

    def note(self, session: str, *, force: bool | None = None) -> None:
        """The session's drain ended with the lease. With `force` given it has not begun: no setting decides
        about what was asked for, and that is whether to go on past an unknown outcome.
        """
        if not self._closed:
            self._sessions[session] = force
            self._lost.set()

    @property
    def waiting(self) -> list[str]:
        """The sessions that are not decided about yet."""
        return list(self._sessions)

    def close(self) -> None:
        """Continue no more sessions."""
        self._closed = True
        self._sessions.clear()

    async def keep(self) -> None:
        """Decide about sessions as they are noted, until cancelled."""
        while True:
            await self._lost.wait()
            if any(force is not None for force in self._sessions.values()):
                await anyio.sleep(AGAIN_S)  # What was refused at once would be refused again at once.
            for session in self.waiting:
                try:
                    await self._owner()
                    await self._one(session)
                except StoreError:  # Still unreachable.
                    await anyio.sleep(AGAIN_S)
                    break
                self._sessions.pop(session, None)
            if not self._sessions:
                self._lost = anyio.Event()

    async def _one(self, session: str) -> None:
        if (force := self._sessions.get(session)) is not None:
            await self._wake(session, force=force)
            return
        setting = await self._setting(session)
        event.info("process", "session.cut_off", session=session, recovery=setting)
        match setting:
            case "auto":
                await self._wake(session)
            case "ask":
                message = (
                    "the work was cut off when this process lost its lease; "
                    f"`holdfast session resume {session}` goes on with it"
                )
                fault = UnknownFault(data=UnknownData(message=message))
                status_events.error(self._engine.feed, session, fault)
            case "off":
                pass

    async def _setting(self, session: str) -> Recovery:
        """The session's `recovery` setting; `ask` where the settings cannot be read."""
        record = await self._engine.store.session(session)
        if record is None:
            return "off"
        try:
            workspace = await self._engine.workspace(record.value())
        except StoreError:
            raise
        except HoldfastError:
            return "ask"
        return workspace.loaded.config.recovery or "auto"
