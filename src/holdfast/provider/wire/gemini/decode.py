"""Reads a Gemini stream, frame by frame.

The wire has no blocks and no last word: text and thinking differ by a flag, so a block ends when
something else begins; calls come whole; counts are cumulative; the reason may come before the last frame, and
the end of the body closes. A stream that never gave a reason has broken off.
"""

import hashlib
from collections.abc import Sequence

import msgspec

from holdfast.errors import ProviderError
from holdfast.net.event_stream import ServerEvent
from holdfast.provider.request import pieces
from holdfast.provider.request.events import (
    Failed,
    Finish,
    FinishReason,
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
from holdfast.provider.wire import classify, count, frame
from holdfast.provider.wire.gemini.chunk import Candidate, Feedback, Frame, FunctionCall, Part, Usage
from holdfast.provider.wire.gemini.contents import CODE, DERIVED, OWN
from holdfast.schema import typed
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.schema.wire import JsonMap

_FRAMES = typed.decoder(Frame)

_REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content-filter",
    "RECITATION": "content-filter",
    "BLOCKLIST": "content-filter",
    "PROHIBITED_CONTENT": "content-filter",
    "SPII": "content-filter",
    "IMAGE_SAFETY": "content-filter",
    "IMAGE_PROHIBITED_CONTENT": "content-filter",
    "IMAGE_RECITATION": "content-filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MALFORMED_RESPONSE": "error",
}


