"""A pager for long output: only on a terminal, and only for what does not fit on its screen.

What a command prints is collected, then shown at once or given to the pager; notes on standard error follow.
The user chooses the pager (`HOLDFAST_PAGER`, else `PAGER`, else `less`). What must stay true: leaving the
pager early, Ctrl-C in it, or its absence is no error.
"""

import io
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO, TypeVar

import click

T = TypeVar("T")


def show(work: Callable[[], T]) -> T:
    """Do the work, and show what it printed. If the user interrupts it, nothing is shown."""
    out, err = sys.stdout, sys.stderr
    page, notes = _Page(out), _Page(err) if err.isatty() else None
    sys.stdout, sys.stderr = page, notes or err
    is_interrupted = False
    try:
        return work()
    except KeyboardInterrupt:
        is_interrupted = True
        raise
    finally:
        sys.stdout, sys.stderr = out, err
        if not is_interrupted:
            _print(page.taken(), out)
            with suppress(OSError):
                err.write("" if notes is None else notes.taken().decode(notes.encoding, "replace"))


class _Buffer(io.BytesIO):
    """Bytes in the place of a terminal, of which commands may ask the width."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self._fd = terminal.fileno()

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return True


class _Page(io.TextIOWrapper):
    """A stream that keeps everything."""

    def __init__(self, terminal: TextIO) -> None:
        self._kept = _Buffer(terminal)
        super().__init__(self._kept, encoding=terminal.encoding, errors=terminal.errors)

    def taken(self) -> bytes:
        self.flush()
        return self._kept.getvalue()


def _print(data: bytes, out: TextIO) -> None:
    command = chosen()
    if command and _is_long(data, out) and _run(command, data):
        return
    out.flush()
    out.buffer.write(data)
    out.flush()


def chosen() -> list[str]:
    """The pager as a command; empty where the user wants none."""
    text = next((os.environ[name] for name in ("HOLDFAST_PAGER", "PAGER") if name in os.environ), "less")
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    return [] if words[:1] == ["cat"] else words


def _is_long(data: bytes, out: TextIO) -> bool:
    """Whether the text takes more lines than the screen has, long ones broken."""
    try:
        size = os.get_terminal_size(out.fileno())
    except OSError:
        return False
    if not size.lines or not size.columns:
        return False
    lines = click.unstyle(data.decode(out.encoding, "replace")).splitlines()
    return sum(max(1, -(-len(line) // size.columns)) for line in lines) >= size.lines


def _run(command: list[str], data: bytes) -> bool:
    """Show it in the pager, until the user leaves it; False where there is no such program."""
    # -F ends at once what fits, -R shows colours, -X leaves the text on the screen.
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    except (OSError, ValueError):
        return False
    # Ctrl-C is for the pager. A function, not SIG_IGN, which programs inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process.communicate(data)
    finally:
        signal.signal(signal.SIGINT, before)
    return True
