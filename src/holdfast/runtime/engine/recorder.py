"""Writes the records of one running session, under its fence.

What must stay true: every write of a run carries the fence, so that a runner that lost its claim writes
nothing; ids that are made here rise within the session; what belongs together is one commit.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

import anyio
from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.errors import Conflict, InvariantBroken, LeaseLost, StoreUnsure
from holdfast.runtime.engine.patience import UNSURE_MAX, find_receipt
from holdfast.schema import ids
from holdfast.schema.ids import MessageID, Mint, PartID, SessionID
from holdfast.schema.message import Message, MessageWithParts
from holdfast.schema.part import Part
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Change, Expectation, Fence, Receipt, Rising
from holdfast.store.put import put

M = TypeVar("M", bound=Message)
P = TypeVar("P", bound=Part)

_TRIES = 200
"""Each failed try means that another prompt was admitted, and an inbox holds only so many."""
_QUICK = 3
_PAUSE_S = 0.02
_DEFER_S = 0.05
"""How long the end of an answer waits for what follows it."""


class Ids:
    """Makes ids, each greater than every one before it."""

    def __init__(self, next_id: Callable[[ids.Prefix], str]) -> None:
        self._next = next_id

    def message(self) -> MessageID:
        """For a message."""
        return MessageID(self._next("msg"))

    def part(self) -> PartID:
        """For a part."""
        return PartID(self._next("prt"))


Made = Callable[[Ids], Sequence[Change]]
"""Changes that need new ids."""


def nothing(_: Ids) -> Sequence[Change]:
    """No changes."""
    return ()


class Deferred(NamedTuple):
    """The end of an answer that is not written yet."""

    answer: MessageWithParts
    """Its message and the parts that end it, as they will be stored."""
    write: Callable[[Made, bool], Coroutine[Any, Any, None]]
    """Writes it in one commit with what follows; whether that commit releases the claim."""


class Recorder:
    """Writes the records of one run, under its fence."""

    def __init__(self, store: Store, fence: Fence, clock: Clock, mint: Mint) -> None:
        self._store = store
        self.fence = fence
        self.session = SessionID(fence.session)
        self.clock = clock
        self._mint = mint
        self._top = ""
        self._seen = 0
        self._overtaken = 0
        self._held: tuple[tuple[Change, ...], tuple[Expectation, ...]] = (), ()
        self._deferred: Deferred | None = None
        self._due: asyncio.TimerHandle | None = None
        self._late: asyncio.Task[None] | None = None
        """Writes a deferred end that nothing has followed in time."""
        self.lost = False
        """Set when this process can no longer be sure of its claim: nothing is written after that."""

    @property
    def has_written(self) -> bool:
        """Whether anything has been written under this claim."""
        return self._seen > 0

    async def commit(
        self, *changes: Change, expect: Sequence[Expectation] = (), release: bool = False
    ) -> Receipt:
        """Write changes under the fence, and wait for the result even when cancelled.

        Otherwise the write could land after the settlement of what it wrote.
        """
        if self.lost:
            raise LeaseLost(f"session {self.session} may be run by another process by now")
        await self._end_first()
        held, self._held = self._held, ((), ())
        batch = Batch((*held[0], *changes), (*held[1], *expect), self.fence, release)
        try:
            with anyio.CancelScope(shield=True):
                receipt = await self._write(batch)
        except BaseException:
            self._held = (*held[0], *self._held[0]), (*held[1], *self._held[1])
            raise
        self._seen = max(self._seen, receipt.seq)
        return receipt

    async def _write(self, batch: Batch) -> Receipt:
        """Write a batch once, also if the store's answer is lost.

        Then the fence gets another number, which keeps away a write that may still be on its way, and the
        store is asked what is there.
        """
        for attempt in range(1, UNSURE_MAX + 1):
            try:
                return await self._store.commit(batch)
            except StoreUnsure:
                if attempt == UNSURE_MAX or self.lost:
                    raise
                try:
                    self.fence = await self._store.renumber(self.fence)
                except LeaseLost:
                    # The claim is gone: with this very batch, if it releases it and was written.
                    receipt = await find_receipt(self._store, batch, after=self._seen)
                    if not batch.release or receipt is None:
                        raise
                    return receipt
                if (receipt := await find_receipt(self._store, batch, after=self._seen)) is not None:
                    return receipt
                batch = replace(batch, fence=self.fence)
        raise AssertionError

    def hold(self, *changes: Change, expect: Sequence[Expectation] = ()) -> None:
        """Write changes together with the next write, before it: they are not worth a sync of their own.

        The caller makes sure that a write, or `flush`, follows soon.
        """
        self._held = (*self._held[0], *changes), (*self._held[1], *expect)

    async def flush(self) -> None:
        """Write the held changes, and a deferred end."""
        await self.write_deferred()
        if self._held[0]:
            await self.commit()

    def defer(self, deferred: Deferred) -> None:
        """Write the end of an answer together with what follows it: the next answer, or the release.

        Any other write comes after it, and so does the next read of the boundary (`deferred_end`). If nothing
        follows soon, it is written alone.
        """
        self._deferred = deferred
        self._due = asyncio.get_running_loop().call_later(_DEFER_S, self._begin_late)

    async def deferred_end(self) -> MessageWithParts | None:
        """The end of the last answer, if it is not in the store yet.

        It is written now if something of that answer is held, as a text that ended behind its calls is: the
        store alone would be read without it.
        """
        await self._wait_for_late()
        if self._held[0]:
            await self._end_first()
        return None if self._deferred is None else self._deferred.answer

    async def write_deferred(self, also: Made = nothing, *, release: bool = False) -> bool:
        """Write a deferred end in one commit with what `also` makes; False if there is none."""
        await self._wait_for_late()
        if self._deferred is None:
            return False
        await self._write_deferred(also, release=release)
        return True

    async def _end_first(self) -> None:
        """Write a deferred end before ids are made for what comes after it."""
        if self._deferred is not None:
            await self._write_deferred(nothing, release=False)

    async def _write_deferred(self, also: Made, *, release: bool) -> None:
        deferred, self._deferred = self._deferred, None
        assert deferred is not None
        assert self._due is not None
        self._due.cancel()
        try:
            await deferred.write(also, release)
        except BaseException:
            self._deferred = deferred  # The next write tries again.
            raise

    def _begin_late(self) -> None:
        if self._deferred is not None:
            self._late = asyncio.create_task(self._write_late())
            self._late.add_done_callback(lambda late: late.cancelled() or late.exception())

    async def _write_late(self) -> None:
        with contextlib.suppress(Exception):  # It stays deferred: the next write meets the same error.
            await self._end_first()

    async def _wait_for_late(self) -> None:
        if self._late is not None:
            await asyncio.wait({self._late})
            self._late = None

    async def add_message(self, make: Callable[[MessageID], M], *more: Change) -> M:
        """Write a new message, its id greater than every one before it, together with other changes."""
        made: list[M] = []

        def compose(ids: Ids) -> Sequence[Change]:
            made[:] = [make(ids.message())]
            return put(made[0]), *more

        await self.write(compose)
        return made[0]

    async def add_parts(
        self,
        *makes: Callable[[PartID], Part],
        more: Sequence[Change] = (),
        expect: Sequence[Expectation] = (),
    ) -> list[Part]:
        """Write new parts with ascending ids, together with other changes, in one commit."""
        made: list[Part] = []

        def compose(ids: Ids) -> Sequence[Change]:
            made[:] = [make(ids.part()) for make in makes]
            return *map(put, made), *more

        await self.write(compose, expect=expect)
        return made

    async def write(
        self, compose: Made, *, expect: Sequence[Expectation] = (), release: bool = False
    ) -> Receipt:
        """Write several messages and parts in one commit: `compose` makes them from ascending ids, and makes
        them anew if another process has made a greater id meanwhile than those before them.
        """
        await self._end_first()
        for _ in range(_TRIES):
            before = self._top
            changes = compose(Ids(self._next))
            try:
                receipt = await self.commit(*changes, expect=(Rising(self.session), *expect), release=release)
            except Conflict:
                record = await self._store.session(self.session)
                # Not the last of ours: of two processes in one millisecond the other's may lie among them.
                if record is None or record.top <= before:
                    raise
                self._top = max(self._top, record.top)
                self._overtaken += 1
                if self._overtaken > _QUICK:  # A random pause, so that two writers do not collide again.
                    await anyio.sleep(_PAUSE_S * random.random())  # noqa: S311 - a pause, not a secret
            else:
                self._overtaken = 0
                return receipt
        raise InvariantBroken(f"no id above those of session {self.session} could be made")

    def _next(self, prefix: ids.Prefix) -> str:
        id = self._mint.above(prefix, self._top)
        self._top = ids.body(id)
        return id
