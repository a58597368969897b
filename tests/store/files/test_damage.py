"""Files that somebody or something harmed: named, left out of lists, set aside when asked."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from holdfast.errors import RecordCorrupt
from holdfast.schema.stored import Mark
from holdfast.sessions import read
from holdfast.sessions.access import StoreAccess
from holdfast.store.batch import Batch
from holdfast.store.files.store import READERS, FilesStore
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.testing.store_contract.build import S1, S2, S3, msg, prt, record, session, text, user
from tests.store.files.lifecycle import TODO, Life, seen
from tests.store.files.root import opened

pytestmark = pytest.mark.anyio

PART = f"part/{msg(1)}/{prt(2)}.json"
MESSAGE = f"message/{S1}/{msg(1)}.json"
SESSION = f"session/global/{S1}.json"


async def fill(store: FilesStore) -> None:
    await store.commit(
        Batch(
            (
                session(),
                user(1),
                text(2, 1, "needle", mark=Mark.OPEN),
                text(3, 1, "fine"),
                session(S2, updated=1),
            )
        )
    )
    await store.commit(Batch((user(4, session=S2), text(5, 4, "needle too", session=S2, mark=Mark.OPEN))))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\0" * 300, b"[]", b"null", b"\xff\xfe", b'{"a": 1'],
    ids=["empty", "brace", "zeros", "array", "null", "bytes", "half"],
)
async def test_a_damaged_part_is_named_by_whoever_reads_it(tmp_path: Path, content: bytes) -> None:
    """`RecordCorrupt` says which file; lists, the feed, search and every other session go on."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        (life.root / PART).write_bytes(content)

        for reading in (
            store.get(S1, "part", prt(2)),
            store.messages(MessageQuery(S1)),
            store.messages_json(MessageQuery(S1)),
        ):
            with pytest.raises(RecordCorrupt, match=PART):
                await reading
        values = {each.id: each for each in await store.select("part", session=S1)}
        assert values[prt(3)].value() is not None
        with pytest.raises(RecordCorrupt, match=prt(2)):
            values[prt(2)].value()
        fine = await store.get(S1, "part", prt(3))
        assert fine is not None
        assert len((await store.sessions(SessionQuery())).sessions) == 2
        assert len((await store.messages(MessageQuery(S2))).messages) == 1
        assert [each.id for each in await store.select("part", mark=Mark.OPEN)] == [prt(5)]
        assert f"part {S2} {prt(5)}" in await _told(store)
        assert [hit.part for hit in await store.search(SearchQuery("needle"))] == [prt(5)]


async def _told(store: FilesStore) -> list[str]:
    changes = await store.changes(None)
    return [
        f"{each.record.kind} {each.record.session} {each.record.id}"
        for each in getattr(changes, "records", ())
    ]


