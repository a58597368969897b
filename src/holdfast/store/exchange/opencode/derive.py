"""Ids for what had none in the source, made from what they stand for: a second import makes the same."""

import hashlib
import re

from holdfast.schema.ids import BASE62, body

_HEX = re.compile(r"[0-9a-f]{12}")
_MASK = (1 << 48) - 1
_TAIL = 9


def part_id(message: str, index: int, created_ms: int) -> str:
    """The id of a message's n-th part: they sort as they are counted."""
    return f"prt_{_hex(message, created_ms)}{index:05d}{_tail(f'{message}/{index}')}"


def question_id(message: str, created_ms: int) -> str:
    """The id of a message that must stand before another one."""
    return f"msg_{_hex(message, created_ms)}00000{_tail(message)}"


def _hex(message: str, created_ms: int) -> str:
    found = _HEX.match(body(message))
    return found.group() if found else f"{(created_ms << 12) & _MASK:012x}"


def _tail(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    return "".join(BASE62[byte % 62] for byte in digest[:_TAIL])
