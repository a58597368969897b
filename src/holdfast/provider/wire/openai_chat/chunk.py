"""One frame of a Chat Completions stream as it stands on the wire. Servers differ, so little is demanded."""

from typing import Any

import msgspec

from holdfast.provider.wire.count import Count


class Chunk(msgspec.Struct, gc=False):
    """A part of a frame, with only what we read."""


class PromptDetails(Chunk):
    cached_tokens: Count = None
    cache_write_tokens: Count = None


class CompletionDetails(Chunk):
    reasoning_tokens: Count = None


class Usage(Chunk):
    """`prompt_cache_hit_tokens` is DeepSeek's name for what others report in the details."""

    prompt_tokens: Count = None
    completion_tokens: Count = None
    total_tokens: Count = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    prompt_cache_hit_tokens: Count = None


class Function(Chunk):
    """A call's name and a fragment of its arguments; some servers give the arguments as an object."""

    name: str | None = None
    arguments: Any = None


class ToolFragment(Chunk):
    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Any = None


class Delta(Chunk):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_text: Any = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[ToolFragment] | None = None
    function_call: Function | None = None


class Choice(Chunk):
    index: int | None = 0
    delta: Delta | None = None
    finish_reason: str | None = None


class Frame(Chunk):
    """One chunk. `error` stands in for everything else when the server fails while it streams."""

    id: str | None = None
    choices: list[Choice] | None = None
    usage: Usage | None = None
    service_tier: str | None = None
    error: Any = None
