"""The first commit as git tells it, from repositories of every shape, and from some that mean harm."""

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from holdfast.errors import ContextError
from holdfast.location import root_commit as module
from holdfast.location.project import GLOBAL, locate
from tests.location.project import git, tree

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two branches with roots of their own, three commits."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    for name in ("first", "second"):
        git(folder, "commit", "-q", "--allow-empty", "-m", name)
    git(folder, "checkout", "-q", "--orphan", "other")
    git(folder, "commit", "-q", "--allow-empty", "-m", "another root")
    return folder


def answer(folder: Path) -> str:
    """What git itself says, obeying the repository."""
    return min(git(folder, "rev-list", "--max-parents=0", "--all").split())


def test_it_is_gits_own_answer(repository: Path, tmp_path: Path) -> None:
    """Loose and packed refs, a commit graph, a detached head, worktrees, a borrowed object store, a clone."""
    expected = answer(repository)
    before = tree(repository)
    assert locate(repository).project == expected
    assert tree(repository) == before
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"), "main")
    assert locate(tmp_path / "linked").project == locate(repository).project == expected
    git(repository, "gc", "-q")
    git(repository, "pack-refs", "--all")
    git(repository, "commit-graph", "write", "--reachable")
    assert locate(repository).project == expected
    git(repository, "checkout", "-q", "--detach")
    assert locate(repository).project == expected
    git(tmp_path, "clone", "-q", "--shared", str(repository), "borrowed")
    assert locate(tmp_path / "borrowed").project == answer(tmp_path / "borrowed")


def test_a_detached_head_alone_names_it(repository: Path, tmp_path: Path) -> None:
    """No branch leads there, in the main worktree or in a linked one."""
    git(repository, "checkout", "-q", "--detach", "main")
    for branch in ("main", "other"):
        git(repository, "branch", "-q", "-D", branch)
    assert locate(repository).project == answer(repository)
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    git(repository, "symbolic-ref", "HEAD", "refs/heads/unborn")
    assert locate(repository).project == locate(tmp_path / "linked").project == answer(repository)


def test_a_shallow_clone_begins_where_it_ends(repository: Path, tmp_path: Path) -> None:
    """As git has it; in a submodule and with longer hashes too."""
    git(tmp_path, "clone", "-q", "--depth=1", "-b", "main", f"file://{repository}", "shallow")
    assert locate(tmp_path / "shallow").project == answer(tmp_path / "shallow") != answer(repository)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "inner")
    assert (repository / "inner" / ".git").is_file()
    assert locate(repository / "inner").project == answer(repository / "inner")
    long = tmp_path / "long"
    git(tmp_path, "init", "-q", "--object-format=sha256", "long")
    git(long, "commit", "-q", "--allow-empty", "-m", "root")
    assert locate(long).project == answer(long)
    assert len(answer(long)) == 64


def trapped(folder: Path) -> Path:
    """Every setting that makes git start a program, each of which would leave the same mark."""
    mark = folder / "PWNED"
    trap = folder / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
    trap.chmod(0o755)
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (folder / ".git" / "hooks" / hook).parent.mkdir(exist_ok=True)
        (folder / ".git" / "hooks" / hook).symlink_to(trap)
    included = folder / "included"
    included.write_text(f"[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n[pager]\n\trev-list = {trap}\n")
    for name, value in {
        "core.fsmonitor": str(trap),
        "core.sshCommand": str(trap),
        "core.gitProxy": str(trap),
        "core.askPass": str(trap),
        "core.pager": str(trap),
        "pager.rev-list": str(trap),
        "core.hooksPath": str(folder / ".git" / "hooks"),
        "core.alternateRefsCommand": str(trap),
        "credential.helper": f"!{trap}",
        "alias.rev-list": f"!{trap}",
        "include.path": str(included),
        "gpg.program": str(trap),
        "log.showSignature": "true",
        "diff.external": str(trap),
        "extensions.worktreeConfig": "true",
    }.items():
        git(folder, "config", name, value)
    return mark


def test_no_trap_springs(repository: Path) -> None:
    """None of the settings is obeyed, and the answer is right."""
    expected = answer(repository)
    mark = trapped(repository)
    assert locate(repository).project == expected
    assert not mark.exists()


