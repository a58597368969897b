"""A prompt cache by Anthropic's published rules, simulated. Pure: bodies and moments in, counts out.

The rules:
- what is cached is a prefix of the request by whole blocks: tools, then system texts, then the blocks of the
  messages, and nothing before a block may differ; another model, and for the messages another choice of tools
  or other thinking, is another prefix;
- at most four blocks are marked, and only there entries are written;
- an entry is found at a mark, or at one of the blocks before it: twenty places, the mark's own included;
- an entry lives five minutes, and longer each time it is used;
- a prefix below the least size is not cached, and nobody says so;
- a token that is read costs a tenth of a plain one, one that is written a quarter more.

Tokens are characters divided by four, which is near enough for ratios.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

CHARACTERS_A_TOKEN: Final = 4
READ_PRICE: Final = 0.1
WRITE_PRICE: Final = 1.25

Entries = Mapping[str, int]
"""The prefixes that the cache holds, by name, and when each of them ends, in milliseconds."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between models, or may change."""

    least: int = 1_024
    life_ms: int = 300_000
    places: int = 20
    marks_max: int = 4


class Block(msgspec.Struct, frozen=True):
    """One block of a body, under the name of all that ends with it."""

    name: str
    tokens: int
    marked: bool


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens of a request were read from the cache, written into it, or simply taken in."""

    read: int
    written: int
    plain: int

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.read + self.written + self.plain

    @property
    def cost(self) -> float:
        """In prices of a plain token."""
        return self.read * READ_PRICE + self.written * WRITE_PRICE + self.plain


class TooManyMarks(ValueError):
    """The provider refuses such a request."""


def send(
    entries: Entries, body: Mapping[str, Any], now_ms: int, rules: Rules | None = None
) -> tuple[Entries, Outcome]:
    """What the cache does with a request: the entries that it holds then, and how the request fared."""
    rules = rules or Rules()
    sent = blocks(body)
    marks = [index for index, block in enumerate(sent) if block.marked]
    if len(marks) > rules.marks_max:
        raise TooManyMarks(f"{len(marks)} blocks are marked, and {rules.marks_max} may be")
    alive = {name: end for name, end in entries.items() if end > now_ms}
    found = [hit for mark in marks if (hit := _found(alive, sent, mark, rules)) is not None]
    sizes = list(_sizes(sent))
    kept = [mark for mark in marks if sizes[mark] >= rules.least]
    for used in (*found, *kept):
        alive[sent[used].name] = now_ms + rules.life_ms
    read = sizes[max(found)] if found else 0
    written = max(0, sizes[kept[-1]] - read) if kept else 0
    total = sizes[-1] if sizes else 0
    return alive, Outcome(read=read, written=written, plain=total - read - written)


def _found(entries: Entries, sent: list[Block], mark: int, rules: Rules) -> int | None:
    """The longest entry that is seen from a mark."""
    seen = range(mark, max(-1, mark - rules.places), -1)
    return next((index for index in seen if sent[index].name in entries), None)


def _sizes(sent: list[Block]) -> Iterator[int]:
    total = 0
    for block in sent:
        total += block.tokens
        yield total


def blocks(body: Mapping[str, Any]) -> list[Block]:
    """The blocks of a Messages body, in the order in which they are cached."""
    said = hashlib.sha256(_encode(body.get("model")))
    made = []
    for level, content in _contents(body):
        text = _encode({name: value for name, value in content.items() if name != "cache_control"})
        said.update(level)
        said.update(hashlib.sha256(text).digest())
        tokens = round(len(text.decode()) / CHARACTERS_A_TOKEN)
        made.append(Block(said.hexdigest(), tokens, "cache_control" in content))
    return made


def _contents(body: Mapping[str, Any]) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """Each block with what it stands under: two are the same only under the same."""
    for tool in body.get("tools", ()):
        yield b"tools", tool
    for text in body.get("system", ()):
        yield b"system", text
    asked = _encode([body.get("tool_choice"), body.get("thinking")])
    for message in body["messages"]:
        for block in message["content"]:
            yield asked + message["role"].encode(), block


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
