"""Small files of the person: whole or not at all, private when asked, never an endless wait."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.errors import ContextError
from holdfast.person import small_file


def test_a_missing_file_is_none_and_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    """Reading never waits: what is no regular file is an error that names it."""
    os.mkfifo(tmp_path / "pipe")

    assert small_file.read(tmp_path / "absent") is None
    assert small_file.read(tmp_path / "absent" / "below") is None
    with pytest.raises(ContextError, match="no regular file"):
        small_file.read(tmp_path / "pipe")
    with pytest.raises(ContextError, match="no regular file"):
        small_file.read(tmp_path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """The bound is the caller's."""
    (tmp_path / "f").write_bytes(b"12345")

    assert small_file.read(tmp_path / "f", bytes_max=5) == b"12345"
    with pytest.raises(ContextError, match="larger than 4 bytes"):
        small_file.read(tmp_path / "f", bytes_max=4)


def test_a_private_file_is_private_whatever_the_mask(tmp_path: Path) -> None:
    """The file is 0600 and the folder made for it 0700, and nothing is left beside it."""
    old = os.umask(0)
    try:
        small_file.write(tmp_path / "new" / "secret", b"s", mode=0o600)
    finally:
        os.umask(old)

    assert stat.S_IMODE((tmp_path / "new" / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new" / "secret"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """What the link points to is replaced."""
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")

    small_file.write(tmp_path / "link", b"new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_write_that_fails_leaves_the_old_text_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk at the sync is one clear line."""
    (tmp_path / "f").write_bytes(b"old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ContextError, match="No space left on device"):
        small_file.write(tmp_path / "f", b"new")

    assert (tmp_path / "f").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "f"]


def test_edits_of_many_threads_are_all_kept(tmp_path: Path) -> None:
    """Read, change and write are one step."""
    path = tmp_path / "n"

    def add(_: int) -> None:
        small_file.edit(path, lambda old: str(int(old or b"0") + 1).encode())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))

    assert path.read_bytes() == b"40"


def test_a_lock_held_too_long_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ever."""
    monkeypatch.setattr(small_file, "WAIT_S", 0.01)

    with small_file.lock(tmp_path / "f"), pytest.raises(ContextError, match="locked by another process"):
        small_file.edit(tmp_path / "f", lambda _: b"")
