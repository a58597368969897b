"""What can be searched of a record, and what a hit shows of it."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.schema.stored import Kind
from holdfast.store.search_text import TEXT_CHARS_MAX, query_words, searchable, snippet, words_of


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("session", {"title": "Fix it", "slug": "x"}, "Fix it"),
        ("message", {"role": "user", "text": "x"}, ""),
        ("part", {"type": "text", "text": "hello"}, "hello"),
        ("part", {"type": "reasoning", "text": "hmm"}, ""),
        ("part", {"type": "file", "filename": "a.txt", "url": "data:,secret"}, "a.txt"),
        ("part", {"type": "patch", "hash": "h", "files": ["/a/b.py", "/c.py"]}, "/a/b.py\n/c.py"),
        ("part", {"type": "subtask", "prompt": "p", "description": "d", "agent": "a"}, "d\np"),
        (
            "part",
            {
                "type": "tool",
                "state": {
                    "title": "t",
                    "input": {"key": "one", "deep": [{"x": "two"}, 3, None]},
                    "output": "no",
                },
            },
            "t\none\ntwo",
        ),
        ("part", {"type": "tool", "state": {"status": "pending", "input": {}, "raw": "no"}}, ""),
        ("part", {"type": "step-start"}, ""),
        ("part", {"type": "text", "text": 7}, ""),
        ("todo", [{"content": "x"}], ""),
    ],
)
def test_what_people_look_for_is_searchable(kind: Kind, value: object, found: str) -> None:
    """Titles, text, tool inputs, file names and paths; neither tool output nor reasoning."""
    assert searchable(kind, msgspec.json.encode(value)) == found


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"type":"tool","state":7}', b"[" * 100_000])
def test_what_cannot_be_read_has_no_text(data: bytes) -> None:
    """A damaged record is not found by search, and does not break it."""
    assert searchable("part", data) == ""


def test_searchable_text_is_bounded() -> None:
    """However large or deep a record is, its text is cut."""
    many = msgspec.json.encode({"type": "patch", "files": ["x" * 1000] * 1000})
    deep: object = "bottom"
    for _ in range(100):
        deep = [deep]
    assert len(searchable("part", many)) <= TEXT_CHARS_MAX
    assert searchable("part", msgspec.json.encode({"type": "patch", "files": deep})) == ""


@given(st.text())
def test_words_are_runs_of_letters_and_digits(text: str) -> None:
    """The quick way for plain text gives the same words as the general one."""
    assert words_of(text) == [word[:64] for word in re.findall(r"[^\W_]+", text.casefold())]


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_words_too(text: str) -> None:
    """The same, for text that takes the quick way."""
    assert words_of(text) == [word[:64] for word in re.findall(r"[^\W_]+", text.casefold())]


def test_a_query_is_a_bounded_number_of_different_words() -> None:
    """Signs and repetitions fall away."""
    assert query_words('Foo "bar" (foo) -BAZ* a_b') == ["foo", "bar", "baz", "a", "b"]
    assert query_words("\0 «» ()") == []
    assert len(query_words(" ".join(f"w{n}" for n in range(1000)))) == 64


@given(st.text(max_size=600), st.lists(st.text(max_size=10), max_size=3))
def test_a_snippet_is_short_and_on_one_line(text: str, words: list[str]) -> None:
    """Whatever the text, what is shown fits a line."""
    shown = snippet(text, words)

    assert len(shown) <= 164
    assert "\n" not in shown


def test_a_snippet_shows_the_word_in_its_place() -> None:
    """The first whole word counts, not one that only contains it."""
    text = "concatenate " * 50 + "the cat sat" + " on mats" * 50

    shown = snippet(text, ["cat"])
    assert "the cat sat on mats" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert snippet("the cat sat", ["cat"]) == "the cat sat"
