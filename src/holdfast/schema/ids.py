"""Identifiers: `<prefix>_` + 12 hex digits + 14 base62 characters. Owns minting, checking and reading them.

The hex is the low 48 bits of `time_ms * 4096 + counter`, complemented for descending ids. Only 36 bits of
the time fit, so it wraps every 2^36 ms (795 days; last on 2026-08-14T11:19:55.136Z). Ids are therefore
names, never an order: order is a commit's number. But real clients insert by binary search on ids, so those
that we mint for a session still rise in it: `above`.
"""

import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Final, Literal, NewType

from holdfast.clock import Clock, SystemClock
from holdfast.errors import InvalidInput

SessionID = NewType("SessionID", str)
MessageID = NewType("MessageID", str)
PartID = NewType("PartID", str)
PermissionID = NewType("PermissionID", str)
QuestionID = NewType("QuestionID", str)
UserID = NewType("UserID", str)
PtyID = NewType("PtyID", str)
ToolOutputID = NewType("ToolOutputID", str)
EventID = NewType("EventID", str)
ApprovalID = NewType("ApprovalID", str)
ProjectID = NewType("ProjectID", str)
WorkspaceID = NewType("WorkspaceID", str)

Prefix = Literal["ses", "msg", "prt", "per", "que", "usr", "pty", "tool", "evt", "psv"]

