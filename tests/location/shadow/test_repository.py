"""The shadow repository, over real files and the real git."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast import git
from holdfast.errors import ContextError, Refused
from holdfast.location.shadow import place, repository
from holdfast.location.shadow.repository import LOOSE_MAX, NEW_BYTES_MAX, TIMEOUT_S, Shadow
from holdfast.location.shadow.shadows import Worker


class Project:
    """A project, and its shadow repository."""

    def __init__(self, top: Path) -> None:
        self.top = Path(os.path.realpath(top)) / "project"
        self.top.mkdir()
        self.shadow = Shadow(Path(os.path.realpath(top)) / "shadow", self.top)

    def git(self, *arguments: str, at: str = ".") -> str:
        """The user's own git."""
        identity = ("-c", "user.name=u", "-c", "user.email=u@h")
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=self.top / at, check=True, capture_output=True, text=True).stdout

    def write(self, name: str, data: bytes = b"x\n") -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def names(self, tree: str) -> list[str]:
        """What a tree holds."""
        listed = subprocess.run(
            ["git", f"--git-dir={self.shadow.git_dir}", "ls-tree", "-r", "-z", "--name-only", tree],
            check=True,
            capture_output=True,
        ).stdout
        return [os.fsdecode(each) for each in listed.split(b"\0") if each]

    def content(self, tree: str, name: str) -> bytes:
        """A file of a tree."""
        (found,) = [each for each in self.shadow.changes(EMPTY, tree) if each.path == name]
        return self.shadow.content(found.new)


EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_bytes_come_back_exactly(project: Project) -> None:
    """Whatever attributes the project sets: line ends, encodings, filters and keywords convert nothing."""
    project.git("init", "-q", ".")
    project.write(".gitattributes", b"* text=auto eol=crlf ident filter=x working-tree-encoding=UTF-16\n")
    data = {"crlf": b"a\r\nb\r\n", "mixed": b"a\r\nb\n", "id": b"$Id$\n", "zero": b"\0\xff\xfe", "empty": b""}
    for name, content in data.items():
        project.write(name, content)
    tree = project.shadow.take()

    assert {name: project.content(tree.id, name) for name in data} == data


def test_what_is_taken(project: Project) -> None:
    """By the project's rules: `.gitignore`, `info/exclude`; links as links, odd names, not git's own."""
    project.git("init", "-q", ".")
    for name in ("a", "d/odd\nname", "ignored/x", "local/x", "keep/.gitkeep", "-n"):
        project.write(name)
    project.write("run").chmod(0o755)
    (project.top / "link").symlink_to("/etc/passwd")
    os.mkfifo(project.top / "fifo")
    project.write(".gitignore", b"ignored/\n")
    project.write(".git/info/exclude", b"local/\n")
    tree = project.shadow.take()

    assert project.names(tree.id) == [
        "-n", ".gitignore", "a", "d/odd\nname", "keep/.gitkeep", "link", "run",
    ]  # fmt: skip
    modes = {each.path: each.new_mode for each in project.shadow.changes(EMPTY, tree.id)}
    assert (modes["run"], modes["link"], modes["a"]) == ("100755", "120000", "100644")
    assert project.content(tree.id, "link") == b"/etc/passwd"


def test_what_becomes_ignored_is_dropped(project: Project) -> None:
    """And what is no longer ignored is taken."""
    project.write("a")
    project.write("b")
    project.shadow.take()
    project.write(".gitignore", b"a\n")
    assert project.names(project.shadow.take().id) == [".gitignore", "b"]
    project.write(".gitignore", b"b\n")
    assert project.names(project.shadow.take().id) == [".gitignore", "a"]


def test_large_files_are_left_out_until_they_are_known(project: Project) -> None:
    """And named; a small file that grows stays."""
    project.write("big", bytes(NEW_BYTES_MAX + 1))
    project.write("grows")
    tree = project.shadow.take()
    assert (project.names(tree.id), tree.left_out) == (["grows"], ("big",))
    project.write("grows", bytes(NEW_BYTES_MAX + 1))
    grown = project.shadow.take()
    assert len(project.content(grown.id, "grows")) == NEW_BYTES_MAX + 1


def test_repositories_inside_are_taken_with_their_own_rules(project: Project) -> None:
    """Submodules and nested clones: their files, not their `.git`; also with new files later."""
    project.git("init", "-q", ".")
    project.write("nested/a")
    project.write("nested/ignored")
    project.write("nested/.gitignore", b"ignored\n")
    project.git("init", "-q", ".", at="nested")
    assert project.names(project.shadow.take().id) == ["nested/.gitignore", "nested/a"]
    project.write("nested/b")
    project.write("nested/a", b"other\n")
    tree = project.shadow.take()
    assert project.names(tree.id) == ["nested/.gitignore", "nested/a", "nested/b"]
    assert project.content(tree.id, "nested/a") == b"other\n"


