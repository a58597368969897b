"""Small files of the user: written whole or not at all, under a lock where they are read first.

What must stay true: a reader sees the old text or the new one, also after a crash; a secret is never readable
by others, not even for a moment; nothing here waits longer than `WAIT_S`. A file that is a link is replaced
where the link points, so that a settings file kept in a repository of dotfiles stays there.
"""

import contextlib
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.errors import ContextError
from holdfast.person.private import give_to_user, make_folder

BYTES_MAX = 16 * 1024 * 1024
WAIT_S = 10.0


def read(path: Path, *, bytes_max: int = BYTES_MAX) -> bytes | None:
    """The bytes of a regular file; None where there is no file. Anything else is an error that names it."""
    try:
        # O_NONBLOCK: a FIFO in the place of a file must not hold us.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise ContextError(f"{path} cannot be read: {_reason(error)}") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ContextError(f"{path} is no regular file; move it away")
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise ContextError(f"{path} cannot be read: {_reason(error)}") from error
    finally:
        os.close(fd)
    if len(data) > bytes_max:
        raise ContextError(f"{path} is larger than {bytes_max} bytes, which cannot be right; move it away")
    return data


def write(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace the file: on disk before this returns. Missing folders are made, for the user alone."""
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        make_folder(path.parent)
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            with os.fdopen(fd, "wb") as file:
                os.fchmod(fd, mode)
                file.write(data)
                file.flush()
                os.fsync(fd)
            beside.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise ContextError(f"{path} cannot be written: {_reason(error)}") from error


def edit(path: Path, editor: Callable[[bytes | None], bytes], *, mode: int = 0o600) -> None:
    """Read, change and write as one step among all processes that use this function."""
    with lock(path):
        write(path, editor(read(path)), mode=mode)


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock that belongs to `path` (a file beside it); a crash of the holder frees it."""
    path = Path(os.path.realpath(path))
    try:
        make_folder(path.parent)
        fd = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ContextError(f"{path} cannot be locked: {_reason(error)}") from error
    try:
        give_to_user(fd)
        _wait(fd, path)
        yield
    finally:
        os.close(fd)


def _wait(fd: int, path: Path) -> None:
    give_up = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise ContextError(
                    f"{path} has been locked by another process for {WAIT_S:.0f} s; try again"
                ) from None
            time.sleep(0.002)
        else:
            return


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
