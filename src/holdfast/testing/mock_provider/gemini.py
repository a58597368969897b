"""Replies as Gemini streams. Written from the wire's description, apart from the adapter that it tests."""

import base64
from typing import Any

import msgspec

from holdfast.testing.mock_provider.script import Call, Reply, Say, Think, pieces

_REASONS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool-calls": "STOP",  # The wire has no reason of its own for calls.
    "content-filter": "SAFETY",
}
_ERRORS = {
    "rate-limit": (429, "RESOURCE_EXHAUSTED"),
    "server-error": (500, "INTERNAL"),
    "overloaded": (503, "UNAVAILABLE"),
    "overflow": (400, "INVALID_ARGUMENT"),
    "auth": (401, "UNAUTHENTICATED"),
}


class GenerateContent:
    """`POST /v1beta/models/…:streamGenerateContent`."""

    def frames(self, reply: Reply, model: str) -> list[bytes]:
        usage = reply.usage
        prompt = usage.input + usage.cache_read + usage.cache_write
        counts = {
            "promptTokenCount": prompt,
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output,
            "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": prompt + usage.output + usage.reasoning,
        }
        last = _frame(model, [{"text": ""}], finishReason=_REASONS[reply.why()], usage=counts)
        return [*self.unfinished(reply, model), last]

    def unfinished(self, reply: Reply, model: str) -> list[bytes]:
        return [_frame(model, [part]) for said in reply.said for part in _parts(said, reply.delta_characters)]

    def error(self, kind: str, message: str) -> bytes:
        code, status = _ERRORS[kind]
        if kind == "overflow":
            message = "The input token count (1200000) exceeds the maximum number of tokens (1048576)."
        return msgspec.json.encode({"error": {"code": code, "message": message, "status": status}})

    def error_frame(self, message: str) -> bytes:
        return _event({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}})


def _parts(said: Say | Think | Call, size: int) -> list[dict[str, Any]]:
    match said:
        case Say(text=text):
            return [{"text": piece} for piece in pieces(text, size)]
        case Think(text=text, signature=signature):
            parts: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in pieces(text, size)]
            parts[-1]["thoughtSignature"] = base64.b64encode(signature.encode()).decode()
            return parts
        case Call():
            arguments = said.input if said.raw is None else said.raw
            return [{"functionCall": {"id": said.id, "name": said.name, "args": arguments}}]


def _frame(
    model: str, parts: list[dict[str, Any]], *, usage: dict[str, Any] | None = None, **fields: Any
) -> bytes:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **fields}
    counts = usage or {"promptTokenCount": 1, "totalTokenCount": 1}
    return _event(
        {
            "candidates": [candidate],
            "usageMetadata": counts,
            "modelVersion": model,
            "responseId": "response-mock",
        }
    )


def _event(value: Any) -> bytes:
    return b"data: %s\r\n\r\n" % msgspec.json.encode(value)
