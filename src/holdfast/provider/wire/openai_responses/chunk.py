"""One event of a Responses stream as it stands on the wire. Unknown fields and types are let through."""

from typing import Any

import msgspec

from holdfast.provider.wire.count import Count
from holdfast.schema.wire import JsonMap


class Chunk(msgspec.Struct, gc=False):
    """A part of an event, with only what we read."""


class InputDetails(Chunk):
    cached_tokens: Count = None
    cache_write_tokens: Count = None


class OutputDetails(Chunk):
    reasoning_tokens: Count = None


class Usage(Chunk):
    input_tokens: Count = None
    output_tokens: Count = None
    total_tokens: Count = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class Incomplete(Chunk):
    reason: str | None = None


class Response(Chunk):
    """The whole answer, sent at its beginning and at its end."""

    id: str | None = None
    status: str | None = None
    usage: Usage | None = None
    incomplete_details: Incomplete | None = None
    error: Any = None
    service_tier: str | None = None
    output: list[JsonMap] | None = None


class Frame(Chunk):
    """Any event of the stream, by `type`. Some servers leave out `output_index` or `item_id`."""

    type: str = ""
    output_index: int | None = None
    item_id: str | None = None
    content_index: int | None = 0
    summary_index: int | None = 0
    delta: Any = None
    arguments: Any = None
    annotation: Any = None
    item: JsonMap | None = None
    response: Response | None = None
    error: Any = None
    code: Any = None
    message: Any = None
