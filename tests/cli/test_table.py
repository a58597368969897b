"""Tables: what must be copied stays whole at any width."""

import pytest

from holdfast.cli.table import cut, laid_out, width_of

HEADS = ["MODEL", "CONTEXT", "TITLE", "PRICE"]
ROWS = [["anthropic/claude-sonnet-4-5", "200k", "a title of some length, that may be cut", "3"]]


@pytest.mark.parametrize(
    ("room", "lines", "left_out"),
    [
        (
            100,
            [
                "MODEL                        CONTEXT  TITLE                                    PRICE",
                "anthropic/claude-sonnet-4-5  200k     a title of some length, that may be cut  3",
            ],
            [],
        ),
        (
            70,
            [
                "MODEL                        CONTEXT  TITLE                      PRICE",
                "anthropic/claude-sonnet-4-5  200k     a title of some length, …  3",
            ],
            [],
        ),
        (
            57,
            [
                "MODEL                        CONTEXT  TITLE",
                "anthropic/claude-sonnet-4-5  200k     a title of some le…",
            ],
            ["PRICE"],
        ),
        (
            40,
            ["MODEL                        CONTEXT", "anthropic/claude-sonnet-4-5  200k"],
            ["TITLE", "PRICE"],
        ),
        (10, ["MODEL", "anthropic/claude-sonnet-4-5"], ["CONTEXT", "TITLE", "PRICE"]),
    ],
)
def test_one_column_gives_way_then_columns_go_from_the_right(
    room: int, lines: list[str], left_out: list[str]
) -> None:
    """The name is neither cut nor left out, and what was left out is known by its head."""
    made = laid_out(HEADS, ROWS, room=room, stretch=2)
    assert (made.lines, made.left_out) == (lines, left_out)
    assert all(len(line) <= room for line in made.lines) or room == 10


def test_several_columns_may_have_to_stay_whole() -> None:
    """Where they are too wide together, the terminal wraps them: that can still be copied."""
    made = laid_out(["A", "B", "C"], [["x" * 20, "y" * 20, "z"]], room=30, whole=(0, 1))
    assert (made.lines[1], made.left_out) == (f"{'x' * 20}  {'y' * 20}", ["C"])


def test_wide_signs_do_not_shift_what_stands_behind_them() -> None:
    """A terminal gives them two columns, and accents none."""
    made = laid_out(["T", "N"], [["日本", "1"], ["e\u0301tude", "2"], ["abcd", "3"]], room=80)
    assert made.lines == ["T      N", "日本   1", "e\u0301tude  2", "abcd   3"]
    assert [width_of(line.rpartition(" ")[0]) for line in made.lines] == [6, 6, 6, 6]
    assert (cut("日本語です", 6), width_of(cut("日本語です", 6))) == ("日本…", 5)
