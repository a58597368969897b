"""The seeds' operations on key lists, on the files engine: each write is a file of the seeds' tree."""

import json
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import CallerError
from holdfast.schema.stored import Mark
from holdfast.store.query import MessageQuery
from holdfast.store.record import Changes
from tests.store.files import opencode_tree
from tests.store.files.lifecycle import TODO

SESSION = ["session", "p1", "ses_1"]
INFO = opencode_tree.info("ses_1", 1)
MESSAGE = opencode_tree.message("msg_1", "ses_1", 1)
PART = opencode_tree.text("prt_1", "msg_1", "ses_1", "words")

HOSTILE = ["..", "../x", "a/b", "/etc", "*", "a\0b", "", ".", "~ses_1", "a.b", "é", "x" * 10_000]


@pytest.mark.parametrize("name", HOSTILE, ids=[ascii(name[:8]) for name in HOSTILE])
async def test_hostile_keys_are_refused(tmp_path: Path, name: str) -> None:
    """In every place of a key; nothing is made outside or inside."""
    async with holdfast.open(f"file://{tmp_path}/store") as hf:
        await hf.storage.write(SESSION, INFO)
        before = sorted(tmp_path.rglob("*.json"))
        for key in (["session", name, "ses_2"], ["session", "p1", name], [name, "p1", "ses_1"], [name]):
            value = {each: content for each, content in INFO.items() if each not in ("id", "projectID")}
            for operation in (
                hf.storage.write(key, value),
                hf.storage.read(key),
                hf.storage.update(key, dict),
            ):
                with pytest.raises(CallerError):
                    await operation
        assert sorted(tmp_path.rglob("*.json")) == before


async def test_each_write_is_a_file_and_a_record(tmp_path: Path) -> None:
    """In the layout of the seeds, where their own programs look for it; followers see each."""
    root = tmp_path / "store"
    async with holdfast.open(f"file://{root}") as hf:
        head = await hf.store.head()
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
            await hf.storage.write(key, value)
            on_disk = json.loads((root / ("/".join(key) + ".json")).read_bytes())
            if isinstance(on_disk, dict):
                del on_disk["holdfast"]
            assert on_disk == value

        changes = await hf.store.changes(head)
        assert isinstance(changes, Changes)
        assert len(changes.records) == len(writes)
        assert [each.info.id for each in (await hf.store.messages(MessageQuery("ses_1"))).messages] == [
            "msg_2",
            "msg_1",
        ]
        await hf.storage.remove(SESSION)
        assert [each.parent.name for each in root.glob("*/**/ses_1.json")] == ["tombstone"]


async def test_a_system_message_that_is_written_has_its_mark(tmp_path: Path) -> None:
    """The key says nothing of a role; the content does."""
    told = {"id": "msg_2", "sessionID": "ses_1", "role": "system", "time": {"created": 1}, "text": "Monday"}
    async with holdfast.open(f"file://{tmp_path}/store") as hf:
        await hf.storage.write(SESSION, INFO)
        await hf.storage.write(["message", "ses_1", "msg_1"], MESSAGE)
        await hf.storage.write(["message", "ses_1", "msg_2"], told)

        shown = await hf.store.messages(MessageQuery("ses_1", system=False))
        assert [each.info.id for each in shown.messages] == ["msg_1"]
        assert (await hf.store.messages(MessageQuery("ses_1"))).messages[-1].info.mark is Mark.SYSTEM
