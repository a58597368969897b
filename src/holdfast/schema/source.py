"""Where an attached file came from: the span of prompt text that named it, and what it named."""

from holdfast.schema.wire import Count, Num, Wire


class SourceText(Wire, frozen=True, kw_only=True):
    """The words of the prompt that stand for the file, and where they are in it."""

    value: str
    start: Num
    end: Num


class Position(Wire, frozen=True, kw_only=True):
    line: Count
    character: Count


class Range(Wire, frozen=True, kw_only=True):
    start: Position
    end: Position


class FileSource(Wire, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A whole file."""

    text: SourceText
    path: str


class SymbolSource(Wire, frozen=True, kw_only=True, tag_field="type", tag="symbol"):
    """A symbol in a file; `kind` is the language server's number for it."""

    text: SourceText
    path: str
    range: Range
    name: str
    kind: Count


class ResourceSource(Wire, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    """A resource of an MCP server."""

    text: SourceText
    client_name: str
    uri: str


Source = FileSource | SymbolSource | ResourceSource


class AgentSource(Wire, frozen=True, kw_only=True):
    """The words of the prompt that name an agent."""

    value: str
    start: Count
    end: Count
