"""What the calls of a message did to files, from their records: the ledger that undo goes by. Pure."""

from collections.abc import Iterable
from typing import Final

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema.file_change import FileChange
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import Part, PatchPart, StepStartPart, ToolPart
from holdfast.schema.tool_state import ToolPending
from holdfast.schema.wire import JsonMap, convert

FILES: Final = "holdfastFiles"
"""In the metadata of a call: the changes that its tool made, noted before it made them."""


def noted(metadata: JsonMap | None) -> list[FileChange]:
    """The changes in the metadata of a call; none where they cannot be read."""
    found = (metadata or {}).get(FILES)
    try:
        return convert(list[FileChange], found) if isinstance(found, list) else []
    except InvalidInput:
        return []


def of_part(part: Part) -> list[FileChange]:
    """The changes that a part records."""
    if isinstance(part, PatchPart):
        return list(part.changes or ())
    if isinstance(part, ToolPart) and not isinstance(part.state, ToolPending):
        return noted(part.state.metadata)
    return []


def of_parts(parts: Iterable[Part]) -> list[FileChange]:
    """The changes of the parts of one message, the oldest first.

    What was observed at the end of a step counts for the whole step: it takes the place of what the calls of
    that step noted about the same file.
    """
    found: list[FileChange] = []
    for part in parts:
        changes = of_part(part)
        if isinstance(part, PatchPart):
            seen = {each.path for each in changes}
            found = [each for each in found if each.path not in seen]
        found += changes
    return found


def is_cut_off(message: MessageWithParts) -> bool:
    """Whether a step began with a tree and never got another: what its commands changed is not known."""
    return any(
        isinstance(part, StepStartPart) and part.snapshot is not None and part.left is None
        for part in message.parts
    )


def joined(changes: Iterable[FileChange]) -> list[FileChange]:
    """The changes with those of one file joined that follow each other without a gap, the oldest first.

    A gap, where a file did not hold what the agent had left, is somebody else's change. What is not covered
    is never taken for no change.
    """
    found: list[FileChange] = []
    last: dict[str, int] = {}
    for change in changes:
        at = last.get(change.path, -1)
        if at >= 0 and _follows(found[at], change):
            found[at] = msgspec.structs.replace(
                found[at],
                after=change.after,
                after_mode=change.after_mode,
                observed=found[at].observed or change.observed,
                covered=found[at].covered and change.covered,
            )
        else:
            last[change.path] = len(found)
            found.append(change)
    return [
        each
        for each in found
        if not each.covered or (each.before, each.before_mode) != (each.after, each.after_mode)
    ]


def _follows(before: FileChange, change: FileChange) -> bool:
    """Whether the file was left as the next change found it."""
    known = before.after_mode is not None and change.before_mode is not None
    return before.after == change.before and (not known or before.after_mode == change.before_mode)
