"""What a System Context is made of: the sentences of the vocabulary, each as a test of its name."""

from datetime import date
from typing import Any

import msgspec
import pytest

from holdfast.context.registry import SystemContextRegistry
from holdfast.context.results import Initialized, Unchanged, Updated
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import ABSENT, UNAVAILABLE, ContextSource
from holdfast.context.system_context import SystemContext, initialize, observe, reconcile
from holdfast.errors import Conflict
from holdfast.schema import wire
from tests.context.facts import Fact, admitted, combined, observed

# --- Language


async def test_a_system_context_is_facts_told_first_as_instructions_and_then_as_updates() -> None:
    """System Context: structured facts, told as initial instructions and as chronological updates."""
    where, day = Fact("core/where", "/a"), Fact("core/day", "Monday")
    context = combined(where, day)

    started = await context.initialize()
    assert started == Initialized(
        "core/where is /a\n\ncore/day is Monday",
        Snapshot(
            {
                "core/where": SnapshotEntry("/a", "core/where no longer applies"),
                "core/day": SnapshotEntry("Monday", "core/day no longer applies"),
            }
        ),
    )
    day.value = "Tuesday"
    assert await context.reconcile(started.snapshot) == Updated(
        "core/day is now Tuesday",
        Snapshot(
            {
                "core/where": SnapshotEntry("/a", "core/where no longer applies"),
                "core/day": SnapshotEntry("Tuesday", "core/day no longer applies"),
            }
        ),
    )


def test_a_context_source_is_a_key_a_codec_a_loader_and_renderers() -> None:
    """Context Source: stable key, JSON codec, loader, baseline and update renderers; removal is optional."""
    fields = msgspec.structs.fields(ContextSource)

    assert {field.name: field.required for field in fields} == {
        "key": True,
        "codec": True,
        "load": True,
        "baseline": True,
        "update": True,
        "removal": False,
        "waits": False,
    }


async def test_each_context_source_is_observed_independently() -> None:
    """Context Source: one independently observed value. What one cannot see does not keep another from it."""
    blind, seeing = Fact("core/blind", "a"), Fact("core/seeing", "a")
    snapshot = await admitted(blind, seeing)
    blind.value, seeing.value = UNAVAILABLE, "b"

    result = reconcile(await observed(blind, seeing), snapshot)

    assert isinstance(result, Updated)
    assert result.text == "core/seeing is now b"


async def test_the_baseline_is_the_full_system_context() -> None:
    """Baseline System Context: the full System Context, rendered at the start of an epoch."""
    facts = [Fact(f"core/{name}", name) for name in ("c", "a", "b")]

    started = initialize(await observed(*facts))

    assert isinstance(started, Initialized)
    assert started.baseline == "core/c is c\n\ncore/a is a\n\ncore/b is b"


async def test_the_snapshot_is_json_state_that_the_model_does_not_see() -> None:
    """Context Snapshot: model-hidden JSON, used to compare each source with what was last admitted."""
    secret = Fact("core/x", {"shown": "yes", "hidden": "no"}, type_=dict[str, str])
    shown = msgspec.structs.replace(secret.source, baseline=lambda value: value["shown"])

    started = initialize(await observe(SystemContext.make(shown)))

    assert isinstance(started, Initialized)
    assert started.baseline == "yes"
    assert wire.encode(started.snapshot.to_json()) == (
        b'{"core/x":{"value":{"hidden":"no","shown":"yes"},"removal":"core/x no longer applies"}}'
    )


async def test_unavailable_context_keeps_its_prior_state_and_says_nothing() -> None:
    """Unavailable Context: the prior effective state is retained and no update is emitted."""
    fact = Fact("core/x", "a")
    snapshot = await admitted(fact)
    fact.value = UNAVAILABLE

    assert reconcile(await observed(fact), snapshot) == Unchanged()


async def test_unavailable_context_is_omitted_until_it_is_first_loaded() -> None:
    """Unavailable Context: a source that was never seen is left out until its first successful load."""
    here, late = Fact("core/here", "a"), Fact("core/late", UNAVAILABLE)
    snapshot = await admitted(here)

    assert reconcile(await observed(here, late), snapshot) == Unchanged()
    late.value = "b"
    result = reconcile(await observed(here, late), snapshot)
    assert isinstance(result, Updated)
    assert result.text == "core/late is b"


