"""A scripted lifecycle over a store's port, the same at every run, and what a store holds after each step."""

from collections.abc import Awaitable, Callable

from holdfast.schema.stored import Mark
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Fence, Remove
from holdfast.store.record import Resync
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract import build
from holdfast.testing.store_contract.build import S1, S2, S3, msg

Step = Callable[[Store, FakeHost], Awaitable[object]]
Dump = dict[tuple[str, str, str], tuple[object, ...]]

BIG = "x" * 20_000


def steps() -> list[Step]:
    """Every kind of commit: creation, growth, change, removal, several sessions, claim, erasure."""
    fences: list[Fence] = []

    def put(*changes: object) -> Step:
        batch = Batch(changes)  # type: ignore[arg-type]
        return lambda store, host: store.commit(batch)

    async def claim(store: Store, host: FakeHost) -> None:
        fence = await store.claim(S1, "owner")
        assert isinstance(fence, Fence)
        fences.append(fence)

    async def fenced(store: Store, host: FakeHost) -> None:
        await store.commit(Batch((build.text(20, 1, "under a fence"),), fence=fences[-1]))

    async def release(store: Store, host: FakeHost) -> None:
        await store.release(fences[-1])

    return [
        put(build.session()),
        put(build.user(1), build.text(2, 1, "first"), build.text(3, 1, BIG)),
        put(build.assistant(4, 1, mark=Mark.OPEN), build.text(5, 4, "", mark=Mark.OPEN)),
        put(build.text(5, 4, "some text", mark=Mark.OPEN)),
        put(build.text(5, 4, "some text, finished"), build.assistant(4, 1)),
        put(build.session(S2, title="Two"), build.session(S3, parent=S2), build.user(1, session=S3)),
        put(build.user(1, session=S2), build.user(6), build.session(title="Renamed", updated=2000)),
        lambda store, host: store.register(host.owner("owner", placements=("here",))),
        claim,
        fenced,
        put(Remove(S1, "message", msg(4))),
        put(build.user(4), build.text(7, 4, "made anew")),
        release,
        lambda store, host: store.erase(S2),
        put(*(build.user(100 + n) for n in range(40))),
    ]


async def dump(store: Store) -> Dump:
    """Everything that the store tells: each record with its numbers, and who runs what."""
    found: Dump = {}
    cursor: str | None = None
    while True:
        changes = await store.changes(cursor, limit=50)
        assert not isinstance(changes, Resync)
        for change in changes.records:
            record = change.record
            key = record.session, record.kind, record.id
            found[key] = (record.position, record.seq, record.mark, record.data, change.removed)
        cursor = changes.cursor
        if changes.complete:
            break
    for session in (S1, S2, S3):
        row = await store.session(session)
        found["claim", "", session] = () if row is None else (row.owner, row.head, row.top)
    return found
