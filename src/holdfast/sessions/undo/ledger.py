"""What the agent changed in files from a point on: in the session, and in the sessions below it.

Numbers order the records of one session only, so that what sessions did is put in one order by time. What a
step of a session observed covers all that happened during it, also in the sessions below.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from holdfast.runtime.calls.step_trees import OBSERVED_MAX
from holdfast.runtime.history import file_changes
from holdfast.schema.file_change import FileChange
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import PatchPart, StepStartPart, ToolPart
from holdfast.schema.session import Session
from holdfast.schema.stored import BACKGROUND
from holdfast.schema.tool_state import ToolCompleted, ToolPending
from holdfast.sessions import read
from holdfast.sessions.access import StoreAccess
from holdfast.sessions.undo.point import Point
from holdfast.store.query import MessageQuery

DEPTH_MAX: Final = 64

# What these do to files they note by themselves.
_WRITING_TOOLS: Final = frozenset(("apply_patch", "edit", "multiedit", "patch", "write"))
# These do nothing to files.
_READING_TOOLS: Final = frozenset(
    (
        *("glob", "grep", "list", "question", "read", "recall", "skill", "todoread", "todowrite"),
        *("webfetch", "websearch"),
    )
)


class Ledger(msgspec.Struct, frozen=True):
    """The changes, the oldest first, and what cannot be known."""

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()


class Entry(msgspec.Struct, frozen=True):
    """One change: when, by which session (0 is the one that is reverted, its children are deeper)."""

    ms: int
    change: FileChange
    until_ms: int
    depth: int
    session: str


async def whole_history(access: StoreAccess, session: str) -> list[MessageWithParts]:
    """All messages of a session in the model's order, also those that a staged revert hides."""
    page = await access.store.messages(MessageQuery(session, reverted=True))
    return [read.typed(each) for each in sorted(page.messages, key=lambda each: each.info.place)]


async def ledger(
    access: StoreAccess,
    session: Session,
    history: Sequence[MessageWithParts],
    below: Sequence[Session],
    point: Point,
) -> Ledger:
    """What was changed from the point on; `below`: the descendants of the session."""
    later = list(since(history, point))
    begun_ms = begins_ms(history, point)
    entries = [entry for message in later for entry in _entries(message, session.id, 0)]
    notes = [note for message in later for note in _notes(message)]
    depths: dict[str, int] = {session.id: 0}
    for child in below:  # Parents come first.
        depths[child.id] = depths.get(child.parent_id or "", 0) + 1
        said = [each for each in await whole_history(access, child.id) if _created_ms(each) >= begun_ms]
        entries += [entry for each in said for entry in _entries(each, child.id, depths[child.id])]
        notes += [note for message in said for note in _notes(message)]
    return Ledger(tuple(ordered(entries)), tuple(notes))


def since(history: Sequence[MessageWithParts], point: Point) -> Iterator[MessageWithParts]:
    """The messages from a point on; of the message of a part, the parts from it on. Pure."""
    begun = False
    for message in history:
        if message.info.id == point.message:
            begun = True
            if point.part is not None:
                at = [part.id for part in message.parts].index(point.part)
                yield MessageWithParts(message.info, message.parts[at:])
                continue
        if begun:
            yield message


def begins_ms(history: Sequence[MessageWithParts], point: Point) -> int:
    """When the work after a point began: with its prompt, or with the first call from a part on. Pure.

    A prompt may have been admitted while the answer before it was still being written: what sessions below
    did until its end belongs to that one.
    """
    at = [each.info.id for each in history].index(point.message)
    if point.part is not None:
        (message,) = [each for each in since(history, point) if each.info.id == point.message]
        starts = [_start_ms(part) for part in message.parts if isinstance(part, ToolPart)]
        return min((ms for ms in starts if ms is not None), default=_ended_ms(message))
    return max(_created_ms(history[at]), *map(_ended_ms, history[:at]), 0)


def ordered(entries: Sequence[Entry]) -> list[FileChange]:
    """The changes in the order of time, without those that a step above them has observed. Pure."""
    seen: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.change.observed:
            seen.setdefault(entry.change.path, []).append(entry)
    kept = [
        entry
        for entry in entries
        if not any(
            each.depth < entry.depth and each.ms <= entry.ms <= each.until_ms
            for each in seen.get(entry.change.path, ())
        )
    ]
    latest: dict[str, int] = {}
    keyed = []
    for entry in kept:  # Within a session time never goes back: its own order counts.
        latest[entry.session] = max(entry.until_ms, latest.get(entry.session, 0))
        keyed.append((latest[entry.session], entry))
    return [entry.change for _, entry in sorted(keyed, key=lambda pair: pair[0])]


def _entries(message: MessageWithParts, session: str, depth: int) -> Iterator[Entry]:
    """The changes of a message: a call counts from its start to its end, what was observed for all of it."""
    found: list[Entry] = []
    begun_ms = _created_ms(message)
    for part in message.parts:
        changes = file_changes.of_part(part)
        if isinstance(part, PatchPart):
            seen = {each.path for each in changes}
            found = [entry for entry in found if entry.change.path not in seen]
            end_ms = _ended_ms(message)
            found += [Entry(begun_ms, each, end_ms, depth, session) for each in changes]
        elif changes and isinstance(part, ToolPart) and (start_ms := _start_ms(part)) is not None:
            found += [Entry(start_ms, each, start_ms, depth, session) for each in changes]
    yield from found


def _start_ms(part: ToolPart) -> int | None:
    return None if isinstance(part.state, ToolPending) else part.state.time.start


def _created_ms(message: MessageWithParts) -> int:
    return message.info.time.created


def _ended_ms(message: MessageWithParts) -> int:
    time = message.info.time
    return max(time.created, getattr(time, "completed", None) or time.created)


def _notes(message: MessageWithParts) -> Iterator[str]:
    """What nobody knows: what commands changed in a step without both of its trees, or beyond the bound."""
    patches = [part for part in message.parts if isinstance(part, PatchPart)]
    if any(len(each.changes or ()) >= OBSERVED_MAX for each in patches):
        yield (
            f"message {message.info.id} changed more files than the {OBSERVED_MAX:,} that are recorded of a "
            "step: the others are not taken back"
        )
    if any(isinstance(part, ToolPart) and _is_left_running(part) for part in message.parts):
        yield f"message {message.info.id} left a command running: what it changed later is not known"
    calls = {part.tool for part in message.parts if isinstance(part, ToolPart) and _is_unknown(part)}
    why = _unseen(message)
    if calls and why is not None:
        named = ", ".join(sorted(calls))
        yield f"message {message.info.id} {why}: what its calls of {named} changed is not known"


def _is_left_running(call: ToolPart) -> bool:
    """Whether a call began a command in the background: no step observes what that does afterwards."""
    return isinstance(call.state, ToolCompleted) and BACKGROUND in (call.state.metadata or {})


def _is_unknown(call: ToolPart) -> bool:
    """Whether a call may have changed files, and has no note of them."""
    if isinstance(call.state, ToolPending) or call.tool in _READING_TOOLS:
        return False
    if call.tool not in _WRITING_TOOLS:
        return True
    return isinstance(call.state, ToolCompleted) and file_changes.FILES not in (call.state.metadata or {})


def _unseen(message: MessageWithParts) -> str | None:
    """Why it is not known what commands changed in a message, if so."""
    if file_changes.is_cut_off(message):
        return "was cut off"
    seen = any(
        isinstance(part, PatchPart) or (isinstance(part, StepStartPart) and part.snapshot is not None)
        for part in message.parts
    )
    return None if seen else "had no snapshot of the files"
