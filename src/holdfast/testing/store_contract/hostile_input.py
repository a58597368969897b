"""Input from outside that means harm, and stored data that was harmed."""

import contextlib
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import CallerError, InvalidInput, RecordCorrupt
from holdfast.schema.stored import Kind
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Put, Remove, Settled, Unchanged, project_scope
from holdfast.store.exchange.portable.content import Losses
from holdfast.store.exchange.portable.export import export_session
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.store.record import Resync
from holdfast.testing.store_contract.build import S1, S2, msg, prt, record, session, text, user
from holdfast.testing.store_contract.world import Contract, World

BAD_IDS = [
    "../x",
    "a/b",
    "..",
    ".",
    "*",
    "a\x00b",
    "x" * 10_000,
    "",
    " ",
    "a b",
    "a\nb",
    'a"b',
    "a'b",
    "a%b",
    "é",
    "\ud800",
]
NAMES = [ascii(id[:10]) for id in BAD_IDS]


class Hostile(Contract):
    """Ids become file names, keys and JSON: none is taken that could mean something there."""

    @pytest.mark.parametrize("id", BAD_IDS, ids=NAMES)
    async def test_a_hostile_id_is_invalid_and_nothing_is_written(self, world: World, id: str) -> None:
        """As session, record, parent or scope, put, removed or expected: refused with its whole batch."""
        await world.put(session(), user(1), text(2, 1))
        head, files = await world.store.head(), outside(world.place)
        data = user(1).data
        batches = [
            Batch((user(5), Put(f"ses_{id}", "message", msg(6), data))),
            Batch((user(5), Put(id, "message", msg(6), data))),
            Batch((user(5), Put(S1, "message", id, data))),
            Batch((user(5), Put(S1, "part", prt(6), text(2, 1).data, id))),
            Batch((user(5), Put(project_scope(id), "project", "p", b"{}"))),
            Batch((user(5), Put(project_scope("p"), "project", id, b"{}"))),
            Batch((user(5), Put(f"ses_{id}", "session", f"ses_{id}", session().data))),
            Batch((user(5), Remove(S1, "message", id))),
            Batch((user(5), Remove(f"ses_{id}", "message", msg(1)))),
            Batch((user(5),), (Settled(f"ses_{id}", "prompt"),)),
            Batch((user(5),), (Unchanged(S1, "message", id, 0),)),
        ]
        for batch in batches:
            with pytest.raises(InvalidInput):
                await world.store.commit(batch)

        changes = await world.store.changes(head)
        assert not isinstance(changes, Resync)
        assert changes.records == ()
        assert outside(world.place) == files

    @pytest.mark.parametrize("id", BAD_IDS, ids=NAMES)
    async def test_a_hostile_id_finds_nothing(self, world: World, id: str) -> None:
        """Reading by such an id is answered with nothing, or refused as the caller's fault."""
        await world.put(session(), user(1))
        for name in (id, f"ses_{id}"):
            for ask in (
                lambda name=name: world.store.session(name),
                lambda name=name: world.store.get(name, "message", msg(1)),
                lambda name=name: world.store.get(S1, "message", name),
                lambda name=name: world.store.messages(MessageQuery(name)),
                lambda name=name: world.store.erase(name),
                lambda name=name: world.store.claim(name, "nobody"),
            ):
                try:
                    assert not await ask()
                except Exception as error:
                    if not isinstance(error, CallerError) and type(error).__name__ != "LeaseLost":
                        raise

        for name in (id, f"ses_{id}"):
            for query in (
                SessionQuery(project=name or "-"),
                SessionQuery(directory=name or "-"),
                SessionQuery(parent=name or "-"),
                SessionQuery(slug=name or "-"),
            ):
                with contextlib.suppress(CallerError):
                    assert (await world.store.sessions(query)).sessions == ()
            with contextlib.suppress(CallerError):
                assert list(await world.store.search(SearchQuery("x", session=name or "-"))) == []

    async def test_an_unknown_kind_is_invalid(self, world: World) -> None:
        """A kind that the store does not know is refused."""
        await world.put(session())

        with pytest.raises(InvalidInput):
            await world.store.commit(Batch((Put(S1, "../x", "a", b"{}"),)))  # type: ignore[arg-type]

    @pytest.mark.parametrize("kind", ["todo", "diff", "share"])
    async def test_a_session_has_one_list_of_a_kind(self, world: World, kind: Kind) -> None:
        """Under its own id: a second one could not be found by the session's id."""
        await world.put(session())
        with pytest.raises(InvalidInput, match="under its own id"):
            await world.put(record(S1, kind, "other", {"a": 1}))
        assert list(await world.store.select(kind, session=S1)) == []

    async def test_empty_content_is_invalid(self, world: World) -> None:
        """Empty data would read as a tombstone."""
        await world.put(session())

        with pytest.raises(InvalidInput):
            await world.store.commit(Batch((Put(S1, "message", msg(1), b""),)))

    @pytest.mark.parametrize(
        "data", [b"{", b"[]", b"null", b'{"title":1}', b"\xff", b"{" * 100_000, b'{"a":' * 9999]
    )
    async def test_a_session_that_is_not_one_is_invalid(self, world: World, data: bytes) -> None:
        """Broken or deeply nested JSON is the caller's fault, and nothing is written."""
        with pytest.raises(InvalidInput):
            await world.store.commit(Batch((Put(S1, "session", S1, data),)))

        assert await world.store.session(S1) is None

    async def test_a_clean_store_is_examined_clean(self, world: World) -> None:
        """Every record is counted and nothing is found, with removals, forks of the tree and claims in it."""
        await world.put(session(), session(S2, parent=S1), user(1), text(2, 1), user(3), text(4, 3))
        await world.put(Remove(S1, "message", msg(3)), user(1, placed=True))

        report = await world.store.examine()

        assert (report.sessions, report.findings, report.clean) == (2, (), True)


