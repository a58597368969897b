"""What a server answers to a call, or of a resource, as the output of a tool. Pure.

Pictures and documents become attachments, which are scaled and bounded with those of every tool; what cannot
be shown is named in words.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from holdfast.schema.wire import JsonMap
from holdfast.text import one_line
from holdfast.toolkit.output import Attachment, ToolOutput

STRUCTURED_BYTES_MAX: Final = 256 * 1024
"""A larger structured value is shown as text, which has a bound of its own."""
FILE_BYTES_MAX: Final = 10 << 20
_DOCUMENT: Final = "application/pdf"


class _Gathered:
    """The texts and files so far."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.files: list[Attachment] = []

    def file(self, mime: str, data: str, what: str) -> None:
        """Attach what models take; name the rest."""
        kind = mime.partition(";")[0].strip().lower()
        try:
            size = len(base64.b64decode(data, validate=True))
        except (binascii.Error, ValueError):
            self.texts.append(f"[{what} is not shown: its content is no base64.]")
            return
        if not (kind.startswith("image/") or kind == _DOCUMENT):
            self.texts.append(f"[{what} is not shown: {kind or 'binary'} of {size:,} bytes.]")
        elif size > FILE_BYTES_MAX:
            self.texts.append(f"[{what} is not shown: it has {size:,} bytes.]")
        else:
            self.files.append(Attachment(mime=kind, url=f"data:{kind};base64,{data}"))


def output(result: CallToolResult, title: str) -> ToolOutput:
    """The output of a call, whether it succeeded or not."""
    found = _Gathered()
    for block in result.content:
        _take(block, found)
    structured: JsonMap | None = None
    value = result.structured_content
    if value is not None:
        data = msgspec.json.encode(value)
        if isinstance(value, dict) and len(data) <= STRUCTURED_BYTES_MAX:
            structured = value
        elif not found.texts:
            found.texts.append(msgspec.json.format(data, indent=2).decode())
    text = "\n\n".join(found.texts)
    if not text and not found.files and structured is None:
        text = "(The tool answered nothing.)"
    return ToolOutput(text=text, title=title, structured=structured, attachments=tuple(found.files))


def contents(given: Iterable[TextResourceContents | BlobResourceContents], title: str) -> ToolOutput:
    """What a resource holds."""
    found = _Gathered()
    for each in given:
        _take_contents(each, found, head=False)
    text = "\n\n".join(found.texts) or ("(It is attached.)" if found.files else "(It is empty.)")
    return ToolOutput(text=text, title=title, attachments=tuple(found.files))


def _take(block: ContentBlock, found: _Gathered) -> None:
    match block:
        case TextContent(text=text):
            found.texts.append(text)
        case ImageContent(mime_type=mime, data=data):
            found.file(mime, data, "A picture")
        case AudioContent(mime_type=mime, data=data):
            found.file(mime, data, "A recording")
        case ResourceLink():
            words = one_line(" ".join(filter(None, (block.name, block.description))), 300)
            found.texts.append(f"[Resource {one_line(block.uri, 500)}: {words}]")
        case EmbeddedResource(resource=resource):
            _take_contents(resource, found, head=True)


def _take_contents(
    resource: TextResourceContents | BlobResourceContents, found: _Gathered, *, head: bool
) -> None:
    where = one_line(resource.uri, 500)
    if isinstance(resource, TextResourceContents):
        found.texts.append(f"[Resource {where}]\n{resource.text}" if head else resource.text)
        return
    found.file(resource.mime_type or "", resource.blob, f"The resource {where}")


def plain(value: Any) -> JsonMap:
    """A model of the protocol as JSON."""
    made: JsonMap = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return made
