"""Generations A and B, and the layout before them: trees of JSON files."""

import os
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import InvalidInput
from holdfast.store.base import Store
from holdfast.store.batch import project_scope
from holdfast.store.exchange.portable.report import Counts
from tests.store.exchange.opencode.world import (
    CHILD,
    PARENT,
    PROJECT,
    assistant,
    brought,
    generation_b,
    held,
    msg,
    parts_of,
    prt,
    session_file,
    text,
    tokens,
    tree,
    user,
)


async def test_a_folder_with_nothing_of_opencodes_is_refused(store: Store, tmp_path: Path) -> None:
    """And the message says what was looked for."""
    (tmp_path / "empty").mkdir()

    with pytest.raises(InvalidInput, match=r"holds nothing of OpenCode's: no opencode\.db"):
        await brought(store, tmp_path / "empty")
    with pytest.raises(InvalidInput, match="NUL"):
        await brought(store, Path("a\0b"))
    with pytest.raises(InvalidInput, match="a store of Holdfast's own"):
        await brought(store, tree(generation_b(tmp_path / "ours"), {"holdfast.json": {"format": 1}}))


async def test_broken_files_stay_behind_and_are_named(store: Store, tmp_path: Path) -> None:
    """A half-written file, a pipe, a folder of nobody: each costs only itself."""
    root = generation_b(tmp_path / "storage")
    tree(
        root,
        {
            f"message/{PARENT}/{msg(6)}.json": '{"role":"user", "ti',
            f"message/ses_gone/{msg(7)}.json": user(7),
            f"part/{msg(9)}/{prt(9)}.json": text(),
            f"session/{PROJECT}/{CHILD}.json": "",
            f"session/not a project/{PARENT[:-1]}X.json": session_file(),
            f"todo/{PARENT}.json": [
                {"content": "a", "status": "done", "priority": "low", "id": "1"},
                {"content": "b"},
            ],
            f"session_diff/{PARENT}.json": {"no": "list"},
            "project/bad id.json": {"worktree": "/x"},
        },
    )
    os.mkfifo(root / "part" / msg(3) / f"{prt(8)}.json")

    report = await brought(store, root)

    assert report.counts["session"] == Counts(new=1, skipped=2)
    assert report.counts["message"] == Counts(new=2, skipped=2)
    assert report.counts["part"] == Counts(new=3, skipped=1)
    assert report.counts["todo"] == Counts(new=1, skipped=1)
    assert report.counts["diff"] == Counts(skipped=1)
    assert report.counts["project"] == Counts(new=1, skipped=1)
    assert all(skip.where.startswith(str(root)) for skip in report.skipped)
    assert (await held(store))["todos"] == [{"content": "a", "status": "done", "priority": "low", "id": "1"}]


async def test_generation_b_comes_over(store: Store, tmp_path: Path) -> None:
    """Ids come from paths, whatever the files say; totals are the sum of the steps."""
    root = generation_b(tmp_path / "storage")
    tree(
        root,
        {
            f"session/{PROJECT}/{CHILD}.json": session_file("ses_other", parentID=PARENT, projectID="other"),
            f"message/{CHILD}/{msg(6)}.json": {**user(6), "id": "msg_other", "sessionID": "ses_other"},
            f"message/{CHILD}/{msg(7)}.json": assistant(7, 6, cost=3, tokens=tokens(5, 6)),
            f"share/{PARENT}.json": {"id": "s", "secret": "hush", "url": "u"},
            f"permission/{PROJECT}.json": [
                {"permission": "bash", "pattern": "git *", "action": "allow"},
                {"permission": "bash", "pattern": "rm *", "action": "deny"},
            ],
        },
    )

    report = await brought(store, root)

    parent, child = await held(store), await held(store, CHILD)
    assert (parent["session"]["cost"], parent["session"]["tokens"]) == (0.25, tokens(1, 2))
    assert (child["session"]["cost"], child["session"]["tokens"]) == (3, tokens(5, 6))
    assert (child["session"]["projectID"], child["session"]["parentID"]) == (PROJECT, PARENT)
    assert child["messages"][0]["info"]["sessionID"] == CHILD
    assert child["messages"][0]["info"]["id"] == msg(6)
    assert report.counts["share"] == Counts(skipped=1)
    assert report.counts["approval"] == Counts(new=1, skipped=1)
    assert len(await store.select("approval", session=project_scope(PROJECT))) == 1
    assert not (await brought(store, root)).changed


