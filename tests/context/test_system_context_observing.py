"""Observing: every source once, all at the same time, and none of them can hold or break the session."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from holdfast.context import attempt
from holdfast.context.results import Blocked, Unchanged
from holdfast.context.source import UNAVAILABLE
from holdfast.context.system_context import SystemContext, initialize, observe, reconcile
from tests.context.facts import Fact, admitted, combined, observed

LIMIT_S = 0.05


def loading(key: str, load: Callable[[], Awaitable[Any]]) -> SystemContext:
    """A source with this loader."""
    return SystemContext.make(msgspec.structs.replace(Fact(key, "").source, load=load))


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (OSError("gone\n\x1b[31maway"), "OSError: gone [31maway"),
        (RuntimeError(), "RuntimeError"),
        (ExceptionGroup("of one", [KeyError("k")]), "KeyError: 'k'"),
        (asyncio.CancelledError(), "it was cancelled from within"),
        (ValueError("x" * 1_000), "ValueError: " + "x" * 288),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_loader_that_raises_counts_as_unavailable(error: BaseException, note: str) -> None:
    """The reason is noted in one line; the other sources are seen."""
    broken, fine = Fact("core/broken", "a"), Fact("core/fine", "a")
    snapshot = await admitted(broken, fine)
    broken.value = error

    observation = await observed(broken, fine)

    assert [seen.value for seen in observation.sources] == [UNAVAILABLE, "a"]
    assert observation.notes == {"core/broken": note}
    assert initialize(observation) == Blocked(("core/broken",))
    assert reconcile(observation, snapshot) == Unchanged()


async def test_notes_are_in_the_order_of_their_keys() -> None:
    """Neither the order of the context nor that of the failures shows."""
    facts = [Fact(f"core/{name}", OSError(name)) for name in "cab"]

    assert list((await observed(*facts)).notes.items()) == [
        ("core/a", "OSError: a"),
        ("core/b", "OSError: b"),
        ("core/c", "OSError: c"),
    ]


async def test_a_loader_that_is_no_coroutine_counts_as_unavailable() -> None:
    """It raised before there was anything to wait for."""

    def load() -> Awaitable[Any]:
        raise TypeError("not yet")

    observation = await observe(loading("core/x", load))

    assert observation.notes == {"core/x": "TypeError: not yet"}


async def test_a_loader_that_takes_too_long_counts_as_unavailable_and_is_stopped() -> None:
    """After the limit nobody waits for it: it is cancelled, and may tidy up."""
    tidied = []

    async def load() -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            tidied.append(True)

    fine = Fact("core/fine", "a")
    observation = await observe(
        SystemContext.combine(loading("core/slow", load), fine.context), limit_s=LIMIT_S
    )

    assert [seen.value for seen in observation.sources] == [UNAVAILABLE, "a"]
    assert observation.notes == {"core/slow": "it took longer than 0.05 s"}
    assert tidied == [True]


async def test_an_answer_after_the_limit_is_no_answer() -> None:
    """A loader that catches its cancellation and answers all the same was still unavailable."""

    async def load() -> Any:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return "late"

    observation = await observe(loading("core/slow", load), limit_s=LIMIT_S)

    assert [seen.value for seen in observation.sources] == [UNAVAILABLE]


async def test_a_loader_stuck_in_a_thread_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread cannot be stopped (a dead file system), so it is left behind."""
    monkeypatch.setattr(attempt, "GRACE_S", LIMIT_S)
    stuck, left = threading.Event(), anyio.Event()

    async def load() -> Any:
        try:
            # Not abandoned on cancellation: this waits for its thread whatever happens.
            return await anyio.to_thread.run_sync(stuck.wait)
        finally:
            left.set()

    try:
        observation = await observe(loading("core/stuck", load), limit_s=LIMIT_S)
        assert observation.notes == {"core/stuck": "it took longer than 0.05 s"}
    finally:
        stuck.set()
    with anyio.fail_after(30):
        await left.wait()


async def test_a_loader_that_ignores_its_cancellation_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may go on, but the observation does not wait for it longer than a short grace."""
    monkeypatch.setattr(attempt, "GRACE_S", LIMIT_S)
    enough, left = anyio.Event(), anyio.Event()

    async def load() -> Any:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue
        left.set()

    observation = await observe(loading("core/deaf", load), limit_s=LIMIT_S)

    assert observation.notes == {"core/deaf": "it took longer than 0.05 s"}
    assert not left.is_set()
    enough.set()
    with anyio.fail_after(30):
        await left.wait()


async def test_cancellation_from_outside_passes_through_and_stops_the_loaders() -> None:
    """An interrupted session is not an unavailable source; its loaders tidy up before it goes on."""
    begun, tidied = anyio.Event(), []
    after = []

    async def load() -> Any:
        try:
            begun.set()
            await anyio.sleep_forever()
        finally:
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            tidied.append(True)

    async def run(scope: anyio.CancelScope) -> None:
        with scope:
            await observe(loading("core/x", load))
            after.append("an observation")

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(run, scope)
        await begun.wait()
        scope.cancel()

    assert scope.cancelled_caught
    assert (after, tidied) == ([], [True])


async def test_every_source_is_loaded_once_and_all_at_the_same_time() -> None:
    """No loader waits for another: here each can only end when all of them have begun."""
    begun: list[str] = []
    everybody = anyio.Event()
    names = [f"core/{number}" for number in range(4)]

    def meeting(name: str) -> Callable[[], Awaitable[Any]]:
        async def load() -> Any:
            begun.append(name)
            if len(begun) == len(names):
                everybody.set()
            await everybody.wait()
            return name

        return load

    context = SystemContext.combine(*(loading(name, meeting(name)) for name in names))
    observation = await observe(context, limit_s=60)

    assert [seen.value for seen in observation.sources] == names
    assert sorted(begun) == sorted(names)


@pytest.mark.parametrize(
    ("value", "type_", "note"),
    [
        (float("nan"), float, "cannot be written as JSON: nan is not a finite number"),
        (object(), Any, "TypeError: Encoding objects of type object is unsupported"),
        ("\ud800", str, "cannot be written as JSON: "),
        (5, str, "a stored context value does not fit its source: Expected `str`, got `int`"),
    ],
    ids=["not finite", "no JSON", "half a character", "another type"],
)
async def test_a_value_that_cannot_be_stored_counts_as_unavailable(value: Any, type_: Any, note: str) -> None:
    """It could not be compared at the next boundary, and would be a change, or a replacement, for ever."""
    fact, fine = Fact("core/x", value, type_=type_), Fact("core/fine", "a")

    observation = await observe(combined(fact, fine))

    assert observation.unavailable == ("core/x",)
    assert list(observation.notes) == ["core/x"]
    assert observation.notes["core/x"].startswith(note)


async def test_a_value_that_comes_back_as_another_counts_as_unavailable() -> None:
    """A codec that loses something would find a change at every boundary."""

    class Once(msgspec.Struct):
        count: int

        def __post_init__(self) -> None:
            self.count += 1

    observation = await observed(Fact("core/x", Once(1), type_=Once))

    assert observation.notes == {"core/x": "its codec does not bring its value back"}


async def test_what_is_rendered_is_what_the_snapshot_gives_back() -> None:
    """A loader may go on changing the value that it gave away; what was observed stays."""
    mine = ["a"]
    observation = await observed(Fact("core/x", mine, type_=list[str]))
    mine.append("b")

    assert [seen.value for seen in observation.sources] == [["a"]]
    assert [seen.entry().value for seen in observation.sources] == [["a"]]
