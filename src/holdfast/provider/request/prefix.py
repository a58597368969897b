"""The blocks of a request, in send order and without cache marks: what law 7 compares. Pure.

Within one Context Epoch each request extends the one before it. The blocks are our own encoding, not the
wire's, so that they can be compared between providers.
"""

import hashlib
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Final

import msgspec

from holdfast.provider.request import size
from holdfast.provider.request.request import ProviderMessage, Request, ToolDefinition

NAME_CHARS: Final = 16

_encode = msgspec.json.Encoder(order="deterministic").encode


class Named(msgspec.Struct, frozen=True):
    """A name for each block (two with the same bytes have the same), and how long all of them are."""

    names: list[str]
    characters: int


class Names:
    """The names of the blocks that were sent last: those that are sent again are not encoded again."""

    def __init__(self) -> None:
        self._head: tuple[tuple[ToolDefinition, ...], tuple[str, ...]] = (), ()
        self._above = Named([], 0)
        self._messages: list[ProviderMessage] = []
        self._names: list[str] = []
        self._ends: list[int] = [0]
        """How many characters the messages have up to each of them."""

    def of(self, request: Request) -> Named:
        """See `named`."""
        head = tuple(request.tools), tuple(request.system)
        if head != self._head:
            encoded = [_encode(block) for block in (*request.tools, *request.system)]
            self._head = head
            self._above = Named([_name(data) for data in encoded], sum(map(len, encoded)))
        self._take(request.messages)
        return Named([*self._above.names, *self._names], self._above.characters + self._ends[-1])

    def _take(self, messages: Sequence[ProviderMessage]) -> None:
        same = common(self._messages, messages)
        del self._messages[same:], self._names[same:], self._ends[same + 1 :]
        for message in messages[same:]:
            data = _encode(message)
            self._messages.append(message)
            self._names.append(_name(data))
            self._ends.append(self._ends[-1] + size.of_message(message, len(data)))


def named(request: Request, known: Names | None = None) -> Named:
    """The blocks of a request by name; `known` remembers them from request to request."""
    return (known or Names()).of(request)


def names_of(blocks: Iterable[ToolDefinition | str]) -> list[str]:
    """The names of blocks that stand before the messages."""
    return [_name(_encode(block)) for block in blocks]


def _name(block: bytes) -> str:
    return hashlib.sha256(block).hexdigest()[:NAME_CHARS]


def common(before: Sequence[object], after: Sequence[object]) -> int:
    """How many of the very same objects two sequences begin with."""
    same = enumerate(map(is_, before, after))
    return next((index for index, is_same in same if not is_same), min(len(before), len(after)))
