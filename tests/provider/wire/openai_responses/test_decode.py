"""Streams on the Responses wire."""

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
from holdfast.provider.wire.openai_responses.decode import ResponsesDecoder
from holdfast.schema.usage import CacheTokens, Tokens
from tests.provider.talking import decode

USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 20},
    "total_tokens": 130,
}


def frame(kind: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))


def added(index: int, type: str, **fields: Any) -> bytes:
    return frame("response.output_item.added", output_index=index, item={"type": type, **fields})


def done(index: int, type: str, **fields: Any) -> bytes:
    return frame("response.output_item.done", output_index=index, item={"type": type, **fields})


def text(index: int, delta: str, part: int = 0) -> bytes:
    return frame("response.output_text.delta", output_index=index, content_index=part, delta=delta)


def summary(index: int, delta: str, part: int = 0) -> bytes:
    return frame("response.reasoning_summary_text.delta", output_index=index, summary_index=part, delta=delta)


def arguments(index: int, delta: str) -> bytes:
    return frame("response.function_call_arguments.delta", output_index=index, delta=delta)


def ended(kind: str = "completed", **fields: Any) -> bytes:
    return frame(f"response.{kind}", response={"id": "resp_1", "status": kind, **fields})


CREATED = frame("response.created", response={"id": "resp_1", "status": "in_progress"})


def heard(*parts: bytes, ids: bool = False) -> list[ProviderEvent]:
    return decode(ResponsesDecoder("openai", ids=ids), b"".join(parts))


def between(events: list[ProviderEvent]) -> list[ProviderEvent]:
    """Without the step's beginning and end."""
    assert events[0] == StepStart()
    assert isinstance(events[-2], StepFinish)
    assert events[-1] == Finish()
    return events[1:-2]


def test_text_and_usage() -> None:
    """Counts are made disjoint; the response's id and tier are kept."""
    events = heard(
        CREATED,
        frame("response.in_progress", response={"id": "resp_1"}),
        added(0, "message", id="msg_1", content=[]),
        frame("response.content_part.added", output_index=0, content_index=0, part={"type": "output_text"}),
        text(0, "Hel"),
        text(0, "lo"),
        frame("response.output_text.done", output_index=0, content_index=0, text="Hello"),
        done(0, "message", id="msg_1", content=[{"type": "output_text", "text": "Hello", "annotations": []}]),
        ended(usage=USAGE, service_tier="default"),
    )

    assert events == [
        StepStart(),
        TextStart(id="0.0"),
        TextDelta(id="0.0", text="Hel"),
        TextDelta(id="0.0", text="lo"),
        TextEnd(id="0.0"),
        StepFinish(
            reason="stop",
            tokens=Tokens(total=130, input=30, output=10, reasoning=20, cache=CacheTokens(read=60, write=10)),
            raw_reason="completed",
            metadata={"openai": {"id": "resp_1", "serviceTier": "default"}},
        ),
        Finish(),
    ]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, (0, 0, 0, 0, None)),
        ({"input_tokens": 5, "output_tokens": 2}, (5, 2, 0, 0, None)),
        (
            {
                "input_tokens": 5,
                "input_tokens_details": {"cached_tokens": 9},
                "output_tokens": 2,
                "output_tokens_details": {"reasoning_tokens": 9},
            },
            (0, 0, 2, 5, None),
        ),
    ],
)
def test_odd_usage(usage: dict[str, Any] | None, expected: tuple[int | None, ...]) -> None:
    """Absent or inconsistent; never a negative count."""
    finish = heard(CREATED, ended(usage=usage))[-2]

    assert isinstance(finish, StepFinish)
    told = finish.tokens
    assert (told.input, told.output, told.reasoning, told.cache.read, told.total) == expected


