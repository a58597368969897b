"""Usage as servers write it, on each wire: whatever stands there, the counts come out whole and disjoint."""

from typing import Any

import msgspec
import pytest

from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.events import StepFinish
from holdfast.provider.wire import count
from holdfast.provider.wire.count import COUNT_MAX
from holdfast.schema.usage import CacheTokens, Tokens
from tests.provider.talking import ADAPTERS, a_request, decode


@pytest.mark.parametrize(
    ("said", "whole"),
    [(None, 0), (12.0, 12), (3.5, 3), (-5, 0), (7, 7), (10**30, COUNT_MAX), (1e300, COUNT_MAX)],
)
def test_a_count_is_a_whole_number(said: float | None, whole: int) -> None:
    """Never negative, never beyond all sense; none is nothing, and no total stays none."""
    assert count.whole(said) == whole
    assert count.total(said) == (None if said is None else whole)


@pytest.mark.parametrize(
    ("said", "parts"),
    [((10, 3, 2), (5, 3, 2)), ((10, 50, 2), (0, 10, 0)), ((10, 8, 8), (0, 8, 2)), ((-1, -1, -1), (0, 0, 0))],
)
def test_parts_do_not_exceed_their_whole(said: tuple[int, ...], parts: tuple[int, ...]) -> None:
    """What is left and the parts make up the whole, whatever the server claims."""
    assert count.parts(*said) == parts


def usage(wire: WireKind, prompt: Any, read: Any, output: Any) -> bytes:
    """The shortest answer with this usage."""
    frames: list[Any]
    match wire:
        case WireKind.ANTHROPIC:
            told = {"input_tokens": prompt, "cache_read_input_tokens": read, "output_tokens": output}
            frames = [
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": told},
                {"type": "message_stop"},
            ]
        case WireKind.OPENAI_CHAT:
            details = {"cached_tokens": read}
            told = {"prompt_tokens": prompt, "completion_tokens": output, "prompt_tokens_details": details}
            frames = [{"choices": [{"index": None, "delta": {}, "finish_reason": "stop"}], "usage": told}]
        case WireKind.OPENAI_RESPONSES:
            told = {"input_tokens": prompt, "output_tokens": output}
            told["input_tokens_details"] = {"cached_tokens": read}
            frames = [{"type": "response.completed", "response": {"usage": told}}]
        case _:
            told = {"promptTokenCount": prompt, "candidatesTokenCount": output}
            told["cachedContentTokenCount"] = read
            frames = [{"candidates": [{"finishReason": "STOP"}], "usageMetadata": told}]
    return b"".join(b"data: %s\n\n" % msgspec.json.encode(frame) for frame in frames)


@pytest.mark.parametrize("wire", ADAPTERS)
def test_odd_usage_fails_no_answer(wire: WireKind) -> None:
    """Fractions, negative counts, and a cache that served more than was asked."""
    for said, (input, read, output) in (
        ((12.0, 0, 3.5), (12, 0, 3)),
        ((-5, -1, -3), (0, 0, 0)),
        ((None, None, None), (0, 0, 0)),
        ((10, 50, 4), (0, 10, 4)),
    ):
        if wire is WireKind.ANTHROPIC and said[0] == 10:
            input, read = 10, 50  # noqa: PLW2901  Beside one another on this wire, not one in the other.
        events = decode(ADAPTERS[wire].decoder(a_request(wire)), usage(wire, *said))
        (finish,) = (event for event in events if isinstance(event, StepFinish))

        expected = Tokens(input=input, output=output, reasoning=0, cache=CacheTokens(read=read, write=0))
        assert finish.tokens == expected
