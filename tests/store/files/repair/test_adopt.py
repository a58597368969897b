"""A tree that OpenCode made: refused, or taken over in place with nothing lost; and the seeds' migrations."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import StoreError, StoreTooNew
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch
from holdfast.store.files.disk import TornWrite
from holdfast.store.files.repair import migrate
from holdfast.store.files.store import FilesStore
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import user
from tests.store.files import opencode_tree
from tests.store.files.lifecycle import Crash, Stop, abandon
from tests.store.files.opencode_tree import S_CHILD, S_NEW, S_OLD

pytestmark = pytest.mark.anyio


def content(root: Path) -> dict[str, object]:
    """Every JSON value of a tree, without our numbers."""
    found = {}
    for path in sorted(root.rglob("*.json")):
        value = json.loads(path.read_bytes())
        if isinstance(value, dict):
            value.pop("holdfast", None)
        found[str(path.relative_to(root))] = value
    return found


async def adopted(root: Path, **more: object) -> FilesStore:
    return await FilesStore.open(root, adopt=True, clock=FakeClock(), host=FakeHost(), **more)  # type: ignore[arg-type]


async def test_a_foreign_tree_is_refused_and_untouched(tmp_path: Path) -> None:
    """The message names the way in, and not one file is made or changed."""
    root = tmp_path / "storage"
    opencode_tree.make(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    with pytest.raises(StoreError, match="--adopt"):
        await FilesStore.open(root)

    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


async def test_a_tree_of_a_later_opencode_is_refused(tmp_path: Path) -> None:
    """A marker above what we know stops even an adoption."""
    root = tmp_path / "storage"
    opencode_tree.make(root, marker="3")
    before = content(root)

    with pytest.raises(StoreTooNew, match="migration 3"):
        await adopted(root)
    assert content(root) == before


async def test_a_tree_with_links_is_not_taken_over(tmp_path: Path) -> None:
    """A link could lead our writing out of the tree: it is named, and nothing is numbered."""
    root = tmp_path / "storage"
    opencode_tree.make(root)
    before = content(root)
    (tmp_path / "elsewhere").mkdir()
    (root / "message" / "ses_link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreError, match="ses_link is a link"):
        await adopted(root)
    assert content(root) == before


async def test_adoption_numbers_by_created_and_id(tmp_path: Path) -> None:
    """Messages by (created, id), parts by id, sessions by (created, id) with parents first."""
    root = tmp_path / "storage"
    opencode_tree.make(root)
    store = await adopted(root)

    page = await store.messages(MessageQuery(S_OLD))
    assert [(each.info.id, [part.id for part in each.parts]) for each in page.messages] == [
        ("msg_c", []),
        ("msg_a", ["prt_1", "prt_2"]),
        ("msg_b", []),
    ]
    positions = {each.id: each.position for each in (await store.sessions(SessionQuery())).sessions}
    assert sorted(positions, key=positions.__getitem__) == [S_NEW, S_CHILD, S_OLD]
    share = await store.get(S_OLD, "share", S_OLD)
    assert share is not None
    assert share.value() is not None
    assert (await store.examine()).findings == ()
    await store.close()


async def test_adoption_marks_system_messages(tmp_path: Path) -> None:
    """A page for people leaves them out, also when the index was made anew from the numbered files."""
    root = tmp_path / "storage"
    opencode_tree.make(root)
    told = {
        "id": "msg_d",
        "sessionID": S_OLD,
        "role": "system",
        "time": {"created": 3},
        "text": "It is Monday",
    }
    opencode_tree.write(root / f"message/{S_OLD}/msg_d.json", told)
    await (await adopted(root)).close()

    for _ in range(2):
        store = await FilesStore.open(root)
        page = await store.messages(MessageQuery(S_OLD, limit=2, system=False))
        assert ([each.info.id for each in page.messages], page.newer) == (["msg_a", "msg_b"], None)
        assert (await store.messages(MessageQuery(S_OLD))).messages[-1].info.mark is Mark.SYSTEM
        await store.close()
        (root / "index.db").unlink()


async def test_adoption_loses_nothing(tmp_path: Path) -> None:
    """Every value of the tree is the same afterwards, unknown fields and folders included."""
    root = tmp_path / "storage"
    opencode_tree.make(root)
    before = content(root)
    store = await adopted(root)
    await store.close()

    after = content(root)
    assert {path: after[path] for path in before} == before
    assert b'"kept": [\n      1,\n      2.5\n' in (root / f"session/p1/{S_OLD}.json").read_bytes()
    assert (root / "migration").read_text() == "2"


async def test_an_adopted_tree_is_a_store_like_any_other(tmp_path: Path) -> None:
    """It opens without being asked again, takes commits, is searched, and its index can be lost."""
    root = tmp_path / "storage"
    opencode_tree.make(root)
    await (await adopted(root)).close()
    (root / "index.db").unlink()

    store = await FilesStore.open(root)
    receipt = await store.commit(Batch((user(1, session=S_OLD),)))
    page = await store.messages(MessageQuery(S_OLD))
    assert page.messages[-1].info.position == receipt.seq
    assert [hit.part for hit in await store.search(SearchQuery("words prt_2"))] == ["prt_2"]
    assert (await store.examine()).findings == ()
    await store.close()


async def test_a_damaged_file_does_not_stop_an_adoption(tmp_path: Path) -> None:
    """It keeps its place, is named by an examination, and everything else is taken over."""
    root = tmp_path / "storage"
    opencode_tree.make(root)
    (root / f"message/{S_OLD}/msg_c.json").write_bytes(b"{")
    (root / "message/ses_gone").mkdir()
    opencode_tree.write(root / "message/ses_gone/msg_x.json", opencode_tree.message("msg_x", "ses_gone", 1))
    store = await adopted(root)

    assert sorted(each.where.split(" ")[0] for each in (await store.examine()).findings) == [
        "message/ses_gone/msg_x.json",
        f"message/{S_OLD}/msg_c.json",
    ]
    assert (await store.examine(repair=True)).clean
    assert (root / f"quarantine/message/{S_OLD}/msg_c.json").read_bytes() == b"{"
    assert (root / "quarantine/message/ses_gone/msg_x.json").exists()
    assert len((await store.messages(MessageQuery(S_OLD))).messages) == 2
    await store.close()


@pytest.mark.ci
async def test_an_adoption_stopped_at_each_effect_loses_nothing(tmp_path: Path) -> None:
    """Wherever it ends, torn or not, every file is whole, and asking again finishes it."""
    whole = tmp_path / "whole"
    opencode_tree.make(whole)
    before = content(whole)
    for number in range(1, 400):
        root = tmp_path / f"{number}"
        opencode_tree.make(root)
        failpoint = Crash(number, torn=number % 2 == 0)
        try:
            store = await adopted(root, failpoint=failpoint)
        except (Stop, TornWrite):
            now = content(root)
            assert {path: now[path] for path in before} == before
        else:
            await abandon(store)
        store = await adopted(root)
        after = content(root)
        assert {path: after[path] for path in before} == before
        assert len((await store.messages(MessageQuery(S_OLD))).messages) == 3
        assert (await store.examine()).findings == ()
        await store.close()
        if not failpoint.stopped:
            return
        shutil.rmtree(root)
    pytest.fail("an adoption has fewer effects than that")


@pytest.mark.needs("git")
async def test_the_first_layout_is_gathered_and_its_diffs_extracted(tmp_path: Path) -> None:
    """0 → 1 → 2: one tree under the root commit's id, diffs in a file of their own, sums in the summary."""
    project = opencode_tree.make_first_layout(tmp_path, tmp_path / "work")
    source = content(tmp_path / "project")
    store = await adopted(tmp_path / "storage")

    (found,) = (await store.sessions(SessionQuery())).sessions
    session = msgspec.json.decode(found.json())
    assert (session["projectID"], session["directory"]) == (project, str(tmp_path / "work"))
    assert session["summary"] == {"additions": 5, "deletions": 1, "files": 2}
    diff = await store.get(S_OLD, "diff", S_OLD)
    assert diff is not None
    assert [each["file"] for each in msgspec.json.decode(diff.data)] == ["a", "b"]
    page = await store.messages(MessageQuery(S_OLD))
    assert [(each.info.id, [part.id for part in each.parts]) for each in page.messages] == [
        ("msg_a", ["prt_1"])
    ]
    kept = await store.get(f"project_{project}", "project", project)
    assert kept is not None
    assert kept.value() is not None
    assert (await store.examine()).findings == ()
    await store.close()
    assert (tmp_path / "storage" / "migration").read_text() == "2"
    assert content(tmp_path / "project") == source
    backup = tmp_path / "storage" / "migration-1.backup" / "session" / project / f"{S_OLD}.json"
    assert "diffs" in json.loads(backup.read_bytes())["summary"]


