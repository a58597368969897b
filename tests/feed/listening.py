"""Helpers for tests of the feed: a listener that gathers frames, and a client that keeps what they tell."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.feed.frame import Frame
from holdfast.feed.tail import Feed
from holdfast.schema.ids import Mint
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from tests.until import until

WAIT_S = 60.0
"""Only a test that fails waits for so long."""
_NUMBERS = itertools.count()
_MARK = "test.mark."


@asynccontextmanager
async def opened(place: Path) -> AsyncIterator[tuple[SqliteStore, Feed]]:
    """A store and its feed."""
    clock = FakeClock()
    store = await SqliteStore.open(place, clock=clock)
    feed = Feed(store, clock, Mint(clock))
    try:
        yield store, feed
    finally:
        await feed.close()
        await store.close()


async def close(stream: AsyncIterator[list[Frame]]) -> None:
    """Leave a stream; what `follow` answers is a generator, though its type does not promise one."""
    assert isinstance(stream, AsyncGenerator)
    await stream.aclose()


class Listener:
    """Follows in the background."""

    def __init__(self, feed: Feed, cursor: str | None = None, **options: Any) -> None:
        self.frames: list[Frame] = []
        self.client = Client()
        self._feed = feed
        self._marks: set[str] = set()
        self._came = asyncio.Event()
        self._task = asyncio.create_task(self._run(feed, cursor, options))

    async def _run(self, feed: Feed, cursor: str | None, options: dict[str, Any]) -> None:
        async for frames in feed.follow(cursor, **options):
            for frame in frames:
                if frame.type.startswith(_MARK):
                    self._marks.add(frame.type)
                else:
                    self.frames.append(frame)
                    self.client.take(frame)
            self._came.set()

    async def until(self, done: Callable[["Listener"], bool]) -> None:
        """Wait, not for ever, until what came suffices."""
        async with asyncio.timeout(WAIT_S):
            while not done(self):
                await self._came.wait()
                self._came.clear()

    async def heard_all(self) -> None:
        """Return when everything that was committed or published before this call has come: a mark, sent
        after it, has. One who is about to join misses the first.
        """
        mark = f"{_MARK}{next(_NUMBERS)}"

        async def look() -> bool:
            await self._feed.caught_up()
            self._feed.publish(mark, None, b"{}")
            await asyncio.sleep(0)
            return mark in self._marks

        await until(look)

    async def types(self, count: int) -> list[str]:
        """The types of the first frames."""
        await self.until(lambda it: len(it.frames) >= count)
        return [frame.type for frame in self.frames]

    async def close(self) -> None:
        """Follow no more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def ended(self) -> None:
        """Wait until the stream ends by itself."""
        async with asyncio.timeout(WAIT_S):
            await self._task


class Client:
    """Does what OpenCode's clients do: replace on update, append on delta, drop on removal."""

    def __init__(self) -> None:
        self.sessions: dict[str, Any] = {}
        self.messages: dict[str, Any] = {}
        self.parts: dict[str, Any] = {}
        self.faults: list[str] = []

    def take(self, frame: Frame) -> None:
        """Apply one frame, and note what a client could not make sense of."""
        told = frame.value()
        match frame.type:
            case "session.created" | "session.updated":
                self.sessions[told["sessionID"]] = told["info"]
            case "session.deleted":
                self.sessions.pop(told["sessionID"], None)
                self._drop(lambda record: record["sessionID"] == told["sessionID"])
            case "message.updated":
                if told["sessionID"] not in self.sessions:
                    self.faults.append(f"message {told['info']['id']} before its session")
                self.messages[told["info"]["id"]] = told["info"]
            case "message.removed":
                self.messages.pop(told["messageID"], None)
                self._drop(lambda record: record.get("messageID") == told["messageID"])
            case "message.part.updated":
                if told["part"]["messageID"] not in self.messages:
                    self.faults.append(f"part {told['part']['id']} before its message")
                self.parts[told["part"]["id"]] = told["part"]
            case "message.part.removed":
                self.parts.pop(told["partID"], None)
            case "message.part.delta":
                self._delta(told)
            case _:
                pass  # A client leaves alone what it does not know.

    def _drop(self, gone: Callable[[Any], bool]) -> None:
        for records in (self.messages, self.parts):
            for id in [id for id, record in records.items() if gone(record)]:
                del records[id]

    def _delta(self, told: Any) -> None:
        part = self.parts.get(told["partID"])
        if part is None:
            self.faults.append(f"delta for unknown part {told['partID']}")
            return
        if len(part[told["field"]]) != told["offset"]:
            self.faults.append(f"delta at {told['offset']} onto {len(part[told['field']])} characters")
        part[told["field"]] += told["delta"]
