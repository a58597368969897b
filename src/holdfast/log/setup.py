"""Switches the log on for a process of our own: the command line and the server. The library never does.

The level is the first of: `HOLDFAST_LOG`, debug under `--verbose`, the `logLevel` setting, info.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from holdfast.errors import ContextError, InvalidInput
from holdfast.log import line
from holdfast.log.file import LogFile
from holdfast.log.handlers import FileHandler, StandardError
from holdfast.person import directories

VARIABLE: Final = "HOLDFAST_LOG"
OFF: Final = logging.CRITICAL + 1
"""Above every level."""
DEFAULT: Final = logging.INFO

_file: FileHandler | None = None
_stderr: StandardError | None = None


def path() -> Path:
    """Where the log file is, or would be."""
    return directories.state() / "holdfast.log"


def variable_level() -> int | None:
    """The level that the environment names; None where it names none."""
    text = os.environ.get(VARIABLE, "").strip().upper()
    if not text:
        return None
    if text == "OFF":
        return OFF
    if text not in line.LEVELS:
        raise InvalidInput(f"{VARIABLE} must be debug, info, warn, error or off; change or unset it")
    return line.LEVELS[text]


def start_stderr(*, verbose: bool) -> None:
    """Print warnings, or with `verbose` every event, to standard error. The first call decides."""
    global _stderr  # noqa: PLW0603 - the log of a process is one
    if _stderr is None:
        _stderr = StandardError(verbose=verbose)
        if verbose and (level := variable_level()) is not None and level != OFF:
            _stderr.setLevel(level)
        logging.getLogger("holdfast").addHandler(_stderr)
        _admit()


def start_file(setting: Callable[[], str | None]) -> None:
    """Append events to the log file. `setting` reads the `logLevel` setting, when the first event comes."""
    global _file  # noqa: PLW0603
    level = _chosen()
    if _file is not None or level == OFF:
        return
    try:
        file = LogFile(path())
    except ContextError:
        return  # No home directory: there is no place for it.
    _file = FileHandler(file, lambda: _level(setting()))
    if level is not None:
        _file.heed(level)
    logging.getLogger("holdfast").addHandler(_file)
    _admit()


def heed(setting: str | None) -> None:
    """Use the `logLevel` of the directory that the process works in, unless the user chose a level."""
    if _file is not None and _chosen() is None:
        _file.heed(_level(setting))
        _admit()


def stop_file() -> None:
    """Close the file; events go to it no more."""
    global _file  # noqa: PLW0603
    if _file is not None:
        logging.getLogger("holdfast").removeHandler(_file)
        _file.close()
        _file = None
        _admit()


def _chosen() -> int | None:
    """The level that the user chose for this process."""
    level = variable_level()
    return logging.DEBUG if level is None and _stderr is not None and _stderr.verbose else level


def _level(setting: str | None) -> int:
    return DEFAULT if setting is None else line.LEVELS[setting]


def _admit() -> None:
    """Let loggers make the events that a handler wants; all of them while the file's level is not known."""
    # A logger without a level of its own has that of the program around it.
    levels = [handler.level or logging.DEBUG for handler in (_file, _stderr) if handler is not None]
    logging.getLogger("holdfast").setLevel(min(levels, default=logging.NOTSET))
