"""Laws of the System Context, over random changes of its sources.

Each text says `key is value` or `key is gone`, so a reader of the texts alone can tell what the model knows.

Everything is drawn before a test begins: a draw within an async test may end the task in which pytest runs
all of them.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.observation import Observation
from holdfast.context.registry import SystemContextRegistry
from holdfast.context.results import (
    Blocked,
    Initialized,
    Reconciliation,
    ReplacementBlocked,
    ReplacementReady,
    Unchanged,
    Updated,
)
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import ABSENT, UNAVAILABLE, Codec, ContextSource, Missing
from holdfast.context.system_context import SystemContext, initialize, observe, reconcile, replace
from holdfast.schema import wire

KEYS = [f"{space}/{name}" for space in ("core", "plugin") for name in ("a", "b/c", "b/d", "e")]
FIXED = {"core/e", "plugin/a"}
"""Sources that cannot be removed without a new baseline."""

World = dict[str, Any]
"""Every registered source, in the order of the context: its value, ABSENT or UNAVAILABLE."""

VALUES = st.integers(0, 3) | st.sampled_from([ABSENT, UNAVAILABLE])


@st.composite
def worlds(draw: st.DrawFn, values: st.SearchStrategy[Any] = VALUES) -> World:
    """Some sources, in any order."""
    return {key: draw(values) for key in draw(st.lists(st.sampled_from(KEYS), unique=True))}


@st.composite
def arrivals(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> tuple[World, list[str], list[str]]:
    """Some sources, and two orders of their keys."""
    world = draw(worlds(values))
    return world, draw(st.permutations(list(world))), draw(st.permutations(list(world)))


def source(key: str, load: Callable[[], Awaitable[Any]]) -> ContextSource[int]:
    """A source whose texts can be read back."""
    return ContextSource(
        key=key,
        codec=Codec(int),
        load=load,
        baseline=lambda value: f"{key} is {value}",
        update=lambda _, value: f"{key} is {value}",
        removal=None if key in FIXED else lambda _: f"{key} is gone",
    )


def context_of(world: World) -> SystemContext:
    """The sources that find the world as it is."""

    def loader(value: Any) -> Callable[[], Awaitable[Any]]:
        async def load() -> Any:
            return value

        return load

    return SystemContext.combine(
        *(SystemContext.make(source(key, loader(value))) for key, value in world.items())
    )


async def seen(world: World) -> Observation:
    """The world, observed."""
    return await observe(context_of(world))


def admissible(snapshot: Snapshot, result: Reconciliation) -> Snapshot:
    """What is stored after a boundary, by way of JSON."""
    if isinstance(result, Updated | ReplacementReady):
        snapshot = result.snapshot
    return Snapshot.readable(wire.decode(dict[str, Any], wire.encode(snapshot.to_json())))


def read(known: dict[str, int], text: str) -> dict[str, int]:
    """What somebody knows who knew this and then reads the text."""
    known = dict(known)
    for line in text.split("\n\n") if text else []:
        key, _, said = line.partition(" is ")
        if said == "gone":
            del known[key]
        else:
            known[key] = int(said)
    return known


def effective(known: dict[str, int], world: World) -> dict[str, int]:
    """What holds: what is seen, and for what cannot be seen, what was known."""
    held = {key: value for key, value in world.items() if not isinstance(value, Missing)}
    return held | {key: known[key] for key, value in world.items() if value is UNAVAILABLE and key in known}


@pytest.mark.ci
@given(worlds())
async def test_a_first_baseline_is_complete_or_blocked(world: World) -> None:
    """It says everything that is there, and there is none while anything is unavailable."""
    result = initialize(await seen(world))

    unavailable = tuple(sorted(key for key, value in world.items() if value is UNAVAILABLE))
    if unavailable:
        assert result == Blocked(unavailable)
    else:
        assert isinstance(result, Initialized)
        assert read({}, result.baseline) == effective({}, world)
        assert reconcile(await seen(world), result.snapshot) == Unchanged()


@pytest.mark.ci
@given(st.lists(worlds(), max_size=6))
async def test_the_texts_tell_what_holds_whatever_changes(history: list[World]) -> None:
    """Through any changes, baseline and updates together say just what was last seen of each source."""
    snapshot, known = Snapshot(), dict[str, int]()
    for world in history:
        result = reconcile(await seen(world), snapshot)
        now = known
        match result:
            case Unchanged() | ReplacementBlocked():
                pass
            case Updated(text=text):
                now = read(known, text)
            case ReplacementReady(baseline=baseline):
                now = read({}, baseline)
        if not isinstance(result, ReplacementBlocked):
            assert now == effective(known, world)
        snapshot, known = admissible(snapshot, result), now
        assert {key: entry.value for key, entry in snapshot.items()} == known


@pytest.mark.ci
@given(worlds(), worlds())
async def test_reconcile_after_its_own_update_is_unchanged(before: World, now: World) -> None:
    """Whatever was done, doing it once is enough; what was blocked stays blocked."""
    snapshot = admissible(Snapshot(), reconcile(await seen(before), Snapshot()))
    result = reconcile(await seen(now), snapshot)

    again = reconcile(await seen(now), admissible(snapshot, result))

    assert again == (result if isinstance(result, ReplacementBlocked) else Unchanged())


@pytest.mark.ci
@given(worlds(), worlds(), st.booleans())
async def test_unavailable_never_removes(before: World, now: World, whole: bool) -> None:
    """What cannot be seen stays as it was admitted, entry for entry, and no text mentions it."""
    snapshot = admissible(Snapshot(), reconcile(await seen(before), Snapshot()))
    hidden = {key for key, value in now.items() if value is UNAVAILABLE}
    context = context_of(now)
    if whole:
        # A producer that failed: it is not even known what sources its namespace has.
        context = SystemContext.combine(
            context_of({key: value for key, value in now.items() if not key.startswith("plugin/b")}),
            SystemContext.unavailable("plugin/b", "it broke"),
        )
        hidden = {key for key in hidden if not key.startswith("plugin/b")} | {"plugin/b/c", "plugin/b/d"}

    result = reconcile(await observe(context), snapshot)

    if isinstance(result, ReplacementBlocked):
        assert set(result.keys) == hidden & set(snapshot)
        return
    after = admissible(snapshot, result)
    assert {key: after.get(key) for key in hidden} == {key: snapshot.get(key) for key in hidden}
    if isinstance(result, Updated):
        assert not hidden & {line.partition(" is ")[0] for line in result.text.split("\n\n")}
    if isinstance(result, ReplacementReady):
        assert not hidden & set(snapshot)


@pytest.mark.ci
@given(worlds(), worlds())
async def test_unavailable_is_as_if_nothing_had_happened(before: World, now: World) -> None:
    """Where no new baseline is needed, a source that cannot be seen reads like one that did not change."""
    snapshot = admissible(Snapshot(), reconcile(await seen(before), Snapshot()))
    result = reconcile(await seen(now), snapshot)
    still = {
        key: (snapshot[key].value if key in snapshot else ABSENT) if value is UNAVAILABLE else value
        for key, value in now.items()
    }

    if not isinstance(result, ReplacementBlocked):
        assert result == reconcile(await seen(still), snapshot)


@pytest.mark.ci
@given(worlds(), worlds())
async def test_a_replacement_comes_only_when_it_must(before: World, now: World) -> None:
    """It is asked for just when something admitted is gone that cannot be told to be; then both agree."""
    snapshot = admissible(Snapshot(), reconcile(await seen(before), Snapshot()))
    observation = await seen(now)

    result = reconcile(observation, snapshot)

    untold = any(now.get(key, ABSENT) is ABSENT for key in FIXED & set(snapshot))
    assert isinstance(result, ReplacementReady | ReplacementBlocked) is untold
    if untold:
        assert result == replace(observation, snapshot)


@pytest.mark.ci
@given(worlds(st.integers(0, 3)), st.sets(st.sampled_from(KEYS)))
async def test_what_cannot_be_decoded_is_replaced(world: World, broken: set[str]) -> None:
    """Entries of another version ask for a new baseline, but only those whose source is there to say it."""
    snapshot = admissible(Snapshot(), reconcile(await seen(world), Snapshot()))
    damaged = Snapshot(
        {
            key: SnapshotEntry("another version", entry.removal) if key in broken else entry
            for key, entry in snapshot.items()
        }
    )

    result = reconcile(await seen(world), damaged)

    assert result == (replace(await seen(world), snapshot) if broken & set(world) else Unchanged())


@pytest.mark.ci
@given(arrivals(st.integers(0, 3) | st.just(ABSENT)))
async def test_the_order_of_arrival_does_not_change_the_text(
    drawn: tuple[World, list[str], list[str]],
) -> None:
    """Loaders that answer in any order, one after the other, give the same observation."""
    world, order, _ = drawn
    answered = {key: anyio.Event() for key in order}

    def loader(key: str) -> Callable[[], Awaitable[Any]]:
        async def load() -> Any:
            place = order.index(key)
            if place:
                await answered[order[place - 1]].wait()
            answered[key].set()
            return world[key]

        return load

    context = SystemContext.combine(*(SystemContext.make(source(key, loader(key))) for key in world))

    assert await context.initialize(limit_s=30) == initialize(await seen(world))


@pytest.mark.ci
@given(arrivals(st.integers(0, 3)), st.sets(st.sampled_from(KEYS)))
async def test_the_order_of_registration_does_not_change_the_text(
    drawn: tuple[World, list[str], list[str]], passing: set[str]
) -> None:
    """Whoever registers first, answers first, or came and went: the context is in the order of keys."""
    world, registered, answers = drawn
    answered = {key: anyio.Event() for key in world}
    registry = SystemContextRegistry()

    def producer(key: str) -> Callable[[], Awaitable[SystemContext]]:
        async def produce() -> SystemContext:
            place = answers.index(key)
            if place:
                await answered[answers[place - 1]].wait()
            answered[key].set()
            return context_of({key: world[key]})

        return produce

    for key in passing:
        with registry.register(key, SystemContext.empty):
            pass
    for key in registered:
        registry.register(key, producer(key))

    in_order = {key: world[key] for key in sorted(world)}
    assert await (await registry.load(limit_s=30)).initialize() == initialize(await seen(in_order))


@pytest.mark.ci
@given(worlds(), st.integers(0, 8), st.integers(0, 8))
async def test_combine_is_associative_and_keeps_the_order(world: World, first: int, second: int) -> None:
    """However a context is put together, it is the same context."""
    items = list(world.items())
    first, second = sorted((first, second))
    a, b, c = (context_of(dict(part)) for part in (items[:first], items[first:second], items[second:]))

    left = SystemContext.combine(SystemContext.combine(a, b), c)
    right = SystemContext.combine(a, SystemContext.combine(b, SystemContext.empty(), c))

    assert left.keys == right.keys == tuple(world)
    assert await left.reconcile(Snapshot()) == await right.reconcile(Snapshot())
