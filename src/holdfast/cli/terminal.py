"""Standard input as text."""

import sys
from pathlib import Path

import click

from holdfast.errors import ContextError


class NotText(click.ClickException):
    """What was given is no text that a record could hold."""

    exit_code = 2


def read_text(bytes_max: int, *, beyond: str) -> str:
    """All of it, to its end. UTF-8 whatever the locale says; `beyond` is the complaint about too much."""
    try:
        data = sys.stdin.buffer.read(bytes_max + 1) or b""
    except OSError as error:
        raise ContextError(f"standard input cannot be read: {error.strerror or error}") from error
    if len(data) > bytes_max:
        raise click.UsageError(beyond)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1} is 0x{data[error.start]:02x}"
        raise NotText(f"standard input is not UTF-8 ({place}); convert it first, with iconv") from None


def current_directory() -> Path:
    """The current directory, which another process may have removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ContextError("the current directory was removed; change to another") from None
