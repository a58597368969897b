"""What a tool answers, and how it reports a failure."""

import msgspec

from holdfast.schema.wire import JsonMap


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file that goes to the model beside the text."""

    mime: str
    url: str
    filename: str | None = None


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call: `text` is for the model, the rest for users and programs.

    `structured` is the validated value that Session consumers get unchanged, as `structured` in the metadata
    of the completed call; without text, the model is shown it as JSON. `paths` are Managed Tool Output Files
    that the tool itself wrote; `lossy` says that it has already left something out and bounding must not
    claim otherwise.
    """

    text: str = ""
    title: str = ""
    metadata: JsonMap = {}
    attachments: tuple[Attachment, ...] = ()
    structured: JsonMap | None = None
    paths: tuple[str, ...] = ()
    lossy: bool = False


class ToolFailure(Exception):
    """Speaks to the model: what went wrong, and what it can do about it. It never leaves the engine."""

    def __init__(self, message: str, *, metadata: JsonMap | None = None) -> None:
        super().__init__(message)
        self.metadata = metadata


class ToolParked(Exception):
    """The user is there and does not answer: the call waits, unsettled, and the session lets go."""


class ToolDenied(ToolFailure):
    """The user, or a rule, rejected the call. `stops`: without a message for the model, so the work ends."""

    def __init__(self, message: str, *, stops: bool = False) -> None:
        super().__init__(message)
        self.stops = stops
