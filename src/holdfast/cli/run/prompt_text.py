"""The text of a prompt: the words of the command, then what standard input holds."""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from holdfast.cli.output import note
from holdfast.cli.terminal import NotText, read_text

STDIN_MAX = 1024 * 1024
SILENT_S = 2.0
"""How long standard input may stay open before the user reads what the command waits for."""


def read_prompt(words: Sequence[str]) -> str:
    """The whole message, or wrong usage."""
    text = " ".join(map(_text, words))
    if not sys.stdin.isatty():
        with _note_when_slow():
            given = read_text(
                STDIN_MAX, beyond="standard input holds more than 1 MiB; keep it in a file, and name the file"
            )
        text = "\n\n".join(filter(None, (text, given.strip())))
    if not text.strip():
        raise click.UsageError("the prompt is empty; give a message")
    return text


def _text(word: str) -> str:
    """A word as text. Bytes that the locale does not know may be UTF-8 all the same."""
    try:
        word.encode()
    except UnicodeEncodeError:
        try:
            return os.fsencode(word).decode()
        except UnicodeError:
            raise NotText(f"the message is not UTF-8: {word[:60]!a}") from None
    return word


@contextmanager
def _note_when_slow() -> Iterator[None]:
    """A user who left standard input open by mistake would wait for ever, and not know why."""
    timer = threading.Timer(
        SILENT_S, note, ["Waiting for the end of standard input; `</dev/null` gives none."]
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