async def test_diffs_inside_a_session_become_a_record_of_their_own(store: Store, tmp_path: Path) -> None:
    """OpenCode's second file migration: the diffs move out, their sums stay."""
    diffs = [{"file": "a", "additions": 2, "deletions": 1}, {"path": "b", "diff": "@@", "additions": 3}]
    root = generation_b(tmp_path / "storage")
    tree(root, {f"session/{PROJECT}/{PARENT}.json": session_file(summary={"diffs": diffs})})

    await brought(store, root)

    made = await held(store)
    assert made["session"]["summary"] == {"additions": 5, "deletions": 1, "files": 2}
    assert made["diffs"] == [diffs[0], {"file": "b", "patch": "@@", "additions": 3, "deletions": 0}]


async def test_the_data_directory_of_generation_b_is_enough(store: Store, tmp_path: Path) -> None:
    """The folder above `storage` is what people know."""
    generation_b(tmp_path / "opencode" / "storage")

    assert (await brought(store, tmp_path / "opencode")).sessions == (PARENT,)


def generation_a(data: Path) -> Path:
    old = "project/home-dev-demo/storage/session"
    info = {"id": PARENT, "title": "Old", "version": "0.1", "time": {"created": 1, "updated": 2}}
    return tree(
        data,
        {
            f"{old}/info/{PARENT}.json": info,
            f"{old}/message/{PARENT}/{msg(1)}.json": user(),
            f"{old}/message/{PARENT}/{msg(3)}.json": assistant(),
            f"{old}/part/{PARENT}/{msg(1)}/{prt(2)}.json": text(),
        },
    )


async def test_generation_a_comes_over(store: Store, tmp_path: Path) -> None:
    """Its sessions name no project and no directory: the messages say where they were written."""
    asked: list[str] = []

    def project_of(directory: str) -> str:
        asked.append(directory)
        return PROJECT

    report = await brought(store, generation_a(tmp_path / "data"), project_of=project_of)

    made = await held(store)
    assert asked == ["/home/alice/demo"]
    assert (made["session"]["projectID"], made["session"]["directory"]) == (PROJECT, "/home/alice/demo")
    assert [part["text"] for part in parts_of(made)] == ["hello"]
    assert "generation A" in report.source


async def test_without_anybody_to_ask_the_project_is_global(store: Store, tmp_path: Path) -> None:
    """And one project's storage folder can be given by itself."""
    data = generation_a(tmp_path / "data")

    await brought(store, data / "project" / "home-dev-demo" / "storage")

    assert (await held(store))["session"]["projectID"] == "global"


async def test_a_newer_generation_wins(store: Store, tmp_path: Path) -> None:
    """A session that OpenCode had moved to generation B is taken from there."""
    data = generation_a(tmp_path / "data")
    generation_b(data / "storage")

    report = await brought(store, data)

    assert (await held(store))["session"]["title"] == "Mock"
    assert report.counts["session"] == Counts(new=1)


