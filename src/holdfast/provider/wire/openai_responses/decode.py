"""Reads a Responses stream, event by event.

Items are known by their place in the output, several at a time if the server likes; where it leaves the
place out, by their id. The end is `response.completed`, `response.incomplete`, `response.failed` or `error`.
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
    StepFinish,
    StepStart,
    TextDelta,
)
from holdfast.provider.wire import classify, count, frame
from holdfast.provider.wire.openai_responses.chunk import Frame, Response, Usage
from holdfast.provider.wire.openai_responses.items import OWN
from holdfast.provider.wire.openai_responses.output import HOSTED, Call, Hosted, Message, OutputItem, Thought
from holdfast.schema import typed
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.schema.wire import JsonMap

_FRAMES = typed.decoder(Frame)
_DONE = b"[DONE]"

_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content-filter",
}


class ResponsesDecoder:
    """Reads one response. `ids`: whether the ids of items are worth keeping."""

    def __init__(self, provider: str, *, ids: bool) -> None:
        self._provider = provider
        self._ids = ids
        self._items: dict[int | str, OutputItem] = {}
        self._places: dict[str, int] = {}
        self._called = False
        self._response_id: str | None = None
        self._begun = self._spoken = self._over = False

    def feed(self, event: ServerEvent) -> Sequence[ProviderEvent]:
        if self._over or event.data == _DONE:
            return ()
        body = frame.decode(_FRAMES, event.data)
        if body.type == "response.output_text.delta":  # By far the most frequent.
            item = self._items.get(self._key(body))
            id = item.texts.get(body.content_index or 0) if type(item) is Message else None
            if id is not None and type(body.delta) is str and body.delta:
                return (TextDelta(id=id, text=body.delta),)
        match body.type:
            case (
                "response.output_text.delta"
                | "response.refusal.delta"
                | "response.reasoning_summary_text.delta"
                | "response.reasoning_text.delta"
                | "response.function_call_arguments.delta"
            ):
                return [*self._begin(body), *self._grown(body)]
            case "response.output_item.added":
                return [*self._begin(body), *self._open(self._key(body), body.item or {})]
            case "response.output_item.done":
                return [*self._begin(body), *self._ended(body)]
            case "response.function_call_arguments.done" | "response.output_text.annotation.added":
                self._note(body)
                return ()
            case "response.completed" | "response.incomplete" | "response.failed" | "error":
                return [*self._begin(body), *self._finish(body)]
            case "response.created" | "response.in_progress":
                return self._begin(body)
            case _:  # what only repeats what came, and events of later versions
                return ()

    def close(self) -> Sequence[ProviderEvent]:
        if self._over:
            return ()
        self._over = True
        message = f"{self._provider} ended its stream without saying why"
        return [Failed(error=ProviderError(message, kind="no-finish", retryable=True))]

    def _key(self, body: Frame) -> int | str:
        if body.output_index is not None:
            return body.output_index
        name = body.item_id or str((body.item or {}).get("id") or "")
        return self._places.get(name, name)

    def _begin(self, body: Frame) -> Sequence[ProviderEvent]:
        if body.response is not None and body.response.id:
            self._response_id = body.response.id
        if self._begun:
            return ()
        self._begun = True
        return (StepStart(),)

    def _open(self, key: int | str, start: JsonMap) -> list[ProviderEvent]:
        self._spoken = True
        before = self._items.pop(key, None)  # A place that is taken twice: what was there has ended.
        body: list[ProviderEvent] = [] if before is None else before.end({})
        item: OutputItem
        match start.get("type"):
            case "message":
                item = Message(key, start, ids=self._ids)
            case "reasoning":
                item = Thought(key, start)
            case "function_call":
                item = call = Call(key, start, ids=self._ids)
                self._called = True
                body.append(call.begin())
            case str(kind) if kind in HOSTED:
                item = hosted = Hosted(key, start)
                body.append(hosted.begin())
            case _:
                return body
        self._items[key] = item
        if isinstance(key, int) and isinstance(start.get("id"), str):
            self._places[start["id"]] = key
        return body

    def _grown(self, body: Frame) -> Sequence[ProviderEvent]:
        text = body.delta
        if not isinstance(text, str) or not text:
            return ()
        key = self._key(body)
        if key not in self._items and body.type != "response.function_call_arguments.delta":
            thought = body.type.startswith("response.reasoning")
            self._open(key, {"type": "reasoning" if thought else "message", "id": body.item_id})
        match self._items.get(key):
            case Message() as message:
                return message.grow(
                    body.content_index or 0, text, refusal=body.type == "response.refusal.delta"
                )
            case Thought() as thinking if body.type == "response.reasoning_text.delta":
                return thinking.grow(body.content_index or 0, text, shown=True)
            case Thought() as thinking:
                return thinking.grow(body.summary_index or 0, text)
            case Call() as call:
                return call.grow(text)
            case _:
                return ()

    def _note(self, body: Frame) -> None:
        """What counts when the item ends."""
        match self._items.get(self._key(body)):
            case Call() as call:
                call.final = body.arguments
            case Message() as message:
                message.annotate(body.content_index or 0, body.annotation)
            case _:
                pass

    def _ended(self, body: Frame) -> list[ProviderEvent]:
        key, whole = self._key(body), body.item or {}
        events: list[ProviderEvent] = [] if key in self._items else self._open(key, whole)
        item = self._items.pop(key, None)
        return events if item is None else [*events, *item.end(whole)]

    def _finish(self, body: Frame) -> list[ProviderEvent]:
        self._over = True
        response = body.response or Response()
        if body.type in {"response.failed", "error"}:
            return [Failed(error=classify.of_object(_error(body, response), provider=self._provider))]
        events: list[ProviderEvent] = []
        if not self._spoken:  # A server that does not stream sends everything here.
            for index, whole in enumerate(response.output or ()):
                events += self._open(index, whole)
                if (item := self._items.pop(index, None)) is not None:
                    events += item.end(whole)
        for item in self._items.values():
            events += item.end({})
        self._items.clear()
        reason, raw = self._reason(body.type, response)
        own: JsonMap = {"id": self._response_id} if self._response_id else {}
        if response.service_tier:
            own["serviceTier"] = response.service_tier
        finish = StepFinish(
            reason=reason,
            tokens=_tokens(response.usage or Usage()),
            raw_reason=raw,
            metadata={OWN: own} if own else None,
        )
        return [*events, finish, Finish()]

    def _reason(self, kind: str, response: Response) -> tuple[FinishReason, str]:
        if kind == "response.incomplete":
            raw = (response.incomplete_details and response.incomplete_details.reason) or "incomplete"
            return _INCOMPLETE.get(raw, "other"), raw
        return ("tool-calls" if self._called else "stop"), response.status or "completed"


def _error(body: Frame, response: Response) -> Any:
    """The error, wherever the server put it."""
    found = response.error or body.error
    if found:
        return {"error": found}
    return {"error": {"code": body.code, "message": body.message or "the response failed without a reason"}}


def _tokens(usage: Usage) -> Tokens:
    """Disjoint counts: the input includes what was cached, the output what was thought."""
    cached, details = usage.input_tokens_details, usage.output_tokens_details
    input, read, write = count.parts(
        usage.input_tokens,
        cached.cached_tokens if cached else None,
        cached.cache_write_tokens if cached else None,
    )
    output, reasoning = count.parts(usage.output_tokens, details.reasoning_tokens if details else None)
    return Tokens(
        total=count.total(usage.total_tokens),
        input=input,
        output=output,
        reasoning=reasoning,
        cache=CacheTokens(read=read, write=write),
    )
