"""The port: what every storage engine promises.

All or nothing, durable on return, `seq` strictly rising within a session, order by number and never by
clock or id. One contract suite (`holdfast.testing.store_contract`) runs over every backend.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from holdfast.schema.stored import Kind, Mark
from holdfast.store.batch import Batch, Fence, Held, Receipt
from holdfast.store.owner import Owner
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.store.record import (
    Changes,
    Found,
    JsonPage,
    MadePage,
    MessagePage,
    Resync,
    SessionPage,
    SessionRecord,
    StoredMessage,
    StoredRecord,
)
from holdfast.store.report import Progress, Report

T = TypeVar("T")

FORMAT = 1
"""The version of the stored format, the same number for every backend."""

TOMBSTONE_MS = 30 * 24 * 3600 * 1000
"""How long a removal is remembered for followers that were away."""


class Failpoint(Protocol):
    """Called with a name before each durable step; a crash test stops the process there."""

    def __call__(self, step: str, /) -> None: ...


def no_failpoint(step: str, /) -> None:
    """What a store does at its failpoints outside of tests: nothing."""


class Watch(Protocol):
    """Wakes when this or another process may have changed records. Wakes may be spurious, never lost."""

    async def wait(self) -> None:
        """Return once something may have changed since the last call; at the latest after a second."""

    def close(self) -> None: ...


class Store(Protocol):
    """A storage engine."""

    async def commit(self, batch: Batch) -> Receipt:
        """Write a batch. A cancelled wait does not undo it: it may or may not have been written.

        Raises `LeaseLost` for a stale fence, `Conflict` for an expectation that does not hold, `NotFound`
        for a record whose session or parent is missing, `StoreBusy` when the store could not be had in time.
        """

    async def session(self, id: str) -> SessionRecord | None: ...

    async def sessions(self, query: SessionQuery) -> SessionPage: ...

    async def get(self, session: str, kind: Kind, id: str) -> StoredRecord | None: ...

    async def select(
        self, kind: Kind, *, session: str | None = None, mark: Mark | None = None
    ) -> Sequence[StoredRecord]:
        """Every record of a kind, of one session or (for scoped kinds and open records) of the store."""

    async def holders(self, kind: Kind, id: str) -> Sequence[str]:
        """The sessions that have a record of this kind and id, the first made first.

        Ids are names within a session; this looks into each of them, without reading any content.
        """

    async def messages(self, query: MessageQuery) -> MessagePage:
        """A page; `NotFound` when there is no such session."""

    async def messages_json(self, query: MessageQuery) -> JsonPage:
        """The same page for callers that only forward JSON: nothing is decoded."""

    async def messages_made(self, query: MessageQuery, make: Callable[[bytes], T]) -> MadePage[T]:
        """The same page, made of the JSON of each message while it is read: no page is held as JSON.

        `make` is called in any thread; what it raises, this raises.
        """

    async def originals(self, session: str, below: int | None = None) -> Sequence[StoredMessage]:
        """The messages of a session, to be copied (`Copies`), in the order of their creation.

        `below`: only those whose place in the model's history is before this one.
        """

    async def head(self) -> str:
        """The cursor of this moment."""

    async def changes(
        self, cursor: str | None, session: str | None = None, *, limit: int = 1000, recent: bool = False
    ) -> Changes | Resync:
        """What changed after the cursor (None: everything), in a session or in the whole store.

        `recent` contents itself with what this process has committed, where that is known without reading:
        what another process committed after it comes with the next call, and `watch` tells of it.
        """

    def watch(self) -> Watch:
        """Wait for commits of this and of other processes."""

    async def search(self, query: SearchQuery) -> Found:
        """The hits in what is indexed; an index that is far behind goes on meanwhile."""

    async def erase(
        self, session: str, *, fence: Fence | None = None, idle_since_ms: int | None = None
    ) -> Sequence[str]:
        """Remove a session, its descendants and all their records; answer their ids, the deepest first.

        `Refused` while any of them is claimed by a living owner other than the fence's. `Conflict` when one
        of them was updated after `idle_since_ms`: an admitted prompt updates its session, so none is lost.
        """

    async def register(self, owner: Owner) -> None: ...

    async def renew(self, owner: str) -> None:
        """Move the owner's deadline; `LeaseLost` once it was buried."""

    async def retire(self, owner: str) -> None:
        """Give back every claim of the owner and forget it."""

    async def bury(self, owner: str) -> Sequence[str]:
        """Declare dead the owner if it missed its deadline, and free its claims; answer their ids.

        Asked by a living owner, on a timer. It may bury only once its own renewals have been unbroken for
        one interval, so that after an outage the living come first.
        """

    async def claim(self, session: str, owner: str) -> Fence | Held:
        """Take a session that no living owner runs; a dead process of this host and boot is buried at once.

        `Refused` when the owner does not offer the session's placement, `LeaseLost` when it was buried.
        """

    async def renumber(self, fence: Fence) -> Fence:
        """Give a claim that one holds another number; `LeaseLost` when it is no longer held.

        What was sent under the former number and is not written by then never will be: so whoever does not
        know whether a commit was written can look, and then knows.
        """

    async def release(self, fence: Fence, *, settled: bool = False) -> None:
        """Give a session back; with `settled` only if no prompt waits in its inbox (else `Conflict`)."""

    async def sweep(self) -> None:
        """Forget tombstones older than `TOMBSTONE_MS` and raise the horizon."""

    async def examine(self, *, repair: bool = False, progress: Progress | None = None) -> Report:
        """Verify numbers, parents, JSON and index; mend what can be mended only when asked.

        In a time that grows with the store and no faster. A cancelled examination ends at once; what it
        would have mended in one transaction is not mended.
        """

    async def backup(self, path: str) -> None:
        """Write a copy that opens as a store of its own (never a copy of live files)."""

    async def close(self) -> None: ...
