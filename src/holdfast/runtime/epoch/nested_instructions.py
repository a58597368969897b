"""Finds instruction files beside the files that the agent has read or written, for the next boundary.

The paths come from the records of finished calls, so a crash in between loses none of them.
"""

from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from holdfast.context.snapshot import Snapshot
from holdfast.context.sources import nested_instructions
from holdfast.location import instruction_files
from holdfast.runtime.engine.prepared_turn import Sampled
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history import files_touched
from holdfast.runtime.history.epoch import Epoch
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import ToolPart


async def find_nested(run: Run, chosen: Sampled, epoch: Epoch) -> list[str] | None:
    """The epoch's instruction files, plus those beside files that were read since.

    None if they could not be searched: the next boundary tries again.
    """
    nested = epoch.value.nested
    new = touched_paths(run.history.unsearched())
    if not new:
        return nested
    known = [*map(Path, nested), *_known_sources(epoch)]
    places = chosen.workspace.places

    def look() -> list[str]:
        seen = list(known)
        for path in new:
            seen += instruction_files.beside(
                Path(path), directory=places.directory, worktree=places.worktree, known=seen
            )
        return [str(each) for each in seen[len(known) :]]

    try:
        return [*nested, *await anyio.to_thread.run_sync(look)]
    except OSError:
        return None


def touched_paths(history: Sequence[MessageWithParts]) -> list[str]:
    """The files that were read or written, in order, each once. Pure."""
    return list(
        dict.fromkeys(
            path
            for message in history
            for part in message.parts
            if isinstance(part, ToolPart)
            for kind, path in files_touched.of_call(part)
            if kind != "deleted"
        )
    )


def _known_sources(epoch: Epoch) -> list[Path]:
    return nested_instructions.paths_in(Snapshot.readable(epoch.value.snapshot))
