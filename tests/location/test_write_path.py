"""A file is written whole or not at all, and only over what the writer has seen."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Conflict, HoldfastError, NotFound, Refused
from holdfast.location import write_lock, write_path
from holdfast.location.write_path import TEMPORARY, digest, remove, write
from holdfast.person import directories

OLD, NEW = b"old\n", b"new\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = Path(os.path.realpath(tmp_path)) / "a.txt"
    path.write_bytes(OLD)
    return path


def left(folder: Path) -> list[str]:
    """Temporary files that were not cleared away."""
    return [path.name for path in folder.iterdir() if path.name.startswith(TEMPORARY)]


def test_new_content_takes_the_place_of_what_was_seen(file: Path) -> None:
    """Mode bits stay as they are; nothing else is left in the folder."""
    file.chmod(0o640)
    write(file, NEW, seen=digest(OLD))
    assert file.read_bytes() == NEW
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_mode_that_the_user_gives_files(file: Path, mask: int) -> None:
    """Folders on the way are made, likewise."""
    before = os.umask(mask)
    try:
        write(file.parent / "b" / "c" / "new.txt", NEW, seen=None)
    finally:
        os.umask(before)
    made = file.parent / "b" / "c" / "new.txt"
    assert made.read_bytes() == NEW
    assert stat.S_IMODE(made.stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o777 & ~mask


def test_extended_attributes_stay(file: Path) -> None:
    """As far as the filesystem has any."""
    try:
        os.setxattr(file, "user.note", b"mine")
    except OSError:
        pytest.skip("this filesystem has no extended attributes")
    write(file, NEW, seen=digest(OLD))
    assert os.getxattr(file, "user.note") == b"mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays(file: Path) -> None:
    """Where the system allows it."""
    os.chown(file, 1234, 5678)
    file.chmod(0o4755)
    write(file, NEW, seen=digest(OLD))
    now = file.stat()
    assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (1234, 5678, 0o4755)


@pytest.mark.parametrize(
    ("stands", "seen", "said"),
    [
        (b"another\n", digest(OLD), "holds something else than when it was read"),
        (None, digest(OLD), "is gone; it was there when it was read"),
        (OLD, None, "exists by now; it did not when this began"),
    ],
)
def test_what_was_not_seen_is_not_overwritten(
    file: Path, stands: bytes | None, seen: str | None, said: str
) -> None:
    """Whatever stands there stays, and no temporary file is left."""
    file.unlink()
    if stands is not None:
        file.write_bytes(stands)
    with pytest.raises(Conflict, match=said):
        write(file, NEW, seen=seen)
    assert (file.read_bytes() if file.exists() else None) == stands
    assert left(file.parent) == []


def test_what_changes_while_it_is_written_is_not_overwritten(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last look is after the new content is on disk."""
    plain = write_path._fill

    def slow(*arguments: object) -> None:
        plain(*arguments)  # type: ignore[arg-type]
        file.write_bytes(b"the user was quicker\n")

    monkeypatch.setattr(write_path, "_fill", slow)
    with pytest.raises(Conflict, match="holds something else"):
        write(file, NEW, seen=digest(OLD))
    assert file.read_bytes() == b"the user was quicker\n"
    assert left(file.parent) == []


@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_what_is_no_file_is_not_written(file: Path, what: str) -> None:
    """A link that was swapped in leads nowhere; a device is not opened."""
    other = file.parent / "other.txt"
    other.write_bytes(OLD)
    file.unlink()
    if what == "link":
        file.symlink_to(other)
    elif what == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    with pytest.raises(Refused, match="never written"):
        write(file, NEW, seen=digest(OLD))
    assert other.read_bytes() == OLD
    assert left(file.parent) == []


def test_a_folder_that_became_a_link_is_not_followed(file: Path) -> None:
    """At whatever level it stands."""
    outside = file.parent / "outside"
    outside.mkdir()
    inside = file.parent / "inside"
    inside.symlink_to(outside)
    with pytest.raises(HoldfastError):
        write(inside / "deep" / "x.txt", NEW, seen=None)
    assert list(outside.iterdir()) == []


