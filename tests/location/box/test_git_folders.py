"""The git folders of a checkout: what a command writes for a commit, and what it must not touch."""

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.location.box.git_folders import GitFolders, git_folders

pytestmark = pytest.mark.needs("git")


def run(*arguments: str, cwd: Path) -> None:
    subprocess.run(["git", *arguments], cwd=cwd, check=True, timeout=60, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "repository"
    made.mkdir()
    run("init", "-q", cwd=made)
    run("commit", "-q", "--allow-empty", "-m", "first", cwd=made)
    return made


def test_a_repository(repository: Path) -> None:
    """`.git` is pinned; hooks and configuration are protected; nothing else is writable."""
    found = git_folders(repository)

    own = str(repository / ".git")
    assert found == GitFolders(pinned=(own,), protected=(f"{own}/hooks", f"{own}/config"))


def test_a_linked_worktree(repository: Path, tmp_path: Path) -> None:
    """Its own folder and the shared one are written; what leads from one to the other is protected."""
    linked = repository.parent / "linked"
    run("worktree", "add", "-q", str(linked), cwd=repository)
    common = repository / ".git"
    own = common / "worktrees" / "linked"

    assert git_folders(linked) == GitFolders(
        write=(str(common), str(own)),
        pinned=(str(own.parent),),
        protected=tuple(
            map(
                str, (linked / ".git", own / "commondir", own / "gitdir", common / "hooks", common / "config")
            )
        ),
    )


def test_linked_worktrees_elsewhere_keep_their_repository(repository: Path) -> None:
    """A command here must not lead git there to a configuration of its own; one inside is the command's."""
    linked, other = repository.parent / "linked", repository.parent / "other"
    for each in (linked, other, repository / "inside"):
        run("worktree", "add", "-q", str(each), cwd=repository)
    kept = repository / ".git" / "worktrees"
    of_other = {str(kept / "other" / "commondir"), str(kept / "other" / "gitdir")}

    main, own = git_folders(repository), git_folders(linked)

    assert {str(kept), str(kept / "linked"), str(kept / "other")} < set(main.pinned)
    assert of_other < set(main.protected)
    assert str(kept / "inside") not in main.pinned
    assert not any(path.startswith(str(kept / "inside")) for path in main.protected)
    assert {str(kept), str(kept / "other")} < set(own.pinned)
    assert of_other < set(own.protected)


def test_a_submodule(repository: Path) -> None:
    """Its folder lies in the repository above, and names the checkout."""
    own = repository / ".git" / "modules" / "part"
    part = repository / "part"
    part.mkdir()
    own.parent.mkdir()
    run("init", "-q", "--separate-git-dir", str(own), cwd=part)
    run("config", "core.worktree", "../../../part", cwd=part)

    assert git_folders(part) == GitFolders(
        write=(str(own),), protected=(str(part / ".git"), f"{own}/config", f"{own}/hooks")
    )


@pytest.mark.parametrize("target", ["home", "another repository", "no such folder", "\0"])
def test_a_file_that_names_another_folder_makes_nothing_writable(repository: Path, target: str) -> None:
    """An archive may bring a `.git` file that names whatever its author likes."""
    folder = repository.parent / "unpacked"
    folder.mkdir()
    names = {"home": str(repository.parent), "another repository": str(repository / ".git")}
    (folder / ".git").write_text(f"gitdir: {names.get(target, target)}\n")

    assert git_folders(folder) == GitFolders(protected=(str(folder / ".git"),))


def test_a_back_reference_outside_a_repository_is_not_believed(repository: Path) -> None:
    """Two files that name one another make no repository: it has a place and a shape."""
    folder, other = repository.parent / "unpacked", repository.parent / "other"
    folder.mkdir()
    other.mkdir()
    (folder / ".git").write_text(f"gitdir: {other}\n")
    (other / "gitdir").write_text(f"{folder}/.git\n")
    (other / "commondir").write_text(f"{repository}/.git\n")

    assert git_folders(folder).write == ()


def test_a_link_is_left_alone(repository: Path) -> None:
    """What it names is not writable for it; the hooks there are protected all the same."""
    folder = repository.parent / "linking"
    folder.mkdir()
    (folder / ".git").symlink_to(repository / ".git")

    own = str(repository / ".git")
    assert git_folders(folder) == GitFolders(protected=(f"{own}/hooks", f"{own}/config"))


def test_no_repository(tmp_path: Path) -> None:
    """Nothing is to be known."""
    assert git_folders(tmp_path) == GitFolders()
