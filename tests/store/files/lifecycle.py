"""One store's life in steps, and everything that can be seen of it: for crash tests of the files store."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.store.base import TOMBSTONE_MS
from holdfast.store.batch import Batch, Fence, Put, Remove, project_scope
from holdfast.store.files.disk import TornWrite
from holdfast.store.files.store import FilesStore
from holdfast.store.owner import Owner
from holdfast.store.query import MessageQuery, SessionQuery
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import (
    S1,
    S2,
    assistant,
    msg,
    prt,
    record,
    session,
    text,
    tool,
    user,
)
from holdfast.testing.store_contract.replica import Replica

P = project_scope("p1")
PROJECT = {"worktree": "/work", "time": {"created": 1, "updated": 1}, "sandboxes": []}
APPROVAL = {
    "projectID": "p1",
    "worktree": "/work",
    "permission": "bash",
    "pattern": "*",
    "time": {"created": 1},
}
TODO = [{"content": "c", "status": "pending", "priority": "low"}]
DIFF = [{"file": "a", "additions": 1, "deletions": 0}]
SHARE = {"id": "x", "secret": "s", "url": "https://example.invalid"}


class Stop(BaseException):
    """The process ends here."""


class Life:
    """The store's clock and machine, and the steps that lead through its life."""

    def __init__(self, root: Path, *, boot: str = "boot1") -> None:
        self.root = root
        self.clock = FakeClock()
        self.host = FakeHost(boot=boot)
        self.owner = Owner("o1", "hostA", "boot1", 1000, "pid:[1]", "tick1", ("here",))

    def steps(self) -> list[Callable[[FilesStore], Awaitable[object]]]:
        """The steps; each is one call that is acknowledged or not."""

        def put(
            *changes: Put | Remove, fence: Fence | None = None
        ) -> Callable[[FilesStore], Awaitable[object]]:
            return lambda store: store.commit(Batch(changes, (), fence))

        fence = Fence(S1, "o1", 1)
        long = "0123456789 " * 300
        return [
            put(session(project="p1"), user(1), text(2, 1)),
            put(
                assistant(3, 1), tool(4, 3, input={"a": 1}, output=long), session(project="p1", title="More")
            ),
            put(text(2, 1, "changed"), user(1, placed=True)),
            put(
                record(S1, "todo", S1, TODO),
                record(S1, "diff", S1, DIFF),
                record(S1, "share", S1, SHARE),
            ),
            put(record(P, "project", "p1", PROJECT), record(P, "approval", "psv_1", APPROVAL)),
            put(session(S2, parent=S1), user(1, session=S2), text(2, 1, "same ids", session=S2)),
            lambda store: store.register(self.owner),
            lambda store: store.claim(S1, "o1"),
            put(user(5), text(6, 5), fence=fence),
            lambda store: store.release(fence),
            put(Remove(S1, "part", prt(2)), Remove(S1, "todo", S1)),
            put(text(2, 1, "other", session=S2), record(S1, "todo", S1, TODO)),
            put(Remove(S1, "message", msg(5))),
            put(user(5), text(6, 5, "again")),
            put(session(project="p2", title="Moved")),
            lambda store: store.erase(S2),
            put(session(S2), user(7, session=S2)),
            self.sweep,
            lambda store: store.retire("o1"),
            put(user(8), text(9, 8)),
        ]

    async def sweep(self, store: FilesStore) -> None:
        """Forget the tombstones, a month later."""
        self.clock.advance(TOMBSTONE_MS + 1)
        await store.sweep()

    async def open(self, failpoint: Callable[[str], None] = lambda step: None) -> FilesStore:
        """Open the store."""
        return await FilesStore.open(self.root, clock=self.clock, host=self.host, failpoint=failpoint)


class Crash:
    """A failpoint that stops at the n-th effect, and at every one after it; notes what was not synced."""

    def __init__(self, at: int, *, torn: bool, root: Path | None = None) -> None:
        self._at = at
        self._torn = torn
        self._root = root
        self.count = 0
        self.steps: list[str] = []
        self.unsynced: dict[str, bytes | None] = {}
        """Files that a power cut may still undo, as they were before."""

    @property
    def stopped(self) -> bool:
        return self.count >= self._at

    def __call__(self, step: str) -> None:
        self.count += 1
        self.steps.append(step)
        verb, _, path = step.partition(" ")
        if self._root is not None and verb in ("write", "unlink"):
            file = self._root / path
            self.unsynced.setdefault(path, file.read_bytes() if file.exists() else None)
        if self.count == self._at and self._torn:
            raise TornWrite(step)
        if self.stopped:
            raise Stop(step)
        if verb == "syncfs":
            self.unsynced.clear()


async def seen(store: FilesStore) -> dict[str, object]:
    """Everything that a reader can know: the feed, the sessions, the messages."""
    replica = Replica()
    await replica.catch_up(store)
    page = await store.sessions(SessionQuery(archived=None, agent_runs=None))
    told: dict[str, object] = {
        f"{each.kind} {each.session} {each.id}": msgspec.structs.astuple(each)
        for each in replica.records.values()
    }
    told["sessions"] = [msgspec.structs.astuple(each) for each in page.sessions]
    for each in page.sessions:
        told[f"messages {each.id}"] = (await store.messages_json(MessageQuery(each.id))).body
    return told


def tree(root: Path) -> dict[str, bytes]:
    """Every file of the tree."""
    apart = ("journal", "quarantine")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*.json"))
        if path.relative_to(root).parts[0] not in apart and path.name != "holdfast.json"
    }


async def abandon(store: FilesStore) -> None:
    """Let a store go as a process does that was killed: whatever it still wants to do is refused."""
    with suppress(Stop, TornWrite):
        await store.close()
