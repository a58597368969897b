"""Streams on the Messages wire, event by event."""

from typing import Any

import msgspec
import pytest

from holdfast.provider.request.events import (
    Failed,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCalled,
    ToolFailed,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResulted,
)
from holdfast.provider.wire.anthropic.decode import MessagesDecoder
from holdfast.schema.usage import CacheTokens, Tokens
from tests.provider.talking import decode


def frame(type: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (type.encode(), msgspec.json.encode({"type": type, **fields}))


def blocks(*given: tuple[dict[str, Any], list[dict[str, Any]]]) -> bytes:
    made = b""
    for index, (start, deltas) in enumerate(given):
        made += frame("content_block_start", index=index, content_block=start)
        made += b"".join(frame("content_block_delta", index=index, delta=delta) for delta in deltas)
        made += frame("content_block_stop", index=index)
    return made


USAGE = {
    "input_tokens": 7,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 200,
    "output_tokens": 1,
}
START = frame("message_start", message={"id": "msg_1", "model": "m", "usage": USAGE})
END = frame(
    "message_delta",
    delta={"stop_reason": "end_turn", "stop_sequence": None},
    usage={"output_tokens": 50, "output_tokens_details": {"thinking_tokens": 20}},
) + frame("message_stop")
FINISHED = [
    StepFinish(
        reason="stop",
        tokens=Tokens(input=7, output=30, reasoning=20, cache=CacheTokens(read=200, write=30)),
        raw_reason="end_turn",
        metadata={"anthropic": {"id": "msg_1"}},
    ),
    Finish(),
]


def heard(*parts: bytes) -> list[ProviderEvent]:
    return decode(MessagesDecoder("acme"), b"".join(parts))


def test_thinking_text_and_usage() -> None:
    """Signatures and hidden thinking come at the end of their block; counts are disjoint and cumulative."""
    events = heard(
        START,
        frame("ping"),
        blocks(
            (
                {"type": "thinking", "thinking": "", "signature": ""},
                [
                    {"type": "thinking_delta", "thinking": "Hm"},
                    {"type": "signature_delta", "signature": "ab"},
                    {"type": "signature_delta", "signature": "cd"},
                ],
            ),
            ({"type": "redacted_thinking", "data": "xyz"}, []),
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Yes"}]),
        ),
        END,
    )

    hidden = {"anthropic": {"redactedData": "xyz"}}
    assert events == [
        StepStart(),
        ReasoningStart(id="0"),
        ReasoningDelta(id="0", text="Hm"),
        ReasoningEnd(id="0", metadata={"anthropic": {"signature": "abcd"}}),
        ReasoningStart(id="1", metadata=hidden),
        ReasoningEnd(id="1", metadata=hidden),
        TextStart(id="2"),
        TextDelta(id="2", text="Yes"),
        TextEnd(id="2"),
        *FINISHED,
    ]


@pytest.mark.parametrize(
    ("pieces", "input", "invalid"),
    [
        (['{"a', '": 1}'], {"a": 1}, None),
        ([], {}, None),
        ([""], {}, None),
        (['{"a": '], {}, '{"a": '),
        (["[1]"], {}, "[1]"),
        (['"x"'], {}, '"x"'),
    ],
)
def test_a_call_in_fragments(pieces: list[str], input: dict[str, Any], invalid: str | None) -> None:
    """Fragments are put together; what is no object is kept as it was written."""
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    events = heard(
        START, blocks(({"type": "tool_use", "id": "t1", "name": "read", "input": {}}, deltas)), END
    )

    assert events[1:-2] == [
        ToolInputStart(id="t1", name="read"),
        *(ToolInputDelta(id="t1", text=piece) for piece in pieces if piece),
        ToolInputEnd(id="t1"),
        ToolCalled(id="t1", name="read", input=input, invalid=invalid),
    ]


def test_a_call_that_comes_whole() -> None:
    """Servers that imitate the wire may give the input at the start."""
    events = heard(START, blocks(({"type": "tool_use", "id": "t1", "name": "x", "input": {"a": 1}}, [])), END)

    assert events[-3] == ToolCalled(id="t1", name="x", input={"a": 1})


def test_tools_at_the_provider() -> None:
    """Their calls and answers are hosted; the answer is kept exactly, with its type."""
    found = [{"type": "web_search_result", "url": "u", "encrypted_content": "e"}]
    broken = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    events = heard(
        START,
        blocks(
            (call, [{"type": "input_json_delta", "partial_json": '{"query":"q"}'}]),
            ({"type": "web_search_tool_result", "tool_use_id": "s1", "content": found}, []),
            ({"type": "web_search_tool_result", "tool_use_id": "s2", "content": broken}, []),
            (
                {"type": "text", "text": "", "citations": []},
                [{"type": "text_delta", "text": "So"}, {"type": "citations_delta", "citation": {"url": "u"}}],
            ),
        ),
        END,
    )

    metadata = {"anthropic": {"type": "web_search_tool_result"}}
    assert events[1:-2] == [
        ToolInputStart(id="s1", name="web_search", hosted=True),
        ToolInputDelta(id="s1", text='{"query":"q"}'),
        ToolInputEnd(id="s1"),
        ToolCalled(id="s1", name="web_search", input={"query": "q"}, hosted=True),
        ToolResulted(id="s1", name="web_search", output=found, metadata=metadata),
        ToolFailed(id="s2", name="web_search", error="max_uses_exceeded", output=broken, metadata=metadata),
        TextStart(id="3"),
        TextDelta(id="3", text="So"),
        TextEnd(id="3", metadata={"anthropic": {"citations": [{"url": "u"}]}}),
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool-calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content-filter"),
        ("pause_turn", "other"),
        ("something_new", "other"),
    ],
)
def test_why_it_stopped(said: str, reason: str) -> None:
    """Each reason of the wire, and the provider's own word beside it."""
    end = frame("message_delta", delta={"stop_reason": said}, usage={"output_tokens": 1})
    finish = heard(START, end, frame("message_stop"))[-2]

    assert isinstance(finish, StepFinish)
    assert (finish.reason, finish.raw_reason) == (reason, said)