def test_thinking_in_parts() -> None:
    """Each part of a summary is a block; the last one's end brings what was encrypted at the item's end."""
    events = heard(
        CREATED,
        added(0, "reasoning", id="rs_1", summary=[], encrypted_content="unfinished"),
        frame("response.reasoning_summary_part.added", output_index=0, summary_index=0, part={}),
        summary(0, "First"),
        summary(0, "ly"),
        frame("response.reasoning_summary_part.done", output_index=0, summary_index=0, part={}),
        summary(0, "Then", 1),
        done(0, "reasoning", id="rs_1", summary=[{"text": "Firstly"}], encrypted_content="enc"),
        ended(),
    )

    item = {"openai": {"itemId": "rs_1"}}
    assert between(events) == [
        ReasoningStart(id="0.0", metadata=item),
        ReasoningDelta(id="0.0", text="First"),
        ReasoningDelta(id="0.0", text="ly"),
        ReasoningEnd(id="0.0", metadata=item),
        ReasoningStart(id="0.1", metadata=item),
        ReasoningDelta(id="0.1", text="Then"),
        ReasoningEnd(id="0.1", metadata={"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "enc"}}),
    ]


def test_hidden_thinking() -> None:
    """Thinking without a summary is an empty block when it must go back, and nothing when it need not."""
    hidden = heard(added(0, "reasoning", id="rs_1"), done(0, "reasoning", encrypted_content="enc"), ended())
    nothing = heard(added(0, "reasoning", id="rs_1"), done(0, "reasoning", summary=[]), ended())

    assert between(hidden) == [
        ReasoningStart(id="0.0", metadata={"openai": {"itemId": "rs_1"}}),
        ReasoningEnd(id="0.0", metadata={"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "enc"}}),
    ]
    assert between(nothing) == []


def test_thinking_in_the_open() -> None:
    """A server that shows the thinking itself; the block says so."""
    events = heard(
        added(0, "reasoning", id="rs_1"),
        frame("response.reasoning_text.delta", output_index=0, content_index=0, delta="Hm"),
        done(0, "reasoning", id="rs_1"),
        ended(),
    )

    item = {"openai": {"itemId": "rs_1", "open": True}}
    assert between(events) == [
        ReasoningStart(id="0.0", metadata=item),
        ReasoningDelta(id="0.0", text="Hm"),
        ReasoningEnd(id="0.0", metadata=item),
    ]


def test_items_in_parallel() -> None:
    """Items whose deltas mix are told apart by their place; ids are kept where they are wanted."""
    events = heard(
        CREATED,
        added(0, "message", id="msg_1", phase="commentary"),
        added(1, "function_call", id="fc_1", call_id="c1", name="read", arguments=""),
        added(2, "function_call", id="fc_2", call_id="c2", name="list", arguments=""),
        arguments(2, '{"x"'),
        text(0, "I look"),
        arguments(1, "{}"),
        arguments(2, ":2}"),
        done(2, "function_call", id="fc_2", call_id="c2", name="list", arguments='{"x":2}'),
        frame("response.function_call_arguments.done", output_index=1, arguments="{}"),
        done(1, "function_call", id="fc_1", call_id="c1", name="read", arguments="{}"),
        done(0, "message", id="msg_1", phase="commentary"),
        ended(),
        ids=True,
    )

    assert between(events) == [
        ToolInputStart(id="c1", name="read"),
        ToolInputStart(id="c2", name="list"),
        ToolInputDelta(id="c2", text='{"x"'),
        TextStart(id="0.0"),
        TextDelta(id="0.0", text="I look"),
        ToolInputDelta(id="c1", text="{}"),
        ToolInputDelta(id="c2", text=":2}"),
        ToolInputEnd(id="c2"),
        ToolCalled(id="c2", name="list", input={"x": 2}, metadata={"openai": {"itemId": "fc_2"}}),
        ToolInputEnd(id="c1"),
        ToolCalled(id="c1", name="read", input={}, metadata={"openai": {"itemId": "fc_1"}}),
        TextEnd(id="0.0", metadata={"openai": {"itemId": "msg_1", "phase": "commentary"}}),
    ]
    assert events[-2].reason == "tool-calls"


def test_a_call_that_comes_whole() -> None:
    """A server that sends no deltas of the arguments tells them with the item."""
    call = {"call_id": "c", "name": "read", "arguments": '{"p":1}'}
    events = heard(CREATED, added(0, "function_call", **{**call, "arguments": ""}))
    whole = heard(CREATED, done(0, "function_call", **call), ended())

    assert isinstance(events[-1], Failed)
    assert between(whole) == [
        ToolInputStart(id="c", name="read"),
        ToolInputDelta(id="c", text='{"p":1}'),
        ToolInputEnd(id="c"),
        ToolCalled(id="c", name="read", input={"p": 1}),
    ]


def test_an_answer_without_stream() -> None:
    """A server that tells everything in the last event is understood."""
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
    ]
    events = heard(ended(output=output))

    assert [type(event).__name__ for event in between(events)] == [
        *("ReasoningStart", "ReasoningDelta", "ReasoningEnd", "TextStart", "TextDelta", "TextEnd"),
        *("ToolInputStart", "ToolInputDelta", "ToolInputEnd", "ToolCalled"),
    ]
    assert events[-2].reason == "tool-calls"


@pytest.mark.parametrize("placed", [True, False])
def test_servers_that_leave_out_the_place(placed: bool) -> None:
    """Without `output_index`, on deltas or at all, items are told apart by id."""
    place = {"output_index": 0} if placed else {}
    events = heard(
        frame("response.output_item.added", **place, item={"type": "message", "id": "m1"}),
        frame("response.output_text.delta", item_id="m1", delta="a"),
        frame("response.output_text.delta", item_id="m1", delta="b"),
        frame("response.output_item.done", **place, item={"type": "message", "id": "m1"}),
        frame("response.output_text.delta", item_id="m2", delta="c"),
        ended(),
    )

    first = "0.0" if placed else "m1.0"
    assert between(events) == [
        TextStart(id=first),
        TextDelta(id=first, text="a"),
        TextDelta(id=first, text="b"),
        TextEnd(id=first),
        TextStart(id="m2.0"),
        TextDelta(id="m2.0", text="c"),
        TextEnd(id="m2.0"),
    ]


def test_annotations_and_refusals() -> None:
    """Both stay with their text, told while it streams or at its end."""
    cited = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    events = heard(
        added(0, "message", id="m"),
        text(0, "See"),
        frame("response.output_text.annotation.added", output_index=0, content_index=0, annotation=cited),
        frame("response.refusal.delta", output_index=0, content_index=1, delta="No."),
        done(0, "message", id="m"),
        added(1, "message", id="n"),
        text(1, "Too"),
        done(1, "message", content=[{"type": "output_text", "text": "Too", "annotations": [cited]}]),
        ended(),
    )

    assert [event for event in events if isinstance(event, TextEnd)] == [
        TextEnd(id="0.0", metadata={"openai": {"annotations": [cited]}}),
        TextEnd(id="0.1", metadata={"openai": {"refusal": True}}),
        TextEnd(id="1.0", metadata={"openai": {"annotations": [cited]}}),
    ]
    assert events[-2].reason == "stop"


SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
CODE = {
    "id": "ci_1",
    "type": "code_interpreter_call",
    "status": "completed",
    "code": "1+1",
    "container_id": "cntr",
    "outputs": [{"type": "logs", "logs": "2"}],
}
FILES = {
    "id": "fs_1",
    "type": "file_search_call",
    "status": "completed",
    "queries": ["q"],
    "results": [{"text": "t"}],
}


@pytest.mark.parametrize(
    ("item", "name", "input"),
    [
        (SEARCH, "web_search", {"action": {"type": "search", "query": "q"}}),
        (CODE, "code_interpreter", {"code": "1+1", "container_id": "cntr"}),
        (FILES, "file_search", {"queries": ["q"]}),
    ],
)
def test_hosted_tools(item: dict[str, Any], name: str, input: dict[str, Any]) -> None:
    """A call and its answer in one item, kept exactly as it came; no reason to call ours."""
    events = heard(added(0, item["type"], id=item["id"]), done(0, **item), ended())

    id = item["id"]
    assert between(events) == [
        ToolInputStart(id=id, name=name, hosted=True),
        ToolInputEnd(id=id),
        ToolCalled(id=id, name=name, input=input, hosted=True),
        ToolResulted(id=id, name=name, output=item),
    ]
    assert events[-2].reason == "stop"


def test_a_hosted_tool_that_failed() -> None:
    """Its error is told, the item is kept."""
    item = {"id": "mcp_1", "type": "mcp_call", "name": "x", "arguments": "{}", "error": "no route"}
    events = heard(added(0, "mcp_call", id="mcp_1"), done(0, **item), ended())

    assert between(events)[-1] == ToolFailed(id="mcp_1", name="mcp", error="no route", output=item)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"reason": "max_output_tokens"}, ("length", "max_output_tokens")),
        ({"reason": "content_filter"}, ("content-filter", "content_filter")),
        ({"reason": "something_new"}, ("other", "something_new")),
        (None, ("other", "incomplete")),
    ],
)
def test_why_it_is_incomplete(details: dict[str, str] | None, expected: tuple[str, str]) -> None:
    """Each reason of the wire; what was begun is ended."""
    events = heard(
        CREATED, added(0, "message"), text(0, "x"), ended("incomplete", incomplete_details=details)
    )

    assert (events[-2].reason, events[-2].raw_reason) == expected
    assert events[-3] == TextEnd(id="0.0")


