"""Replies as Chat Completions streams. Written from the wire's description, apart from the adapter."""

from typing import Any

import msgspec

from holdfast.testing.mock_provider.script import Call, Reply, Say, Think, pieces

_REASONS = {
    "stop": "stop",
    "length": "length",
    "tool-calls": "tool_calls",
    "content-filter": "content_filter",
}
_ERRORS = {
    "rate-limit": ("rate_limit_error", "rate_limit_exceeded"),
    "server-error": ("server_error", None),
    "overloaded": ("server_error", "overloaded"),
    "overflow": ("invalid_request_error", "context_length_exceeded"),
    "auth": ("invalid_request_error", "invalid_api_key"),
}


class ChatCompletions:
    """`POST /v1/chat/completions`."""

    def frames(self, reply: Reply, model: str) -> list[bytes]:
        usage = reply.usage
        prompt = usage.input + usage.cache_read + usage.cache_write
        completion = usage.output + usage.reasoning
        counts = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {
                "cached_tokens": usage.cache_read,
                "cache_write_tokens": usage.cache_write,
            },
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }
        return [
            *self.unfinished(reply, model)[:-1],
            _chunk(model, {}, finish=_REASONS[reply.why()]),
            _frame({**_head(model), "choices": [], "usage": counts}),
            b"data: [DONE]\n\n",
        ]

    def unfinished(self, reply: Reply, model: str) -> list[bytes]:
        frames = [_chunk(model, {"role": "assistant", "content": ""})]
        calls = 0
        for part in reply.said:
            frames += [_chunk(model, delta) for delta in _deltas(part, calls, reply.delta_characters)]
            calls += isinstance(part, Call)
        return [*frames, b"data: [DONE]\n\n"]

    def error(self, kind: str, message: str) -> bytes:
        type, code = _ERRORS[kind]
        if kind == "overflow":
            message = "This model's maximum context length is 128000 tokens; you sent 200000."
        return msgspec.json.encode({"error": {"message": message, "type": type, "param": None, "code": code}})

    def error_frame(self, message: str) -> bytes:
        return _frame({"error": {"message": message, "type": "server_error", "code": "overloaded"}})


def _deltas(part: Say | Think | Call, index: int, size: int) -> list[dict[str, Any]]:
    match part:
        case Say(text=text):
            return [{"content": piece} for piece in pieces(text, size)]
        case Think(text=text):
            return [{"reasoning_content": piece} for piece in pieces(text, size)]
        case Call():
            name = {"name": part.name, "arguments": ""}
            fragments: list[dict[str, Any]] = [{"id": part.id, "type": "function", "function": name}]
            fragments += [{"function": {"arguments": piece}} for piece in pieces(part.arguments(), size)]
            return [{"tool_calls": [{"index": index, **fragment}]} for fragment in fragments]


def _head(model: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": 1_800_000_000,
        "model": model,
    }


def _chunk(model: str, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _frame({**_head(model), "choices": [choice], "usage": None})


def _frame(value: Any) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(value)
