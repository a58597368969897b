"""The prefix law, by whole bytes: what requests are compared by in tests, whatever the runtime remembers."""

import msgspec

from holdfast.provider.request.request import Request

_encode = msgspec.json.Encoder(order="deterministic").encode


def blocks(request: Request) -> list[bytes]:
    """Tools, system texts and messages in send order, each by itself, without cache marks."""
    return [_encode(block) for block in (*request.tools, *request.system, *request.messages)]


def first_difference(before: list[bytes], after: list[bytes]) -> int | None:
    """The index of the first block of `before` that `after` does not begin with; None when it extends it."""
    for index, block in enumerate(before):
        if index >= len(after) or after[index] != block:
            return index
    return None
