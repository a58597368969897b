"""The mock provider's answers as data, independent of the wire."""

from typing import Any, Literal

import msgspec

Reason = Literal["stop", "length", "tool-calls", "content-filter"]

Misbehaviour = Literal[
    "rate-limit",  # 429; with Retry-After when `retry_after` is set
    "server-error",  # 500
    "overloaded",  # 503 or the wire's own
    "overflow",  # 400 with the wire's own error
    "auth",  # 401 that echoes the key it was given
    "html",  # a page, with 200
    "json-error",  # an error object, with 200
    "empty",  # 200 and nothing
    "stall",  # the frames before `after`, then silence until `release`
    "no-answer",  # not even a head until `release`
    "cut",  # the frames before `after`, then the connection is closed
    "malformed",  # the frames before `after`, then one that is no JSON
    "error-frame",  # the frames before `after`, then an error of the wire's own
    "no-finish",  # everything but the reason and what follows it
]


class Said(msgspec.Struct, frozen=True):
    """A part of a reply."""


class Say(Said, frozen=True):
    """Text."""

    text: str


class Think(Said, frozen=True):
    """Reasoning, signed where the wire signs."""

    text: str
    signature: str = "mock-signature"


class Call(Said, frozen=True):
    """A tool call. `raw` replaces the input's JSON, to send one that is invalid."""

    name: str
    input: dict[str, Any] = {}
    id: str = "call_mock_1"
    raw: str | None = None

    def arguments(self) -> str:
        return self.raw if self.raw is not None else msgspec.json.encode(self.input).decode()


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Disjoint counts; each format reports them its own way."""

    input: int = 10
    output: int = 5
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0


class Reply(msgspec.Struct, frozen=True):
    """A good answer. Text is cut into deltas of `delta_characters`; `pace_ms` is waited before each frame."""

    said: tuple[Say | Think | Call, ...]
    usage: Usage = Usage()
    reason: Reason | None = None
    delta_characters: int = 8
    pace_ms: int = 0

    def why(self) -> Reason:
        """The stated reason, else the one that fits."""
        called = any(isinstance(part, Call) for part in self.said)
        return self.reason or ("tool-calls" if called else "stop")


class Trouble(msgspec.Struct, frozen=True):
    """A bad answer. Where frames come first, they are the first `after` ones of `reply`."""

    kind: Misbehaviour
    retry_after: str | None = None
    after: int = 3
    reply: Reply = Reply((Say("This is the beginning of an answer that will not end well."),))


class Raw(msgspec.Struct, frozen=True):
    """Exactly these bytes, as chunks of one response."""

    chunks: tuple[bytes, ...]
    status: int = 200
    headers: dict[str, str] = msgspec.field(default_factory=lambda: {"content-type": "text/event-stream"})


Turn = Reply | Trouble | Raw


def pieces(text: str, size: int) -> list[str]:
    """`text` in deltas; an empty one has none."""
    return [text[at : at + size] for at in range(0, len(text), max(1, size))]
