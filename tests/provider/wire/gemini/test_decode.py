"""Streams on the Gemini wire."""

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
from holdfast.provider.wire.gemini.decode import GeminiDecoder
from holdfast.schema.usage import CacheTokens, Tokens
from tests.provider.talking import decode


def frame(**fields: Any) -> bytes:
    return b"data: %s\r\n\r\n" % msgspec.json.encode({"responseId": "r1", **fields})


def said(*parts: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **fields}
    if finish:
        candidate["finishReason"] = finish
    return frame(candidates=[candidate])


def thought(text: str, **fields: Any) -> dict[str, Any]:
    return {"text": text, "thought": True, **fields}


def call(name: str, args: Any = None, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args or {}, **fields}}


STOP = said({"text": ""}, finish="STOP")


def heard(*parts: bytes) -> list[ProviderEvent]:
    return decode(GeminiDecoder("google"), b"".join(parts))


def between(events: list[ProviderEvent]) -> list[ProviderEvent]:
    """Without the step's beginning and end."""
    assert events[0] == StepStart()
    assert isinstance(events[-2], StepFinish)
    assert events[-1] == Finish()
    return events[1:-2]


def calls(events: list[ProviderEvent]) -> list[ToolCalled]:
    return [event for event in events if isinstance(event, ToolCalled)]


def signed(signature: str) -> dict[str, Any]:
    return {"google": {"thoughtSignature": signature}}


def test_text_and_usage() -> None:
    """Counts are cumulative and made disjoint; what a later frame leaves out stays."""
    first = {"promptTokenCount": 100, "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 7}
    last = {"candidatesTokenCount": 10, "thoughtsTokenCount": 20, "totalTokenCount": 137}
    events = heard(
        said({"text": "Hel"}),
        frame(usageMetadata=first),
        said({"text": "lo"}, finish="STOP"),
        frame(usageMetadata=last),
    )

    assert events == [
        StepStart(),
        TextStart(id="text-0"),
        TextDelta(id="text-0", text="Hel"),
        TextDelta(id="text-0", text="lo"),
        TextEnd(id="text-0"),
        StepFinish(
            reason="stop",
            tokens=Tokens(total=137, input=47, output=10, reasoning=20, cache=CacheTokens(read=60, write=0)),
            raw_reason="STOP",
            metadata={"google": {"id": "r1"}},
        ),
        Finish(),
    ]


def test_thinking_and_signatures() -> None:
    """A block ends where another kind begins, or behind its signature; a signature may come alone."""
    events = heard(
        said(thought("Hm")),
        said(thought("m", thoughtSignature="YQ==")),
        said(thought("More")),
        said({"text": "Yes"}),
        said({"text": "", "thoughtSignature": "Yg=="}, finish="STOP"),
    )

    assert between(events) == [
        ReasoningStart(id="reasoning-0"),
        ReasoningDelta(id="reasoning-0", text="Hm"),
        ReasoningDelta(id="reasoning-0", text="m"),
        ReasoningEnd(id="reasoning-0", metadata=signed("YQ==")),
        ReasoningStart(id="reasoning-1"),
        ReasoningDelta(id="reasoning-1", text="More"),
        ReasoningEnd(id="reasoning-1"),
        TextStart(id="text-2"),
        TextDelta(id="text-2", text="Yes"),
        TextEnd(id="text-2", metadata=signed("Yg==")),
    ]


def test_a_signature_with_nothing_before_it() -> None:
    """It is kept on a block without words."""
    events = heard(said({"text": "", "thoughtSignature": "Yg=="}, finish="STOP"))

    assert between(events) == [TextStart(id="text-0"), TextEnd(id="text-0", metadata=signed("Yg=="))]


def test_calls_come_whole() -> None:
    """Several in one frame; the signature stays with the call that has it; the reason is ours."""
    events = heard(
        said({"text": "I look"}),
        said(
            {**call("read", {"path": "a"}, id="c1"), "thoughtSignature": "YQ=="},
            call("read", {"path": "b"}, id="c2"),
        ),
        STOP,
    )

    assert between(events)[2:] == [
        TextEnd(id="text-0"),
        ToolInputStart(id="c1", name="read"),
        ToolInputDelta(id="c1", text='{"path":"a"}'),
        ToolInputEnd(id="c1"),
        ToolCalled(id="c1", name="read", input={"path": "a"}, metadata=signed("YQ==")),
        ToolInputStart(id="c2", name="read"),
        ToolInputDelta(id="c2", text='{"path":"b"}'),
        ToolInputEnd(id="c2"),
        ToolCalled(id="c2", name="read", input={"path": "b"}),
    ]
    assert (events[-2].reason, events[-2].raw_reason) == ("tool-calls", "STOP")


def test_calls_without_ids_get_steady_ones() -> None:
    """The same stream gives the same ids, two equal calls two, another response others."""
    parts = (said(call("now")), said(call("now")), STOP)
    first, second = calls(heard(*parts)), calls(heard(*parts))
    (other, _) = calls(heard(*(part.replace(b"r1", b"r2") for part in parts)))

    assert first == second
    assert len({call.id for call in (*first, other)}) == 3
    assert all(call.id.startswith("call_gemini_") for call in first)


def test_code_that_ran_there() -> None:
    """A hosted call and its answer, kept exactly, paired although neither has an id."""
    code, result = {"language": "PYTHON", "code": "1+1"}, {"outcome": "OUTCOME_OK", "output": "2"}
    events = heard(
        said({"executableCode": code, "thoughtSignature": "YQ=="}),
        said({"codeExecutionResult": result}),
        STOP,
    )

    start, end, called, resulted = between(events)
    id = called.id
    own = {"call": "executableCode", "response": "codeExecutionResult", "thoughtSignature": "YQ=="}
    assert (start, end) == (
        ToolInputStart(id=id, name="code_execution", hosted=True),
        ToolInputEnd(id=id),
    )
    assert called == ToolCalled(
        id=id, name="code_execution", input=code, hosted=True, metadata={"google": own}
    )
    assert resulted == ToolResulted(id=id, name="code_execution", output=result, metadata={"google": own})
    assert events[-2].reason == "stop"


def test_code_that_failed_there() -> None:
    """Its outcome is the error, its output is kept."""
    result = {"outcome": "OUTCOME_FAILED", "output": "Traceback"}
    events = heard(said({"executableCode": {"code": "x"}}, {"codeExecutionResult": result}), STOP)

    failed = between(events)[-1]
    assert isinstance(failed, ToolFailed)
    assert (failed.error, failed.output) == ("OUTCOME_FAILED", result)


def test_other_tools_of_the_provider() -> None:
    """Their call and response are kept as they came, by their own id; search sources with the finish."""
    search = {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}, "id": "t"}
    found = {"toolType": "GOOGLE_SEARCH_WEB", "response": {"x": 1}, "id": "t"}
    grounding = {"webSearchQueries": ["q"]}
    events = heard(
        said({"toolCall": search}, {"toolResponse": found}),
        said({"text": "So"}, finish="STOP", groundingMetadata=grounding),
    )

    own = {"google": {"call": "toolCall", "response": "toolResponse"}}
    assert between(events)[2:4] == [
        ToolCalled(id="t", name="google_search_web", input=search, hosted=True, metadata=own),
        ToolResulted(id="t", name="google_search_web", output=found, metadata=own),
    ]
    assert events[-2].metadata == {"google": {"id": "r1", "groundingMetadata": grounding}}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content-filter"),
        ("RECITATION", "content-filter"),
        ("BLOCKLIST", "content-filter"),
        ("PROHIBITED_CONTENT", "content-filter"),
        ("SPII", "content-filter"),
        ("IMAGE_SAFETY", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("LANGUAGE", "other"),
        ("OTHER", "other"),
        ("SOMETHING_NEW", "other"),
    ],
)
def test_why_it_stopped(raw: str, reason: str) -> None:
    """Each reason of the wire, also without content, and the wire's own word beside it."""
    finish = heard(frame(candidates=[{"finishReason": raw, "finishMessage": "Because."}]))[-2]

    assert isinstance(finish, StepFinish)
    assert (finish.reason, finish.raw_reason) == (reason, raw)
    assert finish.metadata == {"google": {"id": "r1", "finishMessage": "Because."}}


