"""A session has one todo list and one list of diffs, whoever wrote them and by whatever name they go."""

from pathlib import Path

import holdfast
from holdfast.schema.session_lists import Todo
from tests.store.files import opencode_tree
from tests.store.files.opencode_tree import S_OLD

MINE = [{"content": "mine", "status": "pending", "priority": "high"}]


async def test_an_adopted_tree_has_the_lists_of_its_sessions(tmp_path: Path) -> None:
    """OpenCode's files, the key operations and the library mean the same records; nothing lies aside."""
    root = tmp_path / "storage"
    opencode_tree.make(root)
    async with holdfast.open(f"file://{root}", adopt=True) as hf:
        tree = hf.storage
        assert [each.content for each in await hf.sessions.todos(S_OLD)] == ["c"]
        assert [each.file for each in await hf.sessions.diffs(S_OLD)] == ["a"]

        await hf.sessions.set_todos(S_OLD, [Todo(content="set", status="pending", priority="low")])
        assert [each["content"] for each in await tree.read(["todo", S_OLD])] == ["set"]
        await tree.write(["todo", S_OLD], MINE)
        await tree.update(["session_diff", S_OLD], lambda diffs: [{**diffs[0], "file": "b"}])
        assert [each.content for each in await hf.sessions.todos(S_OLD)] == ["mine"]
        assert [each.file for each in await hf.sessions.diffs(S_OLD)] == ["b"]
        assert (await hf.store.examine()).findings == ()
        names = {path.relative_to(root).as_posix() for path in root.glob("todo/**/*")}
        await tree.remove(["todo", S_OLD])
        assert await hf.sessions.todos(S_OLD) == []

    assert names == {f"todo/{S_OLD}.json", f"todo/{S_OLD}.holdfast.json"}