@pytest.mark.parametrize("scheme", ["file", "ssh", "ext"])
def test_a_missing_object_is_not_fetched(repository: Path, scheme: str) -> None:
    """A partial clone fetches lazily, by a command of the repository's choice: git does, we do not."""
    lost = git(repository, "rev-parse", "main~1")
    mark = trapped(repository)
    (repository / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    url = {"file": f"file://{repository}", "ssh": "ssh://nowhere.invalid/x", "ext": f"ext::{repository}/trap"}
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": url[scheme],
        "remote.origin.uploadpack": f"touch {mark}; git-upload-pack",
        "protocol.ext.allow": "always",
        "protocol.file.allow": "always",
    }.items():
        git(repository, "config", name, value)
    found = locate(repository)
    assert not mark.exists()
    assert (found.project, found.vcs) == (GLOBAL, "git")
    # The trap is a real one: git on its own walks into it.
    subprocess.run(
        ["git", "rev-list", "--max-parents=0", "--all"], cwd=repository, capture_output=True, check=False
    )
    assert mark.exists()


@pytest.mark.ci
def test_slow_git_is_an_error_and_no_other_project(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an answer nothing is filed; without git at all it is `global`, still under version control."""
    (tmp_path / "bin").mkdir()
    slow = tmp_path / "bin" / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(module, "GIT_TIMEOUT_S", 0.2)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(ContextError, match=r"took longer than .* s .*; try again"):
        locate(repository)
    slow.write_text("#!/bin/sh\nkill -9 $$\n")
    with pytest.raises(ContextError, match="signal 9"):
        locate(repository)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    found = locate(repository)
    assert (found.project, found.vcs) == (GLOBAL, "git")


def in_time(folder: Path) -> object:
    """What `locate` finds, or a failure where it waits."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(locate(folder)), daemon=True)
    thread.start()
    thread.join(60)
    assert found, "it waits"
    return found[0]


@pytest.mark.parametrize("name", ["opencode", "HEAD", "config", "shallow"])
def test_a_pipe_is_not_opened(repository: Path, name: str) -> None:
    """Where a file of the repository should be; a link to a device, or a huge file, is no more."""
    place = repository / ".git" / name
    expected = answer(repository)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    assert in_time(repository).project == expected  # type: ignore[attr-defined]
    place.unlink()
    place.symlink_to("/dev/zero")
    assert in_time(repository).project == expected  # type: ignore[attr-defined]


def test_a_pipe_in_the_way_of_a_worktree_is_not_opened(repository: Path, tmp_path: Path) -> None:
    """`.git` and `commondir`; names with NUL, too long, or not UTF-8."""
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "-q", str(linked), "-b", "linked")
    common = repository / ".git" / "worktrees" / "linked" / "commondir"
    common.unlink()
    os.mkfifo(common)
    assert stat.S_ISFIFO(common.stat().st_mode)
    in_time(linked)
    for text in (b"gitdir: a\0b", b"gitdir: " + b"x" * 5000, b"gitdir: \xff\xfe", b"x" * (1 << 20)):
        (linked / ".git").write_bytes(text)
        assert in_time(linked).project == GLOBAL  # type: ignore[attr-defined]
    (linked / ".git").unlink()
    os.mkfifo(linked / ".git")
    assert in_time(linked).project == GLOBAL  # type: ignore[attr-defined]


def test_a_link_at_opencodes_id_is_not_followed(repository: Path, tmp_path: Path) -> None:
    """It could make a secret of this person a project's name."""
    (tmp_path / "secret").write_text("hunter2")
    (repository / ".git" / "opencode").symlink_to(tmp_path / "secret")
    assert locate(repository).project == answer(repository)


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ("[extensions]\n\tobjectFormat = sha256\n", {"objectformat": "sha256"}),
        ('[Extensions] ObjectFormat="sha256" ; why\n', {"objectformat": "sha256"}),
        ("[extensions]\nrefstorage=reftable\n[core]\nobjectformat=sha256", {"refstorage": "reftable"}),
        ('[extensions "x"]\nobjectformat = sha256', {}),
        ("[extensions]\nobjectformat = sha256 evil\npartialClone = origin\nnoop", {}),
    ],
)
def test_two_words_of_the_configuration_are_read(config: str, found: dict[str, str]) -> None:
    """How objects and refs are written, and nothing else."""
    assert module._extensions(config) == found
