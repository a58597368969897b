"""Which match is taken, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.replace.nearest import Nearest, nearest
from holdfast.tools.replace.replace import NotReplaced, Replaced, replace

TEXT = "one\n  two\nthree\n  two\nfour\n"


@pytest.mark.parametrize(
    ("old", "new", "everywhere", "expected"),
    [
        ("three", "3", False, Replaced("one\n  two\n3\n  two\nfour\n", "three", 1)),
        ("two", "2", False, NotReplaced("ambiguous", (2, 4))),
        ("two", "2", True, Replaced("one\n  2\nthree\n  2\nfour\n", "two", 2)),
        ("two\nthree", "x", False, Replaced("one\n  x\n  two\nfour\n", "two\nthree", 1)),
        ("one\ntwo\nthree\n", "x\n", False, Replaced("x\n  two\nfour\n", "one\n  two\nthree\n", 1)),
        ("five", "5", False, NotReplaced("missing")),
        ("five", "5", True, NotReplaced("missing")),
        ("one", "", False, Replaced("\n  two\nthree\n  two\nfour\n", "one", 1)),
    ],
)
def test_replace(old: str, new: str, everywhere: bool, expected: object) -> None:
    """The first strategy that finds it once decides; what is ambiguous says where."""
    assert replace(TEXT, old, new, everywhere=everywhere) == expected


def test_a_match_out_of_proportion_is_refused() -> None:
    """The anchors are right, and between them stands much more than was asked for."""
    long = "x" * 3_000
    text = f"begin\n{long}\nsame\nsame\nend\n"
    assert replace(text, "begin\ny\nsame\nsame\nend", "new") == NotReplaced("too large", (1,))


def test_a_loose_match_in_doubt_does_not_hide_a_strict_one() -> None:
    """A later strategy may still find the only place."""
    text = "  a\n    b\n\na\n  b\n c\n"
    assert replace(text, "a\nb\nc", "new") == Replaced("  a\n    b\n\nnew\n", "a\n  b\n c", 1)


def test_two_places_that_are_not_equal_are_two_places() -> None:
    """The indent differs: a model that wrote none may have meant either."""
    text = "if a:\n    x = 1\n\tx = 1\n"
    assert replace(text, "x = 1 ", "x = 2 ") == NotReplaced("ambiguous", (2, 3))


@given(
    text=st.text("ab \n", max_size=60),
    start=st.integers(0, 60),
    length=st.integers(1, 20),
    new=st.text("xy\n", max_size=10),
)
def test_what_stands_there_once_is_always_replaced_exactly(
    text: str, start: int, length: int, new: str
) -> None:
    """Nothing before or behind it changes; what stands there several times is not touched."""
    old = text[start : start + length]
    if not old:
        return
    got = replace(text, old, new)
    if sum(text.startswith(old, at) for at in range(len(text))) == 1:
        before, _, after = text.partition(old)
        assert got == Replaced(before + new + after, old, 1)
    elif isinstance(got, Replaced):
        assert got.text == text.replace(got.old, new)
        assert text.count(got.old) == got.count == 1
        assert got.old != old


@given(text=st.text(max_size=200), old=st.text(min_size=1, max_size=60), new=st.text(max_size=30))
def test_nothing_breaks_whatever_is_asked(text: str, old: str, new: str) -> None:
    """And what was replaced stood there."""
    got = replace(text, old, new)
    if isinstance(got, Replaced):
        assert got.old in text
        assert got.text == text.replace(got.old, new)
    nearest(text, old)


def test_the_nearest_place_names_what_differs() -> None:
    """By equal lines, wherever they stand in what was asked for; else by the line that is most alike."""
    text = "def one():\n    return 1\n\ndef two():\n    return 2\n"
    assert nearest(text, "def two():\n    return 3") == Nearest(4, ((5, "    return 2", "    return 3"),))
    assert nearest(text, "def twoo():") == Nearest(4, ((4, "def two():", "def twoo():"),))
    assert nearest(text, "nothing like it") is None
    assert nearest("", "x") is None


def test_places_that_overlap_are_several() -> None:
    """It cannot be known which of them was meant; all of them are the ones that do not overlap."""
    assert replace("ababa\n", "aba", "x") == NotReplaced("ambiguous", (1, 1))
    assert replace("ababa\n", "aba", "x", everywhere=True) == Replaced("xba\n", "aba", 1)
    assert replace(" a\n a\n a\n", "a\na\n", "x") == NotReplaced("ambiguous", (1, 2))
