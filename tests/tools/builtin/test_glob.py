"""The tool `glob`, over real files and the real ripgrep."""

from pathlib import Path

import pytest

from holdfast.toolkit.output import ToolDenied
from holdfast.tools.builtin import search
from holdfast.tools.builtin.glob import glob_tool
from tests.tools.fake_context import Asked
from tests.tools.searching import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def found(project: Project, pattern: str, path: str | Path | None = None) -> list[str]:
    """The paths that are shown, seen from the top of the project."""
    output = await project.run(glob_tool(project.reach), pattern=pattern, path=path)
    lines = output.text.split("\n\n")[0].split("\n")
    return [line.removeprefix(f"{project.top}/") for line in lines]


async def test_the_table(project: Project) -> None:
    """Absolute paths, one a line; git's own, ignored and hidden files are left out, links not followed."""
    for name in ("a.py", "src/b.py", "src/c.log", ".hidden/d.py", ".git/e.py", "build/f.py", "odd\nname.py"):
        project.write(name)
    project.write(".gitignore", "*.log\nbuild/\n")
    (project.outside / "secret.py").write_text("x")
    (project.top / "out").symlink_to(project.outside)
    (project.top / "link.py").symlink_to(project.outside / "secret.py")
    output = await project.run(glob_tool(project.reach), pattern="*.py")
    assert (output.text, output.title, output.metadata) == (
        f"{project.top}/a.py\n{project.top}/src/b.py",
        ".",
        {"count": 2, "truncated": False},
    )
    assert project.context.asked == [
        Asked(
            permission="glob",
            patterns=["*.py"],
            always=["*"],
            metadata={"pattern": "*.py", "path": None},
        )
    ]


async def test_a_colon_is_a_sign_like_others(project: Project) -> None:
    """To ripgrep, where it is given names, it is not."""
    for name in ("a.py", "b:c.py"):
        project.write(name)
    assert await found(project, "b:*.py") == ["b:c.py"]
    assert await found(project, "include:py") == ["No files found"]


async def test_what_is_ignored_stays_out_whatever_the_glob(project: Project) -> None:
    """A glob that fits an ignored file does not bring it back; a hidden one is found by its dot."""
    for name in ("a.log", "b/c.log", ".github/w.yml", "x.yml"):
        project.write(name)
    project.write(".gitignore", "*.log\n")
    assert await found(project, "*.log") == ["No files found"]
    assert await found(project, "**/*") == ["x.yml"]
    assert await found(project, ".github/**") == [".github/w.yml"]
    assert await found(project, ".github/*.yml") == [".github/w.yml"]


async def test_a_path_is_searched_and_the_glob_is_seen_from_it(project: Project) -> None:
    """Also where the glob is absolute and begins with it."""
    for name in ("src/x/a.py", "src/a.py", "lib/a.py"):
        project.write(name)
    assert await found(project, "x/*.py", "src") == ["src/x/a.py"]
    assert await found(project, f"{project.top}/src/*.py") == ["src/a.py"]
    assert await found(project, "*.{py,ts}", "lib") == ["lib/a.py"]


async def test_the_rules_of_the_checkout_hold_below_it_and_none_from_above(project: Project) -> None:
    """A folder in it is searched by the rules of its top; a file outside the project steers nothing."""
    for name in ("src/a.py", "src/b.log", "b.log"):
        project.write(name)
    project.write(".gitignore", "*.log\n")
    (project.top.parent / ".ignore").write_text("*.py\n")
    assert await found(project, "*.log", "src") == ["No files found"]
    assert await found(project, "*.log") == ["No files found"]
    assert await found(project, "*.py") == ["src/a.py"]


async def test_exactly_a_hundred_counts_as_cut(project: Project) -> None:
    """With 99 nothing is said."""
    for number in range(99):
        project.write(f"{number:03}.txt")
    output = await project.run(glob_tool(project.reach), pattern="*.txt")
    assert output.metadata == {"count": 99, "truncated": False}
    project.write("099.txt")
    output = await project.run(glob_tool(project.reach), pattern="*.txt")
    assert output.metadata == {"count": 100, "truncated": True}
    assert output.text.endswith(
        "099.txt\n\n(Only the first 100 that were found. Use a narrower glob or `path`.)"
    )