async def test_a_first_layout_whose_worktree_is_gone_stays_where_it_is(tmp_path: Path) -> None:
    """It cannot be told which project it was: nothing of it is taken, nothing of it is lost."""
    storage = tmp_path / "project" / "app" / "storage" / "session"
    opencode_tree.write(storage / f"info/{S_OLD}.json", opencode_tree.info(S_OLD, 1))
    gone = {**opencode_tree.message("msg_a", S_OLD, 1), "path": {"cwd": "/nowhere", "root": "/nowhere"}}
    opencode_tree.write(storage / f"message/{S_OLD}/msg_a.json", gone)
    before = content(tmp_path / "project")
    store = await adopted(tmp_path / "storage")

    assert (await store.sessions(SessionQuery())).sessions == ()
    await store.close()
    assert content(tmp_path / "project") == before


async def test_a_failing_migration_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops the sequence, the marker stays behind it, and the next time goes on from there."""
    root = tmp_path / "storage"
    opencode_tree.make(root, marker="nonsense")
    opencode_tree.write(
        root / f"session/p1/{S_OLD}.json",
        opencode_tree.info(S_OLD, 100, summary={"diffs": [{"additions": 1, "deletions": 2}]}),
    )
    with monkeypatch.context() as patch:

        def fail(root: Path, disk: object) -> None:
            raise OSError("the disk is full")

        patch.setattr(migrate, "MIGRATIONS", (migrate.gather_projects, fail))
        with pytest.raises(StoreError, match=r"migration 1 → 2 .*the disk is full"):
            await adopted(root)
        assert (root / "migration").read_text() == "1"
        assert not (root / "holdfast.json").exists()

    store = await adopted(root)
    found = await store.session(S_OLD)
    assert found is not None
    assert msgspec.json.decode(found.data)["summary"] == {"additions": 1, "deletions": 2, "files": 1}
    await store.close()
