"""Files that a person copied, renamed or mended by hand: nothing else is harmed by it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StoreError
from holdfast.schema.message import MessageWithParts
from holdfast.schema.wire import decode
from holdfast.sessions.read import typed
from holdfast.store.batch import Batch, Remove
from holdfast.store.files.store import FilesStore
from holdfast.store.query import MessageQuery
from holdfast.store.record import Changes
from holdfast.testing.store_contract.build import S1, S2, S3, msg, prt, session, text, user
from tests.store.files.lifecycle import Life
from tests.store.files.root import opened

pytestmark = pytest.mark.anyio


async def fill(store: FilesStore) -> None:
    # Long enough that closing trims the journal, which would put back what is changed by hand.
    await store.commit(Batch((session(), user(5), text(6, 5, "first " * 20_000), user(7))))
    await store.commit(Batch((session(S2), user(5, session=S2))))


async def held(store: FilesStore) -> dict[str, list[tuple[str, list[str]]]]:
    """The messages of each session with their parts, in their order."""
    found = {}
    for id in (S1, S2, S3):
        if await store.session(id) is not None:
            page = await store.messages(MessageQuery(id))
            found[id] = [(each.info.id, [part.id for part in each.parts]) for each in page.messages]
    return found


async def again(life: Life, *, repair: bool) -> dict[str, list[tuple[str, list[str]]]]:
    """What the store holds after its index was lost, or after a repair; the doctor has no complaint left."""
    if not repair:
        (life.root / "index.db").unlink()
    async with opened(life) as store:
        if repair:
            await store.examine(repair=True)
        assert (await store.examine()).findings == ()
        return await held(store)


OWN: dict[str, list[Any]] = {S1: [(msg(5), [prt(6)]), (msg(7), [])], S2: [(msg(5), [])]}


@pytest.mark.parametrize("repair", [False, True], ids=["rebuilt", "repaired"])
@pytest.mark.parametrize("copy", [9, 1], ids=["after", "before"])
async def test_a_copied_message_is_one_more_message(tmp_path: Path, copy: int, *, repair: bool) -> None:
    """It comes after all others, whatever its name; the original keeps its place and its parts."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
    file = life.root / f"message/{S1}/{msg(5)}.json"
    shutil.copy(file, file.with_name(f"{msg(copy)}.json"))

    assert await again(life, repair=repair) == OWN | {S1: [*OWN[S1], (msg(copy), [])]}


@pytest.mark.parametrize("repair", [False, True], ids=["rebuilt", "repaired"])
@pytest.mark.parametrize("copy", [9, 1], ids=["after", "before"])
async def test_a_copied_part_is_one_more_part(tmp_path: Path, copy: int, *, repair: bool) -> None:
    """It comes after the other parts of its message, in the session that it names."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
    file = life.root / f"part/{msg(5)}/{prt(6)}.json"
    shutil.copy(file, file.with_name(f"{prt(copy)}.json"))

    assert await again(life, repair=repair) == OWN | {S1: [(msg(5), [prt(6), prt(copy)]), (msg(7), [])]}


@pytest.mark.parametrize("repair", [False, True], ids=["rebuilt", "repaired"])
async def test_a_copied_session_takes_nothing_from_its_original(tmp_path: Path, *, repair: bool) -> None:
    """It is one more session, without messages, and a message copied along becomes its own."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
    file = life.root / f"session/global/{S1}.json"
    shutil.copy(file, file.with_name(f"{S3}.json"))
    (life.root / f"message/{S3}").mkdir()
    shutil.copy(life.root / f"message/{S1}/{msg(7)}.json", life.root / f"message/{S3}/{msg(7)}.json")

    assert await again(life, repair=repair) == OWN | {S3: [(msg(7), [])]}


@pytest.mark.parametrize("repair", [False, True], ids=["rebuilt", "repaired"])
async def test_a_renamed_message_has_one_name_everywhere(tmp_path: Path, *, repair: bool) -> None:
    """A page as bytes and a single record agree, and its place stays when only the index was lost."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
    file = life.root / f"message/{S1}/{msg(7)}.json"
    file.rename(file.with_name(f"{msg(3)}.json"))

    assert (await again(life, repair=repair))[S1] == [(msg(5), [prt(6)]), (msg(3), [])]
    async with opened(life) as store:
        page = decode(tuple[MessageWithParts, ...], (await store.messages_json(MessageQuery(S1))).body)
        assert page == tuple(map(typed, (await store.messages(MessageQuery(S1))).messages))


async def test_a_file_that_names_another_record_is_reported(tmp_path: Path) -> None:
    """Also when nobody renamed the file; a repair makes it say what its name says."""
    life = Life(tmp_path / "store")
    file = life.root / f"message/{S1}/{msg(7)}.json"
    async with opened(life) as store:
        await fill(store)
        file.write_bytes(file.read_bytes().replace(msg(7).encode(), msg(8).encode()))

        (found,) = (await store.examine()).findings
        assert (found.what, f"{msg(7)}.json" in found.where) == (
            "its content bears another name than the file",
            True,
        )
        await store.examine(repair=True)
        assert (await store.examine()).findings == ()
        assert await held(store) == OWN
    assert msg(8).encode() not in file.read_bytes()


async def test_a_record_that_was_made_sound_meanwhile_is_not_set_aside(tmp_path: Path) -> None:
    """Between the look and the mending somebody commits the part anew: it is acknowledged, so it stays."""
    life = Life(tmp_path / "store")
    async with opened(life) as store, opened(life) as other:
        await fill(store)
        (life.root / f"part/{msg(5)}/{prt(6)}.json").write_bytes(b'{"half')
        write = store.write

        async def late(work: object) -> object:
            store.write = write  # type: ignore[method-assign]
            await other.commit(Batch((text(6, 5, "acknowledged after the look"),)))
            return await write(work)  # type: ignore[arg-type]

        store.write = late  # type: ignore[assignment, method-assign]
        report = await store.examine(repair=True)

        assert report.findings == ()
        assert await held(store) == OWN
        assert list((life.root / "quarantine").iterdir()) == []


async def test_a_repair_that_cannot_rebuild_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the disk leaves in our own terms."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        file = life.root / f"message/{S1}/{msg(7)}.json"
        shutil.copy(file, file.with_name(f"{msg(9)}.json"))

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(store.root, "rebuild", full)
        with pytest.raises(StoreError, match="No space left"):
            await store.examine(repair=True)


@pytest.mark.parametrize("lost", [False, True], ids=["kept", "rebuilt"])
async def test_a_lost_index_does_not_forget_that_an_id_was_made_anew(tmp_path: Path, *, lost: bool) -> None:
    """The file says so, also after it was written once more: who was away still hears of the former life."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        await fill(store)
        head = await store.head()
        await store.erase(S2)
        await store.commit(Batch((Remove(S1, "message", msg(5)), user(5), session(S2))))
        await store.commit(Batch((user(5, agent="later"),)))
    if lost:
        (life.root / "index.db").unlink()
    async with opened(life) as store:
        changes = await store.changes(head)
        assert isinstance(changes, Changes)
        told = {each.record.id: (each.created, each.again) for each in changes.records}
        assert told == {msg(5): (True, True), S2: (True, True)}
