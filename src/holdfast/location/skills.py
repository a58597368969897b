"""Skills: folders with a SKILL.md, whose front matter says what the skill is called and when it helps.

Who asks names the folders, the least near first: of two skills with one name the later one counts. What must
stay true: walking and reading are bounded; a file that is no skill is left out, and named. The folders are
trusted as their settings are, so links in them are followed. Everything here waits for the disk: run it in a
thread.
"""

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.errors import HoldfastError
from holdfast.location import instruction_files
from holdfast.location.instruction_files import shown
from holdfast.text import one_line

NAME: Final = "SKILL.md"
SKILLS_MAX: Final = 500
ENTRIES_MAX: Final = 20_000
DEPTH_MAX: Final = 6
DESCRIPTION_CHARS_MAX: Final = 1024
HEAD_BYTES_MAX: Final = 72 * 1024
"""So much of a file is read to find its front matter; the rest is for the agent that uses the skill."""

# No wildcards: a name is also the pattern of a permission.
_NAME = re.compile(r"\w[\w .:/+-]{0,63}")
_SKIPPED = frozenset((".git", "node_modules"))
_NOT_THERE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.ENAMETOOLONG))

Split = Callable[[str], tuple[dict[str, Any], str]]
"""Front matter and body of a Markdown text; a ValueError says in a few words why it cannot be read."""

Known = Callable[[Path], str | None]
"""The text of a file that was read before, which is then not read again; None where it was not."""


class Skill(msgspec.Struct, frozen=True):
    """`location` is its SKILL.md. A skill without a description is used when the user names it."""

    name: str
    description: str
    location: Path
    text: str | None = None
    """Its file as it was compared with what the user trusts; None: it is read when the skill is used."""


class BadSkill(ValueError):
    """A file is no skill; the message says why in a few words."""


def discover(
    folders: Sequence[Path], *, split: Split, problems: list[str], known: Known = lambda _: None
) -> list[Skill]:
    """The skills of the folders by name; what is wrong with a file becomes a problem, a line."""
    found: dict[str, Skill] = {}
    for folder in folders:
        for path in _files(folder, problems):
            try:
                skill = _skill(path, split, known(path))
            except (ValueError, HoldfastError) as error:
                problem = str(error)
                named = problem if problem.startswith(str(path)) else f"{shown(path)}: {problem}"
                problems.append(f"{named}; the skill is left out")
                continue
            before = found.get(skill.name)
            if before is not None and not _is_same(before.location, path):
                problems.append(f"{path} takes the place of {before.location}: both are called {skill.name}")
            found[skill.name] = skill
    return sorted(found.values(), key=lambda skill: skill.name)


def _skill(path: Path, split: Split, known: str | None) -> Skill:
    if known is None:
        head = instruction_files.read(
            path, worktree=path.parent, contained=False, bytes_max=HEAD_BYTES_MAX
        ).text
    else:
        head = known[:HEAD_BYTES_MAX].strip()
    front, _ = split(head)
    name, description = front.get("name"), front.get("description", "")
    if not isinstance(name, str) or not name:
        raise BadSkill("its front matter has no name")
    if not _NAME.fullmatch(name):
        raise BadSkill("its name has signs that no name may have, or more than 64 of them")
    if not isinstance(description, str):
        raise BadSkill("its description is no text")
    return Skill(name, one_line(description, DESCRIPTION_CHARS_MAX), path, known)


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _files(top: Path, problems: list[str]) -> list[Path]:
    walk = _Walk()
    found: list[Path] = []
    for path in walk.below(top, DEPTH_MAX):
        if len(found) == SKILLS_MAX:
            problems.append(f"{shown(top)} has more than {SKILLS_MAX} skills; the others are left out")
            break
        found.append(path)
    if walk.is_over:
        problems.append(f"{shown(top)} has more than {ENTRIES_MAX} entries; the others are left out")
    return found


class _Walk:
    """Looks for skills below a folder: each real folder once, so that links cannot lead in circles."""

    def __init__(self) -> None:
        self.is_over = False
        self._seen: set[str] = set()
        self._looks = 0

    def below(self, folder: Path, depth: int) -> Iterator[Path]:
        real = os.path.realpath(folder)
        if real in self._seen:
            return
        self._seen.add(real)
        names = self._names(folder)
        if NAME in names and instruction_files.is_file(folder / NAME):
            yield folder / NAME
        if depth == 0:
            return
        for name in names:
            if name not in _SKIPPED and os.path.isdir(folder / name):  # noqa: PTH112 - false, and no error
                yield from self.below(folder / name, depth - 1)

    def _names(self, folder: Path) -> list[str]:
        names: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for each in entries:
                    if self._looks == ENTRIES_MAX:
                        self.is_over = True
                        break
                    self._looks += 1
                    names.append(each.name)
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
        return sorted(names)
