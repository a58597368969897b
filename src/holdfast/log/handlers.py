"""Handlers of the log: one for the file, one for standard error. Neither ever raises."""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress

from holdfast.log import line
from holdfast.log.file import LogFile
from holdfast.text import printable


class FileHandler(logging.Handler):
    """Appends to the log file. `level_of` is asked by the first event: until then nothing is read or made."""

    def __init__(self, file: LogFile, level_of: Callable[[], int]) -> None:
        super().__init__()
        self._file = file
        self._level_of: Callable[[], int] | None = level_of
        self._dropped = 0

    def heed(self, level: int) -> None:
        """Use this level from now on."""
        self._level_of = None
        self.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        """Append the line; what cannot be written is counted, and the next line that can be says so."""
        try:
            self._emit(record)
        except Exception:  # noqa: BLE001 - whoever logged it must not fail, whatever they gave
            self._dropped += 1

    def _emit(self, record: logging.LogRecord) -> None:
        if (level_of := self._level_of) is not None:
            self.heed(logging.INFO)  # Where the level cannot be read, this holds.
            self.heed(level_of())
        if record.levelno < self.level:
            return
        if self._dropped:
            self._report_dropped(record)
        if not self._file.append(_encoded(record)):
            self._dropped += 1

    def _report_dropped(self, record: logging.LogRecord) -> None:
        text = line.described("log.dropped", {"count": self._dropped})
        made = logging.makeLogRecord(
            {"name": "holdfast.log", "levelno": logging.WARNING, "created": record.created, "msg": text}
        )
        made.event = "log.dropped"
        made.process = record.process
        if self._file.append(_encoded(made)):
            self._dropped = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class StandardError(logging.Handler):
    """Prints to standard error: every event, or only warnings that are meant for the user."""

    def __init__(self, *, verbose: bool) -> None:
        super().__init__(logging.DEBUG if verbose else logging.WARNING)
        self.verbose = verbose

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line; one that standard error does not take is lost."""
        if not self.verbose and hasattr(record, "event"):
            return
        with suppress(Exception):
            sys.stderr.write(f"{line.of(record) if self.verbose else printable(record.getMessage())}\n")
            sys.stderr.flush()


def _encoded(record: logging.LogRecord) -> bytes:
    return f"{line.of(record)}\n".encode(errors="replace")
