"""Prints unified diffs: with colours on a terminal, and nothing in them that it would obey."""

import os

import click

from holdfast.cli import color

_HEADERS = ("+++", "---", "diff ", "index ", "new file", "deleted file", "rename ", "similarity")


def print_patch(patch: str) -> None:
    """A diff, line by line. A program gets the bytes as they are."""
    shown = _harmless if os.isatty(1) else str
    for line in patch.removesuffix("\n").split("\n"):
        click.echo(_coloured(shown(line)), color=color.wanted())


def _harmless(line: str) -> str:
    return "".join(letter if letter.isprintable() or letter == "\t" else "\ufffd" for letter in line)


def _coloured(line: str) -> str:
    if line.startswith(_HEADERS):
        return click.style(line, bold=True)
    fg = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return click.style(line, fg=fg) if fg else line
