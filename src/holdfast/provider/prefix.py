"""The blocks of a request, in send order and without cache marks: what law 7 compares. Pure.

Within one Context Epoch each request extends the one before it. The blocks are our own encoding, not the
wire's, so that they can be compared whoever answers.
"""

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from holdfast.provider import size
from holdfast.provider.request import ProviderMessage, Request, ToolDefinition

NAME_CHARS: Final = 16

_encode = msgspec.json.Encoder(order="deterministic").encode


def blocks(request: Request) -> list[bytes]:
    """Tools, system texts and messages, each by itself."""
    return [_encode(block) for block in (*request.tools, *request.system, *request.messages)]


class Named(msgspec.Struct, frozen=True):
    """A name for each block (two with the same bytes have the same), and how long all of them are."""

    names: list[str]
    characters: int


class _Block(NamedTuple):
    """The block is held, so that no other can have its identity."""

    block: ProviderMessage
    name: str
    characters: int


class Names:
    """The names of messages that were sent before: one that is the same object is not encoded again."""

    def __init__(self) -> None:
        self.known: dict[int, _Block] = {}


def named(request: Request, known: Names | None = None) -> Named:
    """The blocks of a request by name; `known` remembers those of messages from request to request."""
    before = {} if known is None else known.known
    messages: dict[int, _Block] = {}
    names: list[str] = []
    characters = 0
    for block in (*request.tools, *request.system):
        data = _encode(block)
        names.append(_name(data))
        characters += len(data)
    for message in request.messages:
        found = before.get(id(message))
        if found is None:
            data = _encode(message)
            found = _Block(message, _name(data), size.of_message(message, len(data)))
        messages[id(message)] = found
        names.append(found.name)
        characters += found.characters
    if known is not None:
        known.known = messages
    return Named(names, characters)


def names_of(blocks: Iterable[ToolDefinition | str]) -> list[str]:
    """The names of blocks that stand before the messages."""
    return [_name(_encode(block)) for block in blocks]


def _name(block: bytes) -> str:
    return hashlib.sha256(block).hexdigest()[:NAME_CHARS]


def first_difference(before: list[bytes], after: list[bytes]) -> int | None:
    """The index of the first block of `before` that `after` does not begin with; None when it extends it."""
    for index, block in enumerate(before):
        if index >= len(after) or after[index] != block:
            return index
    return None
