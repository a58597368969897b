"""The contained filesystem: what a path means, whether it lies inside the project, and how it is opened.

A path is judged after every link in it is resolved, name by name and never as a piece of text, against the
directory of the session and the top of its checkout. The holder of a `Resolved` asks the user what has to
be asked, and only then opens it; `open` and `list` reach exactly the judged place or nothing (`opening`).
What must stay true: nothing outside is read on the strength of a name inside; devices, pipes, sockets and the
kernel's own trees are never opened; the calls here are bounded, and wait for nothing but the disk: run them
in a thread.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from holdfast.errors import ContextError, InvalidInput, Refused
from holdfast.location import open_path
from holdfast.location.project import is_utf8

PATH_CHARS_MAX = 4096
ENTRIES_MAX = 10_000

# The kernel's own trees: reading there shows secrets, or does something. /dev/shm holds ordinary files.
_KERNEL = (Path("/proc"), Path("/sys"), Path("/dev"))
_ORDINARY = Path("/dev/shm")  # noqa: S108 - compared, not written to


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """A judged path."""

    asked: Path
    """Absolute and tidy, its links as they were written."""
    real: Path
    """Where it leads; without any link."""
    inside: bool
    """Whether it leads into the project."""
    readable: bool
    """Whether it may be read without asking: inside, or in a folder that is open to every session."""
    relative: str
    """The real path, seen from the top of the project."""
    kind: Literal["file", "folder", "missing"]


class Entry(msgspec.Struct, frozen=True, order=True):
    """One name in a folder; `folder` also for a link that leads to one."""

    name: str
    folder: bool


class Listing(msgspec.Struct, frozen=True):
    """The names in a folder, sorted. Not `complete` when there are more than a model should read."""

    entries: tuple[Entry, ...]
    complete: bool


class Filesystem:
    """Files as the tools of one session may see them.

    `root` (the session's directory) and `worktree` are real paths, as `project.locate` gave them: when
    somebody puts a link in the place of either, what lies behind it is outside. A worktree of `/` means that
    there is no checkout. `readable` folders are open although they lie outside; `closed` ones are refused,
    except for what is readable in them and for `opened` folders.
    """

    def __init__(
        self,
        root: Path,
        worktree: Path,
        readable: Sequence[Path] = (),
        *,
        closed: Sequence[Path] = (),
        opened: Sequence[Path] = (),
    ) -> None:
        self.root = root
        self.top = root if worktree.parent == worktree else worktree
        self._readable = [Path(os.path.realpath(path)) for path in readable]
        self._closed = [Path(os.path.realpath(path)) for path in closed]
        self._opened = [Path(os.path.realpath(path)) for path in opened]

    def opening(self, folders: Sequence[Path]) -> "Filesystem":
        """The same, with folders that may be read although they lie outside, or in a closed one."""
        return Filesystem(self.root, self.top, self._readable, closed=self._closed, opened=folders)

    def resolve(self, path: str, *, program: bool = False) -> Resolved:
        """Judge a path, which need not exist. Relative ones start at the directory.

        `program`: another program will use it, for which devices and pipes are files like others.
        """
        if not path or "\0" in path:
            raise InvalidInput("the path is empty, or holds a NUL character; give the path of a file")
        if len(path) > PATH_CHARS_MAX:
            raise InvalidInput(f"the path has {len(path)} characters; at most {PATH_CHARS_MAX} can be one")
        written = self.root / path
        # Only to compare and to show: what is opened is found by following the links, not by this text.
        asked = Path(os.path.normpath(written))
        real = _real(written)
        if not is_utf8(str(asked)) or not is_utf8(str(real)):
            raise InvalidInput(f"the name of {str(real)!a} is not UTF-8, so no record can hold it; rename it")
        for each in (asked, real):
            if not program and _is_in(each, _KERNEL) and not each.is_relative_to(_ORDINARY):
                raise Refused(
                    f"{each} belongs to the system's devices and processes, which tools leave alone"
                )
        inside = self.holds(real)
        opened = self._is_opened(real)
        readable = inside or opened or _is_in(real, self._readable)
        # A readable folder itself stays closed: the names in it are secrets of other sessions.
        open_ = _is_in(real, self._readable) and real not in self._readable
        if _is_in(real, self._closed) and not open_ and not opened:
            raise Refused(f"{real} belongs to Holdfast itself, which tools leave alone")
        return Resolved(
            asked=asked,
            real=real,
            inside=inside,
            readable=readable,
            relative=self.relative(real),
            kind=("folder" if real.is_dir() else "file") if program else _kind(real),
        )

    def _is_opened(self, real: Path) -> bool:
        # A folder that is above a closed one opens nothing: too much would come with it.
        sound = (each for each in self._opened if not any(one.is_relative_to(each) for one in self._closed))
        return _is_in(real, sound)

    def holds(self, path: Path) -> bool:
        """Whether a path, taken as it stands, lies in the project."""
        return _is_in(path, (self.root, self.top))

    def relative(self, path: Path) -> str:
        """A path as rules and titles name it: seen from the top of the project, the top itself being `.`."""
        return os.path.relpath(path, self.top)

    def patterns(self, resolved: Resolved) -> tuple[str, ...]:
        """Every name that a rule may know the path by: as it was asked for and as it resolved.

        Seen from the top of the project; outside of it the absolute path too, since the rules do not forbid
        `../../etc/passwd`.
        """
        names: dict[str, None] = {}
        for path in (resolved.asked, resolved.real):
            names[self.relative(path)] = None
            if not self.holds(path):
                names[str(path)] = None
        return tuple(names)

    def open(self, resolved: Resolved) -> BinaryIO:
        """Open a judged file to read it. Fails when the path leads elsewhere by now."""
        return os.fdopen(open_path.file(resolved.real), "rb")

    def below(self, folder: Resolved, name: str) -> Resolved:
        """A file that a walk found below a judged folder without following a link."""
        real = folder.real / name
        return Resolved(
            asked=folder.asked / name,
            real=real,
            inside=folder.inside,
            readable=folder.readable,
            relative=self.relative(real),
            kind="file",
        )

    def closed_below(self, resolved: Resolved) -> tuple[Path, ...]:
        """What a judged folder holds and no tool may see, seen from it: a search leaves it out."""
        closed = (*self._closed, *_KERNEL)
        return tuple(each.relative_to(resolved.real) for each in closed if _is_below(each, resolved.real))

    @contextmanager
    def pinned(self, resolved: Resolved) -> Iterator[Path]:
        """A path by which another program reaches exactly the judged place, whatever is put there meanwhile.

        Where the system has no such paths (Linux has), it is the real path.
        """
        is_folder = resolved.kind == "folder"
        fd = open_path.folder(resolved.real) if is_folder else open_path.file(resolved.real)
        try:
            path = Path(f"/proc/{os.getpid()}/fd/{fd}")
            yield path if path.exists() else resolved.real
        finally:
            os.close(fd)

    def list(self, resolved: Resolved) -> Listing:
        """The names in a judged folder."""
        fd = open_path.folder(resolved.real)
        try:
            with os.scandir(fd) as found:
                names = list(islice(found, ENTRIES_MAX))
                entries = sorted(Entry(_shown(each.name), _leads_to_folder(each)) for each in names)
                complete = next(found, None) is None
        except OSError as error:
            raise open_path.failure(error, resolved.real) from error
        finally:
            os.close(fd)
        return Listing(tuple(entries), complete)


def _real(written: Path) -> Path:
    try:
        try:
            return Path(os.path.realpath(written, strict=True))
        except (FileNotFoundError, NotADirectoryError):
            # What is missing is judged by where it would be: behind a dangling link that is its target.
            return Path(os.path.realpath(written))
    except OSError as error:  # from the second look too, when another process moves links about meanwhile
        match error.errno:
            case errno.ELOOP:
                raise InvalidInput(f"{written} is a link that leads back to itself") from error
            case errno.ENAMETOOLONG:
                raise InvalidInput(f"a name in the path is too long: {str(written)[:80]}…") from error
            case _:
                raise open_path.failure(error, written) from error


def _kind(real: Path) -> Literal["file", "folder", "missing"]:
    try:
        mode = real.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        raise ContextError(f"{real} cannot be looked at: {error.strerror or error}") from error
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISLNK(mode):
        # It was none when it was resolved.
        raise Refused(f"{real} was replaced by a link while it was being looked at; look again")
    raise Refused(f"{real} is {open_path.kind_of(mode)}, which is never opened")


def _is_below(path: Path, folder: Path) -> bool:
    return path != folder and path.is_relative_to(folder)


def _is_in(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _shown(name: str) -> str:
    """A name that can be recorded; one that is not UTF-8 is shown as well as it can be."""
    return os.fsencode(name).decode("utf-8", "replace")
