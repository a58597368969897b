"""Where hunks are found, and what stands there afterwards."""

import difflib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.patch import apply as apply_module
from holdfast.tools.patch.apply import Unmatched, apply
from holdfast.tools.patch.parse import parse
from holdfast.tools.patch.section import Hunk, UpdateFile

TEXT = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"
TYPESET = "say \u201chi\u201d \u2014 now"
SECOND = ["     def f(self):", "-        return 1", "+        return 2"]


def updated(text: str, *lines: str) -> str | Unmatched:
    (section,) = parse("\n".join(["*** Begin Patch", "*** Update File: a", *lines, "*** End Patch"]))
    assert isinstance(section, UpdateFile)
    return apply(text, section.hunks)


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("a\nb\nc\n", ["-b", "+x"], "a\nx\nc\n"),
        ("a\nb\nc", ["-c", "+x"], "a\nb\nx\n"),
        ("a\nb\na\nb\n", ["@@", " a", "-b", "+1", "@@", " a", "-b", "+2"], "a\n1\na\n2\n"),
        ("a  \nb\n", [" a", "-b", "+x"], "a  \nx\n"),
        ("\ta\nb\n", [" a", "-b", "+x"], "\ta\nx\n"),
        ("x  \n", ["-x", "+x"], "x\n"),
        (
            "say \u201chi\u201d \u2014 now\nb\n",
            [' say "hi" - now', "-b", "+x"],
            "say \u201chi\u201d \u2014 now\nx\n",
        ),
        ("a\nb\n", ["+c"], "a\nb\nc\n"),
        ("", ["+c"], "c\n"),
        ("a\nb\n", ["@@ a", "+x"], "a\nx\nb\n"),
        ("a\nx\na\n", ["-a", "+z", "*** End of File"], "a\nx\nz\n"),
        ("a\n", [" a", "+b", "", "*** End of File"], "a\nb\n"),
        ("a\nb\n", ["-a", "-b"], ""),
    ],
    ids=[
        "one line",
        "no line feed at the end",
        "each hunk behind the one before",
        "blanks at the end of a line",
        "another indent",
        "blanks that are to go",
        "typographic signs",
        "an addition goes to the end",
        "into an empty file",
        "an addition behind its context",
        "the end of the file first",
        "a line feed taken for a line",
        "everything",
    ],
)
def test_hunks(text: str, lines: list[str], expected: str) -> None:
    """Unchanged lines stay byte for byte as they stand in the file."""
    assert updated(text, *lines) == expected


def test_the_context_says_which_of_equal_places_is_meant() -> None:
    """The line behind `@@` stands somewhere before the hunk, or is its first line."""
    second = TEXT[: TEXT.rindex("1")] + "2\n"
    assert updated(TEXT, "@@ class B:", *SECOND) == second
    assert updated(TEXT, "@@ class B:", " class B:", *SECOND) == second


@pytest.mark.parametrize(
    ("lines", "behind", "context"),
    [
        (["-nothing"], 0, False),
        (["@@ class C:", "-        return 1"], 0, True),
        (["@@", " class B:", "@@", " class A:", "-    def f(self):"], 5, False),
    ],
)
def test_a_hunk_that_is_not_found_is_named(lines: list[str], behind: int, context: bool) -> None:
    """With the place behind which it was looked for, and whether its context is what is missing."""
    got = updated(TEXT, *lines)
    assert isinstance(got, Unmatched)
    assert (got.behind, got.context) == (behind, context)
    assert got.hunk.line == (5 if behind else 3)


LINES = st.lists(st.sampled_from(["a", "b", " b", "c", ""]), max_size=12)


@given(LINES, LINES)
def test_what_differs_between_two_texts_makes_one_of_the_other(before: list[str], after: list[str]) -> None:
    """A patch with all unchanged lines in it leads from any text to any other."""
    if before == after:
        return
    lines = [
        {"  ": " ", "- ": "-", "+ ": "+"}[line[:2]] + line[2:]
        for line in difflib.ndiff(before, after)
        if not line.startswith("?")
    ]
    text = "".join(f"{line}\n" for line in before)
    assert updated(text, *lines, "*** End of File") == "".join(f"{line}\n" for line in after)


def test_many_loose_hunks_take_no_longer() -> None:
    """What the lines are without their blanks is found out once, not for each hunk."""
    text = "".join(f"    line {number} \n" for number in range(100_000))
    hunks = [
        Hunk(line=1, context=None, lines=(("-", f"line {at * 100}"),), at_end=False) for at in range(1_000)
    ]
    start = time.process_time()
    done = apply(text, hunks)
    assert time.process_time() - start < 3.0
    assert isinstance(done, str)
    assert done.count("\n") == 99_000


def test_a_patch_that_passes_too_many_lines_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hunk is named at which it ended."""
    monkeypatch.setattr(apply_module, "LINES_MAX", 10)
    hunks = [Hunk(line=at, context=None, lines=(("-", f"{at}"),), at_end=False) for at in (5, 20)]
    text = "".join(f"{number}\n" for number in range(30))
    assert apply(text, hunks) == Unmatched(hunks[1], 6, costly=True)