@pytest.mark.parametrize(
    ("last", "kind", "retryable"),
    [
        (ended("failed", error={"code": "server_error", "message": "Sorry"}), "other", True),
        (ended("failed", error={"code": "rate_limit_exceeded", "message": "x"}), "rate-limit", True),
        (ended("failed", error={"code": "invalid_prompt", "message": "x"}), "content-filter", False),
        (ended("failed", error=None), "other", False),
        (frame("error", code="context_length_exceeded", message="x"), "context-overflow", False),
        (frame("error", error={"type": "x", "code": "insufficient_quota", "message": "x"}), "quota", False),
        (frame("error", code=None, message="Overloaded"), "overloaded", True),
    ],
)
def test_an_error_ends_it(last: bytes, kind: str, retryable: bool) -> None:
    """A failed response and an error are the last word, whatever follows."""
    events = heard(CREATED, added(0, "message"), text(0, "x"), last, ended())

    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, events[-1].error.retryable) == (kind, retryable)


def test_a_stream_without_an_end_failed() -> None:
    """Everything said and `[DONE]` are no end."""
    events = heard(CREATED, added(0, "message"), text(0, "x"), done(0, "message"), b"data: [DONE]\n\n")

    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, events[-1].error.retryable) == ("no-finish", True)


def test_what_is_not_known_is_let_through() -> None:
    """New kinds of events and items, null fields and empty deltas break nothing."""
    events = heard(
        frame("response.queued", response={"id": "resp_1"}),
        frame("keepalive", sequence_number=3),
        added(0, "computer_call", id="cu_1", action={}),
        done(0, "computer_call", id="cu_1"),
        frame("response.output_text.delta", output_index=1, delta=None),
        text(1, ""),
        frame("response.function_call_arguments.delta", output_index=9, delta="{"),
        ended(output=None, usage=None, incomplete_details=None),
    )

    assert between(events) == []
