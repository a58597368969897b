"""No text makes a search take long: what is compared is bounded, and an end of it is said in words."""

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.replace import strategies
from holdfast.tools.replace.effort import Effort, TooCostly
from holdfast.tools.replace.lines import Lines, windows
from holdfast.tools.replace.nearest import nearest
from holdfast.tools.replace.replace import NotReplaced, replace
from holdfast.tools.replace.similarity import similarity

PROCESSOR_S = 3.0
"""Each takes a tenth of it; unbounded they took from ten seconds to minutes."""
EQUAL = "  0,\n" * 200_000


def noise(lines: int, width: int) -> str:
    """Lines of a few letters, which are all somewhat alike."""
    dice = random.Random(lines)
    return "".join("".join(dice.choices("abcdef ", k=width)) + "\n" for _ in range(lines))


CASES: dict[str, tuple[Callable[[], object], object]] = {
    "long lines": (
        lambda: replace(f"start\n{noise(60, 1_000)}end\n", f"start\n{noise(59, 1_000)}end", "x"),
        NotReplaced("missing"),
    ),
    "many anchors": (
        lambda: replace(
            "".join(f"{{\n{noise(40, 80)}}}\n" for _ in range(300)), f"{{\n{noise(41, 80)}}}", "x"
        ),
        NotReplaced("missing"),
    ),
    "equal lines": (
        lambda: replace(EQUAL, "  0,\n" * 500, "x"),
        NotReplaced("ambiguous", tuple(range(1, 11))),
    ),
    "equal lines without their indent, and another": (
        lambda: replace(EQUAL, "0,\n" * 20_000 + "1,", "x"),
        NotReplaced("missing"),
    ),
    "equal lines, all of them anchors": (
        lambda: replace(EQUAL, "0,\n" * 10_000 + "1,\n" + "0,\n" * 10_000, "x"),
        NotReplaced("too costly"),
    ),
    "equal lines of several indents": (
        lambda: replace("  0,\n0,\n 0,\n" * 70_000, "0,\n" * 501, "x"),
        NotReplaced("too costly"),
    ),
    "equal words": (lambda: replace("a  " * 1_000_000, "a " * 999 + "b", "x"), NotReplaced("too costly")),
    "the nearest of many": (lambda: nearest(noise(8_000, 150), noise(1, 150)), None),
}


@pytest.mark.ci
@pytest.mark.parametrize("name", CASES)
def test_a_search_ends_soon(name: str) -> None:
    """At sizes that a model and a file can have."""
    work, expected = CASES[name]
    start = time.process_time()
    assert work() == expected
    assert time.process_time() - start < PROCESSOR_S


def test_the_effort_is_counted() -> None:
    """As much as there is may be spent, and no more; it is not a clock."""
    effort = Effort(3)
    effort.spend(3)
    with pytest.raises(TooCostly):
        effort.spend(1)


@given(st.text("abc", max_size=9), st.text("abc", max_size=9))
def test_likeness_is_the_share_that_needs_no_edit(one: str, other: str) -> None:
    """As the plain table of edits has it."""
    before = list(range(len(other) + 1))
    for row, left in enumerate(one, 1):
        now = [row]
        for column, right in enumerate(other, 1):
            now.append(min(now[-1] + 1, before[column] + 1, before[column - 1] + (left != right)))
        before = now
    longest = max(len(one), len(other), 1)
    assert similarity(one, other) == pytest.approx(1 - before[-1] / longest)


@given(st.lists(st.sampled_from("ab"), max_size=12), st.lists(st.sampled_from("ab"), min_size=1, max_size=5))
def test_every_place_of_a_run_of_lines_is_found(keys: list[str], wanted: list[str]) -> None:
    """Also where they overlap, from any line on."""
    for start in range(len(keys) + 1):
        expected = [at for at in range(start, len(keys)) if keys[at : at + len(wanted)] == wanted]
        assert list(windows(keys, wanted, start)) == expected


def test_blocks_between_anchors_may_be_somewhat_longer_or_shorter() -> None:
    """By a quarter, and no more."""
    wanted = "{\n" + "x\n" * 8 + "}"
    for count, found in ((5, False), (6, True), (8, True), (10, True), (11, False)):
        text = Lines("{\n" + "x\n" * count + "}\n")
        assert bool(list(strategies.block_anchors(text, wanted))) is found, count
