"""Logs what happened: a name, and facts as `key=value`.

Events go through the standard `logging` module, to `holdfast.ROOM`, so that a program that embeds Holdfast
can attach handlers of its own. What must stay true: a fact is an id, a name, a number or a reason, never
content; an event that no handler wants costs a microsecond and is printed nowhere; a handler that fails ends
no work.
"""

import logging
from contextlib import suppress
from functools import cache

from holdfast.log import line

Fact = str | int | float | None


def debug(room: str, name: str, /, **facts: Fact) -> None:
    """Log a detail, for the developer who looks for a fault."""
    _log(logging.DEBUG, room, name, facts)


def info(room: str, name: str, /, **facts: Fact) -> None:
    """Log an ordinary step of the work."""
    _log(logging.INFO, room, name, facts)


def warn(room: str, name: str, /, **facts: Fact) -> None:
    """Log trouble that the process deals with by itself."""
    _log(logging.WARNING, room, name, facts)


def error(room: str, name: str, /, **facts: Fact) -> None:
    """Log a fault."""
    _log(logging.ERROR, room, name, facts)


def where(error: BaseException) -> str:
    """The type of an error and the line that raised it. Not its text, which may hold content."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    module = trace.tb_frame.f_globals.get("__name__", "?")
    return f"{type(error).__name__}@{module}:{trace.tb_lineno}"


def _log(level: int, room: str, name: str, facts: dict[str, Fact]) -> None:
    logger = _logger(room)
    if logger.isEnabledFor(level):
        known = {key: value for key, value in facts.items() if value is not None}
        text = line.described(name, known)
        with suppress(Exception):  # Of a handler or a filter of the embedding program.
            logger.log(level, "%s", text, extra={"event": name, "facts": known}, stacklevel=3)


@cache
def _logger(room: str) -> logging.Logger:
    logger = logging.getLogger(f"holdfast.{room}")
    # Without a handler Python prints warnings to standard error, which belongs to the embedding program.
    logger.addHandler(logging.NullHandler())
    return logger
