"""Where reconcile meets the unexpected: other versions, blank texts, look-alikes, broken renderers."""

from typing import Any

import msgspec
import pytest

from holdfast.context.results import (
    Blocked,
    Initialized,
    ReplacementBlocked,
    ReplacementReady,
    Unchanged,
    Updated,
)
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import ABSENT, UNAVAILABLE, Codec
from holdfast.context.system_context import SystemContext, initialize, observe, reconcile
from holdfast.errors import ContextError
from tests.context.facts import Fact, admitted, observed


async def test_a_stored_value_of_another_version_asks_for_a_replacement() -> None:
    """What cannot be decoded cannot be compared, so everything is said anew."""
    fact, other = Fact("core/x", 1, type_=int), Fact("core/y", "a")
    snapshot = Snapshot({"core/x": SnapshotEntry("one", "gone"), "core/y": SnapshotEntry("a", "gone")})

    assert reconcile(await observed(fact, other), snapshot) == ReplacementReady(
        "core/x is 1\n\ncore/y is a", await admitted(fact, other)
    )
    other.value = UNAVAILABLE
    assert reconcile(await observed(fact, other), snapshot) == ReplacementBlocked(("core/y",))


async def test_a_codec_may_fail_in_its_own_way() -> None:
    """Whatever it raises over a stored value, the session gets a replacement and not the error."""

    class Odd(Codec[str]):
        def decode(self, data: Any) -> str:
            if data == "old":
                raise ZeroDivisionError
            return super().decode(data)

    fact = Fact("core/x", "a")
    context = SystemContext.make(msgspec.structs.replace(fact.source, codec=Odd(str)))

    result = await context.reconcile(Snapshot({"core/x": SnapshotEntry("old")}))

    assert result == ReplacementReady("core/x is a", await admitted(fact))


async def test_a_stored_value_is_not_read_while_its_source_is_unavailable_or_absent() -> None:
    """An unreadable value is kept as it is, and its removal was rendered long ago."""
    fact = Fact("core/x", UNAVAILABLE, type_=int)
    snapshot = Snapshot({"core/x": SnapshotEntry("one", "x is gone")})

    assert reconcile(await observed(fact), snapshot) == Unchanged()
    fact.value = ABSENT
    assert reconcile(await observed(fact), snapshot) == Updated("x is gone", Snapshot())


@pytest.mark.parametrize("registered", [True, False])
async def test_a_removal_without_a_text_asks_for_a_replacement(registered: bool) -> None:
    """Absent, or no longer registered: the model cannot be told, so it gets a baseline without it."""
    fixed, other = Fact("core/fixed", "a", removable=False), Fact("core/y", "a")
    snapshot = await admitted(fixed, other)
    fixed.value = ABSENT
    facts = (fixed, other) if registered else (other,)

    assert reconcile(await observed(*facts), snapshot) == ReplacementReady(
        "core/y is a", await admitted(other)
    )
    other.value = UNAVAILABLE
    assert reconcile(await observed(*facts), snapshot) == ReplacementBlocked(("core/y",))


async def test_removals_without_a_source_come_first_by_key() -> None:
    """A last "no longer applies" could be read as taking back what the same message has just said."""
    facts = [Fact(f"old/{name}", "1") for name in ("z", "a")]
    absent, changed = Fact("core/absent", "1"), Fact("core/changed", "1")
    snapshot = await admitted(*facts, changed, absent)
    absent.value, changed.value = ABSENT, "2"

    result = reconcile(await observed(changed, absent), snapshot)

    assert isinstance(result, Updated)
    assert result.text.split("\n\n") == [
        "old/a no longer applies",
        "old/z no longer applies",
        "core/changed is now 2",
        "core/absent no longer applies",
    ]


async def test_a_change_with_nothing_to_say_advances_the_snapshot_alone() -> None:
    """An update whose text is blank is still an update, so that it is not found again at each boundary."""
    fact, other = Fact("core/x", "a"), Fact("core/y", "a")
    quiet = msgspec.structs.replace(
        fact.source, baseline=lambda _: "", update=lambda *_: " \n", removal=lambda _: ""
    )
    context = SystemContext.combine(SystemContext.make(quiet), other.context)
    started = await context.initialize()
    assert started == Initialized(
        "core/y is a",
        Snapshot(
            {"core/x": SnapshotEntry("a", ""), "core/y": SnapshotEntry("a", "core/y no longer applies")}
        ),
    )

    fact.value = "b"
    changed = await context.reconcile(started.snapshot)
    assert isinstance(changed, Updated)
    assert (changed.text, changed.snapshot["core/x"]) == ("", SnapshotEntry("b", ""))
    assert await context.reconcile(changed.snapshot) == Unchanged()
    fact.value = ABSENT
    assert await context.reconcile(changed.snapshot) == Updated("", await admitted(other))
    assert await SystemContext.make(quiet).reconcile(Snapshot()) == Unchanged()
    fact.value = "c"
    new = await SystemContext.make(quiet).reconcile(Snapshot())
    assert new == Updated("", Snapshot({"core/x": SnapshotEntry("c", "")}))


@pytest.mark.parametrize(("before", "now"), [(True, 1), (1, 1.0), (0, False), ([], {}), (None, 0)])
async def test_values_are_compared_by_their_json(before: Any, now: Any) -> None:
    """Values that Python takes for equal are not the same when their JSON differs."""
    fact = Fact("core/x", before, type_=Any)
    snapshot = await admitted(fact)
    fact.value = now

    result = reconcile(await observed(fact), snapshot)

    assert isinstance(result, Updated)
    assert result.text == f"core/x is now {now}"


