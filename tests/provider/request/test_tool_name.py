"""Calls whose name the model left out or made up, on each wire."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.events import Finish, ToolCalled, ToolInputStart
from holdfast.provider.request.pieces import UNNAMED, fitted_name
from tests.provider.talking import ADAPTERS, a_request, decode

CALL = {"type": "function_call", "call_id": "c", "id": "fc", "arguments": "{}"}
STREAMS: dict[WireKind, list[Any]] = {
    WireKind.ANTHROPIC: [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c"}},
        {"type": "content_block_stop", "index": None},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ],
    WireKind.OPENAI_CHAT: [
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {}}]}}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ],
    WireKind.OPENAI_RESPONSES: [
        {"type": "response.output_item.added", "output_index": 0, "item": CALL},
        {"type": "response.output_item.done", "output_index": 0, "item": CALL},
        {"type": "response.completed", "response": {}},
    ],
    WireKind.GEMINI: [
        {
            "candidates": [
                {"content": {"parts": [{"functionCall": {"id": "c", "args": {}}}]}, "finishReason": "STOP"}
            ]
        }
    ],
}


@pytest.mark.parametrize("wire", STREAMS)
def test_a_call_is_never_without_a_name(wire: WireKind) -> None:
    """It is one that no tool has, so the model hears of it; an empty one would be refused when sent back."""
    stream = b"".join(b"data: %s\n\n" % msgspec.json.encode(frame) for frame in STREAMS[wire])
    events = decode(ADAPTERS[wire].decoder(a_request(wire)), stream)

    assert [event.name for event in events if isinstance(event, ToolInputStart)] == [UNNAMED]
    assert [event for event in events if isinstance(event, ToolCalled)] == [
        ToolCalled(id="c", name=UNNAMED, input={})
    ]
    assert events[-1] == Finish()


@given(st.text(), st.text())
def test_any_name_can_be_sent_back(one: str, other: str) -> None:
    """Within what every wire takes; two names stay two."""
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", fitted_name(one))
    assert (fitted_name(one) == fitted_name(other)) == ((one or UNNAMED) == (other or UNNAMED))


@given(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True))
def test_a_name_that_a_tool_can_have_is_left_alone(name: str) -> None:
    """The model finds its call under the name that it was shown."""
    assert fitted_name(name) == name