async def test_damage_in_the_middle_is_noticed_without_a_decode(tmp_path: Path) -> None:
    """A page of JSON that is only forwarded is never handed on broken."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        path = life.root / PART
        path.write_bytes(path.read_bytes().replace(b'"text": "needle"', b'"text": "need\x00\x00"'))

        with pytest.raises(RecordCorrupt, match=PART):
            await store.messages_json(MessageQuery(S1))


async def test_a_damaged_session_leaves_the_list_and_nothing_else(tmp_path: Path) -> None:
    """The other sessions are listed; the damaged one is named beside them, and when it is asked for."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        (life.root / SESSION).write_bytes(b"{")

        page = await store.sessions(SessionQuery())

        assert [each.id for each in page.sessions] == [S2]
        assert page.damaged == (S1,)
        with pytest.raises(RecordCorrupt, match=SESSION):
            await store.session(S1)
        await store.commit(Batch((user(6),)))


@pytest.mark.parametrize("path", [PART, MESSAGE, SESSION])
async def test_a_repair_sets_a_damaged_file_aside(tmp_path: Path, path: str) -> None:
    """It moves to quarantine under its own name, with a message its parts; then the store is clean."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        (life.root / path).write_bytes(b"{")
        found = await store.examine()
        assert [path in each.where for each in found.findings] == [True]

        report = await store.examine(repair=True)

        assert (len(report.findings), report.clean) == (1, True)
        assert (await store.examine()).findings == ()
        assert (life.root / "quarantine" / path).read_bytes() == b"{"
        if path == MESSAGE:
            assert b"needle" in (life.root / "quarantine" / PART).read_bytes()
        if path == SESSION:
            kept = await store.session(S1)
            assert kept is not None
            assert msgspec.json.decode(kept.data)["title"] == "A session"
            assert len((await store.messages(MessageQuery(S1))).messages) == 1
        assert (await store.messages(MessageQuery(S2))).messages
        before = await seen(store)
    (life.root / "index.db").unlink()
    async with opened(life) as store:
        assert await seen(store) == before


async def test_a_missing_file_is_found_and_mended(tmp_path: Path) -> None:
    """The index knows a record whose file is gone: a repair leaves a tombstone."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        (life.root / PART).unlink()

        with pytest.raises(RecordCorrupt, match="missing"):
            await store.get(S1, "part", prt(2))
        assert [each.what for each in (await store.examine()).findings] == ["its file is missing"]
        mended = (await store.examine(repair=True)).findings
        assert [(each.what, each.mended, each.given_up) for each in mended] == [
            ("its file is missing", True, True)
        ]
        assert (await store.examine()).findings == ()
        assert await store.get(S1, "part", prt(2)) is None


async def test_a_file_put_there_by_hand_is_found_and_taken_in(tmp_path: Path) -> None:
    """A repair numbers what belongs to a session and sets aside what belongs to nothing."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        raw = msgspec.json.decode((life.root / PART).read_bytes())
        del raw["holdfast"]
        (life.root / "part" / msg(1) / f"{prt(9)}.json").write_bytes(
            msgspec.json.encode(raw | {"id": prt(9)})
        )
        (life.root / "part" / "msg_none").mkdir()
        (life.root / "part" / "msg_none" / "prt_x.json").write_bytes(msgspec.json.encode(raw))
        assert len((await store.examine()).findings) == 2

        assert (await store.examine(repair=True)).clean
        assert (await store.examine()).findings == ()
        page = await store.messages(MessageQuery(S1))
        assert [part.id for part in page.messages[0].parts] == [prt(2), prt(3), prt(9)]
        assert (life.root / "quarantine" / "part" / "msg_none" / "prt_x.json").exists()


async def test_a_file_edited_by_hand_is_read(tmp_path: Path) -> None:
    """In any layout, with or without our numbers: the index knows them; a repair writes them back."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        await store.commit(Batch((record(S1, "todo", S1, TODO),)))
        (life.root / PART).write_bytes(b'{"text":"by hand","type":"text","more":[1]}')
        (life.root / "todo" / f"{S1}.json").write_bytes(b"[]")

        found = await store.get(S1, "part", prt(2))
        assert found is not None
        assert (found.position, msgspec.json.decode(found.data)) == (
            3,
            {"text": "by hand", "type": "text", "more": [1]},
        )
        todo = await store.get(S1, "todo", S1)
        assert todo is not None
        assert todo.data == b"[]"
        assert [each.what for each in (await store.examine()).findings] == ["its numbers are missing"]
        assert (await store.examine(repair=True)).clean
        assert (await store.examine()).findings == ()


async def test_what_the_journal_still_has_heals(tmp_path: Path) -> None:
    """When the index is made anew, what the journal says is written into the tree first."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        before = await seen(store)
    (life.root / PART).write_bytes(b"{")
    (life.root / "index.db").unlink()

    async with opened(life) as store:
        assert await seen(store) == before


async def test_a_damaged_file_is_missed_by_a_new_index_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is made from what is there; what cannot be read is still named, and its neighbours stay."""
    monkeypatch.setattr("holdfast.store.files.connections.CLOSE_BYTES", 0)
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
    (life.root / PART).write_bytes(b"{")
    (life.root / f"session/global/{S2}.json").write_bytes(b"{")
    (life.root / "index.db").unlink()

    async with opened(life) as store:
        with pytest.raises(RecordCorrupt, match=PART):
            await store.get(S1, "part", prt(2))
        with pytest.raises(RecordCorrupt, match=S2):
            await store.session(S2)
        neighbour = await store.get(S2, "part", prt(5))
        assert neighbour is not None
        assert neighbour.position == 7
        assert len((await store.examine()).findings) == 2
        assert (await store.examine(repair=True)).clean
        assert (await store.examine()).findings == ()


async def test_those_below_a_damaged_session_are_found(tmp_path: Path) -> None:
    """All descendants: the damaged one is left out, its sound children are not."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await store.commit(Batch((session(), session(S2, parent=S1), session(S3, parent=S2))))
        (life.root / f"session/global/{S2}.json").write_bytes(b"{")
        room = cast("StoreAccess", SimpleNamespace(store=store))

        assert [each.id for each in await read.children(room, S1)] == []
        assert [each.id for each in await read.children(room, S1, deep=True)] == [S3]


async def test_long_reads_do_not_hold_up_a_renewal(tmp_path: Path) -> None:
    """Both reading threads are busy; the owner of this process moves its deadline all the same."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await store.register(store.host.owner("here"))  # type: ignore[attr-defined]
        free = threading.Event()
        reads = [asyncio.create_task(store.read(lambda _: free.wait(120))) for _ in range(READERS)]
        await asyncio.sleep(0)  # Both are handed in, each thread has one.
        try:
            async with asyncio.timeout(60):
                await store.renew("here")
        finally:
            free.set()
        assert await asyncio.gather(*reads) == [True] * READERS
