"""Group commit: batches that wait together go into one transaction and share one sync.

One group is under way at a time; whatever comes meanwhile makes the next one. Each batch is a subtransaction
with an answer of its own. A batch that was submitted is written even if its caller waits no more.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from holdfast.errors import HoldfastError, InvalidInput, InvariantBroken, StoreBusy, StoreUnsure
from holdfast.store.batch import Receipt
from holdfast.store.postgres.address import Address
from holdfast.store.postgres.arguments import Draft, arguments
from holdfast.store.postgres.connections import USE_S, Connections
from holdfast.store.postgres.failure import (
    AGAIN,
    ATTEMPTS,
    BY_CODE,
    LOST,
    WAITED,
    translated,
    unsendable,
    unsent,
)
from holdfast.store.postgres.sql import statements

GROUP_MAX = 50
"""Also the bound of subtransactions that the server keeps in fast memory (64)."""

Waiting = tuple[Draft, "asyncio.Future[Receipt]"]


class GroupCommit:
    """The one writer of this process."""

    def __init__(
        self,
        connections: Connections,
        address: Address,
        *,
        gone: Callable[[], Awaitable[list[str]]],
        now_ms: Callable[[], int | None],
        written: Callable[[], None],
    ) -> None:
        self._connections = connections
        self._one = statements(address.schema)["commit_one"]
        self._several = statements(address.schema)["commit_group"]
        self._shown = address.shown
        self._gone = gone
        self._now_ms = now_ms
        self._written = written
        self._queue: deque[Waiting] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def commit(self, draft: Draft) -> Receipt:
        """Write a batch with whatever else waits."""
        if self._closed:
            raise InvalidInput(f"the store {self._shown} was closed")
        answer: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._queue.append((draft, answer))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await answer

    async def close(self) -> None:
        """Write what was handed in, then no more."""
        self._closed = True
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        """Write group after group, as long as callers wait."""
        while self._queue:
            group = [self._queue.popleft() for _ in range(min(GROUP_MAX, len(self._queue)))]
            await self._write(group)

    async def _write(self, group: list[Waiting]) -> None:
        try:
            answers = await self._send([draft for draft, _ in group])
        except HoldfastError as error:
            if len(group) > 1 and not isinstance(error, StoreBusy):
                # Something in the group cannot be written at all: find out which, and let it fail alone.
                for each in group:
                    await self._write([each])
                return
            answers = [error] * len(group)
        except Exception as error:  # noqa: BLE001 - it must reach the callers, or they wait for ever
            answers = [InvariantBroken(f"a commit failed in an unknown way: {error!r}")] * len(group)
        for (_, waiting), answer in zip(group, answers, strict=True):
            if waiting.done():
                continue
            if isinstance(answer, Receipt):
                waiting.set_result(answer)
            else:
                waiting.set_exception(answer)
        if any(isinstance(answer, Receipt) and answer.seq for answer in answers):
            self._written()

    def _fail_waiting(self, message: str) -> None:
        """Those in line would wait as long again, group after group, and nothing of theirs was sent."""
        while self._queue:
            _, waiting = self._queue.popleft()
            if not waiting.done():
                waiting.set_exception(StoreBusy(message))

    async def _send(self, drafts: list[Draft]) -> list[Receipt | HoldfastError]:
        gone = await self._gone() if any(draft.judges for draft in drafts) else []
        values = arguments(drafts, gone, self._now_ms())
        begun_s = time.monotonic()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._connections.use() as connection:
                    try:
                        if len(drafts) == 1:
                            return [drafts[0].receipt(await connection.fetchval(self._one, *values))]
                        rows = await connection.fetch(self._several, *values)
                    except AGAIN:
                        if attempt == ATTEMPTS:
                            raise
                        continue
                    except LOST as error:
                        if unsendable(error) or unsent(error) or isinstance(error, WAITED):
                            raise
                        connection.terminate()
                        overdue = time.monotonic() - begun_s >= USE_S - 1
                        why = (
                            "did not confirm a commit in time (does its synchronous standby answer?)"
                            if overdue
                            else "was lost during a commit"
                        )
                        if overdue:
                            self._fail_waiting(f"{self._shown} {why}; try again")
                        raise StoreUnsure(
                            f"{self._shown} {why}, which may or may not have been written; "
                            "read before you repeat it"
                        ) from error
            except HoldfastError:
                raise
            except Exception as error:
                raise translated(error, self._shown) from error
            return [_answer(draft, row) for draft, row in zip(drafts, rows, strict=True)]
        raise StoreBusy(f"{self._shown} undid the commit {ATTEMPTS} times for others; try again")


def _answer(draft: Draft, row: tuple[list[int] | None, str | None, str | None]) -> Receipt | HoldfastError:
    numbers, code, message = row
    return BY_CODE[code](message or "") if code is not None else draft.receipt(numbers or ())
