"""Reads the log of a store that may be in use. Nothing is opened: the first connection to a store, and the
last that is closed, drop what stands behind damage in the log.
"""

from pathlib import Path

from holdfast.errors import StoreError
from holdfast.store.sqlite.salvage.frames import HEADER
from holdfast.store.sqlite.salvage.log import extent, is_without_commits, read_log
from holdfast.store.sqlite.salvage.raw_file import opened_raw

READINGS = 5


def log_trouble(path: Path) -> str:
    """What is wrong with a log, if an acknowledged commit stands behind it; empty when nothing is."""
    try:
        data, unreadable = log_bytes(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    if unreadable:
        return not_given(unreadable, "the log")
    log = read_log(data)
    return "" if log is None else log.trouble


def not_given(count: int, what: str) -> str:
    """What is wrong with a file of which the disk has not given all."""
    return f"the disk does not give {count} bytes of {what}"


def left_in_log(path: Path) -> str:
    """What would go with a log of which the file is gone; empty when it holds nothing for certain."""
    try:
        with opened_raw(path) as data:
            if is_without_commits(data):
                return ""
            return "its log holds what was committed last" if extent(data) else "its log cannot be read"
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def log_bytes(path: Path) -> tuple[bytes, int]:
    """The log up to its last commit, as it is at one moment, and how many bytes of it are unreadable.

    One that changes as it is read (leases are renewed without the lock) can look damaged: then it is read
    again, until two readings show the same damage.
    """
    data, unreadable, before = b"", 0, tuple[object, ...]()
    try:
        for _ in range(READINGS):
            data = b""  # Two copies of a long log would be one too many.
            data, unreadable = _reading(path)
            log = read_log(data)
            damaged = (data[:HEADER], *log.damaged) if log is not None and log.damaged else ()
            if damaged == before:
                break
            before = damaged
    except FileNotFoundError:
        return b"", 0
    return data, unreadable


def _reading(path: Path) -> tuple[bytes, int]:
    with opened_raw(path) as data:
        return data[: extent(data)], data.unreadable
