"""One shadow repository: takes the files of a worktree as a tree, and answers questions about trees.

It has an object store and an index of its own; the user's repository, its index, hooks and configuration are
never touched, and no object is borrowed from it, since its `gc` would take them away. What must stay true:
what goes in comes out byte for byte (no attribute converts anything); a tree that was answered is on disk;
the calls wait for git and for other processes, within bounds: run them in a thread.
"""

import math
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

import msgspec

from holdfast import git
from holdfast.errors import ContextError
from holdfast.file_lock import FileLock
from holdfast.location import write_path
from holdfast.location.shadow import listing, objects
from holdfast.location.shadow.listing import TreeChange
from holdfast.person import small_file
from holdfast.person.private import make_folder

NEW_BYTES_MAX: Final = 2 << 20
"""A file that is not known yet, and larger than this, is left out."""
TRACKED_BYTES_MAX: Final = 64 << 20
"""Unless the user's own repository has it, and it is no larger than this."""
REPOSITORIES_MAX: Final = 50
PACKED_MAX: Final = 4_000
LOOSE_MAX: Final = 100
"""So many changed files become objects of their own."""
ALONE_MAX: Final = 8
"""So many contents are kept under a name each."""
PACK_BYTES: Final = 32 << 20
"""A pack of contents has little more."""
WORKTREE: Final = "holdfast-worktree"
"""The file that tells whose repository it is."""
GIVEN_UP: Final = "holdfast-given-up"
"""The file that tells why no trees are taken."""
GIVEN_UP_S: Final = 24 * 3600.0
TIMEOUT_S: Final = 120.0
LOCK_S: Final = 150.0

within_s: ContextVar[float] = ContextVar("within_s", default=math.inf)
"""How long git may run, where the caller says so: while it runs, the process cannot end."""

