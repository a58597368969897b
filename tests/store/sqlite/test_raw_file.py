"""A file that is read piece by piece: what the disk does not give is zeros, and no other failure is."""

import errno
import os
from pathlib import Path

import pytest

from holdfast.store.sqlite.salvage.raw_file import SECTOR, opened_raw

BAD = range(5 * SECTOR, 7 * SECTOR)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of some sectors."""
    (tmp_path / "file").write_bytes(os.urandom(12 * SECTOR))
    return tmp_path / "file"


@pytest.mark.parametrize("begin", [BAD.start, BAD.start + 100, BAD.stop - 1])
def test_what_begins_within_a_bad_sector_ends_with_the_good_ones(
    path: Path, begin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros up to the end of the bad sectors, and not a byte further, wherever the reading began."""
    real, data = os.pread, path.read_bytes()

    def pread(fd: int, size: int, at: int) -> bytes:
        if at in BAD:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(fd, min(size, BAD.start - at) if at < BAD.start else size, at)

    monkeypatch.setattr(os, "pread", pread)
    with opened_raw(path) as raw:
        assert raw[begin : 11 * SECTOR] == bytes(BAD.stop - begin) + data[BAD.stop : 11 * SECTOR]
        assert raw.unreadable == len({at // SECTOR for at in BAD if at >= begin}) * SECTOR


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EBADF, errno.EPERM])
def test_only_what_a_disk_does_not_give_is_zeros(
    path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else fails says nothing of the file: zeros in its place would be a loss that is none."""

    def pread(*_: int) -> bytes:
        raise OSError(number, os.strerror(number))

    with opened_raw(path) as raw:
        monkeypatch.setattr(os, "pread", pread)
        with pytest.raises(OSError, match=os.strerror(number)) as raised:
            raw[:]
        assert (raised.value.errno, raw.unreadable) == (number, 0)
