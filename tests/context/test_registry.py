"""The System Context Registry: scoped contributions of one Location, in the order of their keys."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from holdfast.context.registry import SystemContextRegistry
from holdfast.context.results import Blocked, Initialized, ReplacementBlocked, Unchanged, Updated
from holdfast.context.system_context import SystemContext, observe
from holdfast.errors import Conflict, InvalidInput
from tests.context.facts import Fact, admitted, combined

LIMIT_S = 0.05


def test_a_second_contribution_of_one_key_is_refused() -> None:
    """The error names the key, and the first one stays."""
    registry = SystemContextRegistry()
    registry.register("core/x", SystemContext.empty)

    with pytest.raises(
        Conflict, match=r"^the system context has a contribution core/x already; close it first$"
    ):
        registry.register("core/x", SystemContext.empty)


def test_a_contribution_needs_a_namespaced_key() -> None:
    """The same rule as for sources."""
    with pytest.raises(InvalidInput, match="is no key of a context source"):
        SystemContextRegistry().register("core", SystemContext.empty)


async def test_the_registry_of_a_location_knows_nothing_of_another() -> None:
    """The registry is scoped to its Location."""
    here, there = SystemContextRegistry(), SystemContextRegistry()
    here.register("core/x", lambda: Fact("core/x", "a").context)
    there.register("core/x", SystemContext.empty)

    assert ((await here.load()).keys, (await there.load()).keys) == (("core/x",), ())


async def test_contributions_stand_in_the_order_of_their_keys() -> None:
    """Neither the order of registration nor that of the answers matters: here the last key answers first."""
    names = ["core/a", "core/b", "core/b/c", "plugin/a", "plugin/b"]
    answered = {name: anyio.Event() for name in names}

    def producer(name: str, later: str | None) -> Callable[[], Awaitable[SystemContext]]:
        async def produce() -> SystemContext:
            if later is not None:
                await answered[later].wait()
            answered[name].set()
            return combined(Fact(f"{name}/2", "b"), Fact(f"{name}/1", "a"))

        return produce

    registry = SystemContextRegistry()
    arrivals = list(zip(names, [*names[1:], None], strict=True))
    random.Random(1).shuffle(arrivals)
    for name, later in arrivals:
        registry.register(name, producer(name, later))

    assert (await registry.load(limit_s=30)).keys == tuple(f"{name}/{n}" for name in names for n in (2, 1))


async def test_a_source_that_two_contributions_make_is_that_of_the_first() -> None:
    """A contribution beneath another one may make the same source: the other is left out, and named."""
    outer, inner, own = Fact("mine/a/b", "outer"), Fact("mine/a/b", "inner"), Fact("mine/a/b/c", "inner")
    registry = SystemContextRegistry()
    registry.register("mine/a/b", lambda: combined(inner, own))
    registry.register("mine/a", lambda: outer.context)
    twice: list[str] = []

    started = await (await registry.load(twice=twice.append)).initialize()

    assert isinstance(started, Initialized)
    assert started.baseline == "mine/a/b is outer\n\nmine/a/b/c is inner"
    assert twice == ["mine/a/b"]


async def test_a_producer_may_answer_at_once_or_later() -> None:
    """A plain function is a producer too; each is asked anew for every context."""
    fact, other = Fact("core/x", "a"), Fact("core/y", "a")

    async def later() -> SystemContext:
        return other.context

    registry = SystemContextRegistry()
    registry.register("core/y", later)
    registry.register("core/x", lambda: fact.context)

    assert (await registry.load()).keys == (await registry.load()).keys == ("core/x", "core/y")


async def test_closing_a_contribution_removes_its_sources_at_the_next_boundary() -> None:
    """The removal is told once; to close twice is to close once."""
    fact, other = Fact("plugin/x", "a"), Fact("core/y", "a")
    registry = SystemContextRegistry()
    registry.register("core/y", lambda: other.context)
    registration = registry.register("plugin/x", lambda: fact.context)
    started = await (await registry.load()).initialize()
    assert isinstance(started, Initialized)

    registration.close()
    registration.close()
    result = await (await registry.load()).reconcile(started.snapshot)

    assert result == Updated("plugin/x no longer applies", await admitted(other))
    assert await (await registry.load()).reconcile(result.snapshot) == Unchanged()


async def test_a_contribution_lasts_as_long_as_its_scope() -> None:
    """A registration is a context manager, and closes when its scope is left by an error too."""
    registry = SystemContextRegistry()

    async def scope() -> None:
        with registry.register("core/x", lambda: Fact("core/x", "a").context):
            assert (await registry.load()).keys == ("core/x",)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await scope()
    assert (await registry.load()).keys == ()


async def test_closing_an_old_registration_leaves_its_successor() -> None:
    """A key may be registered again; the earlier registration has no power over it."""
    registry = SystemContextRegistry()
    old = registry.register("core/x", SystemContext.empty)
    old.close()
    registry.register("core/x", lambda: Fact("core/x", "a").context)
    old.close()

    assert (await registry.load()).keys == ("core/x",)


async def test_what_is_closed_while_a_context_is_made_is_gone_from_the_next() -> None:
    """A context is of one moment: the one at which it was asked for."""
    registry = SystemContextRegistry()

    async def produce() -> SystemContext:
        registration.close()
        return Fact("core/x", "a").context

    registration = registry.register("core/x", produce)

    assert (await registry.load()).keys == ("core/x",)
    assert (await registry.load()).keys == ()


async def hangs() -> SystemContext:
    """A producer that never answers."""
    await anyio.sleep_forever()
    return SystemContext.empty()


def raises() -> SystemContext:
    """A producer that breaks."""
    raise OSError("no luck")


FAILURES: list[Any] = [
    pytest.param(raises, "OSError: no luck", id="raises"),
    pytest.param(hangs, "it took longer than 0.05 s", id="hangs"),
    pytest.param(
        lambda: Fact("plugin/xy", "a").context,
        "its producer made the source plugin/xy, which is not beneath its key",
        id="elsewhere",
    ),
    pytest.param(lambda: None, "its producer made no system context but NoneType", id="nonsense"),
    pytest.param(
        lambda: combined(Fact("plugin/x", "a"), Fact("plugin/x", "a")),
        "two context sources have the key plugin/x; keep one of them",
        id="twice",
    ),
]


@pytest.mark.parametrize(("producer", "note"), FAILURES)
async def test_a_producer_that_fails_leaves_its_namespace_unavailable(producer: Any, note: str) -> None:
    """A first baseline waits for it; what was admitted beneath it is kept; the others go on."""
    mine, deeper, other = Fact("plugin/x", "a"), Fact("plugin/x/deep", "a"), Fact("core/y", "a")
    registry = SystemContextRegistry()
    registry.register("core/y", lambda: other.context)
    registry.register("plugin/x", producer)
    snapshot = await admitted(mine, deeper, other)

    context = await registry.load(limit_s=LIMIT_S)

    assert (await observe(context)).notes == {"plugin/x": note}
    assert await context.initialize() == Blocked(("plugin/x",))
    assert await context.reconcile(snapshot) == Unchanged()
    assert await context.replace(snapshot) == ReplacementBlocked(("plugin/x", "plugin/x/deep"))
    other.value = "b"
    assert await context.reconcile(snapshot) == Updated(
        "core/y is now b", await admitted(mine, deeper, other)
    )


async def test_two_contributions_with_one_source_are_refused() -> None:
    """A duplicate key fails composition across contributions too."""
    registry = SystemContextRegistry()
    registry.register("core/x", lambda: Fact("core/x/y", "a").context)
    registry.register("core/x/y", lambda: Fact("core/x/y", "a").context)

    with pytest.raises(Conflict, match="two context sources have the key core/x/y"):
        await registry.load()


async def test_cancellation_passes_through_a_load() -> None:
    """An interrupted session is not a failed producer."""
    registry = SystemContextRegistry()
    begun, scope = anyio.Event(), anyio.CancelScope()
    after = []

    async def produce() -> SystemContext:
        begun.set()
        return await hangs()

    async def run() -> None:
        with scope:
            after.append(await registry.load())

    registry.register("core/x", produce)
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await begun.wait()
        scope.cancel()

    assert scope.cancelled_caught
    assert after == []