def test_an_error_ends_it() -> None:
    """After an error inside the stream nothing is said, not even by the end."""
    events = heard(START, frame("error", error={"type": "overloaded_error", "message": "Overloaded"}))

    assert events[0] == StepStart()
    assert len(events) == 2
    assert isinstance(events[1], Failed)
    assert events[1].error.kind == "overloaded"


def test_a_stream_without_reason_failed() -> None:
    """Breaking off without a reason is a failure that may be tried again; after a reason it is an end."""
    text = frame("content_block_start", index=0, content_block={"type": "text", "text": ""})
    broken, ended = heard(START, text), heard(START, text, END.split(b"event: message_stop")[0])

    assert isinstance(broken[-1], Failed)
    assert (broken[-1].error.kind, broken[-1].error.retryable) == ("no-finish", True)
    assert ended == [StepStart(), TextStart(id="0"), TextEnd(id="0"), *FINISHED]


def test_what_is_unknown_is_let_through() -> None:
    """New events, blocks, deltas and fields do not break an old reader; a torn surrogate pair neither."""
    torn = (
        b'data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\\ud83d"}}\n\n'
    )
    events = heard(
        START,
        frame("brand_new", x=1),
        blocks(({"type": "novelty", "x": 1}, [{"type": "novel_delta"}])),
        frame("content_block_start", index=1, content_block={"type": "text", "text": "", "new": None}),
        frame("content_block_delta", index=1, delta={"type": "novel_delta"}),
        frame("content_block_delta", index=9, delta={"type": "text_delta", "text": "lost"}),
        torn,
        END,
    )

    assert events[1:-2] == [TextStart(id="1"), TextDelta(id="1", text="\ufffd"), TextEnd(id="1")]


def test_an_index_that_is_opened_twice_ends_what_was_there() -> None:
    """Its words, its signature and its call are kept."""
    text = frame("content_block_start", index=0, content_block={"type": "text", "text": "abc"})
    tool = {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a"}}
    call = frame("content_block_start", index=0, content_block=tool)

    assert heard(START, text, text, call, call, END)[1:-2] == [
        TextStart(id="0"),
        TextDelta(id="0", text="abc"),
        TextEnd(id="0"),
        TextStart(id="0"),
        TextDelta(id="0", text="abc"),
        TextEnd(id="0"),
        *[
            ToolInputStart(id="t", name="read"),
            ToolInputEnd(id="t"),
            ToolCalled(id="t", name="read", input={"path": "a"}),
        ]
        * 2,
    ]
