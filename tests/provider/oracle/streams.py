"""Byte streams of the wires, written by hand after their descriptions, each with something hard in it."""

from typing import Any

import msgspec

from holdfast.testing.mock_provider import Call, Reply, Say, Think, Usage
from holdfast.testing.mock_provider.formats import FORMATS

REPLIES = {
    "text": Reply((Say("Hello, wörld 🌍"),), usage=Usage(input=3, output=7)),
    "calls": Reply(
        (
            Think("Let me see."),
            Say("I look."),
            Call("read", {"path": "a/ü.py", "lines": [1, 2]}, id="call_a"),
            Call("list", {}, id="call_b"),
        ),
        usage=Usage(input=12, output=30, reasoning=8, cache_read=1_000, cache_write=200),
        delta_characters=5,
    ),
    "cut short": Reply((Say("One two"),), reason="length"),
    "refused": Reply((Say("I"),), reason="content-filter"),
}


def replies(path: str) -> dict[str, bytes]:
    return {name: b"".join(FORMATS[path].frames(reply, "m-1")) for name, reply in REPLIES.items()}


def _messages(*frames: dict[str, object]) -> bytes:
    return b"".join(
        b"event: %s\r\ndata: %s\r\n\r\n" % (str(frame["type"]).encode(), msgspec.json.encode(frame))
        for frame in frames
    )


_MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {
        "input_tokens": 21,
        "cache_creation_input_tokens": 188,
        "cache_read_input_tokens": 4_096,
        "cache_creation": {"ephemeral_5m_input_tokens": 188, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 2,
        "service_tier": "standard",
    },
}

MESSAGES = {
    **replies("/messages"),
    "thinking, hidden thinking and a search": _messages(
        {"type": "message_start", "message": _MESSAGE},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "ping"},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "First, "},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "search."},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "EqQBCg=="},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "redacted_thinking", "data": "EmwK"},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {},
            },
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"que'},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": 'ry": "x"}'},
        },
        {"type": "content_block_stop", "index": 2},
        {
            "type": "content_block_start",
            "index": 3,
            "content_block": {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "url": "https://x.example",
                        "title": "X",
                        "encrypted_content": "e",
                    }
                ],
            },
        },
        {"type": "content_block_stop", "index": 3},
        {"type": "content_block_start", "index": 4, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "Found.\n"}},
        {"type": "content_block_stop", "index": 4},
        {
            "type": "content_block_start",
            "index": 5,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}},
        },
        {"type": "content_block_stop", "index": 5},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {
                "input_tokens": 2_100,
                "output_tokens": 510,
                "output_tokens_details": {"thinking_tokens": 120},
                "server_tool_use": {"web_search_requests": 1},
            },
        },
        {"type": "message_stop"},
    ),
}


def _chat(*chunks: dict[str, object]) -> bytes:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x"}
    body = b"".join(b"data: %s\n\n" % msgspec.json.encode({**head, **chunk}) for chunk in chunks)
    return b": keep-alive\n\n" + body + b"data: [DONE]\n\n"


def _delta(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}


CHAT = {
    **replies("/chat/completions"),
    "calls that mix": _chat(
        _delta(role="assistant", content=None),
        _delta(
            tool_calls=[
                {"index": 0, "id": "c0", "type": "function", "function": {"name": "a", "arguments": ""}}
            ]
        ),
        _delta(
            tool_calls=[
                {"index": 1, "id": "c1", "type": "function", "function": {"name": "b", "arguments": "{"}}
            ]
        ),
        _delta(tool_calls=[{"index": 0, "function": {"arguments": '{"x": "\\u00e9"}'}}]),
        _delta(tool_calls=[{"index": 1, "function": {"arguments": "}"}}]),
        _delta("tool_calls"),
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 2_006,
                "completion_tokens": 300,
                "total_tokens": 2_306,
                "prompt_tokens_details": {"cached_tokens": 1_920},
                "completion_tokens_details": {"reasoning_tokens": 192},
            },
        },
    ),
}


def _responses(*frames: dict[str, object]) -> bytes:
    return b"".join(
        b"event: %s\ndata: %s\n\n"
        % (str(frame["type"]).encode(), msgspec.json.encode({"sequence_number": number, **frame}))
        for number, frame in enumerate(frames)
    )


