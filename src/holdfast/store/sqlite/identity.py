"""Which file, in which state, lies under a store's name: to be sure later that it is still that one."""

from pathlib import Path

import msgspec

from holdfast.store.sqlite.database import Database


class Identity(msgspec.Struct, frozen=True):
    """The file and its log: device, inode, size and time of the last change; None for one that is gone."""

    file: tuple[int, ...] | None
    log: tuple[int, ...] | None


def identify(database: Database) -> Identity:
    """What lies there now."""
    return Identity(_of(database.path), _of(database.log_path))


def _of(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
