"""The seeds' operations on key lists."""

import json
from pathlib import Path

import pytest

from holdfast.errors import InvalidInput, NotFound
from holdfast.schema.stored import Mark
from holdfast.store.files.tree import Tree
from holdfast.store.query import MessageQuery
from holdfast.store.record import Changes
from tests.store.files import opencode_tree
from tests.store.files.lifecycle import TODO, Life
from tests.store.files.root import opened

pytestmark = pytest.mark.anyio

SESSION = ["session", "p1", "ses_1"]
INFO = opencode_tree.info("ses_1", 1)
MESSAGE = opencode_tree.message("msg_1", "ses_1", 1)
PART = opencode_tree.text("prt_1", "msg_1", "ses_1", "words")

HOSTILE = ["..", "../x", "a/b", "/etc", "*", "a\0b", "", ".", "~ses_1", "a.b", "é", "x" * 10_000]


@pytest.mark.parametrize("name", HOSTILE, ids=[ascii(name[:8]) for name in HOSTILE])
async def test_hostile_keys_are_refused(tmp_path: Path, name: str) -> None:
    """In every place of a key, by every operation; nothing is made outside or inside."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        tree = Tree(store)
        before = sorted(tmp_path.rglob("*"))
        for key in (["session", name, "ses_1"], ["session", "p1", name], [name, "p1", "ses_1"], [name]):
            for operation in (
                tree.write(key, INFO),
                tree.read(key),
                tree.update(key, dict),
                tree.remove(key),
                tree.list(key),
            ):
                with pytest.raises(InvalidInput):
                    await operation
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "key",
    [
        ["secrets", "a"],
        ["session"],
        ["session", "p1"],
        ["message", "a", "b", "c"],
        ["journal", "log"],
        ["index"],
        [],
    ],
)
async def test_unknown_kinds_are_refused(tmp_path: Path, key: list[str]) -> None:
    """A key that names no file of the store is not written."""
    async with opened(Life(tmp_path / "store")) as store:
        with pytest.raises(InvalidInput):
            await Tree(store).write(key, {})


async def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    """Read and update say which file; remove is content; a missing folder lists nothing."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        tree = Tree(store)
        for key in (SESSION, ["message", "ses_1", "msg_1"], ["part", "msg_1", "prt_1"], ["todo", "ses_1"]):
            path = life.root / "/".join(key)
            for operation in (tree.read(key), tree.update(key, lambda value: value)):
                with pytest.raises(NotFound) as caught:
                    await operation
                assert str(caught.value) == f"Resource not found: {path}.json"
            await tree.remove(key)
        assert await tree.list(["message", "ses_1"]) == []
        assert await tree.list(["part"]) == []


async def test_content_must_agree_with_its_key(tmp_path: Path) -> None:
    """Another id, session, message or project inside than outside is refused."""
    async with opened(Life(tmp_path / "store")) as store:
        tree = Tree(store)
        await tree.write(SESSION, INFO)
        await tree.write(["message", "ses_1", "msg_1"], MESSAGE)
        for key, value in (
            (["session", "p2", "ses_1"], INFO),
            (["session", "p1", "ses_2"], INFO),
            (["message", "ses_1", "msg_2"], MESSAGE),
            (["part", "msg_2", "prt_1"], PART),
            (["message", "ses_1", "msg_1"], {"role": "nobody"}),
            (["todo", "ses_1"], {"not": "a list"}),
        ):
            with pytest.raises(InvalidInput):
                await tree.write(key, value)


async def test_write_read_list_remove(tmp_path: Path) -> None:
    """Each write is a file of the tree and a record of the store; a list is sorted, without extensions."""
    life = Life(tmp_path / "store")
    async with opened(life) as store:
        tree = Tree(store)
        head = await store.head()
        writes = [
            (SESSION, INFO),
            (["message", "ses_1", "msg_2"], opencode_tree.message("msg_2", "ses_1", 1)),
            (["message", "ses_1", "msg_1"], MESSAGE),
            (["part", "msg_1", "prt_1"], PART),
            (["todo", "ses_1"], TODO),
            (["session_diff", "ses_1"], [{"file": "a", "additions": 1, "deletions": 0}]),
            (["share", "ses_1"], {"id": "x", "secret": "s", "url": "u"}),
            (
                ["project", "p1"],
                {"id": "p1", "worktree": "/", "time": {"created": 1, "updated": 1}, "sandboxes": []},
            ),
        ]
        for key, value in writes:
            await tree.write(key, value)
            assert await tree.read(key) == value
            on_disk = json.loads((life.root / ("/".join(key) + ".json")).read_bytes())
            if isinstance(on_disk, dict):
                del on_disk["holdfast"]
            assert on_disk == value

        changes = await store.changes(head)
        assert isinstance(changes, Changes)
        assert len(changes.records) == len(writes)
        assert [each.info.id for each in (await store.messages(MessageQuery("ses_1"))).messages] == [
            "msg_2",
            "msg_1",
        ]
        assert await tree.list(["message"]) == [["message", "ses_1", "msg_1"], ["message", "ses_1", "msg_2"]]
        assert await tree.list([]) == sorted(key for key, _ in writes)
        await tree.remove(["part", "msg_1", "prt_1"])
        assert await tree.list(["part"]) == []
        await tree.remove(SESSION)
        assert await tree.list([]) == [["project", "p1"]]


async def test_a_system_message_that_is_written_has_its_mark(tmp_path: Path) -> None:
    """The key says nothing of a role; the content does."""
    told = {"id": "msg_2", "sessionID": "ses_1", "role": "system", "time": {"created": 1}, "text": "Monday"}
    async with opened(Life(tmp_path / "store")) as store:
        tree = Tree(store)
        await tree.write(SESSION, INFO)
        await tree.write(["message", "ses_1", "msg_1"], MESSAGE)
        await tree.write(["message", "ses_1", "msg_2"], told)

        shown = await store.messages(MessageQuery("ses_1", system=False))
        assert [each.info.id for each in shown.messages] == ["msg_1"]
        assert (await store.messages(MessageQuery("ses_1"))).messages[-1].info.mark is Mark.SYSTEM


async def test_update_edits_in_place_or_replaces(tmp_path: Path) -> None:
    """The function may change the value it is given or answer another; the new content is answered."""
    async with opened(Life(tmp_path / "store")) as store:
        tree = Tree(store)
        await tree.write(SESSION, INFO)

        def rename(value: dict[str, object]) -> None:
            value["title"] = "New"

        assert await tree.update(SESSION, rename) == INFO | {"title": "New"}
        assert await tree.update(SESSION, lambda value: value | {"title": "Newer"}) == INFO | {
            "title": "Newer"
        }
        assert await tree.read(SESSION) == INFO | {"title": "Newer"}