def test_a_prompt_that_was_refused() -> None:
    """A blocked prompt is a failure that nobody retries, with the wire's reason."""
    events = heard(frame(promptFeedback={"blockReason": "PROHIBITED_CONTENT"}), STOP)

    assert isinstance(events[-1], Failed)
    error = events[-1].error
    assert (error.kind, error.retryable) == ("content-filter", False)
    assert str(error) == "google refused the prompt (PROHIBITED_CONTENT); change what was asked"


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"code": 503, "message": "x", "status": "UNAVAILABLE"}, "overloaded", True),
        ({"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED"}, "rate-limit", True),
        ({"code": 500, "message": "x", "status": "INTERNAL"}, "other", True),
        ({"code": 400, "message": "x", "status": "INVALID_ARGUMENT"}, "other", False),
    ],
)
def test_an_error_ends_it(error: dict[str, Any], kind: str, retryable: bool) -> None:
    """An error inside the stream is the last word, whatever follows."""
    events = heard(said({"text": "x"}), frame(error=error), STOP)

    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, events[-1].error.retryable) == (kind, retryable)


def test_a_stream_without_reason_failed() -> None:
    """The end of the body is no reason."""
    events = heard(said({"text": "x"}))

    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, events[-1].error.retryable) == ("no-finish", True)


def test_odd_frames_are_understood() -> None:
    """Null fields, other candidates, unknown kinds of parts, arguments as text: none of them breaks it."""
    events = heard(
        frame(candidates=None, usageMetadata=None, promptFeedback={"safetyRatings": []}),
        frame(candidates=[{"content": {"parts": [{"text": "other"}]}, "index": 1}]),
        frame(candidates=[{"content": {"role": "model"}, "safetyRatings": []}]),
        said({"inlineData": {"mimeType": "image/png", "data": ""}}, {"text": "a", "thought": None}),
        said(call("x", '{"p":1}', id="c"), call("y", '{"p', id="d")),
        STOP,
    )

    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a"]
    assert calls(events) == [
        ToolCalled(id="c", name="x", input={"p": 1}),
        ToolCalled(id="d", name="y", input={}, invalid='{"p'),
    ]
