"""The log file: bounded, whole, for the user alone, and never a reason to fail."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.log import file
from holdfast.log.file import LogFile

WRITER = """
import sys
import time
from pathlib import Path
from holdfast.log import file

file.WAIT_S = 60.0  # A machine that stalls must not fail the test.
path = Path(sys.argv[1])
log = file.LogFile(path, bytes_max=int(sys.argv[3]), kept=int(sys.argv[4]))
print("ready", flush=True)
while not path.with_name("go").exists():
    time.sleep(0.001)
for number in range(int(sys.argv[5])):
    assert log.append(f"{sys.argv[2]} {number} {'x' * 60}\\n".encode())
"""


LINES = 500


def files(folder: Path) -> list[str]:
    """What lies in the folder."""
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    """Who may use it."""
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_by_the_first_line_for_the_user_alone(tmp_path: Path) -> None:
    """Nothing is there before; folders 0700 and files 0600, whatever the umask."""
    log = LogFile(tmp_path / "state/holdfast/holdfast.log")
    before = os.umask(0)
    try:
        assert files(tmp_path) == []
        assert log.append(b"one\n")
    finally:
        os.umask(before)

    folder = tmp_path / "state/holdfast"
    assert files(folder) == ["holdfast.log", "holdfast.log.lock"]
    assert [mode(path) for path in (folder.parent, folder)] == [0o700, 0o700]
    assert [mode(path) for path in folder.iterdir()] == [0o600, 0o600]


def test_a_file_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    """Whoever made it."""
    (tmp_path / "log").touch(mode=0o644)
    assert LogFile(tmp_path / "log").append(b"one\n")

    assert mode(tmp_path / "log") == 0o600


def test_a_full_file_is_moved_aside_and_the_oldest_is_dropped(tmp_path: Path) -> None:
    """The newest lines are in the file itself, older ones behind its numbers."""
    log = LogFile(tmp_path / "log", bytes_max=8, kept=2)
    for number in range(9):
        assert log.append(f"{number:03}\n".encode())

    read = {name: (tmp_path / name).read_text().split() for name in ("log", "log.1", "log.2")}
    assert read == {"log": ["008"], "log.1": ["006", "007"], "log.2": ["004", "005"]}
    assert files(tmp_path) == ["log", "log.1", "log.2", "log.lock"]


def test_a_file_that_another_process_moved_or_removed_is_found_again(tmp_path: Path) -> None:
    """A line goes to the file that has the name now."""
    log = LogFile(tmp_path / "log")
    log.append(b"one\n")
    (tmp_path / "log").rename(tmp_path / "old")
    assert LogFile(tmp_path / "log").append(b"of another\n")
    assert log.append(b"two\n")
    moved = (tmp_path / "log").read_text()
    (tmp_path / "log").unlink()
    assert log.append(b"three\n")

    assert (tmp_path / "old").read_text() == "one\n"
    assert moved == "of another\ntwo\n"
    assert (tmp_path / "log").read_text() == "three\n"


def test_a_stopped_holder_of_the_lock_delays_little_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is appended without the lock; the next ones do not wait again."""
    pauses: list[float] = []
    monkeypatch.setattr(file, "WAIT_S", 0.01)
    monkeypatch.setattr("time.sleep", pauses.append)
    log = LogFile(tmp_path / "log", bytes_max=10, kept=1)
    log.append(b"one\n")
    other = os.open(tmp_path / "log.lock", os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)

    assert log.append(b"two\n")
    waited = len(pauses)
    assert log.append(b"three\n")  # Beyond the bound: it cannot be moved now.
    assert [log.append(b"four\n") for _ in range(3)] == [True, False, False]

    assert waited > 0
    assert len(pauses) == waited
    os.close(other)
    assert log.append(b"five\n")
    assert (tmp_path / "log.1").read_text() == "one\ntwo\nthree\nfour\n"
    assert (tmp_path / "log").read_text() == "five\n"


@pytest.mark.parametrize("what", ["folder", "fifo", "device", "readonly", "full"])
def test_what_cannot_be_written_is_no_error(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder, FIFO or device of that name, a folder that is not ours, a full disk: False, at once."""

    def write_nothing(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "log"
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "readonly":
        path = Path("/proc/holdfast/log")
    elif what == "device":
        path.symlink_to("/dev/full")
    else:
        monkeypatch.setattr("os.write", write_nothing)

    assert LogFile(path).append(b"one\n") is False


def started(folder: Path, count: int, *sizes: int) -> None:
    """So many processes that append at the same time, each its lines."""
    command = [sys.executable, "-c", WRITER, str(folder / "log")]
    writers = [
        subprocess.Popen([*command, str(number), *map(str, sizes)], stdout=subprocess.PIPE)
        for number in range(count)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
    (folder / "go").touch()
    for writer in writers:
        writer.communicate(timeout=60)
    assert [writer.returncode for writer in writers] == [0] * count


@pytest.mark.ci
def test_twenty_processes_lose_and_tear_no_line_while_it_is_moved(tmp_path: Path) -> None:
    """Every line of every process is there once, whole and in its order, over some fifty moves; no file is
    larger than its bound, so all of them together are not, whatever number is kept.
    """
    started(tmp_path, 20, 16_384, 1_000, LINES)

    names = sorted(tmp_path.glob("log*[0-9]"), key=lambda path: -int(path.suffix[1:]))
    read = "".join(path.read_text() for path in [*names, tmp_path / "log"]).splitlines()
    lines: dict[str, list[str]] = {}
    for each in read:
        writer, number, rest = each.split()
        assert rest == "x" * 60
        lines.setdefault(writer, []).append(number)
    assert len(names) > 30
    assert max(path.stat().st_size for path in [*names, tmp_path / "log"]) <= 16_384
    assert lines == {str(writer): [str(number) for number in range(LINES)] for writer in range(20)}
