"""Files and folders for the user alone, whatever the umask."""

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.file_lock import FileLock
from holdfast.person.private import make_file, make_folder

LOCKED = 3
TRY = f"""
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit({LOCKED})
"""


@pytest.fixture(params=[0o777, 0o477, 0o277, 0o022, 0])
def _umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    del tmp_path  # Made before: what it is in stays open to those who look for theirs.
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    """The bits of a file or folder."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_umask")
def test_what_is_made_has_every_bit_of_the_user_and_none_of_others(tmp_path: Path) -> None:
    """Also those that the umask takes from the user: nothing could be put into such a folder."""
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    make_file(folder / "file")
    FileLock(folder / "lock").close()
    assert [mode(each) for each in (folder.parent, folder)] == [0o700, 0o700]
    assert [mode(folder / name) for name in ("file", "lock")] == [0o600, 0o600]


def test_what_is_there_keeps_the_bits_of_the_user(tmp_path: Path) -> None:
    """A folder as it is; a file that others may read is closed to them."""
    make_file(tmp_path / "file")
    for before, after in ((0o400, 0o400), (0o644, 0o600)):
        (tmp_path / "file").chmod(before)
        if os.access(tmp_path / "file", os.W_OK):
            make_file(tmp_path / "file")
        assert mode(tmp_path / "file") == after
    tmp_path.chmod(0o755)
    make_folder(tmp_path)
    assert mode(tmp_path) == 0o755
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "file")


@pytest.mark.parametrize("found", ["file", "link"])
def test_what_is_there_is_not_opened(tmp_path: Path, found: str) -> None:
    """The close of any descriptor of a file gives up all locks that this process has on it."""
    path = tmp_path / "file"
    make_file(path)
    if found == "link":
        (tmp_path / "link").symlink_to(path)
    with path.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        make_file(tmp_path / found)
        other = subprocess.run([sys.executable, "-c", TRY, str(path)], check=False, timeout=60)
    assert other.returncode == LOCKED


def test_a_link_to_what_is_not_there_makes_it(tmp_path: Path) -> None:
    """As opening it would; a folder is named."""
    (tmp_path / "link").symlink_to(tmp_path / "file")
    make_file(tmp_path / "link")
    assert mode(tmp_path / "file") == 0o600
    with pytest.raises(IsADirectoryError):
        make_file(tmp_path)
