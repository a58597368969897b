"""The file part, apart from its siblings because a settled tool call holds file parts (`tool_state.py`)."""

from typing import ClassVar, Literal

from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.source import Source
from holdfast.schema.wire import Record, Wire


class PartHead(Record, frozen=True, kw_only=True):
    """What every part begins with; the store keeps these apart (see `stored.py`)."""

    id: PartID
    session_id: SessionID
    message_id: MessageID


class FileRead(Wire, frozen=True, kw_only=True):
    """The file behind an attachment, by its real path, and a digest of what it held when it was attached."""

    filepath: str
    sha256: str


class FilePart(PartHead, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A file or image; `url` is a data:, file: or http: address.

    `refused` is ours: by model (`provider/model`), the provider's error when it took no request with this
    file; since then that model is shown a line in its place. `read` is ours too: the model knows the content
    of this file once it was shown the prompt.
    """

    type: ClassVar[Literal["file"]] = "file"
    mime: str
    filename: str | None = None
    url: str
    source: Source | None = None
    refused: dict[str, str] | None = None
    read: FileRead | None = None
