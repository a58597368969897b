"""Replies as Messages streams. Written from the wire's description, apart from the adapter that it tests."""

from typing import Any

import msgspec

from holdfast.testing.mock_provider.script import Call, Reply, Say, Think, pieces

_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool-calls": "tool_use",
    "content-filter": "refusal",
}
_ERRORS = {
    "rate-limit": "rate_limit_error",
    "server-error": "api_error",
    "overloaded": "overloaded_error",
    "overflow": "invalid_request_error",
    "auth": "authentication_error",
}


class Messages:
    """`POST /v1/messages`."""

    def frames(self, reply: Reply, model: str) -> list[bytes]:
        delta = {"stop_reason": _REASONS[reply.why()], "stop_sequence": None}
        usage: dict[str, Any] = {"output_tokens": reply.usage.output + reply.usage.reasoning}
        if reply.usage.reasoning:
            usage["output_tokens_details"] = {"thinking_tokens": reply.usage.reasoning}
        return [
            *self.unfinished(reply, model),
            _event("message_delta", delta=delta, usage=usage),
            _event("message_stop"),
        ]

    def unfinished(self, reply: Reply, model: str) -> list[bytes]:
        usage = {
            "input_tokens": reply.usage.input,
            "cache_creation_input_tokens": reply.usage.cache_write,
            "cache_read_input_tokens": reply.usage.cache_read,
            "output_tokens": 1,
        }
        message: dict[str, Any] = {
            "id": "msg_mock",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        frames = [_event("message_start", message=message), _event("ping")]
        for index, part in enumerate(reply.said):
            block, deltas = _block(part, reply.delta_characters)
            frames.append(_event("content_block_start", index=index, content_block=block))
            frames += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
            frames.append(_event("content_block_stop", index=index))
        return frames

    def error(self, kind: str, message: str) -> bytes:
        if kind == "overflow":
            message = "prompt is too long: 210000 tokens > 200000 maximum"
        return msgspec.json.encode({"type": "error", "error": {"type": _ERRORS[kind], "message": message}})

    def error_frame(self, message: str) -> bytes:
        return _event("error", error={"type": "overloaded_error", "message": message})


def _block(part: Say | Think | Call, size: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The beginning of a block and its deltas."""
    match part:
        case Say(text=text):
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(text, size)]
            return {"type": "text", "text": ""}, deltas
        case Think(text=text, signature=signature):
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(text, size)]
            signed = {"type": "signature_delta", "signature": signature}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]
        case Call():
            parts = ["", *pieces(part.arguments(), size)]
            start = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            return start, [{"type": "input_json_delta", "partial_json": piece} for piece in parts]


def _event(name: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode({"type": name, **fields}))
