"""One line on the terminal that says how far something has come, and leaves nothing behind."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.store.report import Progress

_CLEAR = "\r\x1b[K"


@contextmanager
def progress_line(verb: str) -> Iterator[Progress | None]:
    """Where to report; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return

    def show(text: str) -> None:
        with suppress(OSError):  # The command goes on if it cannot be printed.
            sys.stderr.write(text)
            sys.stderr.flush()

    def report(what: str, done: int, total: int, /) -> None:
        of = f" of {total:,}" if total else ""
        show(f"{_CLEAR}{verb} {what}{f': {done:,}{of}' if done or total else ''} …")

    try:
        yield report
    finally:
        show(_CLEAR)
