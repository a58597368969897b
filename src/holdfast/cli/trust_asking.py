"""Asks whether a folder is trusted: once, and only in a terminal. For commands that run an agent."""

import sys

import click

from holdfast.cli.output import clean, note
from holdfast.config.loaded import Loaded


def ask_trust(loaded: Loaded, decided: bool | None) -> bool | None:  # noqa: FBT001 - a stored answer
    """The person's answer, to be remembered; None where nothing is left out, nobody is there, or they have
    answered before. What was left out is told in every case.
    """
    for line in loaded.notices:
        note(line)
    if loaded.untrusted is None or decided is not None or not _somebody_is_there():
        return None
    question = f"Do you trust the files of {clean(str(loaded.untrusted))} to configure the agent?"
    return click.confirm(question, default=False, err=True)


def _somebody_is_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
