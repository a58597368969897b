"""The tool `list`, over real files and the real ripgrep."""

from pathlib import Path

import pytest

from holdfast.toolkit.output import ToolDenied
from holdfast.tools.builtin.list import Tree, list_tool
from tests.tools.fake_context import Asked
from tests.tools.searching import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def test_a_tree(project: Project) -> None:
    """Hidden files too; not what git ignores, git's own, or what a link leads to."""
    for name in ("b.py", "src/x/y.py", "src/a.py", ".github/w.yml", "build/x", ".git/HEAD", "odd\nname"):
        project.write(name)
    project.write(".gitignore", "build/\n")
    (project.top / "out").symlink_to(project.outside)
    (project.outside / "secret").write_text("x")
    output = await project.run(list_tool(project.reach))
    assert output.text == (
        f"{project.top}/\n  .github/\n    w.yml\n  .gitignore\n  b.py\n  src/\n    a.py\n    x/\n      y.py"
    )
    assert (output.title, output.metadata) == (".", {"count": 8, "truncated": False})
    assert project.context.asked == [
        Asked(permission="list", patterns=["."], always=["*"], metadata={"filepath": str(project.top)})
    ]


async def test_an_empty_folder_says_so(project: Project) -> None:
    """And how to see what git ignores."""
    (project.top / "empty").mkdir()
    output = await project.run(list_tool(project.reach), path="empty")
    assert output.text == (
        f"{project.top}/empty/\n(There are no files, or git ignores them all. Read the folder to see every "
        "name.)"
    )
    assert output.title == "empty"


def test_no_more_than_two_hundred_entries() -> None:
    """Level by level: a folder without room is shown by its number of files."""
    tree = Tree([*(f"big/{number}" for number in range(500)), "small/a", "z"])
    assert (tree.lines(), tree.count, tree.is_cut) == (
        ["  big/ (500 files)", "  small/", "    a", "  z"],
        4,
        True,
    )
    flat = Tree([f"{number:04}" for number in range(500)])
    assert (len(flat.lines()), flat.count, flat.is_cut) == (200, 200, True)
    full = Tree([f"{number:04}" for number in range(200)])
    assert (full.count, full.is_cut) == (200, False)


async def test_a_large_tree_is_bounded(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every file is looked at, and that is said."""
    monkeypatch.setattr("holdfast.tools.builtin.list.FILES_MAX", 5)
    for number in range(9):
        project.write(f"{number}")
    output = await project.run(list_tool(project.reach))
    assert output.text.endswith("\n(Only 5 files were looked at. List a folder in it.)")
    assert output.metadata == {"count": 5, "truncated": True}


async def test_paths(project: Project) -> None:
    """What is outside is asked for first; what is no folder, or never opened, is answered in words."""
    project.write("a.txt")
    (project.top / "link").symlink_to(project.outside)
    (project.top / "loop").symlink_to("loop")
    tool = list_tool(project.reach)
    for path, said in {
        "a.txt": "is a file",
        "none": "There is no file or folder",
        "loop": "leads back to itself",
        "/proc/self/cwd": "devices and processes",
        "n" * 300: "too long",
        str(project.closed): "belongs to Holdfast itself",
    }.items():
        assert said in await project.failure(tool, path=path)
    project.context.denies = ["external_directory"]
    for path in ("link", "..", "../outside", "/etc"):
        with pytest.raises(ToolDenied):
            await project.run(tool, path=path)
    assert project.context.spawned == []
