"""Files that steer the next run are compared before and after a command."""

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.location.box import changed_files


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    for name in (".git/hooks", ".holdfast/plugins", ".holdfast/plans", "sub/dir", ".opencode/node_modules"):
        (tmp_path / name).mkdir(parents=True)
    for name in (
        "AGENTS.md",
        ".git/config",
        ".holdfast/plugins/a.py",
        "main.py",
        "sub/CLAUDE.md",
        ".git/index",
    ):
        (tmp_path / name).write_text("text")
    return tmp_path


def difference(worktree: Path, work: Callable[[], object]) -> list[str]:
    before = changed_files.marks(worktree, worktree / "sub" / "dir")
    work()
    after = changed_files.marks(worktree, worktree / "sub" / "dir")
    return [str(Path(path).relative_to(worktree)) for path in changed_files.changed(before, after)]


@pytest.mark.parametrize(
    "name",
    [
        "AGENTS.md",
        "sub/CLAUDE.md",
        "sub/dir/agents.md",
        "holdfast.json",
        "opencode.jsonc",
        ".holdfast/plugins/a.py",
        ".holdfast/settings/new.json",
        ".opencode/command/x.md",
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/commondir",
    ],
)
def test_what_steers_is_named(worktree: Path, name: str) -> None:
    """Settings, plugins, instructions and what git obeys: changed, new, and from the top to the directory."""
    path = worktree / name
    path.parent.mkdir(parents=True, exist_ok=True)

    assert difference(worktree, lambda: path.write_text("other")) == [name]


def test_what_is_removed_is_named(worktree: Path) -> None:
    """As is a file that another took the place of, with the same size and time."""
    times = (worktree / "AGENTS.md").stat()

    def replaced() -> None:
        import os

        (worktree / "new").write_text("evil")
        os.utime(worktree / "new", ns=(times.st_atime_ns, times.st_mtime_ns))
        (worktree / "new").rename(worktree / "AGENTS.md")
        (worktree / ".git" / "config").unlink()

    assert difference(worktree, replaced) == [".git/config", "AGENTS.md"]


@pytest.mark.parametrize(
    "name",
    ["main.py", "sub/other/AGENTS.md", ".git/index", ".holdfast/plans/a.md", ".opencode/node_modules/a"],
)
def test_ordinary_work_is_not_named(worktree: Path, name: str) -> None:
    """The product of the agent, git's own files, plans and packages."""
    path = worktree / name
    path.parent.mkdir(parents=True, exist_ok=True)

    assert difference(worktree, lambda: path.write_text("other")) == []


@pytest.mark.ci
def test_a_folder_with_very_many_files_is_bounded(worktree: Path) -> None:
    """As is what is named."""
    for number in range(changed_files.FILES_MAX + 10):
        (worktree / ".holdfast" / f"{number:05}").touch()

    assert len(changed_files.marks(worktree, worktree)) == changed_files.FILES_MAX
    assert len(changed_files.changed({}, changed_files.marks(worktree, worktree))) == changed_files.NAMED_MAX
