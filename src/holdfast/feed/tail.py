"""Follows the feed: what changed after a cursor, then open parts with their text so far, then live.

No gap and no repeat: the queue is opened first, the store is read after it, and what the store already gave
is dropped from the queue (`joining`).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection
from contextlib import AbstractContextManager, aclosing, nullcontext

import msgspec

from holdfast.clock import Clock
from holdfast.feed.broadcast import BYTES_MAX, FRAMES_MAX, Broadcast, Subscription
from holdfast.feed.frame import RESYNC, Delta, Frame, PartKey
from holdfast.feed.join import Joining
from holdfast.feed.pump import Pump
from holdfast.feed.translate import part_event
from holdfast.schema.ids import Mint
from holdfast.store.base import Store
from holdfast.store.record import Resync

Hold = Callable[[str], AbstractContextManager[None]]

BEGINNING = "beginning"
"""The cursor before everything."""


class Feed:
    """The feed of one store in one process."""

    def __init__(
        self, store: Store, clock: Clock, mint: Mint, *, hold: Hold = lambda _: nullcontext()
    ) -> None:
        """`hold`: what is held for a session as long as it is followed."""
        self._store = store
        self._hold = hold
        self._clock = clock
        self._broadcast = Broadcast()
        self._pump = Pump(store, self._broadcast, clock, mint)

    def publish(
        self,
        type: str,
        session: str | None,
        properties: bytes,
        *,
        concerns: frozenset[str] = frozenset(),
        directory: str | None = None,
    ) -> None:
        """Announce something that is no state (an error, idle, a status): live only, never replayed."""
        frame = self._pump.frame(type, session, properties)
        frame.concerns = concerns
        frame.directory = directory
        self._pump.publish(frame)

    def delta(self, delta: Delta) -> None:
        """Announce text that continues an open part, whose record was committed before."""
        self._pump.delta(delta)

    async def follow(
        self,
        cursor: str | None = None,
        *,
        session: str | None = None,
        types: Collection[str] | None = None,
        frames_max: int = FRAMES_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> AsyncIterator[list[Frame]]:
        """Lists of frames, as they come: after the cursor, or from now on without one.

        A frame of type RESYNC means that something may have been missed and must be loaded again; the
        stream goes on after it.
        """
        await self._pump.start()
        subscription = self._broadcast.subscribe(frames_max=frames_max, bytes_max=bytes_max)
        held = nullcontext() if session is None else self._hold(session)
        try:
            with held:
                async with aclosing(self._follow(subscription, cursor, session)) as batches:
                    async for frames in batches:
                        wanted = _wanted(frames, session, types)
                        if wanted:
                            yield wanted
        finally:
            subscription.close()
            if not len(self._broadcast):
                await self._pump.stop()

    async def _follow(
        self, subscription: Subscription, cursor: str | None, session: str | None
    ) -> AsyncGenerator[list[Frame], None]:
        cursor = cursor or await self._store.head()
        while not subscription.ended:
            # Everything that the cursor's holder may have seen is behind the pump now, so none of it will
            # come to the queue again.
            await self._pump.advance()
            subscription.reopen()
            joining: Joining | None = (read := Joining())
            async for frames in self._catch_up(cursor, session, read):
                cursor = frames[-1].cursor or cursor
                yield frames
            joined = self._pump.rounds
            if not subscription.cut:  # Else the message of an open part may be among what was dropped.
                yield self._open_now(subscription, session, read)
            while not subscription.cut and not subscription.ended:
                frames = await subscription.take()
                if joining is not None:
                    frames = [joining.retold(frame) for frame in frames if not joining.is_known(frame)]
                    if self._pump.rounds >= joined + 2:  # A round that began after the catch-up has ended.
                        joining = None
                for frame in frames:
                    cursor = frame.cursor or cursor
                yield frames
            if subscription.cut:
                yield [self._resync("the listener was too slow; what changed since its last cursor follows")]

    async def _catch_up(
        self, cursor: str, session: str | None, joining: Joining
    ) -> AsyncIterator[list[Frame]]:
        """What changed after the cursor, up to now.

        A cursor may stand inside a batch: its rest holds nothing of what came after that batch began, so
        another one follows. What changed in the meantime is in both, and sent once.
        """
        at = None if cursor == BEGINNING else cursor
        is_fresh = at is None
        while True:
            changes = await self._store.changes(at, session)
            if isinstance(changes, Resync):
                frame = self._resync(changes.reason)
                frame.cursor = await self._store.head()
                yield [frame]
                return
            at = changes.cursor
            frames = []
            for change in changes.records:
                shown = self._pump.frames_of(change)
                frames += [joining.retold(frame) for frame in shown if not joining.is_known(frame)]
                joining.note(change)
            if frames:
                frames[-1].cursor = at
                yield frames
            if changes.complete and is_fresh:
                return
            is_fresh = is_fresh or changes.complete

    async def since(self, cursor: str, session: str) -> list[Frame]:
        """What changed in a session after the cursor, up to now: for who leaves, and must know the end."""
        return [
            frame
            async for frames in self._catch_up(cursor, session, Joining())
            for frame in _wanted(frames, session, None)
        ]

    def _open_now(self, subscription: Subscription, session: str | None, read: Joining) -> list[Frame]:
        """Open parts with their text so far. Without an await, so what is queued about them is older.

        A part whose record is news in the queue comes from there, behind its message. Queued deltas count
        only after that; all others continue a text that was sent since, here or from the store.
        """
        queued = [frame for frame in subscription.take_nowait() if not read.is_known(frame)]
        announced = {frame.part for frame in queued if frame.origin is not None}
        frames = []
        for record in self._pump.open_parts.showing(session):
            if (record.session, record.id) not in announced and not read.is_over(record):
                type, properties = part_event(record, now_ms=self._clock.now_ms())
                frames.append(self._pump.frame(type, record.session, properties))
        shown: set[PartKey] = set()
        for frame in queued:
            if frame.part is not None and frame.origin is not None:
                shown.add(frame.part)
            if frame.part is None or frame.part in shown:
                subscription.put(frame)
        return frames

    def _resync(self, reason: str) -> Frame:
        return self._pump.frame(RESYNC, None, b'{"reason":%b}' % msgspec.json.encode(reason))

    async def caught_up(self) -> None:
        """Return when listeners have everything that this process committed before this call.

        What is live only overtakes what comes back from the store; who publishes an end waits here first.
        """
        if len(self._broadcast):
            await self._pump.advance(recent=True)

    def closed(self, session: str, part: str) -> None:
        """A part whose text came as deltas was committed in its final state."""
        self._pump.closed(session, part)

    async def close(self) -> None:
        """End every stream, then the tail."""
        self._broadcast.close()
        await self._pump.stop(force=True)


def _wanted(frames: list[Frame], session: str | None, types: Collection[str] | None) -> list[Frame]:
    """The frames that the listener asked for; the last one holds how far the whole list has come."""
    wanted = [frame for frame in frames if _wants(frame, session, types)]
    cursor = next((frame.cursor for frame in reversed(frames) if frame.cursor), None)
    if wanted and cursor != wanted[-1].cursor:
        wanted[-1] = msgspec.structs.replace(wanted[-1], cursor=cursor)
    return wanted


def _wants(frame: Frame, session: str | None, types: Collection[str] | None) -> bool:
    if frame.type == RESYNC:
        return True
    if session is not None and frame.session != session and session not in frame.concerns:
        return False
    return types is None or frame.type in types
