"""Texts that cannot be rendered: a fault of one source costs the others nothing."""

from functools import partial
from typing import Any

import msgspec
import pytest

from holdfast.context import decisions, system_context
from holdfast.context.decisions import rendered
from holdfast.context.results import Blocked, ReplacementBlocked, ReplacementReady, Unchanged, Updated
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import UNAVAILABLE
from holdfast.context.system_context import SystemContext, initialize, observe
from tests.context.facts import Fact, admitted, combined

BEFORE = SnapshotEntry("before", "gone", "x is before")
GOOD = Fact("core/good", "a")


def _broken(*_: Any) -> str:
    raise ZeroDivisionError


def _with(*names: str) -> SystemContext:
    """A source whose texts of these names fail, and then one that is well."""
    source = msgspec.structs.replace(Fact("core/x", "now").source, **dict.fromkeys(names, _broken))
    return SystemContext.combine(SystemContext.make(source), GOOD.context)


async def _told(**others: SnapshotEntry) -> Snapshot:
    """That the one which is well was told, and others."""
    return Snapshot({**await admitted(GOOD), **{f"core/{name}": entry for name, entry in others.items()}})


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["update"], "core/x is now"),
        (["update", "baseline"], None),
        (["update", "removal"], None),
        (["removal"], None),
    ],
)
async def test_what_changed_is_told_by_the_baseline_text_or_not_yet(
    names: list[str], text: str | None
) -> None:
    """Without a text, or a removal text to keep, the source counts as unavailable; each fault has a note."""
    told = await _told(x=BEFORE)

    action, seen = rendered(await observe(_with(*names)), partial(system_context.reconcile, snapshot=told))

    fresh = await admitted(Fact("core/x", "now"), GOOD)
    assert action == (Unchanged() if text is None else Updated(text, fresh))
    assert seen.notes["core/x"] == (
        f"context source core/x: its {names[-1]} text cannot be rendered: ZeroDivisionError"
    )


@pytest.mark.parametrize("name", ["baseline", "removal"])
async def test_a_baseline_is_not_rendered_without_a_source_that_fails(name: str) -> None:
    """A first one waits with the reason, a later one says what was told before; what is new is left out."""
    observation = await observe(_with(name))
    told = await _told(x=BEFORE)

    first, seen = rendered(observation, initialize)
    assert (first, list(seen.notes)) == (Blocked(("core/x",)), ["core/x"])
    later, seen = rendered(observation, partial(system_context.replace, snapshot=told))
    assert later == ReplacementBlocked(("core/x",))
    held, _ = rendered(observation, partial(decisions.replace, snapshot=told))
    assert held == decisions.replace(seen, told)
    assert list(held.snapshot.items()) == list(told.items())
    new, _ = rendered(observation, partial(system_context.reconcile, snapshot=await _told()))
    assert new == Unchanged()


async def test_several_faults_are_all_survived() -> None:
    """Whatever their order, what is well is told."""
    facts = [Fact(f"core/{number}", "a") for number in range(9)]
    sources = [msgspec.structs.replace(fact.source, baseline=_broken, update=_broken) for fact in facts]
    whole = SystemContext.combine(*map(SystemContext.make, sources), GOOD.context)

    action, seen = rendered(await observe(whole), partial(system_context.reconcile, snapshot=Snapshot()))

    assert action == Updated("core/good is a", await _told())
    assert list(seen.notes) == [fact.key for fact in facts]


async def test_what_is_well_is_decided_as_without_it() -> None:
    """The observation comes back as it was."""
    observation = await observe(combined(GOOD))
    assert rendered(observation, initialize) == (initialize(observation), observation)


async def test_what_hides_and_cannot_be_rendered_any_more_is_told_by_its_kept_text() -> None:
    """Its code has changed since, and its loader fails."""
    source = msgspec.structs.replace(Fact("core/x", UNAVAILABLE).source, baseline=_broken)

    held = decisions.replace(await observe(SystemContext.make(source)), Snapshot({"core/x": BEFORE}))

    assert held == ReplacementReady("x is before", Snapshot({"core/x": BEFORE}))
