"""Reads a Chat Completions stream, chunk by chunk.

The wire has no blocks: text and thinking differ by their field, so a block ends when the other kind
begins. Calls are complete when the finish reason comes, usage comes after it, in a chunk without choices, and
`[DONE]` or the end of the body closes. A server that never says a finish reason has broken off.
"""

from collections.abc import Sequence
from typing import Any

from holdfast.errors import ProviderError
from holdfast.net.event_stream import ServerEvent
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
)
from holdfast.provider.wire import classify, count, frame
from holdfast.provider.wire.openai_chat.chunk import Delta, Frame, ToolFragment, Usage
from holdfast.provider.wire.openai_chat.messages import OWN
from holdfast.provider.wire.openai_chat.tool_calls import CallPieces
from holdfast.schema import typed
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.schema.wire import JsonMap

_FRAMES = typed.decoder(Frame)
_DONE = b"[DONE]"

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    "error": "error",
}


class ChatDecoder:
    """Reads one response."""

    def __init__(self, provider: str, reasoning_field: str | None) -> None:
        self._provider = provider
        known = reasoning_field in {"reasoning_content", "reasoning", "reasoning_text"}
        self._reasoning_field = reasoning_field if known else None
        self._open = ""  # `text`, `reasoning` or nothing
        self._id = ""
        self._blocks = 0
        self._details: list[Any] = []
        self._calls = CallPieces()
        self._usage: Usage | None = None
        self._stop: str | None = None
        self._called = False
        self._response_id = ""
        self._tier: str | None = None
        self._begun = self._over = False

    def feed(self, event: ServerEvent) -> Sequence[ProviderEvent]:
        if self._over:
            return ()
        if event.data == _DONE:
            return self._finish()
        body = frame.decode(_FRAMES, event.data)
        if body.error:
            self._over = True
            return [Failed(error=classify.of_object({"error": body.error}, provider=self._provider))]
        if body.usage is not None:
            self._usage = body.usage
        if not body.choices:
            return ()
        choice = body.choices[0]
        if choice.index and (choice := next((one for one in body.choices if not one.index), choice)).index:
            return ()  # Another answer to the same question, which was not asked for.
        if not choice.finish_reason and self._begun and choice.delta is not None:
            return self._grown(choice.delta)
        events: list[ProviderEvent] = [*self._begin(body)]
        if choice.delta is not None:
            events += self._grown(choice.delta)
        if choice.finish_reason and self._stop is None:  # Some servers write an empty one until the end.
            self._stop = choice.finish_reason
            events += self._end()
            events += self._called_all()
        return events

    def close(self) -> Sequence[ProviderEvent]:
        return () if self._over else self._finish()

    def _called_all(self) -> list[ProviderEvent]:
        self._called = self._called or len(self._calls) > 0
        return self._calls.finish(self._response_id)

    def _begin(self, body: Frame) -> Sequence[ProviderEvent]:
        if body.service_tier is not None:
            self._tier = body.service_tier
        if self._begun:
            return ()
        self._begun = True
        self._response_id = body.id or ""
        return (StepStart(),)

    def _grown(self, delta: Delta) -> list[ProviderEvent]:
        events: list[ProviderEvent] = []
        if delta.reasoning_details:
            _gather(self._turned("reasoning", events), delta.reasoning_details)
        thought = self._thought(delta)
        text = delta.content or delta.refusal
        if isinstance(text, list):
            thought, text = _split(thought, text)
        if thought:
            self._turned("reasoning", events)
            events.append(ReasoningDelta(id=self._id, text=thought))
        if text and isinstance(text, str):
            self._turned("text", events)
            events.append(TextDelta(id=self._id, text=text))
        if delta.tool_calls or delta.function_call is not None:
            events += self._end()
            for fragment in delta.tool_calls or ():
                events += self._calls.add(fragment)
            if delta.function_call is not None:
                events += self._calls.add(ToolFragment(index=0, function=delta.function_call))
        return events

    def _thought(self, delta: Delta) -> str:
        value = delta.reasoning_content or delta.reasoning or delta.reasoning_text
        if self._reasoning_field is not None:
            # The catalogue knows where to look first; a server that does otherwise is read all the same.
            value = getattr(delta, self._reasoning_field) or value
        if not value and delta.reasoning_details:
            value = "".join(_words(item) for item in delta.reasoning_details)
        return value if isinstance(value, str) else ""

    def _turned(self, kind: str, events: list[ProviderEvent]) -> list[Any]:
        """Have a block of this kind open; answers the details of the thinking that is open."""
        if self._open != kind:
            events += self._end()
            self._open = kind
            self._id = f"{kind}-{self._blocks}"
            self._blocks += 1
            events.append(TextStart(id=self._id) if kind == "text" else ReasoningStart(id=self._id))
        return self._details

    def _end(self) -> list[ProviderEvent]:
        kind, self._open = self._open, ""
        if kind == "text":
            return [TextEnd(id=self._id)]
        if kind == "reasoning":
            details, self._details = self._details, []
            metadata = {OWN: {"reasoning_details": details}} if details else None
            return [ReasoningEnd(id=self._id, metadata=metadata)]
        return []

    def _finish(self) -> Sequence[ProviderEvent]:
        self._over = True
        if self._stop is None:
            message = f"{self._provider} ended its stream without saying why"
            return [Failed(error=ProviderError(message, kind="no-finish", retryable=True))]
        # Some servers go on after their finish reason.
        late = [*self._end(), *self._called_all()]
        reason = _REASONS.get(self._stop, "other")
        if self._called and reason == "stop":
            reason = "tool-calls"  # Many servers say `stop` whatever the model did.
        own: JsonMap = {"id": self._response_id} if self._response_id else {}
        if self._tier:
            own["serviceTier"] = self._tier
        return [
            *late,
            StepFinish(
                reason=reason,
                tokens=_tokens(self._usage or Usage()),
                raw_reason=self._stop,
                metadata={OWN: own} if own else None,
            ),
            Finish(),
        ]


