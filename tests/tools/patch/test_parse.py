"""What a patch says, and what is said about one that is wrong."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.tools.patch.parse import parse
from holdfast.tools.patch.section import AddFile, DeleteFile, Hunk, Section, UpdateFile

WHOLE = """*** Begin Patch
*** Add File: new.txt
+one
+
+two
*** Delete File: old.txt
*** Update File: a/b.py
*** Move to: a/c.py
@@ def f():
 x = 1
-y = 2
+y = 3

 z
@@
+last
*** End of File
*** Update File: d.py
-gone
*** End Patch"""


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


EXPECTED: list[Section] = [
    AddFile("new.txt", "one\n\ntwo\n"),
    DeleteFile("old.txt"),
    UpdateFile(
        "a/b.py",
        "a/c.py",
        (
            Hunk(
                line=9,
                context="def f():",
                lines=((" ", "x = 1"), ("-", "y = 2"), ("+", "y = 3"), (" ", ""), (" ", "z")),
                at_end=False,
            ),
            Hunk(line=15, context=None, lines=(("+", "last"),), at_end=True),
        ),
    ),
    UpdateFile("d.py", None, (Hunk(line=19, context=None, lines=(("-", "gone"),), at_end=False),)),
]


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"\n\n{WHOLE}\n\n",
        f"<<'EOF'\n{WHOLE}\nEOF",
        f"cat <<EOF\n{WHOLE}\nEOF\n",
        WHOLE.replace("\n", "\r\n"),
    ],
    ids=["plain", "blank lines around it", "a heredoc", "cat and a heredoc", "CRLF"],
)
def test_every_kind_of_section(text: str) -> None:
    """Added, deleted, updated and moved files; blank lines in a hunk are unchanged empty ones."""
    assert parse(text) == EXPECTED


def test_blank_lines_between_sections_are_no_content() -> None:
    """A model likes to part sections by one."""
    assert parse(patch("*** Update File: a", "-x", "", "*** Delete File: b", "")) == [
        UpdateFile("a", None, (Hunk(line=3, context=None, lines=(("-", "x"),), at_end=False),)),
        DeleteFile("b"),
    ]


def test_a_file_can_only_be_moved() -> None:
    """Nothing in it changes."""
    assert parse(patch("*** Update File: a", "*** Move to: b")) == [UpdateFile("a", "b", ())]


def test_an_empty_file_can_be_added() -> None:
    """It has no lines."""
    assert parse(patch("*** Add File: a")) == [AddFile("a", "")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1 of the patch is ''; a patch begins with '*** Begin Patch'"),
        ("*** Begin Patch", "the last line of the patch is '*** Begin Patch'; a patch ends with"),
        (patch(), "the patch has no section"),
        (patch("  "), "the patch has no section"),
        (patch("+x"), "line 2 of the patch is '+x'; expected '*** Add File:'"),
        (patch("*** Add File: "), "line 2 of the patch: '*** Add File:' names no path"),
        (patch("*** Update File: a"), "line 2 of the patch: the update of a changes nothing"),
        (patch("*** Update File: a", "*** Move to:"), "line 3 of the patch: '*** Move to:' names no path"),
        (patch("*** Update File: a", "@@ x"), "line 3 of the patch: the hunk has no lines"),
        (patch("*** Update File: a", "x = 1"), "line 3 of the patch is 'x = 1'; inside a hunk a line begins"),
        (patch("*** Add File: a", "x"), "line 3 of the patch is 'x'; expected"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, said: str) -> None:
    """And with what would be right there."""
    with pytest.raises(InvalidInput) as raised:
        parse(text)
    assert str(raised.value).startswith(said)


@given(st.lists(st.sampled_from([*WHOLE.split("\n"), "", " ", "*** Move to: x", "@@", "junk"]), max_size=20))
def test_any_lines_are_a_patch_or_a_clear_error(lines: list[str]) -> None:
    """Nothing else is raised."""
    with contextlib.suppress(InvalidInput):
        assert parse(patch(*lines))


def test_a_patch_of_blank_lines_is_read_in_linear_time() -> None:
    """It is read where everything else waits for it."""
    lines = ["*** Begin Patch", "*** Update File: a", "@@", "-x", *[""] * 50_000, "+y", "*** End Patch"]
    began = time.process_time()
    (section,) = parse("\n".join(lines))
    assert time.process_time() - began < 5
    assert isinstance(section, UpdateFile)
    assert len(section.hunks[0].lines) == 50_002
