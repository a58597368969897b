"""One frame of a Gemini stream as it stands on the wire. What is not known is let through."""

from typing import Any

import msgspec

from holdfast.provider.wire.count import Count
from holdfast.schema.wire import JsonMap


class Chunk(msgspec.Struct, gc=False, rename="camel"):
    """A part of a frame, with only what we read."""


class Usage(Chunk):
    """Thoughts are counted beside the candidates; the prompt includes what was cached."""

    prompt_token_count: Count = None
    cached_content_token_count: Count = None
    candidates_token_count: Count = None
    thoughts_token_count: Count = None
    tool_use_prompt_token_count: Count = None
    total_token_count: Count = None


class FunctionCall(Chunk):
    """`args` is an object; servers that imitate the wire have been seen to write text."""

    name: str = ""
    id: str | None = None
    args: Any = None


class Part(Chunk):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    executable_code: JsonMap | None = None
    code_execution_result: JsonMap | None = None
    tool_call: JsonMap | None = None
    tool_response: JsonMap | None = None


class Content(Chunk):
    parts: list[Part] | None = None


class Candidate(Chunk):
    content: Content | None = None
    index: int | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding_metadata: JsonMap | None = None
    url_context_metadata: JsonMap | None = None


class Feedback(Chunk):
    block_reason: str | None = None
    block_reason_message: str | None = None


class Frame(Chunk):
    """One chunk. `error` stands in for everything else when the server fails while it streams."""

    candidates: list[Candidate] | None = None
    usage_metadata: Usage | None = None
    prompt_feedback: Feedback | None = None
    response_id: str | None = None
    error: Any = None
