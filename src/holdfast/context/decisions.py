"""Renders a fresh baseline though admitted sources cannot be seen: their texts stay. Pure.

What must stay true: nothing that was in force is forgotten, and nothing is announced as changed that was
not seen to change. The text is found, in this order, by rendering the admitted value, in the text that the
snapshot keeps, in the admitted value itself. An entry that was not seen goes over into the new snapshot as it
is, so that the next look compares with what the model was given.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from holdfast.context import system_context
from holdfast.context.observation import NotRendered, Observation, Observed
from holdfast.context.results import ReplacementReady
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import UNAVAILABLE


def replace(observation: Observation, snapshot: Snapshot) -> ReplacementReady:
    """A fresh baseline of what was seen, and of what was admitted and cannot be seen now.

    A source stands where the context has it; what has no source now comes last, by key.
    """
    held = set(observation.unavailable_of(snapshot))
    texts: list[str] = []
    entries: dict[str, SnapshotEntry] = {}
    for seen in observation.sources:
        if seen.key in held:
            entry = entries[seen.key] = snapshot[seen.key]
            known = _rendered(seen, entry)
            texts.append(_held(seen.key, entry) if known is None else known)
        elif seen.has_value:
            text = seen.baseline()
            texts.append(text)
            entries[seen.key] = seen.entry(text)
    for key in sorted(held - entries.keys()):
        texts.append(_held(key, snapshot[key]))
        entries[key] = snapshot[key]
    return ReplacementReady(system_context.joined(texts), Snapshot(entries))


def _rendered(seen: Observed, entry: SnapshotEntry) -> str | None:
    """The text of the admitted value; None where that is of another version, or cannot be rendered now."""
    assert seen.value is UNAVAILABLE
    try:
        return Observed(seen.source, seen.source.codec.decode(entry.value)).baseline()
    except Exception:  # noqa: BLE001 - whatever a codec raises: it cannot read the value
        return None


def _held(key: str, entry: SnapshotEntry) -> str:
    """What the model was given, without the code that rendered it."""
    if entry.text is not None:
        return entry.text
    return f"What you were told under {key} still holds: {msgspec.json.encode(entry.value).decode()}"


Decision = TypeVar("Decision")


def rendered(
    observation: Observation, decide: Callable[[Observation], Decision]
) -> tuple[Decision, Observation]:
    """What is decided, and the observation that it was decided from."""
    # It ends: each round takes an update or a source away, and neither is rendered again.
    while True:
        try:
            return decide(observation), observation
        except NotRendered as fault:
            observation = observation.without(fault)
