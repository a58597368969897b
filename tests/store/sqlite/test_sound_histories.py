"""A store that is sound is called so: whatever was written, rows and indexes agree."""

import contextlib
import tempfile
from pathlib import Path

import anyio
import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.schema.stored import Mark
from holdfast.store.base import TOMBSTONE_MS
from holdfast.store.batch import Batch, Copies, Fence, Put, Remove
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.examine import examine
from holdfast.store.sqlite.salvage.rescue import salvage, survey
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.tables import ddl
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import msg, prt, record, ses, session, text, user
from tests.examples import examples
from tests.store.sqlite import damage

CLOCK = FakeClock()
number = st.integers(0, 2)
ACTIONS = (
    *("session", "child", "message", "promote", "text", "open text", "todo", "cache", "prompt", "copy"),
    *("remove message", "remove part", "remove todo", "erase", "claim", "claimed commit", "release", "sweep"),
)
action = st.tuples(st.sampled_from(ACTIONS), number, number, number)


class History:
    """One store, and what happens to it; what cannot be done is refused and changes nothing."""

    def __init__(self, store: SqliteStore, clock: FakeClock) -> None:
        self._store = store
        self._clock = clock
        self._fences: dict[str, Fence] = {}
        self._copied = 1000

    async def act(self, what: str, a: int, b: int, c: int) -> None:
        """One change."""
        here, message, part = ses(a + 1), 10 * a + b, 100 + 100 * a + 10 * b + c
        mark = Mark.OPEN if what in ("open text", "prompt") and c else Mark.NONE
        match what:
            case "session" | "child":
                id, above = (here, None) if what == "session" else (ses(10 + a), ses(b + 1))
                archived = float(c) if b == 2 else None
                change = session(id, title=f"{b}{c}", updated=900 + c, archived=archived, parent=above)
                await self._store.commit(Batch((change,)))
            case "message" | "promote":
                change = user(message, session=here, agent=str(c), placed=what == "promote")
                await self._store.commit(Batch((change,)))
            case "text" | "open text":
                words = str(c) * (9000 if b == 1 else 3)
                await self._store.commit(Batch((text(part, message, words, session=here, mark=mark),)))
            case "todo":
                await self._store.commit(
                    Batch((record(here, "todo", here, [damage.TODO | {"content": str(c)}]),))
                )
            case "cache":
                cached = damage.CACHE | {"text": str(c)}
                await self._store.commit(Batch((record(f"project_{a}", "cache", str(b), cached),)))
            case "prompt":
                value = {"parts": [], "delivery": "queue", "time": {"created": 1}}
                await self._store.commit(Batch((record(here, "prompt", msg(900 + b), value, mark=mark),)))
            case "copy":
                await self._copy(here, ses(b + 1))
            case "remove message":
                await self._store.commit(Batch((Remove(here, "message", msg(message)),)))
            case "remove part":
                await self._store.commit(Batch((Remove(here, "part", prt(part)),)))
            case "remove todo":
                await self._store.commit(Batch((Remove(here, "todo", here),)))
            case "erase":
                await self._store.erase(here)
            case "sweep":
                self._clock.advance(TOMBSTONE_MS // 2 + 1)
                await self._store.sweep()
            case _:
                await self._run(what, here, f"o{b}", user(message, session=here, agent=str(c)))

    async def _copy(self, here: str, source: str) -> None:
        found = await self._store.originals(source)
        originals = tuple(each for message in found for each in (message.info, *message.parts))
        first, self._copied = self._copied, self._copied + len(originals)
        ids = [(msg if each.kind == "message" else prt)(n) for n, each in enumerate(originals, first)]
        await self._store.commit(Batch((Copies(here, source, originals, tuple(ids)),)))

    async def _run(self, what: str, here: str, owner: str, change: Put) -> None:
        if what == "claim":
            with contextlib.suppress(HoldfastError):
                await self._store.register(FakeHost().owner(owner))
            fence = await self._store.claim(here, owner)
            if isinstance(fence, Fence):
                self._fences[here] = fence
        elif here in self._fences:
            if what == "release":
                await self._store.release(self._fences.pop(here))
            else:
                await self._store.commit(Batch((change,), fence=self._fences[here]))


def check_sound(path: Path) -> None:
    """Nothing is found, and nothing is missing."""
    database = Database(path)
    with contextlib.closing(database.connect()) as db:
        assert examine(db, database, CLOCK, repair=False).findings == ()
    report = survey(database, CLOCK)
    assert (report.complete, report.incomplete, report.lost) == (True, (), ())
    assert {*report.whole} == {id for id in damage.rows(path) if id.startswith("ses_")}


async def check(actions: list[tuple[str, int, int, int]]) -> None:
    """While the log still has it, in the file, after a salvage, and without the later indexes."""
    with tempfile.TemporaryDirectory() as folder:
        path, new, clock = Path(folder) / "s.db", Path(folder) / "new.db", FakeClock()
        store = await SqliteStore.open(path, clock=clock)
        history = History(store, clock)
        for each in actions:
            with contextlib.suppress(HoldfastError):
                await history.act(*each)
        check_sound(path)
        await store.close()
        check_sound(path)
        salvage(Database(path), new, CLOCK)
        assert damage.rows(new) == damage.rows(path)
        store = await SqliteStore.open(new, clock=clock)
        history = History(store, clock)
        for each in actions[:10]:
            with contextlib.suppress(HoldfastError):
                await history.act(*each)
        await store.close()
        check_sound(new)
        with contextlib.closing(apsw.Connection(str(path))) as db:
            db.execute("".join(f"DROP INDEX {name};" for name in ddl.LATER_NAMES))
            db.execute("CREATE INDEX record_seq ON record(session, seq)")
        check_sound(path)


@pytest.mark.ci
@settings(max_examples=examples(40, times=10))
@given(st.lists(action, max_size=60))
def test_a_sound_store_is_never_called_damaged(actions: list[tuple[str, int, int, int]]) -> None:
    """Creates, updates, promotions, removals, ids made anew, forks, claims, erasures and sweeps."""
    anyio.run(check, actions)
