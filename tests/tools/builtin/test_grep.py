"""The tool `grep`, over real files and the real ripgrep."""

import os
from pathlib import Path

import anyio
import pytest

from holdfast.toolkit.output import ToolDenied
from holdfast.tools.builtin import grep as grep_module
from holdfast.tools.builtin import search
from holdfast.tools.builtin.grep import grep_tool
from tests.tools.fake_context import Asked
from tests.tools.searching import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def test_the_table(project: Project) -> None:
    """A head with the count, then the lines by file; hidden files too, ignored and binary ones not."""
    project.write("a.py", "import x\ny = x\r\n")
    project.write("src/b.py", "none\nimport y\n")
    project.write(".hidden/c.py", "import z\n")
    project.write(".git/d.py", "import git\n")
    project.write("e.log", "import log\n")
    project.write("f.bin", b"import\0x\n")
    project.write("odd\nname.py", "import odd\n")
    project.write(".gitignore", "*.log\n")
    (project.outside / "secret").write_text("import secret\n")
    (project.top / "out").symlink_to(project.outside)
    (project.top / "link").symlink_to(project.outside / "secret")
    os.mkfifo(project.top / "pipe")
    output = await project.run(grep_tool(project.reach), pattern=r"^import \w")
    top = project.top
    assert output.text == (
        f"Found 3 matches\n\n{top}/.hidden/c.py:\n  Line 1: import z\n\n{top}/a.py:\n  Line 1: import x\n\n"
        f"{top}/src/b.py:\n  Line 2: import y"
    )
    assert (output.title, output.metadata) == (
        r"^import \w",
        {"matches": 3, "truncated": False, "unshown": 0},
    )
    assert project.context.asked == [
        Asked(
            permission="grep",
            patterns=[r"^import \w"],
            always=["*"],
            metadata={"pattern": r"^import \w", "path": None, "include": None},
        )
    ]


async def test_nothing_found(project: Project) -> None:
    """It is said, and is no failure."""
    project.write("a", "b\n")
    output = await project.run(grep_tool(project.reach), pattern="nothing")
    assert output.text == "No matches found"
    assert output.metadata == {"matches": 0, "truncated": False, "unshown": 0}


async def test_include_narrows_and_brings_nothing_back(project: Project) -> None:
    """By name at any depth, or by a path; what git ignores stays out."""
    for name in ("a.py", "src/b.py", "src/x/c.py", "d.ts", "e.log"):
        project.write(name, "hit\n")
    project.write(".gitignore", "*.log\n")

    async def files(include: str) -> list[str]:
        output = await project.run(grep_tool(project.reach), pattern="hit", include=include)
        lines = [line for line in output.text.split("\n") if line.startswith("/")]
        return [line.removeprefix(f"{project.top}/").removesuffix(":") for line in lines]

    assert await files("*.py") == ["a.py", "src/b.py", "src/x/c.py"]
    assert await files("*.{ts,log}") == ["d.ts"]
    assert await files("src/*.py") == ["src/b.py"]
    assert await files("src/**") == ["src/b.py", "src/x/c.py"]
    assert "a brace is not closed" in await project.failure(
        grep_tool(project.reach), pattern="x", include="{a"
    )


async def test_a_file_is_searched_alone_and_asked_for(project: Project) -> None:
    """Even an ignored one, since it was named; its neighbours are not looked at."""
    project.write("a.log", "hit\n")
    project.write("b.log", "hit\n")
    project.write(".gitignore", "*.log\n")
    output = await project.run(grep_tool(project.reach), pattern="hit", path="a.log")
    assert output.text == f"Found 1 match\n\n{project.top}/a.log:\n  Line 1: hit"
    assert [(each.permission, each.patterns) for each in project.context.asked] == [
        ("grep", ["hit"]),
        ("read", ["a.log"]),
    ]
    project.context.denies = ["read"]
    with pytest.raises(ToolDenied):
        await project.run(grep_tool(project.reach), pattern="hit", path="a.log")


async def test_a_file_that_may_not_be_read_without_asking_is_left_out_and_counted(project: Project) -> None:
    """Denied or to be asked for: its lines are not shown."""
    project.write("a.py", "KEY=1\n")
    project.write(".env", "KEY=secret\nKEY=two\n")
    project.write("conf/private", "KEY=secret\n")
    project.context.verdicts = {".env": "ask", "conf/private": "deny"}
    output = await project.run(grep_tool(project.reach), pattern="KEY")
    assert "secret" not in output.text
    assert output.text.startswith(f"Found 1 match\n\n{project.top}/a.py:\n  Line 1: KEY=1\n\n(2 files have ")
    assert output.metadata == {"matches": 1, "truncated": False, "unshown": 2}


