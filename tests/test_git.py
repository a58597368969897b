"""Git as we call it, in a repository that means harm."""

import re
import subprocess
from pathlib import Path

import pytest

from holdfast import git as ours
from holdfast.store.files.repair import migrate
from tests.location.project import git

SRC = Path(ours.__file__).parent


def hostile(folder: Path) -> Path:
    """A repository in which whatever git can be made to start leaves the same mark."""
    git(folder, "init", "-q")
    (folder / "file").write_text("one\n")
    (folder / ".gitattributes").write_text("file diff=evil\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    git(folder, "commit", "-q", "--allow-empty", "-m", "second")
    (folder / "file").write_text("two\n")
    mark, trap, hooks = folder / "PWNED", folder / "trap", folder / "traps"
    trap.write_text(f"#!/bin/sh\necho $0 $@ >> {mark}\nexit 1\n")
    trap.chmod(0o755)
    hooks.mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit", "pre-auto-gc"):
        (hooks / hook).symlink_to(trap)
    included = folder / "included"
    included.write_text(f"[core]\n\tfsmonitor = {trap}\n\thooksPath = {hooks}\n[diff]\n\texternal = {trap}\n")
    for name, value in {
        "include.path": str(included),
        "core.fsmonitor": str(trap),
        "core.hooksPath": str(hooks),
        "core.sshCommand": str(trap),
        "core.pager": str(trap),
        "pager.log": str(trap),
        "alias.status": f"!{trap}",
        "alias.st": f"!{trap}",
        "diff.external": str(trap),
        "diff.evil.command": str(trap),
        "diff.evil.textconv": str(trap),
        "gpg.program": str(trap),
        "log.showSignature": "true",
        "credential.helper": f"!{trap}",
        "protocol.ext.allow": "always",
        "remote.origin.url": f"ext::{trap}",
    }.items():
        git(folder, "config", name, value)
    return mark


CALLS = (
    ["status", "--porcelain"],
    ["diff", "--no-color"],
    ["log", "-p", "-1"],
    ["rev-list", "--max-parents=0", "--all"],
    ["update-ref", "refs/heads/other", "HEAD"],
    ["add", "file"],
    ["fetch", "origin"],
    ["fetch", "ssh://nowhere.invalid/x"],
)


@pytest.mark.needs("git")
def test_a_hostile_repository_starts_nothing(tmp_path: Path) -> None:
    """File monitor, hooks, pager, external and named diff drivers, includes, transports: each call of ours
    leaves no mark, and git on its own walks into the traps.
    """
    mark = hostile(tmp_path)
    for call in CALLS:
        ran = ours.run(call, cwd=tmp_path, timeout_s=30)
        assert (call, mark.exists()) == (call, False)
        assert (ran.returncode == 0) == (call[0] != "fetch"), (call, ran.stderr)
    subprocess.run(["git", "status"], cwd=tmp_path, capture_output=True, check=False)
    assert mark.exists()


@pytest.mark.needs("git")
def test_adopting_a_tree_fetches_nothing(tmp_path: Path) -> None:
    """The project of an older tree is asked of its worktree: an object that it lacks stays absent."""
    mark = hostile(tmp_path)
    lost = git(tmp_path, "rev-parse", "HEAD~1")
    (tmp_path / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
    }.items():
        git(tmp_path, "config", name, value)
    mark.unlink(missing_ok=True)
    assert (migrate._root_commit(tmp_path), mark.exists()) == ("", False)


@pytest.mark.needs("git")
def test_the_users_variables_lead_us_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another repository, other objects, settings and programs by variable: none of them is passed on."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    mark = hostile(tmp_path / "there")
    git(tmp_path / "here", "init", "-q")
    git(tmp_path / "here", "commit", "-q", "--allow-empty", "-m", "ours")
    expected = git(tmp_path / "here", "rev-parse", "HEAD")
    mark.unlink(missing_ok=True)
    trap = str(tmp_path / "there" / "trap")
    for name, value in {
        "GIT_DIR": str(tmp_path / "there" / ".git"),
        "GIT_WORK_TREE": str(tmp_path / "there"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "there" / ".git" / "objects"),
        "GIT_INDEX_FILE": str(tmp_path / "there" / ".git" / "index"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": trap,
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor'='{trap}'",
        "GIT_EXTERNAL_DIFF": trap,
        "GIT_PAGER": trap,
        "GIT_SSH_COMMAND": trap,
        "GIT_EXEC_PATH": str(tmp_path / "there"),
    }.items():
        monkeypatch.setenv(name, value)
    for call in (["rev-list", "--max-parents=0", "--all"], ["rev-parse", "HEAD"]):
        assert ours.run(call, cwd=tmp_path / "here", timeout_s=30).stdout.decode().split() == [expected]
    assert ours.run(["status", "--porcelain"], cwd=tmp_path / "here", timeout_s=30).stdout == b""
    assert not mark.exists()


def test_git_is_called_in_one_place() -> None:
    """No other file of the package starts it."""
    found = [
        str(path.relative_to(SRC))
        for path in sorted(SRC.rglob("*.py"))
        if re.search(r"""[\[(]\s*["']git["'],\s*["'*]""", path.read_text("utf-8"))
    ]
    assert [each for each in found if each != "cli/info/facts.py"] == ["git.py"]  # It only names programs.
