"""Environment, date and model: told once, then only as what they are now."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.context.sources.date import date, today
from holdfast.context.sources.environment import environment
from holdfast.context.sources.model import model
from holdfast.testing.clock import FakeClock
from tests.context.sources.world import Told

DAY_MS = 86_400_000
NOON_MS = 1_790_424_000_000  # 2026-09-26, noon in UTC


@pytest.fixture
def east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine fourteen hours ahead."""
    monkeypatch.setenv("TZ", "XXX-14")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def test_an_unknown_zone_is_told_and_does_not_block(told: Told) -> None:
    """The date is that of this machine, with a warning."""
    for zone in ("Nowhere/At_all", "../../etc/passwd", "America", "a\0b", ""):
        warnings: list[str] = []
        source = date(FakeClock(NOON_MS), zone=zone, warn=warnings.append)

        assert await source.load() == today(NOON_MS, None)
        assert warnings == [f"there is no time zone {zone!r}; the date is that of this machine"]


async def test_the_date_moves_on(told: Told) -> None:
    """An update names the new date and nothing else, and the same date is no news."""
    clock, warnings = FakeClock(NOON_MS), list[str]()
    source = date(clock, zone="Europe/London", warn=warnings.append)

    assert await told.hear(source) == "Today's date is 2026-09-26."
    clock.advance(DAY_MS // 3)
    assert await told.hear(source) is None
    clock.advance(DAY_MS // 3)
    assert await told.hear(source) == "The date is now 2026-09-27."
    assert warnings == []


async def test_a_named_zone_has_its_own_date(told: Told) -> None:
    """At noon in London it is tomorrow on Kiritimati."""
    source = date(FakeClock(NOON_MS), zone="Pacific/Kiritimati", warn=pytest.fail)

    assert await source.load() == "2026-09-27"


@pytest.mark.usefixtures("east")
async def test_without_a_zone_the_machine_decides(told: Told) -> None:
    """The host-local calendar."""
    assert await date(FakeClock(NOON_MS), zone=None, warn=pytest.fail).load() == "2026-09-27"


async def test_the_environment(told: Told) -> None:
    """Four facts; a change tells all of them as they are now."""
    first = environment(directory=Path("/p/sub"), worktree=Path("/p"), git=True, platform="linux")
    second = environment(directory=Path("/q"), worktree=Path("/q"), git=False, platform="darwin")

    assert await told.hear(first) == (
        "This is where you work:\n"
        "<env>\n"
        "  Working directory: /p/sub\n"
        "  Top of the project: /p\n"
        "  Git repository: yes\n"
        "  Platform: linux\n"
        "</env>"
    )
    assert await told.hear(first) is None
    assert await told.hear(second) == (
        "Where you work has changed. It is now:\n"
        "<env>\n"
        "  Working directory: /q\n"
        "  Top of the project: /q\n"
        "  Git repository: no\n"
        "  Platform: darwin\n"
        "</env>"
    )


async def test_a_switch_of_models_is_an_update(told: Told) -> None:
    """The epoch goes on: the new model is told in place of the old one."""
    assert await told.hear(model(provider="a", id="one-1", name="One")) == (
        "The model that answers is One (a/one-1)."
    )
    assert await told.hear(model(provider="a", id="one-1", name="One")) is None
    assert await told.hear(model(provider="b", id="two", name="two")) == (
        "From here on the model that answers is b/two."
    )
