"""`core/instructions/nested/…`: instruction files beside files that the agent read, one source each.

Which files there are is found by `instruction_files.beside` and kept by the caller; the keys of an epoch's
snapshot hold it too. What must stay true: a file leads nowhere out of the worktree when it is opened.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from holdfast import flags
from holdfast.context.snapshot import Snapshot
from holdfast.context.source import ABSENT, Codec, ContextSource, Missing
from holdfast.context.sources import instructions
from holdfast.context.sources.instruction_text import InstructionText, block
from holdfast.context.sources.look import Warn, look
from holdfast.location import instruction_files
from holdfast.location.project import is_utf8
from holdfast.schema import typed

PREFIX: Final = "core/instructions/nested/"
FILES_MAX: Final = 32
BYTES_MAX: Final = 16 * 1024


def nested(files: Sequence[Path], *, worktree: Path, warn: Warn) -> list[ContextSource[InstructionText]]:
    """A source for each file, by key; none where the instructions of projects are switched off."""
    if flags.enabled(flags.DISABLE_PROJECT_CONFIG):
        return []
    inner = {key_of(path, worktree): path for path in files if _is_shown(path, worktree)}
    if len(inner) > FILES_MAX:
        warn(f"{len(inner)} nested instruction files were met; those after {FILES_MAX} are left out")
    return [_source(key, inner[key], worktree, warn) for key in sorted(list(inner)[:FILES_MAX])]


def key_of(path: Path, worktree: Path) -> str:
    """The key of a file of the worktree."""
    relative = Path(os.path.relpath(path, worktree)).as_posix()
    return PREFIX + "".join(sign if sign.isprintable() and sign != "%" else quote(sign) for sign in relative)


def paths_in(snapshot: Snapshot) -> list[Path]:
    """Every instruction file that the model was given, to give to `instruction_files.beside` as known."""
    found: list[Path] = []
    for key, entry in snapshot.items():
        if key == instructions.KEY and isinstance(entry.value, list):
            found.extend(path for each in entry.value if (path := _path(each)) is not None)
        elif key.startswith(PREFIX) and (path := _path(entry.value)) is not None:
            found.append(path)
    return found


def _path(value: Any) -> Path | None:
    try:
        return Path(typed.convert(value, InstructionText).path)
    except msgspec.ValidationError:
        return None  # of another version; the file may be sent twice, and no harm is done


def _is_shown(path: Path, worktree: Path) -> bool:
    return is_utf8(str(path)) and Path(os.path.normpath(path)).is_relative_to(worktree)


def _source(key: str, path: Path, worktree: Path, warn: Warn) -> ContextSource[InstructionText]:
    def work(_: list[str]) -> InstructionText | Missing:
        if not instruction_files.is_file(path) or not instruction_files.leads_into(path, worktree):
            return ABSENT
        excerpt = instruction_files.read(path, worktree=worktree, contained=True, bytes_max=BYTES_MAX)
        return InstructionText(str(path), excerpt.shown) if excerpt.shown else ABSENT

    async def load() -> InstructionText | Missing:
        return await look(f"the instructions in {path}", work, warn)

    folder = f"files in {path.parent} and below it"
    return ContextSource(
        key=key,
        codec=Codec(InstructionText),
        load=load,
        baseline=lambda now: f"These instructions are for {folder}.\n\n{block(now)}",
        update=lambda _, now: (
            f"The instructions for {folder} have changed. "
            f"These supersede what this file said before.\n\n{block(now)}"
        ),
        removal=lambda before: f"The instructions from {before.path} no longer apply.",
    )