ID_CHARS_MAX: Final = 128
BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""In ASCII order, so that comparing text compares digits."""

_HEX = "0123456789abcdef"
_HEX_CHARS = 12
_TAIL_CHARS = 14
_MASK = (1 << 48) - 1
_WRAP_MS = 1 << 36
_COUNTER_BITS = 12
_TO_BASE62 = bytes(ord(BASE62[byte % 62]) for byte in range(256))
_ALLOWED = re.compile(r"[A-Za-z0-9_-]+")
_LEADING_HEX = re.compile(r"[0-9a-f]*")


class Mint:
    """Makes ids. One for a process: its ids rise among themselves (fall, if descending) whatever the clock
    does.

    When the clock stalls, the counter goes on, and past 4,095 it carries into the time. When the clock goes
    back, the last time is kept until the clock has caught up. The exception is the 48-bit wrap, where the
    hex starts again at zero.
    """

    def __init__(self, clock: Clock, random: Callable[[int], bytes] = os.urandom) -> None:
        self._now_ms = clock.now_ms
        self._random = random
        self._last = 0
        self._lock = threading.Lock()

    def ascending(self, prefix: Prefix, given: str | None = None) -> str:
        """A new id that sorts after the earlier ones, or `given` if it is a fitting one."""
        if given is not None:
            return check(prefix, given)
        return f"{prefix}_{self.tick() & _MASK:012x}{self._tail()}"

    def descending(self, prefix: Prefix, given: str | None = None) -> str:
        """A new id that sorts before the earlier ones, or `given` if it is a fitting one."""
        if given is not None:
            return check(prefix, given)
        return f"{prefix}_{~self.tick() & _MASK:012x}{self._tail()}"

    def above(self, prefix: Prefix, floor: str) -> str:
        """A new id whose body is greater, as text, than `floor`: the greatest `body` of its session, or "".

        Normally a fresh ascending id. Otherwise the floor's hex plus one; when the hex is at its top, the
        floor's tail raised; and when there is nothing to raise, the floor made longer. A random tail always
        remains, so that two processes above the same floor do not mint the same id.
        """
        fresh = f"{self.tick() & _MASK:012x}"
        tail = self._tail()
        if fresh + tail > floor:
            return f"{prefix}_{fresh}{tail}"
        raised = _hex_above(floor)
        return f"{prefix}_{_text_above(floor, tail) if raised is None else raised + tail}"

    def rising(self, prefixes: Sequence[Prefix]) -> list[str]:
        """New ids, each with a body greater than the one before: for a session that has none yet."""
        count = len(prefixes)
        first = self.tick(count) - count + 1
        tails = self._random(_TAIL_CHARS * count).translate(_TO_BASE62).decode("ascii")
        if first & _MASK > first + count & _MASK:  # The wrap is among them.
            made = [""]
            for prefix in prefixes:
                made.append(self.above(prefix, body(made[-1])))
            return made[1:]
        return [
            f"{prefix}_{first + number & _MASK:012x}{tails[at : at + _TAIL_CHARS]}"
            for number, (prefix, at) in enumerate(
                zip(prefixes, range(0, len(tails), _TAIL_CHARS), strict=True)
            )
        ]

    def tick(self, count: int = 1) -> int:
        """The number of the next id, or the last of so many. By itself it is for `numbered`."""
        now = self._now_ms() << _COUNTER_BITS
        with self._lock:
            # The first id of a millisecond has the counter 1.
            self._last = max(now, self._last) + count
            return self._last

    def _tail(self) -> str:
        return self._random(_TAIL_CHARS).translate(_TO_BASE62).decode("ascii")


def numbered(prefix: Prefix, number: int) -> str:
    """The ascending id of a number (`Mint.tick`), for what is numbered often and named seldom."""
    return f"{prefix}_{number & _MASK:012x}{os.urandom(_TAIL_CHARS).translate(_TO_BASE62).decode('ascii')}"


def check(prefix: Prefix, given: str) -> str:
    """`given`, if it may be an id of this prefix: nothing in it may mean something to a path or a pattern."""
    if not given.startswith(f"{prefix}_"):
        raise InvalidInput(f"ID {_shown(given)} does not start with {prefix}_")
    if len(given) > ID_CHARS_MAX:
        raise InvalidInput(f"ID {_shown(given)} is longer than {ID_CHARS_MAX} characters")
    if len(given) == len(prefix) + 1:
        raise InvalidInput(f"ID {_shown(given)} has nothing after its prefix")
    if _ALLOWED.fullmatch(given) is None:
        raise InvalidInput(f"ID {_shown(given)} has characters other than letters, digits, '_' and '-'")
    return given


def body(id: str) -> str:
    """What follows the prefix: the part that is compared. An id without prefix has none."""
    return id.partition("_")[2]


def timestamp(id: str, reference_ms: int | None = None) -> int:
    """When an ascending id was made: of the times with its 36 bits, the one nearest to the reference, or
    to now where none is given.
    """
    reference_ms = SystemClock().now_ms() if reference_ms is None else reference_ms
    digits = body(id)[:_HEX_CHARS]
    if len(digits) != _HEX_CHARS or _LEADING_HEX.fullmatch(digits) is None:
        raise InvalidInput(f"ID {_shown(id)} carries no time")
    after = ((int(digits, 16) >> _COUNTER_BITS) - reference_ms) % _WRAP_MS
    return reference_ms + (after if after < _WRAP_MS // 2 else after - _WRAP_MS)


def _shown(given: str) -> str:
    """A foreign id as a message may show it: short, and without anything unprintable."""
    text = ascii(given[:41])[1:-1]
    return text if len(given) <= 40 else text[:40] + "…"


def _hex_above(floor: str) -> str | None:
    """The least 12 hex digits that sort after `floor` with whatever follows them, or None when none do."""
    found = _LEADING_HEX.match(floor[:_HEX_CHARS])
    digits = found.group() if found else ""
    rest = floor[len(digits) :]
    if len(digits) < _HEX_CHARS:
        if not rest:  # short: anything longer that begins with it is greater
            return digits.ljust(_HEX_CHARS, "0")
        for digit in _HEX:  # a foreign character: the next hex digit after it, if there is one
            if digit > rest[0]:
                return (digits + digit).ljust(_HEX_CHARS, "0")
    if digits.strip("f") == "":  # at its top (or no digits at all)
        return None
    return f"{int(digits, 16) + 1:0{len(digits)}x}".ljust(_HEX_CHARS, "0")


def _text_above(floor: str, tail: str) -> str:
    """A text greater than a floor whose hex cannot rise: with its tail raised, or else made longer."""
    half = _TAIL_CHARS // 2
    # Hex digits stay what they are; of the rest, all but the end may rise. "z" is the top of base62.
    fixed = _HEX_CHARS if floor.startswith("f" * _HEX_CHARS) else 0
    lead = floor[: max(len(floor) - half, 0)]
    while len(lead) > fixed and lead[-1] >= BASE62[-1]:
        lead = lead[:-1]
    if len(lead) <= fixed:
        # The new end begins low, so that there is room to rise in it next time without growing again.
        return floor + BASE62[0] + tail[1:]
    risen = lead[:-1] + next(char for char in BASE62 if char > lead[-1])
    return risen + tail[: max(len(floor) - len(risen), half)]
