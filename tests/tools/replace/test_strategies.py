"""Each way to find a text: three hits, two refusals, one case in doubt."""

import pytest

from holdfast.tools.replace import strategies
from holdfast.tools.replace.lines import Lines
from holdfast.tools.replace.strategies import STRATEGIES, Strategy

CODE = """def one(a):
    x = 1
    y = 2
    return x

def two(b):
    x = 1
    z = "tab\\there"
    return z
"""

HITS: list[tuple[Strategy, str, list[str]]] = [
    (strategies.exact, "    y = 2", ["    y = 2"]),
    (strategies.exact, "x = 1\n    y = 2\n", ["x = 1\n    y = 2\n"]),
    (strategies.exact, "b", ["b"]),
    (strategies.trimmed_lines, "y = 2\nreturn x", ["    y = 2\n    return x"]),
    (strategies.trimmed_lines, "  def two(b):  \n", ["def two(b):\n"]),
    (strategies.trimmed_lines, "x = 1", ["    x = 1", "    x = 1"]),
    (
        strategies.block_anchors,
        "def one(a):\n    x = 1\n    y = 3\n    return x",
        ["def one(a):\n    x = 1\n    y = 2\n    return x"],
    ),
    (
        strategies.block_anchors,
        "def one(a):\n    x = 1\n    y = 2\n    y = 2\n    return x",
        ["def one(a):\n    x = 1\n    y = 2\n    return x"],
    ),
    (strategies.block_anchors, "x = 1\ny = 22\nreturn x\n", ["    x = 1\n    y = 2\n    return x\n"]),
    (strategies.collapsed_blanks, "def   two(b):", ["def two(b):", "def two(b):"]),
    (strategies.collapsed_blanks, "y  =  2", ["    y = 2", "y = 2"]),
    (strategies.collapsed_blanks, "y   = 2\n return   x", ["    y = 2\n    return x"]),
    (strategies.other_indent, "x = 1\ny = 2\nreturn x", ["    x = 1\n    y = 2\n    return x"]),
    (strategies.other_indent, "        y = 2\n        return x\n", ["    y = 2\n    return x\n"]),
    (
        strategies.other_indent,
        "  def one(a):\n      x = 1\n      y = 2",
        ["def one(a):\n    x = 1\n    y = 2"],
    ),
    (strategies.decoded_escapes, "x = 1\\n    y = 2", ["x = 1\n    y = 2", "x = 1\n    y = 2"][:1]),
    (strategies.decoded_escapes, 'z = \\"tab\\\\there\\"', ['z = "tab\\there"']),
    (strategies.decoded_escapes, "def one(a):\\n", ["def one(a):\n", "def one(a):\n"]),
    (strategies.trimmed_ends, "\n  y = 2  \n", ["y = 2"]),
    (strategies.trimmed_ends, " def two(b):\n    x = 1\n    z", ["def two(b):\n    x = 1\n    z"]),
    (strategies.trimmed_ends, "return z\n\n\n", ["return z"]),
    (
        strategies.context_anchors,
        "def one(a):\n    nothing of the kind\n    y = 2\n    return x",
        ["def one(a):\n    x = 1\n    y = 2\n    return x"],
    ),
    (
        strategies.context_anchors,
        "def two(b):\n    x = 1\n    something else\n    return z\n",
        ['def two(b):\n    x = 1\n    z = "tab\\there"\n    return z\n'],
    ),
    (strategies.context_anchors, "x = 1\ny = 2\nreturn x", ["    x = 1\n    y = 2\n    return x"]),
]

MISSES: list[tuple[Strategy, str]] = [
    (strategies.exact, "y = 3"),
    (strategies.exact, "x = 1\ny = 2"),
    (strategies.trimmed_lines, "y = 2\n\nreturn x"),
    (strategies.trimmed_lines, "\n  \n"),
    (strategies.block_anchors, "def one(a):\n    return x"),
    (strategies.block_anchors, "def one(a):\n    quite another middle\n    and more of it\n    return x"),
    (strategies.collapsed_blanks, "y=2"),
    (strategies.collapsed_blanks, "  \n "),
    (strategies.other_indent, "x = 1\n    y = 2"),
    (strategies.other_indent, "def one(a):\nx = 1"),
    (strategies.decoded_escapes, "x = 1\\ny = 2"),
    (strategies.decoded_escapes, "no such\\tthing"),
    (strategies.trimmed_ends, "y = 2"),
    (strategies.trimmed_ends, "  "),
    (strategies.context_anchors, "def one(a):\n    nothing\n    at all\n    return x"),
    (strategies.context_anchors, "def one(a):\n    return x"),
]

DOUBTFUL: list[tuple[Strategy, str, str]] = [
    (strategies.exact, "a\na\n", "a"),
    (strategies.trimmed_lines, " a\n b\n\n a\n b\n", "a\nb"),
    (strategies.collapsed_blanks, "a b\na  b\n", "a   b"),
    (strategies.other_indent, "  a\n  b\n\n  a\n  b\n", "a\nb"),
    (strategies.decoded_escapes, "a\tb\na\tb\n", "a\\tb"),
    (strategies.trimmed_ends, "a b\na b\n", " a b "),
    (strategies.context_anchors, "a\nx\ny\nc\n\na\nx\nz\nc\n", "a\nx\nw\nc"),
]


def name(value: object) -> str | None:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("strategy", "old", "found"), HITS, ids=name)
def test_hits(strategy: Strategy, old: str, found: list[str]) -> None:
    """What is yielded stands in the text, exactly so."""
    seen = list(strategy(Lines(CODE), old))
    assert seen == found
    assert all(each in CODE for each in seen)


@pytest.mark.parametrize(("strategy", "old"), MISSES, ids=name)
def test_misses(strategy: Strategy, old: str) -> None:
    """Nothing is found by force."""
    assert list(strategy(Lines(CODE), old)) == []


@pytest.mark.parametrize(("strategy", "text", "old"), DOUBTFUL, ids=name)
def test_what_stands_twice_is_in_doubt(strategy: Strategy, text: str, old: str) -> None:
    """Every place is yielded, or one whose text stands there twice."""
    found = list(strategy(Lines(text), old))
    assert len(found) > 1 or text.count(found[0]) > 1


def test_the_best_of_several_blocks_is_taken() -> None:
    """Both anchors stand twice; the middle decides."""
    text = "if a:\n    first(1)\nend\n\nif a:\n    second(2)\nend\n"
    assert list(strategies.block_anchors(Lines(text), "if a:\n    second(22)\nend")) == [
        "if a:\n    second(2)\nend"
    ]


def test_a_text_of_equal_lines_costs_a_bounded_effort() -> None:
    """A hundred thousand lines that are all an anchor: every strategy ends, and soon."""
    text = Lines("a\n" * 100_000)
    for strategy in STRATEGIES:
        assert sum(1 for _, _ in zip(strategy(text, "a\nb\nb\nb\na"), range(10), strict=False)) <= 10
