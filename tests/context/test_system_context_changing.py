"""How a System Context begins, changes and is replaced: the sentences of the vocabulary, each as a test."""

from datetime import date

import msgspec

from holdfast.context.registry import SystemContextRegistry
from holdfast.context.results import (
    Blocked,
    Initialized,
    ReplacementBlocked,
    ReplacementReady,
    Unchanged,
    Updated,
)
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import ABSENT, UNAVAILABLE, Codec, ContextSource, Missing
from holdfast.context.system_context import SystemContext, initialize, reconcile, replace
from tests.context.facts import Fact, admitted, combined, observed


async def test_initialize_observes_once_and_gives_a_baseline_with_its_snapshot() -> None:
    """`initialize` observes the composed context once."""
    facts = [Fact("core/a", "1"), Fact("core/b", ABSENT)]

    result = await combined(*facts).initialize()

    assert result == Initialized(
        "core/a is 1", Snapshot({"core/a": SnapshotEntry("1", "core/a no longer applies")})
    )
    assert [fact.loads for fact in facts] == [1, 1]


async def test_unavailable_initial_context_blocks_the_turn() -> None:
    """No incomplete baseline: every source that could not be seen is named, and a retry may succeed."""
    facts = [Fact("core/z", UNAVAILABLE), Fact("core/b", "b"), Fact("core/a", UNAVAILABLE)]

    assert initialize(await observed(*facts)) == Blocked(("core/a", "core/z"))
    assert all(fact.rendered == [] for fact in facts)
    facts[0].value = facts[2].value = "x"
    assert isinstance(initialize(await observed(*facts)), Initialized)


async def test_a_first_baseline_is_followed_by_no_redundant_message() -> None:
    """The first turn initialises its snapshot, so that the next boundary has nothing to say."""
    facts = [Fact("core/a", "1"), Fact("core/b", ABSENT)]
    started = await combined(*facts).initialize()
    assert isinstance(started, Initialized)

    assert await combined(*facts).reconcile(started.snapshot) == Unchanged()


async def test_reconcile_observes_once_and_gives_exactly_one_action() -> None:
    """Unchanged, updated, replacement ready or replacement blocked, from one load of each source."""
    plain, fixed = Fact("core/plain", "a"), Fact("core/fixed", "a", removable=False)
    context = combined(plain, fixed)
    snapshot = await admitted(plain, fixed)
    plain.loads = fixed.loads = 0
    actions = []
    for values in [("a", "a"), ("b", "a"), ("a", ABSENT), (UNAVAILABLE, ABSENT)]:
        plain.value, fixed.value = values
        actions.append(await context.reconcile(snapshot))

    assert [type(action) for action in actions] == [Unchanged, Updated, ReplacementReady, ReplacementBlocked]
    assert (plain.loads, fixed.loads) == (4, 4)


async def test_a_changed_source_gives_one_message_of_its_newly_effective_state() -> None:
    """A changed source may produce one message; after it the model is up to date."""
    fact = Fact("core/x", "a")
    snapshot = await admitted(fact)
    fact.value = "b"

    result = reconcile(await observed(fact), snapshot)

    assert result == Updated(
        "core/x is now b", Snapshot({"core/x": SnapshotEntry("b", "core/x no longer applies")})
    )
    assert reconcile(await observed(fact), result.snapshot) == Unchanged()


async def test_changes_of_several_sources_combine_into_one_message() -> None:
    """One exact text for all changes of one boundary, in the order of the context."""
    facts = [Fact(f"core/{name}", "1") for name in ("c", "a", "d", "b")]
    snapshot = await admitted(*facts[:3])
    facts[0].value = "2"
    facts[1].value = ABSENT

    result = reconcile(await observed(*facts), snapshot)

    assert isinstance(result, Updated)
    assert result.text == "core/c is now 2\n\ncore/a no longer applies\n\ncore/b is 1"
    assert list(result.snapshot) == ["core/b", "core/c", "core/d"]


async def test_the_update_is_given_what_was_admitted_and_what_is_now() -> None:
    """The value before is the one of the snapshot, decoded; however often it changed unseen."""
    fact = Fact("core/x", 1, type_=int)
    source = msgspec.structs.replace(
        fact.source, update=lambda before, now: f"{before!r} to {now!r}", removal=None
    )
    snapshot = await admitted(fact)
    fact.value = 5

    result = await SystemContext.make(source).reconcile(snapshot)

    assert result == Updated("1 to 5", Snapshot({"core/x": SnapshotEntry(5)}))


async def test_a_source_new_to_the_snapshot_gives_its_baseline_text_once() -> None:
    """A newly registered source, a plugin's too, emits its baseline rendering once."""
    old, new = Fact("core/x", "a"), Fact("some-plugin/x", "b")
    snapshot = await admitted(old)

    result = reconcile(await observed(old, new), snapshot)

    assert isinstance(result, Updated)
    assert result.text == "some-plugin/x is b"
    assert reconcile(await observed(old, new), result.snapshot) == Unchanged()