def _gather(details: list[Any], items: list[Any]) -> None:
    """Add opaque items, joining the pieces of one text: what goes back are items, not their deltas."""
    for item in items:
        last = details[-1] if details else None
        if isinstance(item, dict) and isinstance(last, dict) and _continues(last, item):
            for name, value in item.items():
                grows = (
                    name in {"text", "summary"} and isinstance(last.get(name), str) and isinstance(value, str)
                )
                if value is not None:
                    last[name] = last[name] + value if grows else value
        else:
            details.append(item)


def _continues(last: JsonMap, item: JsonMap) -> bool:
    return (
        item.get("type") in {"reasoning.text", "reasoning.summary"}
        and item.get("type") == last.get("type")
        and item.get("index") == last.get("index")
        and not last.get("signature")
    )


def _words(item: Any) -> str:
    value = (item.get("text") or item.get("summary")) if isinstance(item, dict) else None
    return value if isinstance(value, str) else ""


def _split(thought: str, items: list[Any]) -> tuple[str, str]:
    """Content as a list of items, as Mistral's thinking models write it."""
    text = ""
    for item in items:
        if not isinstance(item, dict):
            continue
        if item.get("type") == "thinking":
            inner = item.get("thinking")
            parts = inner if isinstance(inner, list) else [{"text": inner}]
            thought += "".join(_words(part) for part in parts)
        else:
            text += _words(item)
    return thought, text


def _tokens(usage: Usage) -> Tokens:
    """Disjoint counts: the prompt includes what was cached, the completion what was thought."""
    cached, details = usage.prompt_tokens_details, usage.completion_tokens_details
    read = (cached.cached_tokens if cached else None) or usage.prompt_cache_hit_tokens
    write = cached.cache_write_tokens if cached else None
    input, read, write = count.parts(usage.prompt_tokens, read, write)
    thought = details.reasoning_tokens if details else None
    output, reasoning = count.parts(usage.completion_tokens, thought)
    total = count.total(usage.total_tokens)
    # Some servers count thinking beside the completion; their total gives them away.
    prompt, completion = count.whole(usage.prompt_tokens), count.whole(usage.completion_tokens)
    if thought and total == prompt + completion + count.whole(thought):
        output, reasoning = completion, count.whole(thought)
    return Tokens(
        total=total,
        input=input,
        output=output,
        reasoning=reasoning,
        cache=CacheTokens(read=read, write=write),
    )
