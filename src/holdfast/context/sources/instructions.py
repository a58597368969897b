"""`core/instructions`: the instruction files that hold from the start, as one ordered whole.

The user's own come first, then those of the folders from the top of the worktree down to the directory,
then what the settings name; each file once, by its real path. What must stay true: a file that lies in a
project that is not trusted is used only while it really lies in the worktree; a file that cannot be read
leaves all that was admitted before in force.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from holdfast import flags
from holdfast.config import instructions as configured
from holdfast.config import places
from holdfast.config.instructions import InstructionSource
from holdfast.config.load import Trusted
from holdfast.config.places import Places
from holdfast.context.source import ABSENT, Codec, ContextSource, Missing
from holdfast.context.sources.instruction_text import Instructions, InstructionText, blocks
from holdfast.context.sources.look import Warn, look
from holdfast.location import instruction_files
from holdfast.location.instruction_files import shown
from holdfast.location.project import is_utf8

KEY = "core/instructions"
FILES_MAX: Final = 100
BYTES_MAX: Final = 256 * 1024
"""Of all files together; one alone has at most `instruction_files.BYTES_MAX`."""

_INTRODUCTION = "Standing instructions for this work follow. Where two disagree, the later one counts."
_CHANGED = (
    "The standing instructions have changed. What follows is all of them as they are now; it supersedes "
    "every standing instruction that you were given before."
)
_GONE = "The standing instructions that you were given before no longer apply; there are none now."


class Found(msgspec.Struct, frozen=True):
    """An instruction file. A `contained` one counts only while it really lies in the worktree."""

    path: Path
    contained: bool


def instructions(
    where: Places, entries: Sequence[InstructionSource], *, trusted: Trusted, warn: Warn
) -> ContextSource[Instructions]:
    """The source. `entries` are those of the settings; addresses among them are another source's."""

    async def load() -> Instructions | Missing:
        def work(problems: list[str]) -> Instructions:
            return texts(find(where, entries, trusted, problems), where.worktree)

        found = await look("the instruction files", work, warn)
        return ABSENT if found == () else found

    return ContextSource(
        key=KEY,
        codec=Codec(Instructions),
        load=load,
        baseline=lambda now: f"{_INTRODUCTION}\n\n{blocks(now)}",
        update=lambda _, now: f"{_CHANGED}\n\n{blocks(now)}",
        removal=lambda _: _GONE,
    )


def find(
    where: Places, entries: Sequence[InstructionSource], trusted: Trusted, problems: list[str]
) -> list[Found]:
    """The files in their order, each once. Waits for the disk."""
    found: dict[str, Found] = {}
    for each in _candidates(where, entries, trusted, problems):
        if each.contained and not _inside(each.path, where):
            problems.append(_leads_out(each.path))
        elif not is_utf8(str(each.path)):
            problems.append(f"the name of {shown(each.path)} is not UTF-8; the file is left out")
        else:
            found.setdefault(os.path.realpath(each.path), each)
    if len(found) > FILES_MAX:
        problems.append(f"there are {len(found)} instruction files; those after {FILES_MAX} are left out")
    kept = list(found.values())[:FILES_MAX]
    problems.extend(
        f"{each.path} counts as instructions, but its name is deprecated; rename it to AGENTS.md"
        for each in kept
        if each.path.name == instruction_files.DEPRECATED
    )
    return kept


def texts(found: Sequence[Found], worktree: Path) -> Instructions:
    """What the files say; the later ones are cut when the earlier ones use up the room. Empty ones are left
    out. Waits for the disk.
    """
    left = BYTES_MAX
    texts: list[InstructionText] = []
    for each in found:
        bytes_max = min(left, instruction_files.BYTES_MAX)
        excerpt = instruction_files.read(
            each.path, worktree=worktree, contained=each.contained, bytes_max=bytes_max
        )
        left -= excerpt.bytes_read
        if excerpt.shown:
            texts.append(InstructionText(str(each.path), excerpt.shown))
    return tuple(texts)


def _candidates(
    where: Places, entries: Sequence[InstructionSource], trusted: Trusted, problems: list[str]
) -> Iterator[Found]:
    for path in instruction_files.personal(
        holdfast_config=where.holdfast_config, opencode_config=where.opencode_config, home=where.home
    ):
        yield Found(path, contained=False)
    if not flags.enabled(flags.DISABLE_PROJECT_CONFIG):
        yield from _of_project(where, trusted, problems)
    for entry in entries:
        yield from _named(entry, where, trusted)


def _of_project(where: Places, trusted: Trusted, problems: list[str]) -> Iterator[Found]:
    for folder in places.downward(where.worktree, where.directory):
        contained = not trusted(folder)

        def allowed(path: Path, *, contained: bool = contained) -> bool:
            if not contained or _inside(path, where):
                return True
            problems.append(_leads_out(path))
            return False

        path = instruction_files.first_in(folder, allowed)
        if path is not None:
            yield Found(path, contained)


def _named(entry: InstructionSource, where: Places, trusted: Trusted) -> Iterator[Found]:
    """The files of an entry; without the project's settings, relative ones lie beside the user's own."""
    directory, worktree = where.directory, where.worktree
    if flags.enabled(flags.DISABLE_PROJECT_CONFIG) and not entry.entry.startswith(("/", "~/")):
        directory = worktree = entry.folder
        personal = (where.holdfast_config, where.opencode_config)
        if entry.folder not in personal and _inside(entry.folder, where):
            return
    strange = not trusted(where.directory)
    for path in configured.files(entry, directory=directory, worktree=worktree, home=where.home):
        # The user may name a path in every project; what lies there is still the project's.
        in_project = Path(os.path.normpath(path)).is_relative_to(where.worktree)
        yield Found(path, contained=entry.contained or (strange and in_project))


def _inside(path: Path, where: Places) -> bool:
    return places.inside(path, where.worktree)


def _leads_out(path: Path) -> str:
    return f"{shown(path)} leads out of a project that is not trusted; it is left out"
