"""Files that tell an agent how to work: where they lie, which of them counts, and how one is read.

In a folder the first of AGENTS.md, CLAUDE.md and (deprecated) CONTEXT.md counts. What must stay true: only
regular files are opened, and only where they were judged to lie; reading is bounded; a file that cannot be
looked at for a passing reason is an error, never taken for one that is gone. Everything here waits for the
disk: run it in a thread.
"""

import codecs
import errno
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from holdfast import flags
from holdfast.errors import Refused
from holdfast.location import open_path
from holdfast.location.filesystem import Filesystem
from holdfast.location.project import is_utf8

NAMES: Final = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
DEPRECATED: Final = "CONTEXT.md"
BYTES_MAX: Final = 64 * 1024

# What lies in these was not written for this project.
_FOREIGN = frozenset((".git", "node_modules", "site-packages"))
# Nothing is there, or nothing that we may see; any other failure may pass.
_NOT_THERE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.ENAMETOOLONG))

Allowed = Callable[[Path], bool]


class Excerpt(msgspec.Struct, frozen=True):
    """The beginning of a text file."""

    text: str
    bytes_read: int
    bytes_all: int

    @property
    def shown(self) -> str:
        """The text, with a note where it is not all of it."""
        if self.bytes_read >= self.bytes_all:
            return self.text
        note = f"[Cut here: the first {self.bytes_read:,} of {self.bytes_all:,} bytes are shown.]"
        return f"{self.text}\n{note}".lstrip()


def personal(*, holdfast_config: Path, opencode_config: Path, home: Path) -> list[Path]:
    """The user's own file, which counts in every project: ours, else OpenCode's, else Claude's."""
    known = (
        holdfast_config / "AGENTS.md",
        opencode_config / "AGENTS.md",
        home / ".claude" / "CLAUDE.md",
    )
    return [path for path in known if is_file(path)][:1]


def first_in(folder: Path, allowed: Allowed = lambda _: True) -> Path | None:
    """The file that counts in a folder; one that is not allowed is passed over."""
    for name in NAMES:
        path = folder / name
        if is_file(path) and allowed(path):
            return path
    return None


def beside(path_read: Path, *, directory: Path, worktree: Path, known: Iterable[Path] = ()) -> list[Path]:
    """The files that count for a path which was read, the outermost first, without those that are known.

    Looked at are the folders below the way from the worktree to the session's directory: on that way every
    file is known from the start. A file that leads out of the worktree is passed over, and so is one in a
    folder of third-party code.
    """
    real = Path(os.path.realpath(path_read))
    if flags.enabled(flags.DISABLE_PROJECT_CONFIG):
        return []
    known_real = {real, *(Path(os.path.realpath(path)) for path in known)}
    found: list[Path] = []
    for folder in _between(real, directory, worktree):
        try:
            path = first_in(folder, lambda path: leads_into(path, worktree))
        except OSError:
            continue  # The next read in this folder looks again.
        if path is not None and (target := Path(os.path.realpath(path))) not in known_real:
            known_real.add(target)
            found.append(path)
    return found


def leads_into(path: Path, worktree: Path) -> bool:
    """Whether a path, links resolved, lies in the worktree."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(worktree))


def is_file(path: Path) -> bool:
    """Whether there is a regular file, perhaps behind links."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise
    except ValueError:  # a name that no file can have
        return False


def shown(path: Path | str) -> str:
    """A path as it can be shown and recorded; a name that is not UTF-8 as well as it can be."""
    return os.fsencode(path).decode("utf-8", "replace")


def read(path: Path, *, worktree: Path, contained: bool, bytes_max: int = BYTES_MAX) -> Excerpt:
    """The beginning of a file. A `contained` one must lie in the worktree when it is opened."""
    files = Filesystem(worktree, worktree)
    target = files.resolve(str(path))
    if contained and not target.inside:
        raise Refused(f"{path} leads out of the worktree, and its folder is not trusted")
    try:
        with files.open(target) as file:
            data = file.read(bytes_max + 1)
            size = max(os.fstat(file.fileno()).st_size, len(data))
    except OSError as error:
        raise open_path.failure(error, path) from error
    return Excerpt(_text(data[:bytes_max], whole=len(data) <= bytes_max), min(len(data), bytes_max), size)


def _between(real: Path, directory: Path, worktree: Path) -> list[Path]:
    """The folders of a path, down from the nearest one that is on the way to the directory."""
    if not real.is_relative_to(worktree) or not is_utf8(str(real)):
        return []
    if _FOREIGN & set(real.relative_to(worktree).parts):
        return []
    found: list[Path] = []
    folders = (real, *real.parents) if os.path.isdir(real) else real.parents  # noqa: PTH112 - false, and no error
    for folder in folders:
        if directory.is_relative_to(folder) or not folder.is_relative_to(worktree):
            break
        found.append(folder)
    return found[::-1]


def _text(data: bytes, *, whole: bool) -> str:
    """What can be read of it. Half a character at the end of a cut is left out, and NUL, which no database
    takes, is shown as unreadable.
    """
    decoded = codecs.getincrementaldecoder("utf-8-sig")("replace").decode(data, final=whole)
    return decoded.replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
