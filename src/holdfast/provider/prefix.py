"""The blocks of a request, in send order and without cache marks: what law 7 compares. Pure.

Within one Context Epoch each request extends the one before it. The blocks are our own encoding, not the
wire's, so that they can be compared whoever answers.
"""

import hashlib
from typing import Final

import msgspec

from holdfast.provider.request import Request

NAME_CHARS: Final = 16

_encode = msgspec.json.Encoder(order="deterministic").encode


def blocks(request: Request) -> list[bytes]:
    """Tools, system texts and messages, each by itself."""
    return [_encode(block) for block in (*request.tools, *request.system, *request.messages)]


class Named(msgspec.Struct, frozen=True):
    """A name for each block (two with the same bytes have the same), and how long all of them are."""

    names: list[str]
    length: int


def named(request: Request) -> Named:
    """The blocks of a request by name."""
    encoded = blocks(request)
    names = [hashlib.sha256(block).hexdigest()[:NAME_CHARS] for block in encoded]
    return Named(names, sum(map(len, encoded)))


def first_difference(before: list[bytes], after: list[bytes]) -> int | None:
    """The index of the first block of `before` that `after` does not begin with; None when it extends it."""
    for index, block in enumerate(before):
        if index >= len(after) or after[index] != block:
            return index
    return None
