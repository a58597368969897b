"""One durable tail a process: reads what changed in the store and passes it to every listener.

Whichever process committed, the records come back through the store. Deltas do not; they are
held until the record of their part was announced, so that no listener gets text of an unknown part.
"""

import asyncio

import msgspec

from holdfast.clock import Clock
from holdfast.errors import StoreError
from holdfast.feed.broadcast import Broadcast
from holdfast.feed.frame import RESYNC, Delta, Frame, origin_of
from holdfast.feed.open_parts import OpenParts
from holdfast.feed.translate import event_of, former_event
from holdfast.schema.ids import Mint
from holdfast.schema.stored import Mark
from holdfast.store.base import Store
from holdfast.store.record import Changed, Resync

PAUSE_S, PAUSE_MAX_S = 0.1, 2.0
FAULTS_MAX = 3
"""After so many faults in a row that are not the store's, listeners get an error."""


class Pump:
    """Runs while there are listeners."""

    def __init__(self, store: Store, broadcast: Broadcast, clock: Clock, mint: Mint) -> None:
        self._store = store
        self._broadcast = broadcast
        self._clock = clock
        self._mint = mint
        self._cursor: str | None = None
        self._midway = False
        """The cursor stands inside a batch, whose rest the store could not deliver."""
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.open_parts = OpenParts()
        self.rounds = 0
        """How many rounds have begun: after one that began later, a joiner needs no more filtering."""

    async def start(self) -> None:
        """Begin at this moment, knowing the parts that are open."""
        async with self._lock:
            if self._task is not None and not self._task.done():
                return
            self._cursor, self._midway = await self._store.head(), False
            stale = self.open_parts.known()
            for record in await self._store.select("part", mark=Mark.OPEN):
                self.open_parts.announce(record)
                stale.discard((record.session, record.id))
            for part in stale:
                self.open_parts.close(part)
            self._task = asyncio.create_task(self._run(), name="holdfast-feed")

    async def advance(self, *, recent: bool = False) -> None:
        """Deliver everything that was committed before this call; with `recent`, by this process."""
        async with self._lock:
            await self._round(recent=recent)

    async def stop(self, *, force: bool = False) -> None:
        """End the tail, unless a listener has joined meanwhile."""
        async with self._lock:
            if len(self._broadcast) and not force:
                return
            task, self._task = self._task, None
            if task is not None:
                task.cancel()
        # Outside the lock, which the task may be waiting for. Only its end is awaited: a cancellation that is
        # raised here is our own.
        if task is not None:
            await asyncio.wait([task])

    async def _run(self) -> None:
        """Follow the store; one that cannot be read for a while is asked again, less and less often."""
        pause_s, faults = PAUSE_S, 0
        watch = self._store.watch()
        try:
            while self._task is asyncio.current_task():
                # First look, then wait: what was committed before the watch began wakes no one.
                try:
                    async with self._lock:
                        await self._round(recent=True)
                    pause_s, faults = PAUSE_S, 0
                except Exception as error:
                    faults += not isinstance(error, StoreError)
                    if faults > FAULTS_MAX:
                        raise
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, PAUSE_MAX_S)
                    continue
                await watch.wait()
        except Exception as error:  # noqa: BLE001 - listeners must get it, or they wait for ever
            self._broadcast.fail(error)
        finally:
            watch.close()

    async def _round(self, *, recent: bool = False) -> None:
        """Read to the end of a batch and publish it page by page; what was published is behind the cursor.

        The rest of an interrupted batch holds nothing of what came after its beginning: another one follows.
        """
        self.rounds += 1
        is_fresh = not self._midway
        while True:
            changes = await self._store.changes(self._cursor, recent=recent)
            if isinstance(changes, Resync):
                self._cursor, self._midway = await self._store.head(), False
                reason = msgspec.json.encode(changes.reason)
                self.publish(self.frame(RESYNC, None, b'{"reason":%b}' % reason))
                return
            frames = [frame for change in changes.records for frame in self._frames(change)]
            if frames and changes.complete:
                frames[-1].cursor = changes.cursor
            self._cursor, self._midway = changes.cursor, not changes.complete
            for frame in frames:
                self.publish(frame)
            if changes.complete and is_fresh:
                return
            is_fresh = is_fresh or changes.complete

    def _frames(self, change: Changed) -> list[Frame]:
        record = change.record
        if change.removed or (change.again and record.kind != "part"):
            message = record.id if record.kind == "message" else None
            part = record.id if record.kind == "part" else None
            if record.kind in ("session", "message", "part"):
                self.open_parts.forget(session=record.session, message=message, part=part)
        if record.kind == "part" and not change.removed:
            record = self.open_parts.announce(record)
        frames = self.frames_of(
            msgspec.structs.replace(change, record=record), ahead=record is not change.record
        )
        for frame in frames:
            frame.part = (record.session, record.id) if record.kind == "part" else None
        return frames

    def frames_of(self, change: Changed, *, ahead: bool = False) -> list[Frame]:
        """The frames that announce a change, perhaps none; of a record made again first what is gone."""
        record = change.record
        frames = []
        former = former_event(change)
        if former is not None:
            frames.append(self.frame(former[0], record.session, former[1]))
            # A listener that has read anything of the new life has dropped the former one.
            before = msgspec.structs.replace(record, seq=record.position)
            frames[0].origin = origin_of(before, removed=True)
        event = event_of(change, now_ms=self._clock.now_ms())
        if event is not None:
            frames.append(self.frame(event[0], record.session, event[1]))
            frames[-1].origin = origin_of(record, removed=change.removed, ahead=ahead)
        return frames

    def frame(self, type: str, session: str | None, properties: bytes) -> Frame:
        """A frame with an id of its own."""
        return Frame(type, self._mint.tick(), session, properties)

    def publish(self, frame: Frame) -> None:
        """Pass a frame to every listener."""
        self._broadcast.publish(frame)

    def closed(self, session: str, part: str) -> None:
        """A part was written to its end and committed; while the tail runs, it reads that by itself."""
        if self._task is None:
            self.open_parts.close((session, part))

    def delta(self, delta: Delta) -> None:
        """Live text. Before its part was announced it is only noted: the announcement will show it."""
        fresh = self.open_parts.add(delta)
        if fresh is not None and len(self._broadcast):
            frame = self.frame("message.part.delta", fresh.session, fresh.properties())
            frame.part = (fresh.session, fresh.part)
            self._broadcast.publish(frame)
