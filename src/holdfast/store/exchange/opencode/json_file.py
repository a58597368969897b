"""Reads the JSON files of a folder that another program wrote. Nothing but regular files is opened."""

import os
from pathlib import Path
from typing import Final

import msgspec

from holdfast.store.exchange.opencode.source import RawRecord

FILE_BYTES_MAX: Final = 256 * 1024 * 1024


def names(folder: Path, suffix: str = "") -> list[str]:
    """What stands in a folder, sorted: files of a suffix, without it; or, without one, folders."""
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.name.removesuffix(suffix)
                for entry in entries
                if (entry.is_file() and entry.name.endswith(suffix) if suffix else entry.is_dir())
            )
    except OSError:
        return []


def read_json(path: Path) -> RawRecord:
    """The record of a file, named by it; with a problem for a value if it cannot be read."""
    record = RawRecord(path.stem, str(path))
    try:
        status = path.stat()
        if not path.is_file():
            record.problem = "it is not a regular file"
        elif status.st_size > FILE_BYTES_MAX:
            record.problem = f"it has {status.st_size} bytes; at most {FILE_BYTES_MAX} are read"
        else:
            record.touched = status.st_mtime_ns // 1_000_000
            record.value = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        record.problem = f"it cannot be read: {error.strerror}"
    except (msgspec.DecodeError, UnicodeError) as error:
        record.problem = f"it is not JSON: {error}"
    except RecursionError:
        record.problem = "its JSON is nested too deeply"
    return record
