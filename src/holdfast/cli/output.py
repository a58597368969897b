"""How answers look: tables for users, JSON for programs."""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec

from holdfast.cli import table
from holdfast.text import printable

WIDE = 200
FORMATS = click.Choice(["table", "json"])


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--format table|json`."""
    return click.option(
        "--format",
        "form",
        type=FORMATS,
        default="table",
        show_default=True,
        help="For people or for programs.",
    )(command)


def print_json(value: object) -> None:
    """Any value as readable JSON. Names that the system gave us need not be UTF-8: those are escaped."""
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_escaped(msgspec.to_builtins(value)))
    print_raw(data)


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_escaped(key): _escaped(item) for key, item in value.items()}
        case list() | tuple():
            return [_escaped(item) for item in value]
        case _:
            return value


def print_raw(data: bytes) -> None:
    """JSON that is already encoded, made readable."""
    out = sys.stdout.buffer
    out.write(msgspec.json.format(data, indent=2) + b"\n")


def print_array(items: Iterable[bytes]) -> None:
    """A JSON array of encoded items."""
    print_raw(b"[" + b",".join(items) + b"]")


def print_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    whole: Collection[int] = (0,),
    stretch: int | None = None,
) -> None:
    """A table as wide as the terminal: see `table.laid_out`. What had no room is named beside it."""
    cells = [[clean(cell) for cell in row] for row in rows]
    made = table.laid_out(heads, cells, room=width(), whole=whole, stretch=stretch)
    for number, line in enumerate(made.lines):
        click.echo(click.style(line, bold=True) if number == 0 else line)
    if made.left_out:
        note(f"Not shown for want of room: {', '.join(made.left_out)}. --format json has everything.")


def width() -> int:
    """How wide the terminal is; wide enough for anything when there is none, or when it does not know."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or WIDE
    except (OSError, ValueError):
        return WIDE


def clean(text: str) -> str:
    """Text on one line, without anything that a terminal would obey."""
    return printable(text)


def ago(then_ms: float) -> str:
    """How long ago something was, in a word."""
    seconds = max(0, time.time() - then_ms / 1000)
    for size, unit in ((86400 * 365, "y"), (86400 * 30, "mo"), (86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def note(text: str) -> None:
    """Something the user may want to know, beside the answer; the command goes on if it cannot be printed."""
    with suppress(OSError):
        click.echo(clean(text), err=True)
