"""Streams with something wrong in them."""

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from holdfast.net.event_stream import EventStreamParser, ServerEvent
from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.events import (
    Failed,
    Finish,
    ProviderEvent,
    ReasoningEnd,
    ReasoningStart,
    TextEnd,
    TextStart,
    ToolInputEnd,
    ToolInputStart,
)
from tests.provider.oracle.streams import CHAT, GEMINI, MESSAGES, RESPONSES
from tests.provider.talking import ADAPTERS, a_request

STREAMS = {
    WireKind.ANTHROPIC: MESSAGES,
    WireKind.OPENAI_CHAT: CHAT,
    WireKind.OPENAI_RESPONSES: RESPONSES,
    WireKind.GEMINI: GEMINI,
}
JUNK = [None, 0, -1, 1.5, True, "", "x", [], ["x"], {}, {"a": 1}, {"type": "message"}, {"id": [1]}, 10**30]
ROUNDS = 400


@pytest.mark.parametrize("wire", STREAMS)
def test_whatever_a_field_holds(wire: WireKind) -> None:
    """One field gone or replaced: the decoder reads on, or refuses the frame; what it begins, it ends."""
    chance = random.Random(1)
    streams = [EventStreamParser().feed(stream) for stream in STREAMS[wire].values()]
    for _ in range(ROUNDS):
        frames = chance.choice(streams)
        garbled = chance.choice([number for number, frame in enumerate(frames) if frame.data[:1] == b"{"])
        try:
            events = heard(wire, frames, garbled, chance)
        except msgspec.MsgspecError:
            continue  # The shell makes a failure of it.

        assert isinstance(events[-1], Failed | Finish)
        if isinstance(events[-1], Finish):
            assert begun(events) == ended(events)


def heard(
    wire: WireKind, frames: list[ServerEvent], garbled: int, chance: random.Random
) -> list[ProviderEvent]:
    decoder = ADAPTERS[wire].decoder(a_request(wire))
    events: list[ProviderEvent] = []
    for number, frame in enumerate(frames):
        data = garble(frame.data, chance) if number == garbled else frame.data
        events += decoder.feed(msgspec.structs.replace(frame, data=data))
        if events and isinstance(events[-1], Failed | Finish):
            return events
    return [*events, *decoder.close()]


def garble(data: bytes, chance: random.Random) -> bytes:
    value = msgspec.json.decode(data)
    holder, name = chance.choice(list(places(value)))
    if isinstance(holder, dict) and chance.random() < 0.3:
        del holder[name]
    else:
        holder[name] = chance.choice(JUNK)
    return msgspec.json.encode(value)


def places(value: Any) -> Any:
    """Everything inside, by what holds it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in list(pairs):
        yield value, name
        yield from places(inner)


def begun(events: list[ProviderEvent]) -> Counter[str]:
    return Counter(e.id for e in events if isinstance(e, TextStart | ReasoningStart | ToolInputStart))


def ended(events: list[ProviderEvent]) -> Counter[str]:
    return Counter(e.id for e in events if isinstance(e, TextEnd | ReasoningEnd | ToolInputEnd))