class DamageContract(Contract):
    """What a backend must do with stored data that was damaged under it."""

    async def damage(self, world: World, put: Put) -> None:
        """Replace the stored content of this record by `{`, as a broken disk or a stray editor would."""
        raise NotImplementedError

    def ahead(self, cursor: str) -> str:
        """The cursor of a moment that the store has not reached yet, made from one of its own."""
        raise NotImplementedError

    async def test_a_damaged_record_is_reported_by_name(self, world: World) -> None:
        """Its value is `RecordCorrupt`; everything else is read as ever."""
        await world.put(session(), user(1), text(2, 1), text(3, 1, "fine"), session(S2), user(4, session=S2))
        await self.damage(world, text(2, 1))
        store = await world.reopen()

        with pytest.raises(RecordCorrupt) as caught:
            await value_of(store, prt(2))
        assert caught.value.id == prt(2)
        fine = await store.get(S1, "part", prt(3))
        assert fine is not None
        assert msgspec.json.decode(fine.json())["text"] == "fine"
        assert len((await store.messages(MessageQuery(S2))).messages) == 1

    async def test_an_export_leaves_a_damaged_record_out(self, world: World) -> None:
        """The file is JSON with all the others; without a way to report the damage, export is refused."""
        await world.put(session(), user(1), text(2, 1), text(3, 1, "fine"))
        await self.damage(world, text(2, 1))
        store = await world.reopen()

        losses = Losses()
        whole = b"".join([piece async for piece in export_session(store, S1, losses=losses)])
        (message,) = msgspec.json.decode(whole)["sessions"][0]["messages"]
        assert [part["id"] for part in message["parts"]] == [prt(3)]
        assert losses.names == [f"part {prt(2)} of {S1}"]
        with pytest.raises(RecordCorrupt):
            [piece async for piece in export_session(store, S1)]

    async def test_a_damaged_record_is_examined(self, world: World) -> None:
        """An examination names it, changes nothing, and mends only when asked; then the store is clean."""
        await world.put(session(), user(1), text(2, 1), text(3, 1, "fine"))
        await self.damage(world, text(2, 1))
        store = await world.reopen()

        for _ in range(2):
            report = await store.examine()
            assert (len(report.findings), report.clean) == (1, False)
            assert prt(2) in report.findings[0].where
        mended = await store.examine(repair=True)

        assert (len(mended.findings), mended.clean) == (1, True)
        assert (await store.examine()).findings == ()
        page = await store.messages(MessageQuery(S1))
        assert [part.id for part in page.messages[0].parts] == [prt(3)]

    async def test_a_cursor_ahead_of_the_store_means_begin_again(self, world: World) -> None:
        """Such a cursor comes from a store that lost its last commits (a restore)."""
        await world.put(session(), user(1))
        head = await world.store.head()

        assert isinstance(await world.store.changes(self.ahead(head)), Resync)


async def value_of(store: Store, part: str) -> object:
    """The typed value of a part; a backend may notice the damage when it reads or when it decodes."""
    found = await store.get(S1, "part", part)
    assert found is not None
    return found.value()


def outside(place: Path) -> list[str]:
    """The files beside the store's place, none of which may come from a hostile name."""
    return sorted(str(each) for each in place.parent.iterdir())
