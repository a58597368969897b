"""Reads a Messages stream, event by event.

Blocks come one after the other, each with an index; a delta names its block. The end is `message_stop`; a
stream that breaks off after its stop reason is complete.
"""

from collections.abc import Sequence
from typing import Any

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
from holdfast.provider.wire.anthropic.chunk import ContentBlock, Delta, Frame, Usage
from holdfast.provider.wire.anthropic.messages import OWN
from holdfast.schema import typed
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.schema.wire import JsonMap

_FRAMES = typed.decoder(Frame)

_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content-filter",
    "pause_turn": "other",
}


class _Block:
    """A block that is still coming: what it is, and what its end must bring."""

    __slots__ = ("caller", "citations", "data", "id", "initial", "kind", "name", "pieces", "signature")

    def __init__(self, kind: str, id: str, start: ContentBlock) -> None:
        self.kind = kind
        self.id = id
        self.name = start.name
        self.initial = start.input
        self.caller = start.caller
        self.signature = start.signature or ""
        self.data = start.data
        self.citations = list(start.citations or ())
        self.pieces: list[str] = []


class MessagesDecoder:
    """Reads one response."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._blocks: dict[int, _Block] = {}
        self._names: dict[str, str] = {}
        self._usage = Usage()
        self._stop: str | None = None
        self._metadata: JsonMap = {}
        self._begun = self._over = False

    def feed(self, event: ServerEvent) -> Sequence[ProviderEvent]:
        body = frame.decode(_FRAMES, event.data)
        match body.type:
            case "content_block_delta":
                block = self._blocks.get(body.index or 0)
                return () if block is None or body.delta is None else _grown(block, body.delta)
            case "content_block_start":
                start = body.content_block
                return () if start is None else [*self._begin(), *self._open(body.index or 0, start)]
            case "content_block_stop":
                block = self._blocks.pop(body.index or 0, None)
                return () if block is None else _ended(block)
            case "message_start":
                if body.message is not None:
                    self._count(body.message.usage)
                    self._metadata = {"id": body.message.id} if body.message.id else {}
                return self._begin()
            case "message_delta":
                self._count(body.usage)
                if body.delta is not None and body.delta.stop_reason is not None:
                    self._stop = body.delta.stop_reason
                return ()
            case "message_stop":
                return self._finish()
            case "error":
                self._over = True
                return [Failed(error=classify.of_object(body.error, provider=self._provider))]
            case _:  # `ping`, and what may come to be
                return ()

    def close(self) -> Sequence[ProviderEvent]:
        return () if self._over else self._finish()

    def _begin(self) -> Sequence[ProviderEvent]:
        if self._begun:
            return ()
        self._begun = True
        return (StepStart(),)

    def _open(self, index: int, start: ContentBlock) -> list[ProviderEvent]:
        before = self._blocks.pop(index, None)  # An index that is opened twice: what was there has ended.
        return [*([] if before is None else _ended(before)), *self._opened(index, start)]

    def _opened(self, index: int, start: ContentBlock) -> list[ProviderEvent]:
        id = str(index)
        match start.type:
            case "text":
                self._blocks[index] = _Block("text", id, start)
                first: list[ProviderEvent] = [TextStart(id=id)]
                return [*first, TextDelta(id=id, text=start.text)] if start.text else first
            case "thinking" | "redacted_thinking":
                block = self._blocks[index] = _Block("reasoning", id, start)
                first = [ReasoningStart(id=id, metadata=_signed(block))]
                return [*first, ReasoningDelta(id=id, text=start.thinking)] if start.thinking else first
            case "tool_use" | "server_tool_use":
                hosted = start.type == "server_tool_use"
                self._blocks[index] = _Block("hosted" if hosted else "tool", start.id, start)
                name = self._names[start.id] = pieces.read_name(start.name)
                return [ToolInputStart(id=start.id, name=name, hosted=hosted)]
            case kind if kind.endswith("_tool_result"):
                return [self._resulted(start)]
            case _:
                return []

    def _resulted(self, start: ContentBlock) -> ProviderEvent:
        """What a tool at the provider answered: a block that comes whole."""
        id, content = start.tool_use_id, start.content
        name = self._names.get(id) or start.type.removesuffix("_tool_result")
        metadata = {OWN: {"type": start.type, **({"caller": start.caller} if start.caller else {})}}
        if isinstance(content, dict) and str(content.get("type", "")).endswith("_error"):
            error = str(content.get("error_code") or content["type"])
            return ToolFailed(id=id, name=name, error=error, output=content, metadata=metadata)
        return ToolResulted(id=id, name=name, output=content, metadata=metadata)

    def _count(self, usage: Usage | None) -> None:
        """Counts are cumulative, and a later event may leave some out."""
        if usage is not None:
            for name in usage.__struct_fields__:
                if (value := getattr(usage, name)) is not None:
                    setattr(self._usage, name, value)

    def _finish(self) -> Sequence[ProviderEvent]:
        self._over = True
        if self._stop is None:
            return [Failed(error=self._unfinished())]
        ends = [event for index in sorted(self._blocks) for event in _ended(self._blocks[index])]
        self._blocks.clear()
        tier = {"serviceTier": self._usage.service_tier} if self._usage.service_tier else {}
        metadata = {**self._metadata, **tier}
        return [
            *self._begin(),
            *ends,
            StepFinish(
                reason=_REASONS.get(self._stop, "other"),
                tokens=_tokens(self._usage),
                raw_reason=self._stop,
                metadata={OWN: metadata} if metadata else None,
            ),
            Finish(),
        ]

    def _unfinished(self) -> ProviderError:
        return ProviderError(
            f"{self._provider} ended its stream without saying why", kind="no-finish", retryable=True
        )


def _grown(block: _Block, delta: Delta) -> Sequence[ProviderEvent]:
    match delta.type:
        case "text_delta":
            return (TextDelta(id=block.id, text=delta.text),) if delta.text else ()
        case "input_json_delta":
            block.pieces.append(delta.partial_json)
            return (ToolInputDelta(id=block.id, text=delta.partial_json),) if delta.partial_json else ()
        case "thinking_delta":
            return (ReasoningDelta(id=block.id, text=delta.thinking),) if delta.thinking else ()
        case "signature_delta":
            block.signature += delta.signature
        case "citations_delta":
            block.citations.append(delta.citation)
        case _:
            pass
    return ()


def _ended(block: _Block) -> list[ProviderEvent]:
    match block.kind:
        case "text":
            cited = {OWN: {"citations": block.citations}} if block.citations else None
            return [TextEnd(id=block.id, metadata=cited)]
        case "reasoning":
            return [ReasoningEnd(id=block.id, metadata=_signed(block))]
        case _:
            input, invalid = _input(block)
            called = ToolCalled(
                id=block.id,
                name=pieces.read_name(block.name),
                input=input,
                invalid=invalid,
                hosted=block.kind == "hosted",
                metadata={OWN: {"caller": block.caller}} if block.caller else None,
            )
            return [ToolInputEnd(id=block.id), called]


def _input(block: _Block) -> tuple[JsonMap, str | None]:
    """The input comes in pieces; some servers that imitate the wire give it whole at the start."""
    text = "".join(block.pieces)
    if not text and isinstance(block.initial, dict):
        return block.initial, None
    return pieces.read_input(text)


def _signed(block: _Block) -> JsonMap | None:
    own: dict[str, Any] = {}
    if block.data is not None:
        own["redactedData"] = block.data
    if block.signature:
        own["signature"] = block.signature
    return {OWN: own} if own else None


def _tokens(usage: Usage) -> Tokens:
    """On this wire the input already excludes what the cache served or took."""
    details = usage.output_tokens_details
    output, reasoning = count.parts(usage.output_tokens, details.thinking_tokens if details else None)
    return Tokens(
        input=count.whole(usage.input_tokens),
        output=output,
        reasoning=reasoning,
        cache=CacheTokens(
            read=count.whole(usage.cache_read_input_tokens),
            write=count.whole(usage.cache_creation_input_tokens),
        ),
    )
