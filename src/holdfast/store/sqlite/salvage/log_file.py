"""Reads the log of a store that may be in use. Nothing is opened: the first connection to a store, and the
last that is closed, drop what stands behind damage in the log.
"""

from pathlib import Path

from holdfast.errors import StoreError
from holdfast.store.sqlite.salvage.log import HEADER, read_log

READINGS = 5


def log_trouble(path: Path) -> str:
    """What is wrong with a log, if an acknowledged commit stands behind it; empty when nothing is."""
    try:
        log = read_log(log_bytes(path))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    return "" if log is None else log.trouble


def holds_commits(path: Path) -> bool:
    """Whether a log holds anything that was committed."""
    try:
        return read_log(log_bytes(path)) is not None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def log_bytes(path: Path) -> bytes:
    """The log as it is at one moment. One that changes as it is read (leases are renewed without the lock)
    can look damaged: then it is read again, until two readings show the same damage.
    """
    data, before = b"", tuple[object, ...]()
    try:
        for _ in range(READINGS):
            data = path.read_bytes()
            log = read_log(data)
            damaged = (data[:HEADER], *log.damaged) if log is not None and log.damaged else ()
            if damaged == before:
                break
            before = damaged
    except FileNotFoundError:
        return b""
    return data
