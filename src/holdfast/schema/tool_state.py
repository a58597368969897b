"""The state of one tool call, and which state may follow which.

    pending ──▶ running ──▶ completed
       │           │
       └───────────┴──────▶ error

A call is settled exactly once. A settled call changes by marks only: pruning marks a completed one with
`time.compacted`, and a provider that takes no request with its result or its files leaves `refused`.
"""

from typing import ClassVar, Final, Literal

from msgspec.structs import replace

from holdfast.errors import Conflict
from holdfast.schema.file_part import FilePart
from holdfast.schema.wire import Count, JsonMap, Wire


class Started(Wire, frozen=True, kw_only=True):
    start: Count


class Ended(Wire, frozen=True, kw_only=True):
    start: Count
    end: Count


class Completed(Wire, frozen=True, kw_only=True):
    """`compacted` marks pruned output: the text stays stored, and the model sees a marker in its place."""

    start: Count
    end: Count
    compacted: Count | None = None


class ToolPending(Wire, frozen=True, kw_only=True, tag_field="status", tag="pending"):
    """The model is still writing the call: `raw` grows, `input` is empty until it can be read."""

    status: ClassVar[Literal["pending"]] = "pending"
    input: JsonMap
    raw: str


class ToolRunning(Wire, frozen=True, kw_only=True, tag_field="status", tag="running"):
    """The call is recorded, and may have begun to act."""

    status: ClassVar[Literal["running"]] = "running"
    input: JsonMap
    title: str | None = None
    metadata: JsonMap | None = None
    time: Started


class ToolCompleted(Wire, frozen=True, kw_only=True, tag_field="status", tag="completed"):
    """The call succeeded. `refused` is ours, as in `FilePart`, and speaks of the whole result."""

    status: ClassVar[Literal["completed"]] = "completed"
    input: JsonMap
    output: str
    title: str
    metadata: JsonMap
    time: Completed
    attachments: list[FilePart] | None = None
    refused: dict[str, str] | None = None


class ToolError(Wire, frozen=True, kw_only=True, tag_field="status", tag="error"):
    """The call did not succeed; `metadata.outcome` says how: failed, denied, interrupted or unknown."""

    status: ClassVar[Literal["error"]] = "error"
    input: JsonMap
    error: str
    metadata: JsonMap | None = None
    time: Ended


ToolState = ToolPending | ToolRunning | ToolCompleted | ToolError

# Pending and running may be written again (arguments stream in, progress is shown); a settled state has no
# successor.
TRANSITIONS: Final[dict[type[ToolState], tuple[type[ToolState], ...]]] = {
    ToolPending: (ToolPending, ToolRunning, ToolError),
    ToolRunning: (ToolRunning, ToolCompleted, ToolError),
    ToolCompleted: (),
    ToolError: (),
}


def advance(old: ToolState, new: ToolState) -> ToolState:
    """`new`, if it may follow `old`. Writing a settled state again unchanged is no change, and allowed."""
    if type(new) in TRANSITIONS[type(old)] or new == old or _marked(old, new):
        return new
    before, after = (state.__struct_config__.tag for state in (old, new))
    if TRANSITIONS[type(old)]:
        raise Conflict(f"a tool call cannot go from {before} to {after}")
    raise Conflict(f"the tool call is already settled ({before}) and cannot be settled again ({after})")


def _marked(old: ToolState, new: ToolState) -> bool:
    """Whether `new` is `old` with nothing but the mark of pruning added."""
    if isinstance(old, ToolCompleted) and isinstance(new, ToolCompleted) and old.time.compacted is None:
        return new == replace(old, time=replace(old.time, compacted=new.time.compacted))
    return False
