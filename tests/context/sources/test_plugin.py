"""Sources of plugins: held to their own names, and harmless when they fail."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from holdfast.context.source import ABSENT, UNAVAILABLE, Codec, ContextSource
from holdfast.context.sources import plugin
from holdfast.context.sources.plugin import guarded
from holdfast.context.system_context import LIMIT_S
from holdfast.errors import InvalidInput
from tests.context.sources.world import Told


def source(load: Callable[[], Awaitable[Any]], key: str = "weather/sky", **given: Any) -> ContextSource[Any]:
    texts: dict[str, Any] = {
        "baseline": lambda now: f"The sky is {now}.",
        "update": lambda _, now: f"The sky is now {now}.",
    }
    return ContextSource(key=key, codec=Codec(str), load=load, **{**texts, **given})


def saying(value: Any) -> Callable[[], Awaitable[Any]]:
    async def load() -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return load


def broken(*_: Any) -> str:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("faulty", "said"),
    [
        (source(saying(RuntimeError("no\nwind" + "!" * 999))), "RuntimeError: no wind!!"),
        (source(saying(3)), "ContextError"),
        (source(saying("blue"), baseline=broken), "KeyError"),
        (source(saying("blue"), update=broken), "KeyError"),
        (source(saying("blue"), removal=broken), "KeyError"),
        (source(saying("blue"), baseline=lambda _: 3), "no text"),
        (source(saying("blue"), baseline=lambda _: "x" * 65_537), "more than 65,536"),
    ],
)
async def test_a_fault_costs_only_its_own_text(faulty: ContextSource[Any], said: str) -> None:
    """The source is absent, and the fault told in one line."""
    warnings: list[str] = []

    assert await guarded(faulty, warn=warnings.append).load() is ABSENT
    (warning,) = warnings
    assert warning.startswith("the context of plugin source weather/sky is left out: ")
    assert said in warning
    assert len(warning) < 300


async def test_a_slow_one_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within its own bound, which is less than that of every source."""
    assert plugin.WAIT_S < LIMIT_S
    monkeypatch.setattr(plugin, "WAIT_S", 0.01)
    warnings: list[str] = []

    assert await guarded(source(anyio.sleep_forever), warn=warnings.append).load() is ABSENT
    assert len(warnings) == 1


@pytest.mark.parametrize("load", [saying(RuntimeError("no wind")), anyio.sleep_forever])
async def test_what_it_has_said_holds_while_it_fails(
    monkeypatch: pytest.MonkeyPatch, told: Told, load: Callable[[], Awaitable[Any]]
) -> None:
    """Nothing is announced as removed; when it can look again, what changed is told."""
    monkeypatch.setattr(plugin, "WAIT_S", 0.01)
    warnings: list[str] = []
    await told.hear(guarded(source(saying("blue")), warn=pytest.fail))

    assert await told.hear(guarded(source(load), was_admitted=True, warn=warnings.append)) is None
    (warning,) = warnings
    assert warning.startswith("the context of plugin source weather/sky stays as it was told: ")
    assert await told.hear(guarded(source(saying("grey")), was_admitted=True, warn=pytest.fail)) == (
        "The sky is now grey."
    )


@pytest.mark.parametrize("text", ["x" * 65_537, 3])
def test_an_update_is_bounded_whatever_it_was_before(text: Any) -> None:
    """What one value cannot show is found when the change is told."""
    odd = source(saying("blue"), update=lambda before, now: now if before == now else text)
    with pytest.raises(InvalidInput, match=r"more than 65,536|no text"):
        guarded(odd, warn=pytest.fail).update("blue", "grey")


def test_our_names_are_ours() -> None:
    """A plugin cannot speak in the place of a source of ours."""
    with pytest.raises(InvalidInput, match="belongs to Holdfast"):
        guarded(source(saying("x"), key="core/instructions"), warn=pytest.fail)


@pytest.mark.parametrize("answer", [ABSENT, UNAVAILABLE])
async def test_what_it_says_itself_counts(answer: Any) -> None:
    """A plugin may say that there is nothing, or that it cannot look."""
    assert await guarded(source(saying(answer)), warn=pytest.fail).load() is answer


async def test_taken_away_it_does_not_end_the_epoch(told: Told) -> None:
    """It is told as any source, and its end too, in its own words where it has some."""
    assert await told.hear(guarded(source(saying("blue")), warn=pytest.fail)) == "The sky is blue."
    assert await told.hear(guarded(source(saying("grey")), warn=pytest.fail)) == "The sky is now grey."
    assert await told.hear() == "What you were told under weather/sky no longer applies."
    own = source(saying("blue"), removal=lambda _: "No sky.")
    assert await told.hear(guarded(own, warn=pytest.fail)) == "The sky is blue."
    assert await told.hear() == "No sky."
