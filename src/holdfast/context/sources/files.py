"""`core/files`: some of the project's files, for a model that has no tools to look for itself.

They are sampled once an epoch: the source's maker gives back what the epoch's snapshot holds, and the
source answers just that, so that a file that comes or goes moves nothing.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from holdfast.context.snapshot import Snapshot
from holdfast.context.source import ABSENT, Codec, ContextSource, Missing
from holdfast.context.sources.file_listing import Listing, listing
from holdfast.context.sources.look import Warn
from holdfast.errors import ContextError

KEY = "core/files"
PATHS_MAX: Final = 200


class FileSample(msgspec.Struct, frozen=True):
    """Paths seen from the top of the project; `count` of all of them is None where there are too many."""

    paths: tuple[str, ...]
    count: int | None


_CODEC: Codec[FileSample] = Codec(FileSample)


def files(worktree: Path, *, sampled: FileSample | None, warn: Warn) -> ContextSource[FileSample]:
    """The source. `sampled` is what the epoch holds, None when it begins."""

    async def load() -> FileSample | Missing:
        if sampled is not None:
            return sampled
        found = await listing(worktree)
        if not found.complete:
            warn(f"{worktree} has too many files to list them all; the model is told of some")
        return sample(found) if found.paths else ABSENT

    return ContextSource(
        key=KEY,
        codec=_CODEC,
        load=load,
        baseline=lambda now: f"{_introduction(now)}\n{_list(now.paths)}",
        update=lambda _, now: (
            f"This list supersedes the earlier one. {_introduction(now)}\n{_list(now.paths)}"
        ),
        removal=lambda _: "The list of the project's files that you were given is not renewed any more.",
    )


def sample(found: Listing) -> FileSample:
    """At most `PATHS_MAX` of the paths: the least deep ones, because they say most about a project."""
    nearest = sorted(found.paths, key=lambda path: (path.count("/"), path))[:PATHS_MAX]
    return FileSample(tuple(sorted(nearest)), len(found.paths) if found.complete else None)


def sampled_in(snapshot: Snapshot) -> FileSample | None:
    """What an epoch holds; None where it holds nothing, or nothing that this version understands."""
    if KEY not in snapshot:
        return None
    try:
        return _CODEC.decode(snapshot[KEY].value)
    except ContextError:
        return None


def _introduction(value: FileSample) -> str:
    shown = len(value.paths)
    if value.count is None:
        return f"The project has very many files. These are {shown} of them:"
    if value.count > shown:
        return f"The project has {value.count:,} files. These are {shown} of them:"
    return "These are the project's files:"


def _list(paths: Sequence[str]) -> str:
    return "\n".join(("<files>", *(f"  {path}" for path in paths), "</files>"))