_CITED = {"type": "url_citation", "url": "https://x.example", "title": "X", "start_index": 0, "end_index": 5}
_OUTPUT: list[dict[str, object]] = [
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}],
        "encrypted_content": "gAAAA",
    },
    {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "q", "queries": ["q"]},
    },
    {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Found.", "annotations": [_CITED], "logprobs": []}],
    },
    {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_1",
        "name": "read",
        "arguments": '{"path": "ü"}',
    },
    {
        "id": "fc_2",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_2",
        "name": "now",
        "arguments": "{}",
    },
]
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-x",
    "status": "in_progress",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


def _item(event: str, index: int, **instead: object) -> dict[str, object]:
    return {
        "type": f"response.output_item.{event}",
        "output_index": index,
        "item": {**_OUTPUT[index], **instead},
    }


def _at(kind: str, index: int, **fields: object) -> dict[str, object]:
    name = _OUTPUT[index]["id"]
    return {"type": f"response.{kind}", "output_index": index, "item_id": name, **fields}


RESPONSES = {
    **replies("/responses"),
    "thinking in parts, a search and calls that mix": _responses(
        {"type": "response.created", "response": _RESPONSE},
        _item("added", 0, summary=[], encrypted_content="g"),
        _at("reasoning_summary_text.delta", 0, summary_index=0, delta="First."),
        _at("reasoning_summary_text.delta", 0, summary_index=1, delta="Then"),
        _at("reasoning_summary_text.delta", 0, summary_index=1, delta="."),
        _item("done", 0),
        _item("added", 1, status="in_progress"),
        _at("web_search_call.searching", 1),
        _item("done", 1),
        _item("added", 2, content=[], status="in_progress"),
        _at("output_text.delta", 2, content_index=0, delta="Fou", logprobs=[]),
        _at("output_text.delta", 2, content_index=0, delta="nd.", logprobs=[]),
        _at("output_text.annotation.added", 2, content_index=0, annotation_index=0, annotation=_CITED),
        _item("done", 2),
        _item("added", 3, arguments="", status="in_progress"),
        _item("added", 4, arguments="", status="in_progress"),
        _at("function_call_arguments.delta", 3, delta='{"path": '),
        _at("function_call_arguments.delta", 4, delta="{}"),
        _at("function_call_arguments.delta", 3, delta='"\\u00fc"}'),
        _item("done", 4),
        _item("done", 3),
        {
            "type": "response.completed",
            "response": {
                **_RESPONSE,
                "status": "completed",
                "output": _OUTPUT,
                "service_tier": "default",
                "usage": {
                    "input_tokens": 2_006,
                    "input_tokens_details": {"cached_tokens": 1_920, "cache_write_tokens": 12},
                    "output_tokens": 300,
                    "output_tokens_details": {"reasoning_tokens": 192},
                    "total_tokens": 2_306,
                },
            },
        },
    ),
}


def _gemini(*frames: dict[str, object]) -> bytes:
    head = {"modelVersion": "gemini-x", "responseId": "r1"}
    return b"".join(b"data: %s\r\n\r\n" % msgspec.json.encode({**frame, **head}) for frame in frames)


def _parts(*parts: dict[str, object], **fields: object) -> dict[str, object]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **fields}
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9}}


GEMINI = {
    **replies(":streamGenerateContent"),
    "thoughts, code, calls without ids and signatures": _gemini(
        _parts({"text": "**Plan**\n", "thought": True}),
        _parts({"text": "Look.", "thought": True}),
        _parts({"executableCode": {"language": "PYTHON", "code": "print(2)"}}),
        _parts({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2\n"}}),
        _parts({"text": "It is "}),
        _parts({"text": "2. "}),
        _parts(
            {"functionCall": {"name": "read", "args": {"path": "ü"}}, "thoughtSignature": "c2lnbmF0dXJl"},
            {"functionCall": {"name": "read", "args": {"path": "b"}}},
        ),
        {
            **_parts({"text": ""}, finishReason="STOP"),
            "usageMetadata": {
                "promptTokenCount": 2_006,
                "cachedContentTokenCount": 1_920,
                "candidatesTokenCount": 108,
                "thoughtsTokenCount": 192,
                "toolUsePromptTokenCount": 40,
                "totalTokenCount": 2_346,
            },
        },
    ),
}