def test_the_users_repository_is_not_touched(project: Project) -> None:
    """Its index, objects, HEAD and configuration are byte for byte what they were."""
    project.git("init", "-q", ".")
    project.write("a")
    project.git("add", ".")
    project.git("commit", "-qm", "one")
    project.write("a", b"changed\n")

    def all_of_it() -> dict[str, tuple[int, bytes]]:
        files = [path for path in (project.top / ".git").rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = all_of_it()
    project.shadow.take()
    assert all_of_it() == before


def test_differences_between_trees(project: Project) -> None:
    """Added, deleted, modified, and a change of mode alone."""
    for name in ("same", "gone", "edited", "mode"):
        project.write(name)
    one = project.shadow.take()
    assert project.shadow.take().id == one.id
    (project.top / "gone").unlink()
    project.write("edited", b"y\n")
    project.write("new")
    (project.top / "mode").chmod(0o755)
    two = project.shadow.take()
    found = {
        each.path: (each.status, each.old_mode, each.new_mode)
        for each in project.shadow.changes(one.id, two.id)
    }
    assert found == {
        "edited": ("modified", "100644", "100644"),
        "gone": ("deleted", "100644", "000000"),
        "mode": ("modified", "100644", "100755"),
        "new": ("added", "000000", "100644"),
    }
    assert project.shadow.changes(one.id, one.id) == []


def test_what_is_kept_survives_a_sweep_and_the_rest_goes(project: Project) -> None:
    """A name keeps a tree; dropping its folder and sweeping gives the room back. The store stays sound."""
    project.write("a", os.urandom(500_000))
    one = project.shadow.take()
    project.shadow.keep("sessions/s1", [one.id])
    project.write("a", os.urandom(500_000))
    two = project.shadow.take()
    project.shadow.keep("sessions/s2", [two.id])
    project.shadow.drop("sessions/s1")
    full = project.shadow.size()
    project.shadow.sweep()

    assert (project.shadow.holds(one.id), project.shadow.holds(two.id)) == (False, True)
    assert project.shadow.size() < full - 400_000
    fsck = subprocess.run(
        ["git", f"--git-dir={project.shadow.git_dir}", "fsck", "--full", "--strict"],
        check=False,
        capture_output=True,
    )
    assert fsck.returncode == 0, fsck.stderr
    assert project.shadow.take().id == two.id


def test_modes_of_what_is_made(project: Project) -> None:
    """The user's files are for the user alone, also as snapshots."""
    project.write("a")
    project.shadow.take()
    paths = [project.shadow.git_dir, *project.shadow.git_dir.rglob("*")]
    assert [str(each) for each in paths if each.stat().st_mode & 0o077] == []


def test_what_goes_wrong_is_named(project: Project) -> None:
    """In a line, with what git said."""
    project.write("a")
    project.shadow.take()
    (project.shadow.git_dir / "index").write_bytes(b"no index")
    with pytest.raises(ContextError, match=r"git .* failed for the snapshots of "):
        project.shadow.take()


def test_no_snapshots_of_a_home(tmp_path: Path) -> None:
    """Nor of what lies above it, or above our data."""
    home, data = tmp_path / "home", tmp_path / "home/data"
    for worktree in (home, tmp_path, Path("/")):
        with pytest.raises(Refused, match="no snapshots are taken"):
            place.check(worktree, home, data)
    place.check(home / "project", home, data)
    assert place.git_dir(data, "abc", home) != place.git_dir(data, "abc", tmp_path)
    assert place.git_dir(data, "../x", home).parent.parent == data / "snapshot"


def test_contents_are_kept_by_their_ids(project: Project) -> None:
    """Without git's help, as git has them; a sweep leaves them while their folder is there."""
    data = [b"", b"a\r\n\0\xff", b"x" * 3_000_000]
    ids = project.shadow.keep_contents("sessions/s1", data)
    tree = project.shadow.take("sessions/s2").id

    project.shadow.sweep()
    assert [project.shadow.content(id) for id in ids] == data
    assert {(each.folder, each.id) for each in project.shadow.kept()} == {
        *(("sessions/s1", id) for id in ids),
        ("sessions/s2", tree),
    }
    assert project.git(f"--git-dir={project.shadow.git_dir}", "fsck", "--strict") == ""
    modes = {each.stat().st_mode & 0o077 for each in project.shadow.git_dir.rglob("*")}
    assert modes == {0}
    project.shadow.drop("sessions/s1")
    project.shadow.sweep()
    assert [each.folder for each in project.shadow.kept()] == ["sessions/s2"]
    with pytest.raises(ContextError):
        project.shadow.content(ids[1])


def test_a_large_file_that_the_user_tracks_is_taken(project: Project) -> None:
    """It is part of the project; one that nobody tracks is left out, and said to be."""
    project.git("init", "-q", ".")
    project.write("data/tracked", b"x" * (NEW_BYTES_MAX + 1))
    project.git("add", "-A")
    project.write("loose", b"x" * (NEW_BYTES_MAX + 1))
    tree = project.shadow.take()

    assert (project.names(tree.id), tree.left_out) == (["data/tracked"], ("loose",))


def test_what_git_cannot_take_spoils_no_tree(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe in the place of a file counts as no file; of one that may not be read, the last content stays,
    and a new one is left out.
    """
    project.write("pipe")
    project.write("closed")
    project.shadow.take()
    (project.top / "pipe").unlink()
    os.mkfifo(project.top / "pipe")
    project.write("closed", b"changed\n")
    project.write("new")
    project.write("other")
    may = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name not in ("closed", "new") and may(path, mode)
    )

    tree = project.shadow.take()

    assert (project.names(tree.id), tree.left_out) == (["closed", "other"], ("new",))
    assert project.content(tree.id, "closed") == b"x\n"


def test_many_files_with_an_empty_one(project: Project) -> None:
    """Many files go into a pack, and an empty one cannot: both in one call of git."""
    for number in range(LOOSE_MAX + 1):
        project.write(f"f{number:03}", b"file %d\n" % number)
    project.write("empty", b"")

    tree = project.shadow.take().id

    assert project.names(tree) == ["empty", *(f"f{number:03}" for number in range(LOOSE_MAX + 1))]
    assert project.content(tree, "f007") == b"file 7\n"


def test_what_a_killed_write_left_is_in_no_tree(project: Project) -> None:
    """It is no file of the user's: neither at the top, nor below, nor in a repository of its own."""
    left = ".holdfast-4711-0123456789ab"
    project.write("inner/file")
    project.git("init", "-q", at="inner")
    for name in (left, f"deep/{left}", f"inner/{left}", ".holdfast-notes"):
        project.write(name)

    assert project.names(project.shadow.take().id) == [".holdfast-notes", "inner/file"]


def test_a_lock_that_a_killed_git_left_is_removed(project: Project) -> None:
    """No other process works in the repository: ours holds its lock."""
    project.write("a")
    project.shadow.take()
    (project.shadow.git_dir / "index.lock").touch()
    project.write("b")
    assert project.names(project.shadow.take().id) == ["a", "b"]


async def test_git_runs_no_longer_than_its_caller_waits(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that hangs would keep the process from ending; only what is worth something later goes on."""
    project.shadow.take()
    plain, waits = git.run, []

    def run(*arguments: Any, timeout_s: float, **more: Any) -> Any:
        waits.append(timeout_s)
        return plain(*arguments, timeout_s=timeout_s, **more)

    monkeypatch.setattr(git, "run", run)
    worker = Worker(project.shadow, project.top.parent / "data")
    for within_s, ends in ((7.0, True), (7.0, False), (1_000.0, True)):
        await worker.run(lambda shadow: shadow.holds("0" * 40), within_s=within_s, ends=ends)
    assert waits == [7.0, TIMEOUT_S, TIMEOUT_S]


def test_many_contents_are_kept_under_one_name(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come back byte for byte, stay when the repository is swept, and go with the name."""
    monkeypatch.setattr(repository, "PACK_BYTES", 5_000)
    many = [b"", b"\0\xff" * 3_000, *(b"%d\n" % number * number for number in range(300, 320)), b""]
    ids = project.shadow.keep_contents("sessions/s", many)
    packs = list(project.shadow.git_dir.rglob("*.pack"))
    modes = {path.lstat().st_mode & 0o777 for path in project.shadow.git_dir.rglob("*")}
    project.shadow.sweep()

    assert (len(packs), modes) == (6, {0o700, 0o600, 0o400})
    assert [project.shadow.content(id) for id in ids] == many
    assert len(project.shadow.kept()) == 1
    subprocess.run(["git", f"--git-dir={project.shadow.git_dir}", "fsck", "--strict"], check=True)
    project.shadow.drop("sessions/s")
    project.shadow.sweep()
    assert list(project.shadow.git_dir.rglob("*.pack")) == []