def test_a_file_that_was_seen_is_removed(file: Path) -> None:
    """And one that holds something else is not."""
    with pytest.raises(Conflict):
        remove(file, seen=digest(NEW))
    remove(file, seen=digest(OLD))
    assert not file.exists()
    with pytest.raises((Conflict, NotFound)):
        remove(file, seen=digest(OLD))


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EACCES, "may not be written: Permission denied"),
        (errno.EROFS, "may not be written: Read-only file system"),
        (errno.ENOSPC, "was not written: No space left on device; make room and try again"),
    ],
)
def test_what_the_system_refuses_is_said_with_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    """The old content stays, and nothing is left beside it."""

    def refused(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(HoldfastError, match=f"a.txt {said}"):
        write(file, NEW, seen=digest(OLD))
    assert file.read_bytes() == OLD
    assert left(file.parent) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from holdfast.location import write_lock, write_path
at, name = int(sys.argv[1]), Path(sys.argv[2])
count = 0
def dies(plain):
    def call(*arguments, **named):
        global count
        count += 1
        if count == at:
            if plain is os.write:
                plain(arguments[0], bytes(arguments[1])[:len(arguments[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*arguments, **named)
    return call
for verb in ("open", "write", "fchmod", "fsync", "link", "rename", "unlink"):
    setattr(os, verb, dies(getattr(os, verb)))
write_path.write(name, b"new" * 1000, seen=write_path.digest(b"old" * 1000) if name.exists() else None)
"""


@pytest.mark.ci
@pytest.mark.parametrize("old", [b"old" * 1000, None])
def test_a_kill_at_any_step_leaves_the_old_content_or_the_new(file: Path, old: bytes | None) -> None:
    """Never a mix, and never half of one, nor of a new file; the run after the last step is not killed."""
    new, seen = b"new" * 1000, set[bytes | None]()
    for at in range(1, 100):
        file.unlink(missing_ok=True) if old is None else file.write_bytes(old)
        done = subprocess.run([sys.executable, "-c", KILLED, str(at), str(file)], check=False)
        seen.add(file.read_bytes() if file.exists() else None)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert seen == {old, new}
    assert at > 5


def test_what_a_killed_write_left_goes_with_the_next_one(file: Path) -> None:
    """Only a file of ours, of a process that has ended, and old enough that no other host is writing it."""
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    dead, alive, token = int(gone.stdout), os.getpid(), "0123456789ab"
    old = {
        f"{TEMPORARY}{dead}-{token}": False,
        f"{TEMPORARY}{alive}-{token}": True,
        f"{TEMPORARY}{dead}-notes": True,
        f"{TEMPORARY}{dead}-{token}.py": True,
    }
    for name in old:
        (file.parent / name).write_bytes(NEW)
        os.utime(file.parent / name, (1, 1))
    (file.parent / f"{TEMPORARY}{dead}-{token[::-1]}").write_bytes(NEW)
    write(file, NEW, seen=digest(OLD))
    kept = {name for name, stays in old.items() if stays} | {f"{TEMPORARY}{dead}-{token[::-1]}"}
    assert set(left(file.parent)) == kept
    os.utime(file.parent / f"{TEMPORARY}{dead}-{token[::-1]}", (1, 1))
    remove(file, seen=digest(NEW))
    assert set(left(file.parent)) == {name for name, stays in old.items() if stays}


def test_two_processes_do_not_write_one_file_at_the_same_time(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check and the rename another one waits, for a time, and is refused: nothing that was
    acknowledged is lost. The locks are the user's own, and few.
    """
    checked, go = threading.Event(), threading.Event()
    put = write_path._put

    def late(*arguments: Any, **named: Any) -> None:
        checked.set()
        assert go.wait(60)
        put(*arguments, **named)

    monkeypatch.setattr(write_path, "_put", late)
    monkeypatch.setattr(write_lock, "WAIT_S", 0.01)
    first = threading.Thread(target=write, args=(file, NEW), kwargs={"seen": digest(OLD)})
    first.start()
    assert checked.wait(60)
    try:
        with pytest.raises(Conflict, match="is being written by another process"):
            write(file, b"lost", seen=digest(OLD))
        with pytest.raises(Conflict, match="is being written by another process"):
            remove(file, seen=digest(OLD))
    finally:
        go.set()
        first.join(60)
    assert (file.read_bytes(), list(file.parent.iterdir())) == (NEW, [file])
    with pytest.raises(Conflict, match="holds something else"):
        write(file, b"later", seen=digest(OLD))
    locks = directories.state() / "write-locks"
    modes = {stat.S_IMODE(each.stat().st_mode) for each in locks.iterdir()}
    assert (stat.S_IMODE(locks.stat().st_mode), modes) == (0o700, {0o600})


def test_a_new_file_never_replaces_one_that_came_meanwhile(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program takes no lock; where the filesystem has no links the file is written all the same."""
    link, path = os.link, file.with_name("new.txt")

    def beaten(*arguments: Any, **named: Any) -> None:
        path.write_bytes(b"theirs")
        link(*arguments, **named)

    monkeypatch.setattr(os, "link", beaten)
    with pytest.raises(Conflict, match="exists by now"):
        write(path, NEW, seen=None)
    assert (path.read_bytes(), left(path.parent)) == (b"theirs", [])

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refused)
    write(path.with_name("other.txt"), NEW, seen=None)
    assert (path.with_name("other.txt").read_bytes(), left(path.parent)) == (NEW, [])


def test_without_a_place_for_locks_files_are_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that cannot be written to stops no one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    write(file, NEW, seen=digest(OLD))
    assert file.read_bytes() == NEW