OLDEST = {
    "session/session_abc/meta.json": {
        "id": "session_abc",
        "projectID": "proj_xyz",
        "directory": "/work",
        "title": "Old",
        "version": "1.1.14",
        "time": {"created": 1, "updated": 9},
    },
    "session/session_abc/message/msg_001.json": {
        "id": "msg_001",
        "role": "user",
        "time": {"created": 2},
        "content": [{"type": "text", "text": "Add authentication"}],
    },
    "session/session_abc/message/msg_002.json": {
        "id": "msg_002",
        "role": "assistant",
        "time": {"created": 3},
        "finish_reason": "tool_use",
        "content": [
            {"type": "text", "text": "I will."},
            {"type": "tool_use", "id": "tool_1", "name": "edit", "input": {"path": "a"}},
            {"type": "tool_use", "id": "tool_2", "name": "bash", "input": {"command": "ls"}},
            {"type": "tool_use", "id": "tool_3", "name": "bash", "input": {}},
        ],
        "usage": {"promptTokens": 12, "completionTokens": 5},
    },
    "session/session_abc/message/msg_003.json": {
        "id": "msg_003",
        "role": "tool",
        "time": {"created": 4},
        "content": [
            {"type": "tool_result", "toolUseId": "tool_1", "result": "File updated", "isError": False},
            {"type": "tool_result", "toolUseId": "tool_2", "result": {"code": 1}, "isError": True},
            {"type": "tool_result", "toolUseId": "tool_9", "result": "whose?"},
        ],
    },
    "session/session_abc/todo.json": [{"content": "a", "status": "pending", "priority": "high"}],
    "session/session_abc/snapshot/snap_1.json": {"id": "snap_1", "files": []},
    "session/session_xyz/meta.json": {"title": "Child", "parentID": "session_abc"},
}


async def test_the_oldest_layout_comes_over(store: Store, tmp_path: Path) -> None:
    """Content becomes parts, and a tool's result settles its call; a call without one ended unknown."""
    root = tree(tmp_path / "opencode", OLDEST)

    report = await brought(store, root)

    made = await held(store, "session_abc")
    question, answer = made["messages"]
    said, edit, failed, open_ = answer["parts"]
    assert question["parts"][0]["text"] == "Add authentication"
    assert question["info"]["model"] == {"providerID": "unknown", "modelID": "unknown"}
    assert answer["info"]["parentID"] == "msg_001"
    assert (answer["info"]["finish"], answer["info"]["tokens"]) == ("tool-calls", tokens(12, 5))
    assert said["text"] == "I will."
    assert edit["state"] == {
        "status": "completed",
        "input": {"path": "a"},
        "output": "File updated",
        "title": "",
        "metadata": {},
        "time": {"start": 3, "end": 4},
    }
    assert (edit["callID"], edit["tool"]) == ("tool_1", "edit")
    assert (failed["state"]["status"], failed["state"]["error"]) == ("error", '{"code":1}')
    assert open_["state"]["metadata"]["outcome"] == "unknown"
    assert made["todos"] == [{"content": "a", "status": "pending", "priority": "high"}]
    assert (await held(store, "session_xyz"))["session"]["parentID"] == "session_abc"
    assert report.counts["snapshot"] == Counts(skipped=1)
    assert report.counts["part"] == Counts(new=5, skipped=1)
    assert not (await brought(store, root)).changed
    assert not (await brought(store, root / "session")).changed


async def test_a_session_folder_can_be_broken(store: Store, tmp_path: Path) -> None:
    """Content as plain text, no times, no role, no JSON."""
    root = tree(
        tmp_path,
        {
            "session/ses_a/meta.json": {},
            "session/ses_a/message/msg_1.json": {"role": "user", "content": "hi"},
            "session/ses_a/message/msg_2.json": {"content": []},
            "session/ses_a/message/msg_3.json": "nothing",
            "session/ses_b/meta.json": [],
        },
    )

    report = await brought(store, root)

    made = await held(store, "ses_a")
    assert [part["text"] for part in parts_of(made)] == ["hi"]
    assert made["session"]["projectID"] == "global"
    assert report.counts["session"] == Counts(new=1, skipped=1)
    assert report.counts["message"] == Counts(new=1, skipped=2)
    assert msgspec.json.decode(msgspec.json.encode(report), type=type(report)) == report
