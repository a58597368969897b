"""Three-way merges by git, over real files."""

from pathlib import Path

import pytest

from holdfast.sessions.undo import merge as merging
from holdfast.sessions.undo.plan import Merged

pytestmark = pytest.mark.needs("git")

BASE = b"".join(b"line %d\n" % number for number in range(1, 21))


def edited(*changes: tuple[int, bytes]) -> bytes:
    """The base with some lines replaced."""
    lines = BASE.splitlines(keepends=True)
    for number, line in changes:
        lines[number - 1] = line
    return b"".join(lines)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        (BASE, edited((2, b"mine\n")), edited((15, b"other\n")), edited((2, b"mine\n"), (15, b"other\n"))),
        (BASE, BASE + b"end", edited((2, b"")), edited((2, b"")) + b"end"),
        (BASE, edited((20, b"no end")), edited((1, b"x\n")), edited((1, b"x\n"), (20, b"no end"))),
        (BASE, edited((9, b"same\n")), edited((9, b"same\n")), edited((9, b"same\n"))),
        (
            BASE.replace(b"\n", b"\r\n"),
            edited((2, b"mine\n")).replace(b"\n", b"\r\n"),
            edited((15, b"")).replace(b"\n", b"\r\n"),
            edited((2, b"mine\n"), (15, b"")).replace(b"\n", b"\r\n"),
        ),
        (BASE, edited((2, b"\xff\r\n")), edited((9, b"\xe9\n")), edited((2, b"\xff\r\n"), (9, b"\xe9\n"))),
        (b"a\0", b"a\0", b"b\0", b"b\0"),
    ],
)  # fmt: skip
def test_merged(tmp_path: Path, base: bytes, ours: bytes, theirs: bytes, merged: bytes) -> None:
    """Byte for byte: line ends, encodings and a missing line feed at the end stay as they are."""
    with merging.merger(tmp_path) as merge:
        assert merge(base, ours, theirs) == Merged(merged)


@pytest.mark.parametrize(
    ("ours", "theirs", "lines"),
    [
        (edited((5, b"mine\n")), edited((5, b"other\n")), ((5, 5),)),
        (edited((5, b"mine\nmore\n"), (12, b"free\n")), edited((5, b"other\n")), ((5, 6),)),
        (edited((2, b"x\ny\n"), (5, b"")), edited((5, b"other\n")), ((5, 5),)),
        (edited((5, b"mine\n")), edited((6, b"other\n")), ((5, 5),)),
        (b"", edited((5, b"other\n")), ((1, 1),)),
    ],
)
def test_conflicts(tmp_path: Path, ours: bytes, theirs: bytes, lines: tuple[tuple[int, int], ...]) -> None:
    """Name the lines of the user's file that are in the way; changes that touch are in conflict."""
    with merging.merger(tmp_path) as merge:
        assert merge(BASE, ours, theirs) == Merged(
            reason="the same lines have been changed since", lines=lines
        )


def test_binary(tmp_path: Path) -> None:
    """A binary file that differs is never merged."""
    with merging.merger(tmp_path) as merge:
        found = merge(b"a\0", b"b\0", b"c\0")
    assert found == Merged(reason="it is binary and has been changed since")


def test_the_folder_is_private_and_gone(tmp_path: Path) -> None:
    """It holds what is in the user's files."""
    with merging.merger(tmp_path) as merge:
        merge(BASE, edited((2, b"x\n")), edited((9, b"y\n")))
        (folder,) = tmp_path.iterdir()
        assert (folder.name.startswith(merging.FOLDER), folder.stat().st_mode & 0o777) == (True, 0o700)
    assert list(tmp_path.iterdir()) == []