class GeminiDecoder:
    """Reads one response."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._open = ""  # `text`, `reasoning` or nothing
        self._id = ""
        self._blocks = 0
        self._signature: str | None = None
        self._calls = 0
        self._called = False
        self._hosted = ""
        self._hosted_own: JsonMap = {}
        self._usage = Usage()
        self._stop: str | None = None
        self._response_id = ""
        self._extra: JsonMap = {}
        self._begun = self._over = False

    def feed(self, event: ServerEvent) -> Sequence[ProviderEvent]:
        if self._over:
            return ()
        body = frame.decode(_FRAMES, event.data)
        if body.error:
            self._over = True
            return [Failed(error=classify.of_object({"error": body.error}, provider=self._provider))]
        if body.usage_metadata is not None:
            self._count(body.usage_metadata)
        if not body.candidates:
            feedback = body.prompt_feedback
            return () if feedback is None or not feedback.block_reason else [self._blocked(feedback)]
        candidate = body.candidates[0]
        if candidate.index:
            return ()
        events: list[ProviderEvent] = []
        if not self._begun:
            self._begun = True
            self._response_id = body.response_id or ""
            events.append(StepStart())
        if candidate.content is not None and candidate.content.parts:
            for part in candidate.content.parts:
                self._add(part, events)
        if candidate.finish_reason is not None:
            self._stop = candidate.finish_reason
        if candidate.grounding_metadata or candidate.url_context_metadata or candidate.finish_message:
            self._note(candidate)
        return events

    def close(self) -> Sequence[ProviderEvent]:
        if self._over:
            return ()
        self._over = True
        if self._stop is None:
            message = f"{self._provider} ended its stream without saying why"
            return [Failed(error=ProviderError(message, kind="no-finish", retryable=True))]
        events: list[ProviderEvent] = []
        self._end(events)
        reason = _REASONS.get(self._stop, "other")
        if self._called and reason == "stop":
            reason = "tool-calls"  # The wire has no word for it.
        own = {"id": self._response_id, **self._extra} if self._response_id else self._extra
        finish = StepFinish(
            reason=reason,
            tokens=_tokens(self._usage),
            raw_reason=self._stop,
            metadata={OWN: own} if own else None,
        )
        return [*events, finish, Finish()]

    def _add(self, part: Part, events: list[ProviderEvent]) -> None:
        if part.text is not None:
            self._grow("reasoning" if part.thought else "text", part, part.text, events)
        elif part.function_call is not None:
            self._end(events)
            self._call(part.function_call, part, events)
        elif part.executable_code is not None:
            self._hosted_call(CODE, ("executableCode", "codeExecutionResult"), part, events)
        elif part.tool_call is not None:
            name = str(part.tool_call.get("toolType") or "tool").lower()
            self._hosted_call(name, ("toolCall", "toolResponse"), part, events)
        elif part.code_execution_result is not None:
            self._end(events)
            events.append(self._code_result(part.code_execution_result))
        elif part.tool_response is not None:
            self._end(events)
            answer = part.tool_response
            name = str(answer.get("toolType") or "tool").lower()
            id = str(answer.get("id") or self._hosted)
            events.append(ToolResulted(id=id, name=name, output=answer, metadata={OWN: self._hosted_own}))

    def _grow(self, kind: str, part: Part, text: str, events: list[ProviderEvent]) -> None:
        if not text and self._open:  # A signature may come alone, behind what it signs.
            self._signature = part.thought_signature or self._signature
            return
        if not text and part.thought_signature is None:
            return
        if self._open != kind or self._signature is not None:
            self._end(events)
            self._open = kind
            self._id = f"{kind}-{self._blocks}"
            self._blocks += 1
            events.append(TextStart(id=self._id) if kind == "text" else ReasoningStart(id=self._id))
        if text:
            delta = TextDelta if kind == "text" else ReasoningDelta
            events.append(delta(id=self._id, text=text))
        self._signature = part.thought_signature

    def _end(self, events: list[ProviderEvent]) -> None:
        kind, self._open = self._open, ""
        metadata = _signed(self._signature)
        self._signature = None
        if kind == "text":
            events.append(TextEnd(id=self._id, metadata=metadata))
        elif kind == "reasoning":
            events.append(ReasoningEnd(id=self._id, metadata=metadata))

    def _call(self, call: FunctionCall, part: Part, events: list[ProviderEvent]) -> None:
        text = call.args if isinstance(call.args, str) else msgspec.json.encode(call.args or {}).decode()
        id = call.id or self._derived(call.name, text)
        name = pieces.read_name(call.name)
        input, invalid = pieces.read_input(text)
        self._called = True
        events += [
            ToolInputStart(id=id, name=name),
            ToolInputDelta(id=id, text=text),
            ToolInputEnd(id=id),
            ToolCalled(
                id=id, name=name, input=input, invalid=invalid, metadata=_signed(part.thought_signature)
            ),
        ]

    def _hosted_call(
        self, name: str, kinds: tuple[str, str], part: Part, events: list[ProviderEvent]
    ) -> None:
        """A tool that runs at the provider; what it was given goes back as it came."""
        self._end(events)
        given = part.executable_code or part.tool_call or {}
        id = str(given.get("id") or self._derived(name, msgspec.json.encode(given).decode()))
        own: JsonMap = {"call": kinds[0], "response": kinds[1]}
        self._hosted, self._hosted_own = id, own
        if part.thought_signature:
            own["thoughtSignature"] = part.thought_signature
        events += [
            ToolInputStart(id=id, name=name, hosted=True),
            ToolInputEnd(id=id),
            ToolCalled(id=id, name=name, input=given, hosted=True, metadata={OWN: own}),
        ]

    def _code_result(self, result: JsonMap) -> ProviderEvent:
        id = str(result.get("id") or self._hosted)
        outcome = str(result.get("outcome") or "OUTCOME_OK")
        own: JsonMap = {OWN: self._hosted_own}
        if outcome == "OUTCOME_OK":
            return ToolResulted(id=id, name=CODE, output=result, metadata=own)
        return ToolFailed(id=id, name=CODE, error=outcome, output=result, metadata=own)

    def _derived(self, name: str, text: str) -> str:
        """An id for a call that came without: the same stream gives the same, two calls two."""
        seed = f"{self._response_id}\0{self._calls}\0{name}\0{text}"
        self._calls += 1
        return DERIVED + hashlib.sha256(seed.encode("utf-8", "replace")).hexdigest()[:24]

    def _count(self, usage: Usage) -> None:
        """Counts are cumulative, and a later frame may leave some out."""
        for name in usage.__struct_fields__:
            if (value := getattr(usage, name)) is not None:
                setattr(self._usage, name, value)

    def _note(self, candidate: Candidate) -> None:
        if candidate.grounding_metadata:
            self._extra["groundingMetadata"] = candidate.grounding_metadata
        if candidate.url_context_metadata:
            self._extra["urlContextMetadata"] = candidate.url_context_metadata
        if candidate.finish_message:
            self._extra["finishMessage"] = candidate.finish_message

    def _blocked(self, feedback: Feedback) -> Failed:
        self._over = True
        detail = f": {feedback.block_reason_message}" if feedback.block_reason_message else ""
        message = (
            f"{self._provider} refused the prompt ({feedback.block_reason}){detail}; change what was asked"
        )
        return Failed(error=ProviderError(message, kind="content-filter"))


def _signed(signature: str | None) -> JsonMap | None:
    return {OWN: {"thoughtSignature": signature}} if signature else None


def _tokens(usage: Usage) -> Tokens:
    """Disjoint counts. What tools at the provider brought in is input, counted apart from the prompt."""
    input, read = count.parts(usage.prompt_token_count, usage.cached_content_token_count)
    return Tokens(
        total=count.total(usage.total_token_count),
        input=input + count.whole(usage.tool_use_prompt_token_count),
        output=count.whole(usage.candidates_token_count),
        reasoning=count.whole(usage.thoughts_token_count),
        cache=CacheTokens(read=read, write=0),
    )