_FILE: Final = 0o100644
_CONFIG: Final = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tautocrlf = false
\tsymlinks = true
\tlongpaths = true
\tuntrackedCache = true
\tcompression = 1
\tfsync = committed,loose-object
\tfsyncMethod = batch
\tprecomposeunicode = false
\tignorecase = false
\tsharedRepository = 0600
[index]
\tversion = 4
\tskipHash = true
"""
_ATTRIBUTES: Final = "* -text -eol -filter -ident -working-tree-encoding\n"
"""These win over every file in the worktree."""


class Tree(msgspec.Struct, frozen=True):
    """The files of a worktree, but for those that were left out because of their size."""

    id: str
    left_out: tuple[str, ...] = ()
    bytes: float = 0
    """How much was read to take it: it takes no more room than that."""


class Kept(msgspec.Struct, frozen=True):
    """Something that is kept: its folder of references, its id, and since when."""

    folder: str
    id: str
    time_s: float


class Shadow:
    """The shadow repository of one worktree. One process at a time works in it."""

    def __init__(self, git_dir: Path, worktree: Path) -> None:
        self.git_dir = git_dir
        self.worktree = worktree
        self._theirs: Path | None = None
        """The file in which the user's own repository says what it ignores beside `.gitignore` files."""

    def take(self, folder: str | None = None) -> Tree:
        """The files as they are now, as a tree that is on disk.

        It is kept in a folder of references; without one it may be swept away.
        """
        self._refuse_given_up()
        with self._locked():
            self._prepare()
            tree = self._take()
            if folder is not None:
                objects.write_ref(self.git_dir, f"{folder}/{tree.id}", tree.id)
            return tree

    def keep_contents(self, folder: str, contents: Sequence[bytes]) -> list[str]:
        """Keep some contents in a folder of references: their ids. Many are kept under one name: a tree."""
        with self._locked():
            self._make()
            if len(contents) > ALONE_MAX:
                ids = self._pack(contents)
                named = [objects.write_tree(self.git_dir, {id: (_FILE, id) for id in ids})]
            else:
                named = ids = [objects.write_blob(self.git_dir, data) for data in contents]
            for id in named:
                objects.write_ref(self.git_dir, f"{folder}/{id}", id)
            return ids

    def _pack(self, contents: Sequence[bytes]) -> list[str]:
        """Write contents as packs: a file for each would be synced by itself, with its folder."""
        every = {objects.content_id(data): data for data in contents}
        batch: list[bytes] = []
        size = 0
        for at, data in enumerate(every.values(), 1):
            batch.append(data)
            size += len(data)
            if size > PACK_BYTES or at == len(every):
                # What is not synced by git's own choice is the index of a pack: without it nothing is found.
                self._git("index-pack", "--stdin", given=objects.pack(batch), settings={"core.fsync": "all"})
                batch, size = [], 0
        objects.sync_folder(self.git_dir / "objects" / "pack")
        return [objects.content_id(data) for data in contents]

    def keep(self, folder: str, ids: Iterable[str]) -> None:
        """Keep objects that are there in a folder of references."""
        with self._locked():
            for id in ids:
                objects.write_ref(self.git_dir, f"{folder}/{id}", id)

    def kept(self) -> list[Kept]:
        """What is kept, the oldest first."""
        top = self.git_dir / "refs"
        found = [
            Kept(os.path.relpath(folder, top), name, (Path(folder) / name).stat().st_mtime)
            for folder, _, names in os.walk(top)
            for name in names
            if not name.startswith(objects.TEMPORARY)
        ]
        return sorted(found, key=lambda each: each.time_s)

    def drop(self, folder: str) -> None:
        """Keep nothing any more in a folder of references."""
        with self._locked():
            path = self.git_dir / "refs" / folder
            if path.is_dir():
                shutil.rmtree(path)

    def drop_oldest(self, kept: Iterable[Kept]) -> None:
        """Keep some things no longer."""
        with self._locked():
            for each in kept:
                (self.git_dir / "refs" / each.folder / each.id).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Give back the room of what is kept under no name, and pack the rest."""
        with self._locked():
            if self._is_made():
                self._git("repack", "-q", "-a", "-d", "--window=0")
                self._git("prune", "--expire=now")

    def changes(self, old: str, new: str) -> list[TreeChange]:
        """The paths that differ between two trees, sorted."""
        if old == new:
            return []
        raw = self._git("diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", old, new)
        return sorted(listing.changes(raw), key=lambda each: each.path)

    def diff(self, old: str, new: str, *, context: int, renames: bool, text_max: int) -> bytes:
        """What differs between two trees: git's raw lines, counts and patches. Files that are larger than
        `text_max` count as binary.
        """
        return self._git(
            *("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--numstat", "-p", f"-U{context}"),
            "-M" if renames else "--no-renames",
            *(old, new),
            settings={"core.bigFileThreshold": str(text_max), "core.quotePath": "false"},
        )

    def make_tree(self, files: Mapping[str, objects.Entry]) -> str:
        """A tree of files that are given by path, mode and id of content; it is kept under no name."""
        with self._locked():
            self._make()
            return objects.write_tree(self.git_dir, files)

    def content(self, object: str) -> bytes:
        """The content of a file in a tree, by its id."""
        return self._git("cat-file", "blob", object)

    def holds(self, tree: str) -> bool:
        """Whether a tree is here."""
        return self._is_made() and self._run("cat-file", "-e", f"{tree}^{{tree}}").returncode == 0

    def size(self) -> int:
        """How much room it takes."""
        found = 0
        for folder, _, names in os.walk(self.git_dir):
            for name in names:
                try:
                    found += (Path(folder) / name).lstat().st_blocks * 512
                except OSError:  # Another process swept it away.
                    continue
        return found

    def give_up(self, why: str) -> None:
        """Remove all of it, and take no tree of this worktree for a day."""
        self.remove()
        self._write(GIVEN_UP, why.encode())

    def remove(self) -> None:
        """Remove all of it."""
        with self._locked():
            for each in self.git_dir.iterdir():
                if each.name != "lock":
                    shutil.rmtree(each) if each.is_dir() else each.unlink()

    def _take(self) -> Tree:
        found = listing.listed(self._git("ls-files", "-z", "-t", "-m", "-o", "-d", "--exclude-standard"))
        every = [*found.new, *self._in_repositories(found.repositories)]
        new = [path for path in every if not write_path.is_temporary(path.rpartition("/")[2])]
        small = [path for path in new if self._bytes(path) <= NEW_BYTES_MAX and self._is_readable(path)]
        large = sorted(set(new) - set(small))
        tracked = self._tracked(
            path for path in large if self._bytes(path) <= TRACKED_BYTES_MAX and self._is_readable(path)
        )
        readable = {path for path in found.known if self._is_readable(path)}
        paths = [*(path for path in found.known if path in readable), *small, *tracked]
        # Many files go straight into a pack, ten times as fast as a file for each; git looks through all that
        # it has put into one for each file, so there are several. An empty file becomes an object of its own
        # all the same, and git's batches of those take the folder away in which the pack is being written.
        packed = {"core.bigFileThreshold": "1", "core.fsyncMethod": "fsync"}
        settings = packed if len(paths) > LOOSE_MAX else None
        for at in range(0, len(paths), PACKED_MAX):
            given = b"".join(os.fsencode(path) + b"\0" for path in paths[at : at + PACKED_MAX])
            self._git("update-index", "-z", "--add", "--remove", "--stdin", given=given, settings=settings)
        gone = [path for path in found.known if path not in readable and self._is_special(path)]
        if gone:
            given = b"".join(os.fsencode(path) + b"\0" for path in gone)
            self._git("update-index", "-z", "--force-remove", "--stdin", given=given)
        if any(path.rpartition("/")[2] == ".gitignore" for path in paths):
            self._drop_ignored()
        tree = self._git("write-tree").decode("ascii").strip()
        read = sum(each for path in paths if (each := self._bytes(path)) < math.inf)
        return Tree(tree, tuple(path for path in large if path not in tracked), read)

    def _in_repositories(self, folders: Sequence[str]) -> Iterator[str]:
        """The files of repositories inside the worktree, by their own rules of what is ignored."""
        for folder in folders[:REPOSITORIES_MAX]:
            done = git.run(
                ("ls-files", "-z", "-o", "-c", "--exclude-standard"),
                cwd=self.worktree / folder,
                timeout_s=TIMEOUT_S,
            )
            if done.returncode == 0:
                for name in filter(None, done.stdout.split(b"\0")):
                    path = folder + os.fsdecode(name)
                    if not path.endswith("/") and os.path.lexists(self.worktree / path):
                        yield path

    def _is_readable(self, path: str) -> bool:
        """Whether git can take what stands there, if anything does: one file that it cannot take fails the
        whole tree.
        """
        whole = self.worktree / path
        try:
            mode = whole.lstat().st_mode
        except OSError:
            return True
        if stat.S_ISREG(mode):
            return os.access(whole, os.R_OK)
        return stat.S_ISLNK(mode) or stat.S_ISDIR(mode)

    def _is_special(self, path: str) -> bool:
        """Whether a pipe, socket or device stands there: nothing that a tree could hold."""
        try:
            mode = (self.worktree / path).lstat().st_mode
        except OSError:
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))

    def _bytes(self, path: str) -> float:
        try:
            return (self.worktree / path).lstat().st_size
        except OSError:
            return math.inf  # It is gone again.

    def _tracked(self, large: Iterable[str]) -> set[str]:
        """Those that the user's own repository has: they are part of the project, however large."""
        given = b"".join(os.fsencode(path) + b"\0" for path in large)
        if not given:
            return set()
        done = git.run(("ls-files", "-z"), cwd=self.worktree, timeout_s=TIMEOUT_S)
        known = set(done.stdout.split(b"\0")) if done.returncode == 0 else set()
        return {os.fsdecode(path) for path in given.split(b"\0") if path and path in known}

    def _drop_ignored(self) -> None:
        """Forget what has become ignored since it was first taken."""
        ignored = self._git("ls-files", "-z", "-c", "-i", "--exclude-standard")
        if ignored:
            self._git("update-index", "-z", "--force-remove", "--stdin", given=ignored)

    def _refuse_given_up(self) -> None:
        path = self.git_dir / GIVEN_UP
        try:
            if time.time() - path.stat().st_mtime < GIVEN_UP_S:
                raise ContextError(path.read_text("utf-8", "replace"))
            path.unlink()
        except FileNotFoundError:
            return

    def _prepare(self) -> None:
        self._make()
        self._exclude()

    def _make(self) -> None:
        if not self._is_made():
            for name in ("objects", "refs", "info"):
                make_folder(self.git_dir / name)
            self._write("config", _CONFIG.encode())
            self._write("info/attributes", _ATTRIBUTES.encode())
            self._write(WORKTREE, os.fsencode(self.worktree))
            self._write("HEAD", b"ref: refs/heads/none\n")  # Last: it makes this a repository.

    def _is_made(self) -> bool:
        return (self.git_dir / "HEAD").exists()

    def _exclude(self) -> None:
        """Take over what the user's own repository ignores beside its `.gitignore` files."""
        if self._theirs is None:
            self._theirs = _user_exclude(self.worktree)
        try:
            theirs = self._theirs.read_bytes()
        except OSError:  # There is none, or no repository.
            theirs = b""
        ours = self.git_dir / "info" / "exclude"
        if not ours.exists() or ours.read_bytes() != theirs:
            self._write("info/exclude", theirs)
            self._drop_ignored()

    def _write(self, name: str, data: bytes) -> None:
        small_file.write(self.git_dir / name, data, mode=0o600)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_folder(self.git_dir)
        lock = FileLock(self.git_dir / "lock")
        try:
            lock.acquire(wait_s=LOCK_S)
            (self.git_dir / "index.lock").unlink(
                missing_ok=True
            )  # Of a git that was killed: we hold the lock.
            yield
        finally:
            lock.close()

    def _git(self, *arguments: str, given: bytes = b"", settings: dict[str, str] | None = None) -> bytes:
        done = self._run(*arguments, given=given, settings=settings)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:300]
            raise ContextError(f"git {arguments[0]} failed for the snapshots of {self.worktree}: {said}")
        return done.stdout

    def _run(
        self, *arguments: str, given: bytes = b"", settings: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        try:
            return git.run(
                arguments,
                # Also when the worktree is gone it can be put in order.
                cwd=self.worktree if self.worktree.is_dir() else self.git_dir,
                timeout_s=min(TIMEOUT_S, within_s.get()),
                git_dir=self.git_dir,
                work_tree=self.worktree,
                settings=settings,
                given=given,
            )
        except subprocess.TimeoutExpired as error:
            raise ContextError(f"git {arguments[0]} took longer than {error.timeout:g} s") from error
        except OSError as error:
            raise ContextError(f"git cannot be started: {error.strerror or error}") from error


def _user_exclude(worktree: Path) -> Path:
    """The `info/exclude` of the repository that the worktree belongs to; it need not be there."""
    try:
        done = git.run(("rev-parse", "--git-path", "info/exclude"), cwd=worktree, timeout_s=10)
    except (OSError, subprocess.TimeoutExpired):
        return worktree / ".git/info/exclude"
    found = done.stdout.rstrip(b"\n") if done.returncode == 0 else b".git/info/exclude"
    return worktree / os.fsdecode(found)
