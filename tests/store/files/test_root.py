"""Opening a folder: what is refused, what is made, what is brought back."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import StoreError, StoreMissing, StoreTooNew
from holdfast.store.base import FORMAT
from holdfast.store.batch import Batch, Remove
from holdfast.store.files.store import FilesStore
from holdfast.store.query import SearchQuery, SessionQuery
from holdfast.store.record import Resync
from holdfast.testing.store_contract.build import S1, msg, session, text, user
from tests.store.files.lifecycle import Life, seen, tree
from tests.store.files.root import opened

pytestmark = pytest.mark.anyio


async def lived(life: Life, steps: int = 14) -> dict[str, object]:
    """A store with some history; what was seen of it at the end."""
    async with opened(life) as store:
        for step in life.steps()[:steps]:
            await step(store)
        return await seen(store)


async def test_a_missing_store_is_not_made_unasked(tmp_path: Path) -> None:
    """Without `create` an absent folder stays absent."""
    with pytest.raises(StoreMissing):
        await FilesStore.open(tmp_path / "none", create=False)

    assert list(tmp_path.iterdir()) == []


async def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """A path that is a file is refused."""
    (tmp_path / "x").write_text("mine")

    with pytest.raises(StoreError, match="is a file"):
        await FilesStore.open(tmp_path / "x")


async def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    """Somebody's folder is no place for a store, and nothing is put into it."""
    (tmp_path / "letter.txt").write_text("mine")

    with pytest.raises(StoreError, match=r"letter\.txt"):
        await FilesStore.open(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


async def test_a_tree_that_is_gone_is_not_replaced(tmp_path: Path) -> None:
    """The marker stayed, the tree did not: nothing empty is opened in its place."""
    life = Life(tmp_path / "store")
    await lived(life, 1)
    (life.root / "session").rename(tmp_path / "elsewhere")

    with pytest.raises(StoreMissing, match="restore a backup"):
        await life.open()


async def test_a_later_format_is_refused(tmp_path: Path) -> None:
    """A store that a later version wrote is not touched."""
    life = Life(tmp_path / "store")
    await lived(life, 1)
    marker = life.root / "holdfast.json"
    marker.write_bytes(marker.read_bytes().replace(b'"format": 1', b'"format": 2'))
    before = tree(life.root)

    with pytest.raises(StoreTooNew, match=f"format 2, this Holdfast knows up to {FORMAT}"):
        await life.open()
    assert tree(life.root) == before


async def test_an_unreadable_marker_is_named(tmp_path: Path) -> None:
    """A marker that is no marker is neither ignored nor replaced."""
    life = Life(tmp_path / "store")
    await lived(life, 1)
    (life.root / "holdfast.json").write_text("{")

    with pytest.raises(StoreError, match=r"holdfast\.json cannot be read"):
        await life.open()


def delete(path: Path) -> None:
    path.unlink()


def garble(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be one" * 200)


def hollow(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:4096] + b"\xff" * (len(raw) - 4096))


def dent(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:-4096] + b"\xff" * 4096)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def narrow(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript("DROP INDEX session_run; ALTER TABLE session DROP COLUMN agent_run")


@pytest.mark.parametrize("harm", [delete, garble, empty, hollow, narrow])
async def test_the_index_comes_back_from_the_tree(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """Gone, overwritten, emptied, hollow or short of a column: opening makes it anew, as it was."""
    life = Life(tmp_path / "store")
    before = await lived(life)
    files = tree(life.root)
    harm(life.root / "index.db")

    async with opened(life) as store:
        assert await seen(store) == before
        assert (await store.sessions(SessionQuery(archived=None))).sessions != ()
        assert (await store.examine()).findings == ()
    assert tree(life.root) == files


async def test_a_damaged_index_is_mended(tmp_path: Path) -> None:
    """A page that SQLite cannot read is found by an examination, and a repair makes the index anew."""
    life = Life(tmp_path / "store")
    before = await lived(life)
    dent(life.root / "index.db")

    async with opened(life) as store:
        found = (await store.examine()).findings
        assert [each.where for each in found] == ["index.db"] * len(found)
        assert found != ()
        assert (await store.examine(repair=True)).clean
        assert await seen(store) == before
        assert (await store.examine()).findings == ()


async def test_the_index_may_vanish_under_a_running_store(tmp_path: Path) -> None:
    """Two handles go on after somebody deleted it: the next one to look makes it anew, the other follows."""
    life = Life(tmp_path / "store")
    async with opened(life) as store, opened(life) as other:
        await store.commit(Batch((session(), user(1), text(2, 1, "a needle"))))
        await other.search(SearchQuery("needle"))
        (life.root / "index.db").unlink()

        await store.commit(Batch((user(3), text(4, 3, "more needles"))))
        assert (await other.commit(Batch((user(5),)))).seq > 5
        assert await seen(store) == await seen(other)
        assert len(await other.search(SearchQuery("needle"))) == 1
        assert (await store.examine()).findings == ()


async def test_cursors_outlive_the_index(tmp_path: Path) -> None:
    """A follower goes on after the index was made anew; one from before a forgotten removal begins again."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await store.commit(Batch((session(), user(1))))
        old = await store.head()
        await store.commit(Batch((Remove(S1, "message", msg(1)),)))
        await life.sweep(store)
        await store.commit(Batch((user(2),)))
        head = await store.head()
    (life.root / "index.db").unlink()

    async with opened(life) as store:
        changes = await store.changes(head)
        assert not isinstance(changes, Resync)
        assert changes.records == ()
        assert isinstance(await store.changes(old), Resync)


async def test_files_are_what_the_seeds_say(tmp_path: Path) -> None:
    """Pretty JSON, the whole wire object, no line end, our numbers under one key that comes last."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await store.commit(Batch((session(project="p1"), user(1), text(2, 1, "é \n"))))

    part = life.root / "part" / msg(1) / "prt_000000000002AAAAAAAAAAAAAA.json"
    assert part.read_text(encoding="utf-8") == (
        '{\n  "id": "prt_000000000002AAAAAAAAAAAAAA",\n  "sessionID": "ses_000000000001AAAAAAAAAAAAAA",\n'
        '  "messageID": "msg_000000000001AAAAAAAAAAAAAA",\n  "type": "text",\n  "text": "é \\n",\n'
        '  "holdfast": {\n    "position": 3,\n    "seq": 3\n  }\n}'
    )
    assert (life.root / "migration").read_text() == "2"
    found = msgspec.json.decode((life.root / "session" / "p1" / f"{S1}.json").read_bytes())
    assert found["holdfast"] == {
        "position": 1,
        "seq": 1,
        "number": 1,
        "head": 3,
        "top": "000000000002AAAAAAAAAAAAAA",
    }


async def test_the_same_ids_in_two_sessions_have_two_files(tmp_path: Path) -> None:
    """The second session's part lies aside, is updated and removed there, and survives a new index."""
    life = Life(tmp_path / "store")
    before = await lived(life, 12)
    aside = (
        life.root
        / "part"
        / "~ses_000000000002AAAAAAAAAAAAAA"
        / msg(1)
        / "prt_000000000002AAAAAAAAAAAAAA.json"
    )
    assert b'"text": "other"' in aside.read_bytes()
    (life.root / "index.db").unlink()

    async with opened(life) as store:
        assert await seen(store) == before
        await store.commit(Batch((Remove("ses_000000000002AAAAAAAAAAAAAA", "message", msg(1)),)))
        assert not aside.exists()


async def test_a_backup_is_a_store_of_its_own(tmp_path: Path) -> None:
    """It has every record and number, another incarnation, and nobody's claims; it replaces nothing."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        for step in life.steps()[:9]:
            await step(store)
        head, before = await store.head(), await seen(store)
        with pytest.raises(StoreError, match="copies is no folder"):
            await store.backup(str(tmp_path / "copies" / "one"))
        (tmp_path / "copies").mkdir()
        await store.backup(str(tmp_path / "copies" / "one"))
        with pytest.raises(StoreError, match="exists already"):
            await store.backup(str(tmp_path / "copies" / "one"))
    copy = Life(tmp_path / "copies" / "one")

    async with opened(copy) as store:
        now = await seen(store)
        assert now.pop("sessions") != before.pop("sessions")
        assert now == before
        found = await store.session(S1)
        assert found is not None
        assert found.owner is None
        assert isinstance(await store.changes(head), Resync)
        assert (await store.examine()).findings == ()
        await store.register(copy.owner)
        fence = await store.claim(S1, "o1")
        assert getattr(fence, "number", 0) == 2
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["one"]
