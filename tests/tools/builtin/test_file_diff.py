"""The diff of a file: right whatever it costs, and in bounded time."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.builtin import file_diff
from holdfast.tools.builtin.file_diff import diff


def applied(old: list[str], patch: list[str]) -> list[str]:
    """The lines that a unified diff makes of others; a line that it has wrong fails."""
    new: list[str] = []
    at = 0
    for line in patch:
        if head := re.match(r"@@ -(\d+)(,0)?", line):
            start = int(head[1]) - (0 if head[2] else 1)
            new, at = [*new, *old[at:start]], start
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [line[1:]] if line[0] == " " else []
            at += 1
    return [*new, *old[at:]]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x\n" * 1_000, "x\ny\n" * 500),
        ("a\n" + "x\n" * 2_000 + "b\n", "c\n" + "x\ny\n" * 1_000 + "d\n"),
        ("{\n}\n" * 3_000, "}\n{\n}\n" * 2_000),
    ],
)
def test_texts_of_few_different_lines_take_no_longer(old: str, new: str) -> None:
    """What is not compared counts as replaced, and the counts fit the texts."""
    start = time.process_time()
    found = diff("a", old, new)
    assert time.process_time() - start < 3.0
    assert found.additions - found.deletions == new.count("\n") - old.count("\n")


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")), st.integers(0, 60))
def test_a_diff_that_gives_up_is_right_too(before: list[str], after: list[str], compared: int) -> None:
    """Applied to the old text it gives the new one, however little was compared."""
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_diff, "COMPARED_MAX", compared)
        found = diff("a", old, new)
    lines = found.patch.split("\n")[2:]
    assert applied(before, lines) == after
    assert sum(line.startswith("+") for line in lines) == found.additions
    assert sum(line.startswith("-") for line in lines) == found.deletions


def test_a_long_diff_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its counts are those of the whole; what the model is shown counts what is not kept too."""
    monkeypatch.setattr(file_diff, "CHARS_MAX", 40)
    found = diff("a", "", "".join(f"line {number}\n" for number in range(100)))
    assert (found.additions, found.deletions) == (100, 0)
    assert found.patch == "--- a\n+++ a\n@@ -0,0 +1,100 @@\n+line 0\n+l\n(… 99 more lines of the diff)"
    assert found.short == "@@ -0,0 +1,100 @@\n+line 0\n+l\n(… 99 more lines of the diff)"
    one = diff("a", "", "x" * 1_000)
    assert one.patch == f"--- a\n+++ a\n@@ -0,0 +1 @@\n+{'x' * 13}\n(… 1 more lines of the diff)"
