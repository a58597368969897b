"""Opaque cursors of the feed and of message pages, for the stores whose numbers are store-wide.

A feed cursor is `incarnation.after`, and inside a batch `incarnation.after.until.stage.key`: what was
delivered before the batch, the head when it began, and how far it has come. Numbers are hexadecimal.
"""

import re
from typing import Literal

import msgspec

from holdfast.errors import InvalidInput

Stage = Literal[0, 1, 2]
"""What a batch delivers, in this order: session tombstones, record tombstones, everything that lives."""

POSITION_MAX = (1 << 40) - 1

_FEED = re.compile(r"([0-9a-f]{16})\.([0-9a-f]{1,15})(?:\.([0-9a-f]{1,15})\.([012])\.([0-9a-f]{1,16}))?")
_PAGE = re.compile(r"m([0-9a-f]{1,15})")
_LIST = re.compile(r"s(-?[0-9a-f]{1,15})\.([0-9a-f]{1,15})")


class FeedCursor(msgspec.Struct, frozen=True):
    """A point in the feed of a store with one counter."""

    incarnation: str
    after: int
    until: int | None = None
    stage: Stage = 0
    key: int = 0

    def text(self) -> str:
        """The opaque form."""
        base = f"{self.incarnation}.{self.after:x}"
        return base if self.until is None else f"{base}.{self.until:x}.{self.stage}.{self.key:x}"


def parse_feed(text: str) -> FeedCursor | None:
    """The cursor that the text stands for; None when it is not one of this kind of store."""
    match = _FEED.fullmatch(text)
    if match is None:
        return None
    incarnation, after, until, stage, key = match.groups()
    if until is None:
        return FeedCursor(incarnation, int(after, 16))
    number: Stage = 0 if stage == "0" else 1 if stage == "1" else 2
    return FeedCursor(incarnation, int(after, 16), int(until, 16), number, int(key, 16))


BEFORE_ALL = "m0"
"""The message cursor before every message: the page after it is the first."""


def page_text(position: int) -> str:
    """The cursor of a message page's edge."""
    return f"m{position:x}"


def parse_page(text: str) -> int:
    """The position that a page cursor stands for."""
    match = _PAGE.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{text[:40]!r} is not a message cursor; take one from an earlier page")
    position = int(match[1], 16)
    if position > POSITION_MAX:
        raise InvalidInput(f"{text[:40]!r} is beyond every message; take a cursor from an earlier page")
    return position


def list_text(updated: int, number: int) -> str:
    """The cursor of a session list's edge."""
    return f"s{updated:x}.{number:x}"


def parse_list(text: str) -> tuple[int, int]:
    """The update time and number that a list cursor stands for."""
    match = _LIST.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{text[:40]!r} is not a session list cursor; take one from an earlier page")
    return int(match[1], 16), int(match[2], 16)
