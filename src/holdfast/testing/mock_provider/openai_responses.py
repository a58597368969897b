"""Replies as Responses streams. Written from the wire's description, apart from the adapter that it tests."""

from typing import Any

import msgspec

from holdfast.testing.mock_provider.script import Call, Reply, Say, Think, pieces

_INCOMPLETE = {"length": "max_output_tokens", "content-filter": "content_filter"}
_ERRORS = {
    "rate-limit": ("rate_limit_error", "rate_limit_exceeded"),
    "server-error": ("server_error", None),
    "overloaded": ("server_error", "server_is_overloaded"),
    "overflow": ("invalid_request_error", "context_length_exceeded"),
    "auth": ("invalid_request_error", "invalid_api_key"),
}


class Responses:
    """`POST /v1/responses`."""

    def frames(self, reply: Reply, model: str) -> list[bytes]:
        incomplete = _INCOMPLETE.get(reply.why())
        kind = "incomplete" if incomplete else "completed"
        output = [_item(index, part) for index, part in enumerate(reply.said)]
        details = {"reason": incomplete} if incomplete else None
        whole = _response(model, kind, output=output, incomplete_details=details, usage=_usage(reply))
        return [*self.unfinished(reply, model), _event(f"response.{kind}", response=whole)]

    def unfinished(self, reply: Reply, model: str) -> list[bytes]:
        begun = _response(model, "in_progress")
        frames = [_event("response.created", response=begun), _event("response.in_progress", response=begun)]
        for index, part in enumerate(reply.said):
            place = {"output_index": index, "item_id": _name(index, part)}
            item = _item(index, part)
            frames.append(
                _event("response.output_item.added", output_index=index, item={**item, **_EMPTY[type(part)]})
            )
            frames += _grow(part, place, reply.delta_characters)
            frames.append(_event("response.output_item.done", output_index=index, item=item))
        return frames

    def error(self, kind: str, message: str) -> bytes:
        type, code = _ERRORS[kind]
        if kind == "overflow":
            message = "Your input exceeds the context window of this model."
        return msgspec.json.encode({"error": {"message": message, "type": type, "param": None, "code": code}})

    def error_frame(self, message: str) -> bytes:
        return _event("error", code="server_is_overloaded", message=message, param=None)


_EMPTY: dict[type, dict[str, Any]] = {
    Say: {"content": [], "status": "in_progress"},
    Think: {"summary": [], "encrypted_content": None},
    Call: {"arguments": "", "status": "in_progress"},
}


def _name(index: int, part: Say | Think | Call) -> str:
    return {Say: "msg", Think: "rs", Call: "fc"}[type(part)] + f"_mock_{index}"


def _item(index: int, part: Say | Think | Call) -> dict[str, Any]:
    """The item when it is complete."""
    name = _name(index, part)
    match part:
        case Say(text=text):
            content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
            return {
                "id": name,
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": content,
            }
        case Think(text=text, signature=signature):
            summary = [{"type": "summary_text", "text": text}]
            return {"id": name, "type": "reasoning", "summary": summary, "encrypted_content": signature}
        case Call():
            return {
                "id": name,
                "type": "function_call",
                "status": "completed",
                "call_id": part.id,
                "name": part.name,
                "arguments": part.arguments(),
            }


def _grow(part: Say | Think | Call, place: dict[str, Any], size: int) -> list[bytes]:
    match part:
        case Say(text=text):
            at = {**place, "content_index": 0}
            empty = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            kind = "response.output_text"
            return [
                _event("response.content_part.added", **at, part=empty),
                *(_event(f"{kind}.delta", **at, delta=piece, logprobs=[]) for piece in pieces(text, size)),
                _event(f"{kind}.done", **at, text=text, logprobs=[]),
                _event("response.content_part.done", **at, part={**empty, "text": text}),
            ]
        case Think(text=text):
            at = {**place, "summary_index": 0}
            kind = "response.reasoning_summary_text"
            part_kind = "response.reasoning_summary_part"
            return [
                _event(f"{part_kind}.added", **at, part={"type": "summary_text", "text": ""}),
                *(_event(f"{kind}.delta", **at, delta=piece) for piece in pieces(text, size)),
                _event(f"{kind}.done", **at, text=text),
                _event(f"{part_kind}.done", **at, part={"type": "summary_text", "text": text}),
            ]
        case Call():
            arguments = part.arguments()
            kind = "response.function_call_arguments"
            return [
                *(_event(f"{kind}.delta", **place, delta=piece) for piece in pieces(arguments, size)),
                _event(f"{kind}.done", **place, arguments=arguments, name=part.name),
            ]


def _usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    given, made = usage.input + usage.cache_read + usage.cache_write, usage.output + usage.reasoning
    return {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": given + made,
    }


def _response(model: str, status: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_mock",
        "object": "response",
        "created_at": 1_800_000_000,
        "model": model,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": None,
        "top_p": None,
        "metadata": {},
        "usage": None,
        **fields,
    }


def _event(name: str, /, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (
        name.encode(),
        msgspec.json.encode({"type": name, "sequence_number": 0, **fields}),
    )
