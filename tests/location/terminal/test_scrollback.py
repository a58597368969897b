"""The scroll-back of a terminal: bounded, read by cursor, cut between characters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.location.terminal.scrollback import Scrollback, unfinished
from holdfast.schema.terminal import TerminalOutput
from tests.examples import examples


def test_a_cursor_that_no_output_has_had_is_refused() -> None:
    """One behind its end, and one before its beginning; -1 is the end."""
    scrollback = Scrollback()
    scrollback.append(b"hello")

    for cursor in (6, -2):
        with pytest.raises(InvalidInput, match="is no place in this output: it has 5 bytes"):
            scrollback.read(cursor)
    assert scrollback.read(-1) == TerminalOutput(data=b"", cursor=5)
    assert scrollback.read(5) == TerminalOutput(data=b"", cursor=5)


def test_an_old_cursor_gets_what_is_left_and_how_much_is_not() -> None:
    """Within the bound, also of a piece."""
    scrollback = Scrollback(bytes_max=8)
    scrollback.append(b"0123456789")
    scrollback.append(b"abcdef")

    assert scrollback.read(0) == TerminalOutput(data=b"89abcdef", cursor=16, dropped=8)
    assert scrollback.read(3, 4) == TerminalOutput(data=b"89ab", cursor=12, dropped=5)
    assert scrollback.read(12) == TerminalOutput(data=b"cdef", cursor=16)


def test_what_was_dropped_in_the_middle_of_a_character_drops_its_rest() -> None:
    """A piece begins where a character does."""
    scrollback = Scrollback(bytes_max=4)
    scrollback.append("€€x".encode())

    assert scrollback.read(0) == TerminalOutput(data="€x".encode(), cursor=7, dropped=3)
    scrollback.append(b"y")
    assert scrollback.read(0) == TerminalOutput(data=b"xy", cursor=8, dropped=6)


def test_a_character_is_held_back_until_its_rest_comes_or_none_will() -> None:
    """Also at the bound of a piece."""
    scrollback = Scrollback()
    scrollback.append(b"a\xe2\x82")

    assert scrollback.read(0) == TerminalOutput(data=b"a", cursor=1)
    assert scrollback.read(1) == TerminalOutput(data=b"", cursor=1)
    scrollback.append(b"\xac\xf0")
    assert scrollback.read(1) == TerminalOutput(data=b"\xe2\x82\xac", cursor=4)
    scrollback.complete = True
    assert scrollback.read(1) == TerminalOutput(data=b"\xe2\x82\xac\xf0", cursor=5)
    assert Scrollback().read(0) == TerminalOutput(data=b"", cursor=0)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"", 0),
        (b"a", 0),
        (b"\xc3", 1),
        (b"\xc3\xa4", 0),
        (b"\xe2\x82", 2),
        (b"\xf0\x9f\x98", 3),
        (b"\xf0\x9f\x98\x80", 0),
        (b"\xc3a", 0),
        (b"\x80\x80\x80\x80", 0),
        (b"\xff", 0),
        (b"\xc1", 0),
        (b"\xe2\x82\xac\x82", 0),
    ],
)
def test_only_the_beginning_of_a_character_is_unfinished(data: bytes, count: int) -> None:
    """What is no UTF-8 is not waited for."""
    assert unfinished(data) == count


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.one_of(st.binary(max_size=12), st.text(max_size=4).map(str.encode)), max_size=20),
    st.integers(4, 24),
    st.integers(1, 10),
    st.integers(1, 4),
)
def test_pieces_and_what_was_dropped_are_the_output(
    appended: list[bytes], bytes_max: int, piece_max: int, every: int
) -> None:
    """For a reader that comes after every few writes: each byte is given once, or counted as dropped."""
    scrollback, written = Scrollback(bytes_max), b"".join(appended)
    at, rebuilt, gaps = 0, b"", 0
    for number, data in enumerate((*appended, b""), 1):
        scrollback.append(data)
        scrollback.complete = number > len(appended)
        while scrollback.complete or number % every == 0:
            piece = scrollback.read(at, piece_max)
            assert piece.data == written[at + piece.dropped : piece.cursor]
            assert len(piece.data) <= max(piece_max, 4)
            if piece.cursor == at:
                break
            at, rebuilt, gaps = piece.cursor, rebuilt + piece.data, gaps + piece.dropped

    assert at == len(written) == len(rebuilt) + gaps
    assert len(scrollback._held) <= bytes_max