# --- Relationships: composition


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_a_system_context_is_composed_from_zero_or_more_sources(count: int) -> None:
    """A System Context is a carrier of zero or more sources; of none, the baseline is empty."""
    facts = [Fact(f"core/{number}", number, type_=int) for number in range(count)]

    started = initialize(await observed(*facts))

    assert isinstance(started, Initialized)
    assert started.baseline == "\n\n".join(f"core/{number} is {number}" for number in range(count))
    assert list(started.snapshot) == [fact.key for fact in facts]


async def test_empty_changes_nothing_that_it_is_combined_with() -> None:
    """The carrier of no sources is the identity of combine."""
    fact = Fact("core/x", "a")
    padded = SystemContext.combine(SystemContext.empty(), fact.context, SystemContext.empty())

    assert padded.keys == fact.context.keys == ("core/x",)
    assert SystemContext.combine().keys == SystemContext.empty().keys == ()


async def test_combine_preserves_the_order_of_its_caller() -> None:
    """`combine` preserves caller order, at every depth."""
    a, b, c = (Fact(f"core/{name}", name).context for name in "abc")

    assert SystemContext.combine(c, SystemContext.combine(a, b)).keys == ("core/c", "core/a", "core/b")


def test_duplicate_keys_fail_composition() -> None:
    """Two sources of one key are refused at once, and the error names the key."""
    one, other = Fact("core/x", "a"), Fact("core/x", "b")

    with pytest.raises(Conflict, match=r"^two context sources have the key core/x; keep one of them$"):
        combined(one, other)
    with pytest.raises(Conflict, match="core/x"):
        SystemContext.combine(one.context, SystemContext.unavailable("core/x", "why"))
    assert one.loads == 0


async def test_make_hides_the_type_of_the_value() -> None:
    """Differently typed sources compose uniformly."""

    class Place(msgspec.Struct):
        path: str
        depth: int

    facts = [
        Fact("core/text", "a"),
        Fact("core/list", [1, 2], type_=list[int]),
        Fact("core/place", Place("/a", 2), type_=Place),
        Fact("core/day", date(2026, 3, 1), type_=date),
        Fact("core/set", {"b", "a"}, type_=frozenset[str]),
        Fact("core/numbered", {2: "b", 1: "a"}, type_=dict[int, str]),
        Fact("core/nothing", None, type_=None),
    ]
    snapshot = await admitted(*facts)

    assert {key: entry.value for key, entry in snapshot.items()} == {
        "core/text": "a",
        "core/list": [1, 2],
        "core/place": {"path": "/a", "depth": 2},
        "core/day": "2026-03-01",
        "core/set": ["a", "b"],
        "core/numbered": {"1": "a", "2": "b"},
        "core/nothing": None,
    }
    stored = Snapshot.readable(wire.decode(dict[str, Any], wire.encode(snapshot.to_json())))
    assert reconcile(await observed(*facts), stored) == Unchanged()


async def test_texts_are_rendered_only_when_needed() -> None:
    """The renderers produce text only when needed: nothing at all for a value that did not change."""
    fact = Fact("core/x", "a")
    snapshot = await admitted(fact)
    assert fact.rendered == ["baseline", "removal"]

    reconcile(await observed(fact), snapshot)
    fact.value = UNAVAILABLE
    reconcile(await observed(fact), snapshot)
    fact.value = ABSENT
    reconcile(await observed(fact), snapshot)
    assert fact.rendered == ["baseline", "removal"]
    fact.value = "b"
    reconcile(await observed(fact), snapshot)
    assert fact.rendered == ["baseline", "removal", "update", "removal"]


async def test_an_ordinary_loader_answers_its_value_and_may_answer_unavailable() -> None:
    """Loaders return values directly; one that keeps stale state may say UNAVAILABLE, which is no trouble."""
    plain, stale = Fact("core/plain", "a"), Fact("core/stale", UNAVAILABLE)

    observation = await observed(plain, stale)

    assert [seen.value for seen in observation.sources] == ["a", UNAVAILABLE]
    assert observation.notes == {}


async def test_nothing_is_loaded_before_a_boundary_asks() -> None:
    """Changes are sampled lazily, never pushed: composing and registering look at nothing."""
    fact = Fact("core/x", "a")
    registry = SystemContextRegistry()
    registry.register("core/x", lambda: fact.context)
    context = SystemContext.combine(await registry.load())
    fact.value = "b"
    assert fact.loads == 0

    await observe(context)
    assert fact.loads == 1
