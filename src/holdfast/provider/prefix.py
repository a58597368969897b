"""The blocks of a request, in send order and without cache marks: what law 7 compares. Pure.

Within one Context Epoch each request extends the one before it. The blocks are our own encoding, not the
wire's, so that they can be compared whoever answers.
"""

import hashlib

import msgspec

from holdfast.provider.request import Request

_encode = msgspec.json.Encoder(order="deterministic").encode


def blocks(request: Request) -> list[bytes]:
    """Tools, system texts and messages, each by itself."""
    return [_encode(block) for block in (*request.tools, *request.system, *request.messages)]


def digest(request: Request) -> str:
    """One name for all of them: two requests with the same blocks have the same."""
    total = hashlib.sha256()
    for block in blocks(request):
        total.update(len(block).to_bytes(8, "big"))
        total.update(block)
    return total.hexdigest()


def first_difference(before: list[bytes], after: list[bytes]) -> int | None:
    """The index of the first block of `before` that `after` does not begin with; None when it extends it."""
    for index, block in enumerate(before):
        if index >= len(after) or after[index] != block:
            return index
    return None