async def test_files_that_may_not_be_shown_end_the_search(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule against everything does not make it judge every file of a large tree."""
    monkeypatch.setattr(grep_module, "UNSHOWN_MAX", 3)
    for number in range(10):
        project.write(f"{number}", "hit\n")
    project.context.verdicts = {f"{number}": "deny" for number in range(10)}
    output = await project.run(grep_tool(project.reach), pattern="hit")
    assert output.metadata == {"matches": 0, "truncated": True, "unshown": 3}


async def test_a_hundred_lines_are_the_most(project: Project) -> None:
    """More are not shown, and that is said."""
    project.write("a", "hit\n" * 150)
    output = await project.run(grep_tool(project.reach), pattern="hit")
    assert output.metadata == {"matches": 100, "truncated": True, "unshown": 0}
    assert output.text.endswith("(Only the first 100. Use a narrower pattern, `path` or `include`.)")


async def test_a_long_line_is_cut(project: Project) -> None:
    """Also one of ten megabytes, of which no more is kept than is shown; and what is no UTF-8 is shown."""
    project.write("a", "hit" + "é" * 5_000_000 + "\n")
    project.write("b", b"hit \xff\n")
    output = await project.run(grep_tool(project.reach), pattern="hit")
    assert output.text == (
        f"Found 2 matches\n\n{project.top}/a:\n  Line 1: hit{'é' * 1997}...\n\n"
        f"{project.top}/b:\n  Line 1: hit \N{REPLACEMENT CHARACTER}"
    )


@pytest.mark.ci
@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "unclosed group"),
        ("a\nb", "not allowed in a regex"),
        ("x{9999}{9999}", "size limit"),
        ("(?P<n>", "regex parse error"),
        ("", "is empty"),
        ("a\0", "is empty"),
        ("x" * 5000, "Shorten it"),
    ],
)
async def test_a_pattern_that_is_none_is_answered_in_words(project: Project, pattern: str, said: str) -> None:
    """What is wrong with it, and what to do."""
    assert said in await project.failure(grep_tool(project.reach), pattern=pattern)


async def test_a_pattern_is_never_an_option(project: Project) -> None:
    """Nor is a glob or a path."""
    project.write("a", "--pre=touch x\n")
    project.write("--files", "-v\n")
    tool = grep_tool(project.reach)
    output = await project.run(tool, pattern="--pre=touch")
    assert output.metadata["matches"] == 1
    output = await project.run(tool, pattern="-v", path="--files", include="--pre=x")
    assert output.metadata["matches"] == 1


async def test_what_is_outside_is_asked_for_first(project: Project) -> None:
    """By its real folder, whatever way leads there; denied, nothing runs."""
    (project.outside / "x.txt").write_text("x")
    (project.top / "link").symlink_to(project.outside)
    (project.top / "file").symlink_to(project.outside / "x.txt")
    (project.top / "chain").symlink_to("file")
    project.context.denies = ["external_directory"]
    for path in ("link", "file", "chain", "../outside/x.txt", project.outside, "link/none"):
        with pytest.raises(ToolDenied):
            await project.run(grep_tool(project.reach), pattern="x", path=path)
    assert {each.metadata["parentDir"] for each in project.context.asked} == {str(project.outside)}
    assert project.context.spawned == []


async def test_paths_that_are_never_opened(project: Project) -> None:
    """The kernel's trees, pipes, loops, what is not there, and what belongs to Holdfast."""
    os.mkfifo(project.top / "pipe")
    (project.top / "loop").symlink_to("loop")
    (project.closed / "auth.json").write_text("key")
    (project.top / "auth").symlink_to(project.closed / "auth.json")
    tool = grep_tool(project.reach)
    for path, said in {
        "/proc/self/environ": "devices and processes",
        "/dev/zero": "devices and processes",
        "pipe": "a named pipe",
        "loop": "leads back to itself",
        "none": "There is no file or folder",
        "n" * 300: "too long",
        "a\0b": "NUL",
        "auth": "belongs to Holdfast itself",
        str(project.kept): "belongs to Holdfast itself",
    }.items():
        assert said in await project.failure(tool, pattern="x", path=path)
    assert project.context.spawned == []


async def test_a_search_from_above_does_not_see_what_belongs_to_holdfast(project: Project) -> None:
    """A session in the home directory searches hidden folders too."""
    (project.closed / "auth.json").write_text("hit\n")
    (project.kept / "out").write_text("hit\n")
    project.write("a", "hit\n")
    project.context.directory = project.context.worktree = project.closed.parent
    output = await project.run(grep_tool(project.reach), pattern="hit")
    assert output.text == f"Found 1 match\n\n{project.top}/a:\n  Line 1: hit"
    output = await project.run(grep_tool(project.reach), pattern="hit", path=project.kept / "out")
    assert output.metadata["matches"] == 1


async def test_a_file_swapped_after_the_question_is_not_searched(project: Project) -> None:
    """The answer was given for another file."""
    project.write("a", "mine\n")
    (project.outside / "secret").write_text("secret\n")

    async def swap(*_: object, **__: object) -> None:
        (project.top / "a").unlink(missing_ok=True)
        (project.top / "a").symlink_to(project.outside / "secret")
        project.context.ask = FORMER  # type: ignore[method-assign]

    FORMER = project.context.ask  # noqa: N806
    project.context.ask = swap  # type: ignore[method-assign]
    assert "was replaced" in await project.failure(grep_tool(project.reach), pattern=".", path="a")


@pytest.mark.ci
async def test_a_pattern_that_runs_for_ever_is_ended(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a cancelled call too: no program is left."""
    monkeypatch.setattr(search, "SEARCH_S", 0.2)
    sparse = project.top / "huge"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
    monkeypatch.setattr(grep_module, "_OPTIONS", (*grep_module._OPTIONS, "--text"))
    with anyio.fail_after(30):
        assert "took longer" in await project.failure(grep_tool(project.reach), pattern="a{5}b")
