"""One event of a Messages stream as it stands on the wire. Unknown fields and types are let through."""

from typing import Any

import msgspec

from holdfast.provider.wire.count import Count


class Chunk(msgspec.Struct, gc=False):
    """A frame of the wire, with only what we read."""


class OutputDetails(Chunk):
    thinking_tokens: Count = None


class Usage(Chunk):
    input_tokens: Count = None
    output_tokens: Count = None
    cache_creation_input_tokens: Count = None
    cache_read_input_tokens: Count = None
    output_tokens_details: OutputDetails | None = None
    service_tier: str | None = None


class Message(Chunk):
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None


class ContentBlock(Chunk):
    """The beginning of a block. `content` and `error_code` belong to tools that run at the provider."""

    type: str
    id: str = ""
    name: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    input: Any = None
    tool_use_id: str = ""
    content: Any = None
    caller: Any = None
    citations: list[Any] | None = None


class Delta(Chunk):
    """What is added to a block, or (in `message_delta`, without a type) why the message ended."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    citation: Any = None
    stop_reason: str | None = None
    stop_sequence: str | None = None


class Frame(Chunk):
    """Any event of the stream, by `type`."""

    type: str = ""
    index: int | None = 0
    delta: Delta | None = None
    content_block: ContentBlock | None = None
    message: Message | None = None
    usage: Usage | None = None
    error: Any = None