async def test_the_snapshot_keeps_one_value_and_a_ready_removal_text_for_each_key() -> None:
    """One codec-encoded JSON value and, for removable sources, a pre-rendered removal message."""
    removable, fixed = Fact("core/a", "1"), Fact("core/b", "2", removable=False)

    assert (await admitted(removable, fixed)).to_json() == {
        "core/a": {"value": "1", "removal": "core/a no longer applies"},
        "core/b": {"value": "2"},
    }


async def test_a_removal_is_told_without_the_source() -> None:
    """The text was rendered at admission, so the code of the source need not be there any more."""
    old, new = Fact("old/x", "a"), Fact("core/x", "a")
    stored = Snapshot.readable((await admitted(old, new)).to_json())

    result = reconcile(await observed(new), stored)

    assert result == Updated("old/x no longer applies", await admitted(new))


async def test_a_loaded_absence_is_told_and_unavailability_is_not() -> None:
    """Unavailable is stale-while-revalidate; a successfully loaded absence may emit removal text."""
    fact = Fact("core/x", "a")
    snapshot = await admitted(fact)

    fact.value = UNAVAILABLE
    assert reconcile(await observed(fact), snapshot) == Unchanged()
    fact.value = ABSENT
    assert reconcile(await observed(fact), snapshot) == Updated("core/x no longer applies", Snapshot())
    fact.value = "a"
    assert reconcile(await observed(fact), Snapshot()) == Updated("core/x is a", snapshot)


async def test_replace_renders_a_fresh_generation() -> None:
    """After a compaction everything that holds now is folded into one baseline."""
    changed, gone, new = Fact("core/a", "1"), Fact("core/b", "1"), Fact("core/c", "1")
    snapshot = await admitted(changed, gone)
    changed.value, gone.value = "2", ABSENT

    result = await combined(changed, gone, new).replace(snapshot)

    assert result == ReplacementReady("core/a is 2\n\ncore/c is 1", await admitted(changed, new))


async def test_replace_is_blocked_while_admitted_context_is_unavailable() -> None:
    """It names what it would lose, in order; a source that was never admitted blocks nothing."""
    z, a, never = Fact("core/z", "1"), Fact("core/a", "1"), Fact("core/never", UNAVAILABLE)
    snapshot = await admitted(z, a)
    z.value = a.value = UNAVAILABLE

    assert replace(await observed(z, a, never), snapshot) == ReplacementBlocked(("core/a", "core/z"))
    z.value = a.value = "2"
    assert replace(await observed(z, a, never), snapshot) == ReplacementReady(
        "core/z is 2\n\ncore/a is 2", await admitted(z, a)
    )


async def test_an_agents_guidance_composes_with_the_sources_of_the_location() -> None:
    """Guidance of the selected agent comes after the registry's sources; a switch of agents is an update."""
    place, guidance = Fact("core/place", "/a"), Fact("core/agent-guidance", ["one"], type_=list[str])
    registry = SystemContextRegistry()
    registry.register("core/place", lambda: place.context)
    context = SystemContext.combine(await registry.load(), guidance.context)
    started = await context.initialize()
    assert isinstance(started, Initialized)
    assert started.baseline == "core/place is /a\n\ncore/agent-guidance is ['one']"
    guidance.value = ["two"]

    result = await context.reconcile(started.snapshot)

    assert isinstance(result, Updated)
    assert result.text == "core/agent-guidance is now ['two']"


async def test_the_abstraction_only_renders_what_was_loaded() -> None:
    """How values are found belongs to others: from one observation everything is decided, without a look."""
    fact = Fact("core/x", "a")
    observation = await observed(fact)
    fact.value = "b"
    started = initialize(observation)
    assert isinstance(started, Initialized)

    assert initialize(observation) == started
    assert reconcile(observation, started.snapshot) == Unchanged()
    assert replace(observation, started.snapshot) == ReplacementReady(started.baseline, started.snapshot)
    assert fact.loads == 1


# --- The dialogue


async def test_an_update_says_the_new_date_and_not_the_old_one() -> None:
    """Asked whether an update says what the old date was: no, the newly effective date."""
    today = [date(2026, 3, 1)]

    async def load() -> date | Missing:
        return today[0]

    context = SystemContext.make(
        ContextSource(
            key="core/date",
            codec=Codec[date](date),
            load=load,
            baseline=lambda day: f"Today is {day}.",
            update=lambda _, day: f"Today is now {day}.",
        )
    )
    started = await context.initialize()
    assert isinstance(started, Initialized)
    assert started.baseline == "Today is 2026-03-01."
    today[0] = date(2026, 3, 2)

    assert await context.reconcile(started.snapshot) == Updated(
        "Today is now 2026-03-02.", Snapshot({"core/date": SnapshotEntry("2026-03-02")})
    )
