"""Streams on the Chat Completions wire, as its many servers write them."""

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
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from holdfast.provider.wire.openai_chat.decode import ChatDecoder
from holdfast.schema.usage import CacheTokens, Tokens
from tests.provider.talking import decode, text_of, thought_of

DONE = b"data: [DONE]\n\n"


def frame(**fields: Any) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode({"id": "r1", **fields})


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return frame(choices=[{"index": 0, "delta": fields, "finish_reason": finish}])


def fragment(**fields: Any) -> bytes:
    return delta(tool_calls=[fields])


def heard(*parts: bytes, field: str | None = None) -> list[ProviderEvent]:
    return decode(ChatDecoder("acme", field), b"".join(parts))


def between(events: list[ProviderEvent]) -> list[ProviderEvent]:
    """Without the step's beginning and end."""
    assert events[0] == StepStart()
    assert isinstance(events[-2], StepFinish)
    assert events[-1] == Finish()
    return events[1:-2]


def calls(events: list[ProviderEvent]) -> list[ToolCalled]:
    return [event for event in events if isinstance(event, ToolCalled)]


def test_text_and_usage_in_the_last_chunk() -> None:
    """Usage after the reason, in a chunk without choices; counts are made disjoint."""
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "total_tokens": 130,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    events = heard(
        delta(role="assistant", content=""),
        delta(content="Hel"),
        delta(content="lo"),
        delta("stop"),
        frame(choices=[], usage=usage),
        DONE,
    )

    assert events == [
        StepStart(),
        TextStart(id="text-0"),
        TextDelta(id="text-0", text="Hel"),
        TextDelta(id="text-0", text="lo"),
        TextEnd(id="text-0"),
        StepFinish(
            reason="stop",
            tokens=Tokens(total=130, input=30, output=10, reasoning=20, cache=CacheTokens(read=60, write=10)),
            raw_reason="stop",
            metadata={"openaiCompatible": {"id": "r1"}},
        ),
        Finish(),
    ]


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, (0, 0, 0, 0, None)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": None}, (5, 2, 0, 0, None)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, (1, 2, 0, 4, None)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "total_tokens": 10,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            (5, 2, 3, 0, 10),
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "completion_tokens_details": {"reasoning_tokens": 9},
            },
            (5, 0, 2, 0, None),
        ),
    ],
)
def test_usage_by_server(usage: dict[str, Any] | None, tokens: tuple[int | None, ...]) -> None:
    """Absent, DeepSeek's names, thinking counted beside the completion; never a negative count."""
    finish = heard(delta("stop"), frame(choices=[], usage=usage), DONE)[-2]

    assert isinstance(finish, StepFinish)
    told = finish.tokens
    assert (told.input, told.output, told.reasoning, told.cache.read, told.total) == tokens


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
@pytest.mark.parametrize("stated", [True, False])
def test_thinking_by_field(field: str, stated: bool) -> None:
    """Each of the three fields, named by the catalogue or found; a block ends where the other begins."""
    events = heard(
        delta(**{field: "Hm"}),
        delta(**{field: "", "content": "Yes"}),
        delta(**{field: "So"}),
        delta("stop"),
        DONE,
        field=field if stated else None,
    )

    assert between(events) == [
        ReasoningStart(id="reasoning-0"),
        ReasoningDelta(id="reasoning-0", text="Hm"),
        ReasoningEnd(id="reasoning-0"),
        TextStart(id="text-1"),
        TextDelta(id="text-1", text="Yes"),
        TextEnd(id="text-1"),
        ReasoningStart(id="reasoning-2"),
        ReasoningDelta(id="reasoning-2", text="So"),
        ReasoningEnd(id="reasoning-2"),
    ]


def test_opaque_thinking_is_gathered() -> None:
    """A router's items are joined from their pieces, and come back with the end of the block."""
    text = {"type": "reasoning.text", "index": 0, "format": "f"}
    events = heard(
        delta(reasoning="H", reasoning_details=[{**text, "text": "H"}]),
        delta(reasoning="m", reasoning_details=[{**text, "text": "m", "signature": None}]),
        delta(reasoning_details=[{**text, "text": "", "signature": "s"}]),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "x", "index": 1}]),
        delta(content="Yes"),
        delta("stop"),
        DONE,
    )

    assert between(events)[:4] == [
        ReasoningStart(id="reasoning-0"),
        ReasoningDelta(id="reasoning-0", text="H"),
        ReasoningDelta(id="reasoning-0", text="m"),
        ReasoningEnd(
            id="reasoning-0",
            metadata={
                "openaiCompatible": {
                    "reasoning_details": [
                        {**text, "text": "Hm", "signature": "s"},
                        {"type": "reasoning.encrypted", "data": "x", "index": 1},
                    ]
                }
            },
        ),
    ]


