"""A fresh baseline though something cannot be seen: what was admitted is told as it was told last."""

import msgspec
import pytest
from msgspec.structs import replace as structs_replace

from holdfast.context import decisions
from holdfast.context.results import Initialized, ReplacementReady, Unchanged, Updated
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import UNAVAILABLE
from holdfast.context.system_context import SystemContext, initialize, observe, reconcile
from tests.context.facts import Fact, combined

OTHER = SnapshotEntry(1, "gone")
"""An entry of a source that reads texts now."""


async def test_what_hides_is_told_by_the_text_that_was_kept() -> None:
    """Last and by key; its entries go over as they are, so nothing is news when it is seen again."""
    there, deep, near = Fact("core/there", "a"), Fact("plugin/x/deep", "b"), Fact("plugin/x", "c")
    whole = SystemContext.combine(there.context, combined(deep, near).keeping_texts())
    begun = initialize(await observe(whole))
    assert isinstance(begun, Initialized)
    near.value = "d"
    changed = reconcile(await observe(whole), begun.snapshot)
    assert isinstance(changed, Updated)
    hidden = SystemContext.combine(there.context, SystemContext.unavailable("plugin/x", "down"))
    there.value = "z"

    held = decisions.replace(await observe(hidden), changed.snapshot)

    assert held.baseline == "core/there is z\n\nplugin/x is now d\n\nplugin/x/deep is b"
    assert held.snapshot["plugin/x"] == changed.snapshot["plugin/x"]
    assert reconcile(await observe(whole), held.snapshot) == Unchanged()
    near.value = "e"
    back = reconcile(await observe(whole), held.snapshot)
    assert isinstance(back, Updated)
    assert back.text == "plugin/x is now e"


async def test_a_value_that_can_be_read_is_rendered_where_its_source_stands() -> None:
    """It is the baseline text of what was admitted, in the order of the context."""
    first, second = Fact("core/first", "a"), Fact("core/second", "b")
    snapshot = Snapshot(
        {"core/first": SnapshotEntry("old", "gone"), "core/second": SnapshotEntry("b", "gone")}
    )
    first.value = UNAVAILABLE

    held = decisions.replace(await observe(combined(first, second)), snapshot)

    assert held.baseline == "core/first is old\n\ncore/second is b"
    assert held.snapshot["core/first"] == snapshot["core/first"]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (structs_replace(OTHER, text="x was one"), "x was one"),
        (OTHER, "What you were told under core/x still holds: 1"),
        (SnapshotEntry({"a": ["ä"]}), 'What you were told under core/x still holds: {"a":["ä"]}'),
        (structs_replace(OTHER, text=""), ""),
    ],
)
async def test_a_value_of_another_version_is_told_as_it_was(entry: SnapshotEntry, told: str) -> None:
    """By its text, or where none was kept by the value; a source that had said nothing says nothing."""
    fact = Fact("core/x", UNAVAILABLE)

    held = decisions.replace(await observe(fact.context), Snapshot({"core/x": entry}))

    assert held == ReplacementReady(told, Snapshot({"core/x": entry}))


async def test_what_was_never_admitted_is_left_out() -> None:
    """Until it is first seen."""
    fact = Fact("core/x", UNAVAILABLE)
    assert decisions.replace(await observe(fact.context), Snapshot()) == ReplacementReady("", Snapshot())


async def test_texts_are_kept_only_where_it_is_asked_for() -> None:
    """A change without a word leaves the text before it; combining keeps the wish for each source."""
    own, other = Fact("core/own", "a"), Fact("plugin/other", "b")
    silent = structs_replace(other.source, update=lambda _, __: "")
    context = SystemContext.combine(own.context, SystemContext.make(silent).keeping_texts())
    begun = initialize(await observe(context))
    assert isinstance(begun, Initialized)
    assert {key: entry.text for key, entry in begun.snapshot.items()} == {
        "core/own": None,
        "plugin/other": "plugin/other is b",
    }
    other.value = "c"

    changed = reconcile(await observe(context), begun.snapshot)

    assert isinstance(changed, Updated)
    assert changed.snapshot["plugin/other"] == SnapshotEntry(
        "c", "plugin/other no longer applies", "plugin/other is b"
    )


def test_a_kept_text_survives_being_stored() -> None:
    """As part of its entry."""
    snapshot = Snapshot({"core/x": SnapshotEntry(1, None, "x is 1")})
    stored = msgspec.json.decode(msgspec.json.encode(snapshot.to_json()))
    assert stored == {"core/x": {"value": 1, "text": "x is 1"}}
    assert Snapshot.readable(stored) == snapshot
