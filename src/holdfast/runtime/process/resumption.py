"""Goes on with the sessions that were cut off when this process lost its lease, once the store is reachable.

Work that was under way by the `recovery` setting of its directory at that moment: `auto` continues it, `ask`
publishes that it waits for `resume`, `off` does nothing. What was asked for and not begun, and an interrupt
that was not settled, by no setting. What must stay true: nothing continues after an unknown outcome; only the
user decides about that; a session that cannot be decided about keeps no other waiting.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from holdfast.errors import RecordCorrupt, StoreError
from holdfast.log import event
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.process.due import CutOff, Due
from holdfast.schema.config import Recovery
from holdfast.schema.fault import UnknownData, UnknownFault

AGAIN_S: Final = 0.5
"""The pause between two checks whether the store is reachable again."""


class Resumption:
    """The sessions that were cut off. `owner` registers this process again; `wake` starts a drain, `take_on`
    does what was left.
    """

    def __init__(
        self,
        engine: Engine,
        owner: Callable[[], Awaitable[str]],
        wake: Callable[[str], Awaitable[None]],
        take_on: Callable[[str, Due], Awaitable[None]],
    ) -> None:
        self._engine = engine
        self._owner = owner
        self._wake = wake
        self._take_on = take_on
        self._sessions: dict[str, Due | CutOff] = {}
        self._lost = anyio.Event()
        self._closed = False

    def note(self, session: str, left: Due | CutOff) -> None:
        """The session's drain ended with the lease, or could not begin."""
        if not self._closed:
            self._sessions[session] = left
            self._lost.set()

    def forget(self, session: str) -> Due | CutOff | None:
        """A user has interrupted the session: what was left of it, which is decided by that."""
        return self._sessions.pop(session, None)

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
            if any(isinstance(left, Due) for left in self._sessions.values()):
                await anyio.sleep(AGAIN_S)  # What was refused at once would be refused again at once.
            for session in self.waiting:
                try:
                    await self._owner()
                except StoreError:  # Still unreachable.
                    await anyio.sleep(AGAIN_S)
                    break
                try:
                    await self._one(session)
                except StoreError:  # The others do not wait for this one.
                    await anyio.sleep(AGAIN_S)
            if not self._sessions:
                self._lost = anyio.Event()

    async def _one(self, session: str) -> None:
        left = self._sessions.get(session)
        setting = await self._setting(session) if isinstance(left, CutOff) else None
        # It may have been interrupted meanwhile, and noted anew while it is taken on.
        if left is None or self._sessions.get(session) is not left:
            return
        del self._sessions[session]
        if isinstance(left, Due):
            await self._take_on(session, left)
            return
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
            case "off" | None:
                pass

    async def _setting(self, session: str) -> Recovery:
        """The session's `recovery` setting; `ask` where the settings, or the session, cannot be read."""
        record = await self._engine.store.session(session)
        if record is None:
            return "off"
        try:
            workspace = await self._engine.workspace(record.value())
        except RecordCorrupt:
            return "ask"
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the other sessions do not wait for it
            event.warn("process", "session.undecided", session=session, error=event.where(error))
            return "ask"
        return workspace.loaded.config.recovery or "auto"