def test_calls_in_fragments() -> None:
    """Parallel calls, told apart by index although their fragments mix, complete at the reason."""
    events = heard(
        delta(content="I look"),
        fragment(index=0, id="a", function={"name": "read", "arguments": ""}),
        fragment(index=1, id="b", function={"name": "list", "arguments": '{"x'}),
        fragment(index=0, function={"arguments": '{"p":1}'}),
        fragment(index=1, function={"arguments": '":2}'}),
        delta("tool_calls"),
        DONE,
    )

    assert between(events)[2:] == [
        TextEnd(id="text-0"),
        ToolInputStart(id="a", name="read"),
        ToolInputStart(id="b", name="list"),
        ToolInputDelta(id="b", text='{"x'),
        ToolInputDelta(id="a", text='{"p":1}'),
        ToolInputDelta(id="b", text='":2}'),
        ToolInputEnd(id="a"),
        ToolCalled(id="a", name="read", input={"p": 1}),
        ToolInputEnd(id="b"),
        ToolCalled(id="b", name="list", input={"x": 2}),
    ]
    assert events[-2].reason == "tool-calls"


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        (  # every call has the index 0
            [
                {"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}},
                {"index": 0, "id": "b", "function": {"name": "y", "arguments": "{}"}},
            ],
            [("a", "x", {}), ("b", "y", {})],
        ),
        (  # no index at all
            [
                {"id": "a", "function": {"name": "x", "arguments": '{"p":'}},
                {"function": {"arguments": "1}"}},
                {"id": "b", "function": {"name": "y"}},
            ],
            [("a", "x", {"p": 1}), ("b", "y", {})],
        ),
        (  # the id comes late
            [
                {"index": 0, "function": {"name": "x", "arguments": '{"p"'}},
                {"index": 0, "id": "a", "function": {"arguments": ":1}"}},
            ],
            [("a", "x", {"p": 1})],
        ),
        (  # the id is repeated with each fragment
            [
                {"index": 0, "id": "a", "function": {"name": "x", "arguments": '{"p"'}},
                {"index": 0, "id": "a", "function": {"name": "", "arguments": ":1}"}},
            ],
            [("a", "x", {"p": 1})],
        ),
        (  # the arguments are an object
            [{"index": 0, "id": "a", "function": {"name": "x", "arguments": {"p": 1}}}],
            [("a", "x", {"p": 1})],
        ),
    ],
)
def test_calls_by_server(
    fragments: list[dict[str, Any]], expected: list[tuple[str, str, dict[str, Any]]]
) -> None:
    """Servers that number badly are understood; the input told in deltas is the input of the call."""
    events = heard(*(fragment(**fields) for fields in fragments), delta("stop"), DONE)

    assert [(call.id, call.name, call.input) for call in calls(events)] == expected
    assert events[-2].reason == "tool-calls"
    for call in calls(events):
        told = "".join(e.text for e in events if isinstance(e, ToolInputDelta) and e.id == call.id)
        assert msgspec.json.decode(told or "{}") == call.input


def test_a_call_without_id_gets_a_steady_one() -> None:
    """The same stream gives the same id, two calls of it two."""
    stream = [fragment(index=n, function={"name": "x", "arguments": "{}"}) for n in range(2)]
    first, second = calls(heard(*stream, delta("stop"), DONE)), calls(heard(*stream, delta("stop"), DONE))

    assert first == second
    assert len({call.id for call in first}) == 2
    assert all(call.id.startswith("call_") for call in first)


def test_the_legacy_call() -> None:
    """`function_call`, which old servers still speak."""
    events = heard(
        delta(function_call={"name": "x", "arguments": '{"p"'}),
        delta(function_call={"arguments": ":1}"}),
        delta("function_call"),
        DONE,
    )

    assert [(call.name, call.input) for call in calls(events)] == [("x", {"p": 1})]
    assert (events[-2].reason, events[-2].raw_reason) == ("tool-calls", "function_call")


