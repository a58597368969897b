"""Connections that the server ends: its last words arrive a moment before the end of the connection does."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import asyncpg
import pytest

from holdfast.errors import StoreBusy
from holdfast.store.batch import Batch
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.query import MessageQuery, SessionQuery
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, session, text, user
from tests.store.postgres.server import schema_url
from tests.store.postgres.ways import Way

pytestmark = pytest.mark.ci("most of the work is done by a database server")

Verb = Callable[[PostgresStore], Awaitable[object]]
VERBS: dict[str, Verb] = {
    "session": lambda store: store.session(S1),
    "sessions": lambda store: store.sessions(SessionQuery()),
    "select": lambda store: store.select("request", session=S1),
    "changes": lambda store: store.changes(None),
    "head": lambda store: store.head(),
    "messages": lambda store: store.messages(MessageQuery(S1)),
    "commit": lambda store: store.commit(Batch((user(1), text(101, 1)))),
    "renew": lambda store: store.renew("o1"),
    "bury": lambda store: store.bury("o1"),
    "claim": lambda store: store.claim(S1, "o1"),
    "erase": lambda store: store.erase(S1),
    "sweep": lambda store: store.sweep(),
    "examine": lambda store: store.examine(),
    "register": lambda store: store.register(FakeHost().owner("o2")),
}


@pytest.mark.parametrize("name", VERBS)
async def test_a_connection_that_the_server_ended_is_a_lost_one(tmp_path: Path, name: str) -> None:
    """Every verb that meets it is busy, and works when it is asked again: the connection is replaced."""
    async with Way() as way:
        store = await PostgresStore.open(way.url(schema_url(tmp_path)))
        other = await asyncpg.connect(store.address.dsn)
        await store.commit(Batch((session(),)))
        await store.register(FakeHost().owner("o1"))
        await store.head()
        way.keeps_end = True
        await other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'holdfast' AND pid <> pg_backend_pid()"
        )
        await anyio.sleep(0.1)  # The server's words are on their way.

        failures = 0
        with anyio.fail_after(60):
            while True:
                try:
                    await VERBS[name](store)
                    break
                except StoreBusy:
                    failures += 1
        assert failures <= 3, "each connection of the store fails once at most"
        way.cut()
        await other.close()
        await store.close()


async def test_an_answer_that_is_lost_leaves_no_doubt(tmp_path: Path) -> None:
    """The server wrote a commit and its answer never came: the runner finds it, and it stands once."""
    from holdfast.clock import SystemClock
    from holdfast.runtime.engine.patience import PatientStore
    from holdfast.runtime.engine.recorder import Recorder
    from holdfast.schema.ids import Mint
    from holdfast.testing.store_contract.world import granted

    async with Way() as way:
        store = await PostgresStore.open(way.url(schema_url(tmp_path)))
        await store.commit(Batch((session(),)))
        await store.register(FakeHost().owner("o1"))
        fence = granted(await store.claim(S1, "o1"))
        recorder = Recorder(PatientStore(store, lambda: 10.0), fence, SystemClock(), Mint(SystemClock()))
        await recorder.commit(user(1))
        way.loses = 1

        receipt = await recorder.commit(user(2), text(102, 2))

        assert way.loses == 0
        assert recorder.fence.number == fence.number + 1
        page = await store.messages(MessageQuery(S1))
        assert [each.info.id for each in page.messages] == [user(1).id, user(2).id]
        assert receipt.numbers == (page.messages[1].info.seq, page.messages[1].parts[0].seq)
        way.cut()
        await store.close()