async def test_the_order_within_objects_and_sets_is_no_change() -> None:
    """Neither the order in which a mapping was filled nor that of a set is part of the value."""
    mapping = Fact("core/map", {"a": {"c": 1, "d": 2}, "b": {}}, type_=dict[str, dict[str, int]])
    words = Fact("core/set", {str(number) for number in range(50)}, type_=set[str])
    snapshot = await admitted(mapping, words)
    mapping.value = {"b": {}, "a": {"d": 2, "c": 1}}
    words.value = {str(number) for number in reversed(range(50))}

    assert reconcile(await observed(mapping, words), snapshot) == Unchanged()


async def test_a_codec_of_ones_own_need_not_sort() -> None:
    """The order of the objects that it writes is no part of the value either."""

    class Pairs(Codec[dict[str, int]]):
        def encode(self, value: dict[str, int]) -> Any:
            return dict(value)

    fact = Fact("core/x", {"a": 1, "b": 2}, type_=dict[str, int])
    context = SystemContext.make(msgspec.structs.replace(fact.source, codec=Pairs(dict[str, int])))
    started = await context.initialize()
    assert isinstance(started, Initialized)
    fact.value = {"b": 2, "a": 1}

    assert await context.reconcile(started.snapshot) == Unchanged()


async def test_a_field_that_a_later_version_added_is_no_change_by_itself() -> None:
    """Values are compared as the codec reads them, so a default fills what the stored one lacks."""

    class Grown(msgspec.Struct):
        name: str
        size: int = 0

    fact = Fact("core/x", Grown("a"), type_=Grown)
    snapshot = Snapshot({"core/x": SnapshotEntry({"name": "a"})})

    assert reconcile(await observed(fact), snapshot) == Unchanged()
    fact.value = Grown("a", 1)
    assert isinstance(reconcile(await observed(fact), snapshot), Updated)


async def test_an_unchanged_entry_is_kept_verbatim() -> None:
    """The removal text stays the one that was rendered when the value was admitted."""
    kept, changed = Fact("core/kept", "a"), Fact("core/y", "b")
    old = SnapshotEntry("a", "said long ago")

    result = reconcile(await observed(kept, changed), Snapshot({"core/kept": old}))

    assert isinstance(result, Updated)
    assert result.snapshot["core/kept"] is old


@pytest.mark.parametrize("name", ["baseline", "update", "removal"])
@pytest.mark.parametrize("broken", [lambda *_: 1 / 0, lambda *_: None], ids=["raises", "no text"])
async def test_a_broken_renderer_is_named_in_one_line(name: str, broken: Any) -> None:
    """The error says which source and which text; it does not show the value."""
    fact = Fact("core/x", "a private value")
    source = msgspec.structs.replace(fact.source, **{name: broken})
    observation = await observe(SystemContext.make(source))

    snapshot = Snapshot({"core/x": SnapshotEntry("before")} if name == "update" else {})

    with pytest.raises(ContextError, match=rf"^context source core/x: its {name} text [^\n]+$") as caught:
        reconcile(observation, snapshot)
    assert "private" not in str(caught.value)


async def test_an_unavailable_namespace_blocks_a_first_baseline() -> None:
    """It is not known what is beneath it, so no baseline could be complete."""
    fact = Fact("core/x", "a")
    context = SystemContext.combine(SystemContext.unavailable("plugin/y", "it broke"), fact.context)

    observation = await observe(context)

    assert observation.unavailable == ("plugin/y",)
    assert observation.notes == {"plugin/y": "it broke"}
    assert initialize(observation) == Blocked(("plugin/y",))


async def test_an_unavailable_namespace_keeps_what_lies_beneath_it_and_nothing_else() -> None:
    """Entries of the namespace stay without a word; one that only begins with the same letters does not."""
    facts = [Fact(key, "1") for key in ("plugin/y", "plugin/y/deep/er", "plugin/yes")]
    snapshot = await admitted(*facts)
    hidden = SystemContext.unavailable("plugin/y", "it broke")

    assert await hidden.reconcile(snapshot) == Updated(
        "plugin/yes no longer applies", await admitted(facts[0], facts[1])
    )
    assert await hidden.replace(snapshot) == ReplacementBlocked(("plugin/y", "plugin/y/deep/er"))
    assert await hidden.replace(Snapshot()) == ReplacementReady("", Snapshot())


async def test_a_source_beneath_an_unavailable_namespace_speaks_for_itself() -> None:
    """Another contribution may lie beneath the one that failed; what it sees counts."""
    absent, changed = Fact("plugin/y/absent", "1"), Fact("plugin/y/changed", "1")
    snapshot = await admitted(absent, changed)
    absent.value, changed.value = ABSENT, "2"
    context = SystemContext.combine(
        SystemContext.unavailable("plugin/y", "it broke"), absent.context, changed.context
    )

    assert await context.reconcile(snapshot) == Updated(
        "plugin/y/absent no longer applies\n\nplugin/y/changed is now 2", await admitted(changed)
    )


async def test_an_unavailable_source_hides_nothing_but_itself() -> None:
    """A source is no namespace: one whose key lies beneath it may still be removed."""
    upper, lower = Fact("core/x", "1"), Fact("core/x/y", "1")
    snapshot = await admitted(upper, lower)
    upper.value = UNAVAILABLE

    result = reconcile(await observed(upper), snapshot)

    assert isinstance(result, Updated)
    assert (result.text, list(result.snapshot)) == ("core/x/y no longer applies", ["core/x"])
