"""Which project a directory belongs to, with real repositories."""

from pathlib import Path

import pytest

import holdfast
from holdfast.errors import InvalidInput
from holdfast.location.project import GLOBAL, Checkout, locate
from holdfast.store.query import SessionQuery
from tests.location.project import git, tree

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit and a folder inside."""
    folder = tmp_path / "repo"
    (folder / "src" / "app").mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "root")
    return folder


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    """A missing path, a file, nothing, NUL."""
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "missing", tmp_path / "file", "", "a\0b"):
        with pytest.raises(InvalidInput):
            locate(bad)


def test_outside_of_a_repository_it_is_global(tmp_path: Path) -> None:
    """The worktree is then the root of the file system, and there is no version control."""
    found = locate(tmp_path)
    assert (found.project, found.worktree, found.vcs) == (GLOBAL, "/", None)
    assert found.path == str(tmp_path).lstrip("/")


def test_an_empty_repository_is_global_but_has_its_own_worktree(tmp_path: Path) -> None:
    """There is no commit to name it by."""
    git(tmp_path, "init", "-q")
    found = locate(tmp_path)
    assert (found.project, found.worktree, found.vcs) == (GLOBAL, str(tmp_path), "git")


def test_the_root_commit_names_a_project(repository: Path) -> None:
    """From any folder inside; the path is relative to the worktree."""
    root = git(repository, "rev-list", "--max-parents=0", "HEAD")
    inside = locate(repository / "src" / "app")
    assert (inside.project, inside.worktree, inside.path) == (root, str(repository), "src/app")
    assert locate(repository).path == ""


def test_of_several_roots_the_least_is_taken(repository: Path) -> None:
    """Whatever branch is checked out."""
    git(repository, "checkout", "-q", "--orphan", "other")
    git(repository, "commit", "-q", "--allow-empty", "-m", "another root")
    roots = git(repository, "rev-list", "--max-parents=0", "--all").split()
    assert len(roots) == 2
    assert locate(repository).project == min(roots)


def test_a_linked_worktree_is_the_same_project(repository: Path, tmp_path: Path) -> None:
    """With a worktree of its own."""
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    linked = locate(tmp_path / "linked")
    assert linked.project == locate(repository).project
    assert linked.worktree == str(tmp_path / "linked")


def test_a_link_to_a_directory_is_resolved(repository: Path, tmp_path: Path) -> None:
    """The directory is the real one."""
    (tmp_path / "link").symlink_to(repository / "src")
    assert locate(tmp_path / "link").directory == str(repository / "src")


def test_an_id_that_opencode_left_is_read_and_nothing_is_ever_written(repository: Path) -> None:
    """The person's repository is not ours; a file that holds no id is ignored."""
    root = locate(repository).project
    (repository / ".git" / "opencode").write_text("0123abcd\n")
    before = tree(repository)
    assert locate(repository).project == "0123abcd"
    assert tree(repository) == before
    (repository / ".git" / "opencode").write_text("../../etc")
    assert locate(repository).project == root


def test_what_is_on_record_wins(repository: Path) -> None:
    """The caller's cache is asked with the shared git directory and a mark that tells another repository."""
    asked: list[Checkout] = []

    def known(checkout: Checkout) -> str:
        asked.append(checkout)
        return "remembered"

    assert locate(repository / "src", known).project == "remembered"
    stat = (repository / ".git").stat()
    assert asked == [Checkout(str(repository / ".git"), f"{stat.st_dev:x}-{stat.st_ino:x}")]


def test_a_repository_cannot_run_programs_through_us(repository: Path) -> None:
    """A configured fsmonitor program is not started."""
    trap = repository / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {repository}/sprung\n")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(trap))
    locate(repository)
    assert not (repository / "sprung").exists()


def test_fake_vcs_makes_any_directory_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By either name of the flag, without git."""
    plain = locate(tmp_path)
    for name in ("HOLDFAST_FAKE_VCS", "OPENCODE_FAKE_VCS"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "git")
            faked = locate(tmp_path)
            assert (faked.worktree, faked.vcs) == (str(tmp_path), "git")
            assert faked.project not in (plain.project, GLOBAL)


async def test_a_project_is_remembered_when_its_history_changes(repository: Path, tmp_path: Path) -> None:
    """Once a session was made, a new root commit does not move the project; another checkout is noted."""
    async with holdfast.open(f"sqlite://{tmp_path}/store.db") as hf:
        first = await hf.sessions.create(directory=repository)
        git(repository, "checkout", "-q", "--orphan", "fresh")
        git(repository, "commit", "-q", "--allow-empty", "-m", "0")
        git(repository, "branch", "-q", "-D", "main")
        assert locate(repository).project != first.project_id
        assert (await hf.sessions.create(directory=repository)).project_id == first.project_id

        git(repository, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
        linked = await hf.sessions.create(directory=tmp_path / "linked")
        assert linked.project_id == first.project_id
        record = await hf.store.get(f"project_{first.project_id}", "project", first.project_id)
        assert record is not None
        assert record.value().worktree == str(repository)
        assert record.value().sandboxes == [str(tmp_path / "linked")]
        page = await hf.sessions.list(SessionQuery(project=first.project_id))
        assert len(page.sessions) == 3
    assert {entry.name for entry in repository.iterdir()} == {".git", "src"}
