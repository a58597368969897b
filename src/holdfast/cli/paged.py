"""Marks a command whose output may be long."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from holdfast.cli import everywhere

T = TypeVar("T")


def paged(command: Callable[..., T]) -> Callable[..., T]:
    """The command, with a pager where a user sits at a terminal; elsewhere nothing is loaded for it."""

    @wraps(command)
    def inner(*arguments: Any, **options: Any) -> T:
        if not everywhere.pages(click.get_current_context()) or not _is_terminal():
            return command(*arguments, **options)
        from holdfast.cli import pager

        return pager.show(lambda: command(*arguments, **options))

    return inner


def _is_terminal() -> bool:
    try:
        return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:
        return False