async def test_what_is_outside_is_asked_for_by_its_real_folder(project: Project) -> None:
    """Before anything is looked at: also whether it exists, and whether it is a file."""
    (project.outside / "x.txt").write_text("x")
    (project.top / "link").symlink_to(project.outside)
    (project.top / "chain").symlink_to("link")
    project.context.denies = ["external_directory"]
    for path in ("link", "chain", "../outside", project.outside, "../outside/none", "link/x.txt"):
        with pytest.raises(ToolDenied):
            await project.run(glob_tool(project.reach), pattern="*", path=path)
    assert {each.permission for each in project.context.asked} == {"external_directory"}
    assert {each.metadata["parentDir"] for each in project.context.asked} == {str(project.outside)}
    assert project.context.spawned == []


async def test_bad_input_says_what_to_do(project: Project) -> None:
    """Each is refused before anything runs."""
    project.write("a.txt")
    (project.top / "loop").symlink_to("loop")
    (project.top / "dangling").symlink_to("nowhere")
    tool = glob_tool(project.reach)
    assert "is empty" in await project.failure(tool, pattern="")
    assert "is empty" in await project.failure(tool, pattern="a\0b")
    assert "is empty" in await project.failure(tool, pattern="\ud800")
    assert "Shorten it" in await project.failure(tool, pattern="a" * 5000)
    assert "leads out of" in await project.failure(tool, pattern="../*")
    assert "leads out of" in await project.failure(tool, pattern="/etc/*")
    assert "leads out of" in await project.failure(tool, pattern="~/*")
    assert "a brace is not closed" in await project.failure(tool, pattern="{a")
    assert "is a file" in await project.failure(tool, pattern="*", path="a.txt")
    assert "There is no file or folder" in await project.failure(tool, pattern="*", path="none")
    assert "There is no file or folder" in await project.failure(tool, pattern="*", path="dangling")
    assert "leads back to itself" in await project.failure(tool, pattern="*", path="loop")
    assert "too long" in await project.failure(tool, pattern="*", path="n" * 300)
    for path in ("/proc/self", "/proc/self/root", "/sys", "/dev"):
        assert "devices and processes" in await project.failure(tool, pattern="*", path=path)
    assert project.context.spawned == []
    assert "unclosed character class" in await project.failure(tool, pattern="[")


async def test_a_folder_of_holdfast_below_is_left_out(project: Project) -> None:
    """The store and the credentials are not shown to a search from above them."""
    (project.closed / "auth.json").write_text("secret")
    above = project.closed.parent
    project.context.directory = project.context.worktree = above
    project.write("a.json")
    output = await project.run(glob_tool(project.reach), pattern="*.json")
    assert output.text == f"{project.top}/a.json"
    assert "belongs to Holdfast itself" in await project.failure(
        glob_tool(project.reach), pattern="*", path=project.closed
    )


async def test_a_folder_swapped_for_a_link_after_the_question_is_not_searched(project: Project) -> None:
    """The answer was given for another place."""
    project.write("src/a.py")
    (project.outside / "secret.py").write_text("x")

    async def swap(*_: object, **__: object) -> None:
        (project.top / "src").rename(project.top / "moved")
        (project.top / "src").symlink_to(project.outside)

    project.context.ask = swap  # type: ignore[method-assign]
    assert "was replaced by something else" in await project.failure(
        glob_tool(project.reach), pattern="*.py", path="src"
    )


@pytest.mark.ci
async def test_a_search_that_takes_too_long_is_ended(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was found by then is shown; nothing found is a failure."""
    program = tmp_path / "bin" / "rg"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf './a.py\\0'\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr("holdfast.location.ripgrep.program", lambda: str(program))
    monkeypatch.setattr(search, "SEARCH_S", 0.5)
    output = await project.run(glob_tool(project.reach), pattern="*.py")
    assert output.text.startswith(f"{project.top}/a.py\n\n(The search took longer")
    assert output.metadata == {"count": 1, "truncated": True}
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    assert "took longer than" in await project.failure(glob_tool(project.reach), pattern="*.py")


async def test_without_ripgrep_the_model_is_answered_so(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing breaks."""
    monkeypatch.setattr("holdfast.location.ripgrep.program", lambda: None)
    assert "is not installed" in await project.failure(glob_tool(project.reach), pattern="*.py")
