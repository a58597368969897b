"""What a person chose for the whole command."""

from typing import NamedTuple


class Choice(NamedTuple):
    """The store, and whether a tree of OpenCode's may be taken over."""

    store: str | None
    adopt: bool