def test_what_hangs_on_a_call_is_kept() -> None:
    """A signature that a server attaches to a call comes back with it."""
    extra = {"google": {"thought_signature": "s"}}
    events = heard(
        fragment(index=0, id="a", function={"name": "x"}, extra_content=extra), delta("tool_calls"), DONE
    )

    assert calls(events)[0].metadata == {"openaiCompatible": {"extra_content": extra}}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content-filter"),
        ("tool_calls", "tool-calls"),
        ("function_call", "tool-calls"),
        ("error", "error"),
        ("something_new", "other"),
    ],
)
def test_why_it_stopped(said: str, reason: str) -> None:
    """Each reason of the wire, and the server's own word beside it."""
    finish = heard(delta(content="x"), delta(said), DONE)[-2]

    assert isinstance(finish, StepFinish)
    assert (finish.reason, finish.raw_reason) == (reason, said)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "x", "code": "context_length_exceeded"}, "context-overflow"),
        ({"message": "Provider returned error", "code": 429}, "rate-limit"),
        ("upstream overloaded", "overloaded"),
    ],
)
def test_an_error_ends_it(error: object, kind: str) -> None:
    """An error object inside the stream is the last word, whatever follows."""
    events = heard(delta(content="x"), frame(error=error), delta("stop"), DONE)

    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == kind


def test_a_stream_without_reason_failed() -> None:
    """`[DONE]` is no reason; a reason without `[DONE]` is an end."""
    broken, ended = heard(delta(content="x"), DONE), heard(delta(content="x"), delta("stop"))

    assert isinstance(broken[-1], Failed)
    assert (broken[-1].error.kind, broken[-1].error.retryable) == ("no-finish", True)
    assert ended[-1] == Finish()


def test_odd_frames_are_understood() -> None:
    """An empty reason, null fields, other choices, content as items, a refusal: none of them breaks it."""
    events = heard(
        frame(choices=None),
        frame(choices=[{"index": 0, "delta": {"content": "a", "tool_calls": None}, "finish_reason": ""}]),
        frame(choices=[{"index": 1, "delta": {"content": "other"}}]),
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]),
        delta(content=[{"type": "text", "text": "b"}]),
        delta(refusal="No."),
        delta("stop"),
        DONE,
    )

    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert texts == ["a", "b", "No."]
    assert ReasoningDelta(id="reasoning-1", text="Hm") in events


def test_a_call_after_the_reason_is_a_call() -> None:
    """Some servers say why they stop before they say the call; a call that is only said again is one."""
    late = fragment(index=0, id="c", function={"name": "read", "arguments": "{}"})
    events = heard(delta(content="a"), delta("stop"), late, DONE)

    assert between(events)[3:] == [
        ToolInputStart(id="c", name="read"),
        ToolInputDelta(id="c", text="{}"),
        ToolInputEnd(id="c"),
        ToolCalled(id="c", name="read", input={}),
    ]
    assert isinstance(events[-2], StepFinish)
    assert events[-2].reason == "tool-calls"
    assert calls(heard(late, delta("tool_calls"), late, DONE)) == [ToolCalled(id="c", name="read", input={})]


def test_a_call_without_a_name_gets_a_word_for_it() -> None:
    """The model can then be told that there is no such tool; an empty name would be refused with it."""
    events = heard(fragment(index=0, id="c", function={"arguments": "{}"}), delta("tool_calls"), DONE)

    assert between(events)[0] == ToolInputStart(id="c", name="unnamed")
    assert calls(events) == [ToolCalled(id="c", name="unnamed", input={})]


def test_two_calls_of_one_id_are_told_apart() -> None:
    """What the runtime knows them by must differ."""
    both = [
        {"index": 0, "id": "c", "function": {"name": "read", "arguments": "{}"}},
        {"index": 1, "id": "c", "function": {"name": "read", "arguments": '{"a":1}'}},
    ]
    events = heard(delta(tool_calls=both), delta("tool_calls"), DONE)

    assert [(call.id, call.input) for call in calls(events)] == [("c", {}), ("c-2", {"a": 1})]


def test_the_first_answer_is_heard_wherever_it_stands() -> None:
    """Another answer in the same chunk, or a choice without a number, hides nothing."""
    other = {"index": 1, "delta": {"content": "no"}}
    mixed = frame(choices=[other, {"index": 0, "delta": {"content": "yes"}}])
    unnumbered = frame(choices=[{"index": None, "delta": {"content": "!"}, "finish_reason": "stop"}])

    assert text_of(heard(mixed, frame(choices=[other]), unnumbered, DONE)) == "yes!"


def test_thinking_in_another_field_than_stated_is_heard() -> None:
    """The catalogue may be wrong about a server."""
    events = heard(delta(reasoning="Hm"), delta("stop", content="x"), DONE, field="reasoning_content")

    assert (thought_of(events), text_of(events)) == ("Hm", "x")
