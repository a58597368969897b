"""Live broadcast: bounded queues, one a subscriber. A slow one is cut; none waits for it.

Delivery: every frame published after the subscription, in order, until the queue is full. Then the queue is
emptied and the subscriber learns that it was cut; it catches up from the store by its last cursor.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from holdfast.feed.frame import Frame

FRAMES_MAX = 10_000
BYTES_MAX = 8 * 1024 * 1024


class Subscription:
    """One listener's queue."""

    def __init__(self, leave: Callable[["Subscription"], None], *, frames_max: int, bytes_max: int) -> None:
        self._leave = leave
        self._frames_max, self._bytes_max = frames_max, bytes_max
        self._queue: deque[Frame] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()
        self.cut = False
        """The queue overflowed; frames are missing from here on."""
        self.ended = False
        self._error: Exception | None = None
        self.dropped = 0

    def put(self, frame: Frame) -> None:
        """Add a frame, or cut the listener off. Never waits."""
        if self.cut:
            self.dropped += 1
            return
        self._bytes += len(frame.properties)
        if len(self._queue) >= self._frames_max or self._bytes > self._bytes_max:
            self.dropped += len(self._queue) + 1
            self._queue.clear()
            self._bytes = 0
            self.cut = True
        else:
            self._queue.append(frame)
        self._ready.set()

    async def take(self) -> list[Frame]:
        """Everything that has come, at least one frame; nothing once the listener was cut or ended."""
        while not self._queue and not self.cut and not self.ended:
            self._ready.clear()
            await self._ready.wait()
        if self._error is not None:
            raise self._error
        return self.take_nowait()

    def take_nowait(self) -> list[Frame]:
        """Everything that has come, perhaps nothing."""
        frames = list(self._queue)
        self._queue.clear()
        self._bytes = 0
        return frames

    def reopen(self) -> None:
        """Begin again after a cut."""
        self._queue.clear()
        self._bytes = 0
        self.cut = False

    def end(self, error: Exception | None = None) -> None:
        """Nothing more will come, perhaps because something broke."""
        self.ended = True
        self._error = error
        self._ready.set()

    def close(self) -> None:
        """Listen no more."""
        self._leave(self)


class Broadcast:
    """All listeners of a process."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def subscribe(self, *, frames_max: int = FRAMES_MAX, bytes_max: int = BYTES_MAX) -> Subscription:
        """A new queue, from the next frame on."""
        subscription = Subscription(self._subscriptions.discard, frames_max=frames_max, bytes_max=bytes_max)
        self._subscriptions.add(subscription)
        return subscription

    def publish(self, frame: Frame) -> None:
        """Pass a frame to every subscriber."""
        for subscription in self._subscriptions:
            subscription.put(frame)

    def close(self) -> None:
        """End every subscription: nothing more will come."""
        for subscription in self._subscriptions:
            subscription.end()

    def fail(self, error: Exception) -> None:
        """Fail every subscription: something broke."""
        for subscription in self._subscriptions:
            subscription.end(error)

    def __len__(self) -> int:
        return len(self._subscriptions)
