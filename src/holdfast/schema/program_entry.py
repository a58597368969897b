"""Settings that name programs beside the agent: checks, MCP servers, formatters, language servers.

What must stay true: an entry that could never work is refused when it is read, not when it is needed.
"""

from typing import Annotated, Literal

import msgspec

from holdfast.schema.wire import JsonMap


class ProgramEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is None was not set."""


class McpOAuth(ProgramEntry, frozen=True, kw_only=True):
    """How a remote server lets a user in."""

    client_id: str | None = msgspec.field(default=None, name="clientId")
    client_secret: str | None = msgspec.field(default=None, name="clientSecret")
    scope: str | None = None
    callback_port: Annotated[int, msgspec.Meta(ge=1, le=65_535)] | None = msgspec.field(
        default=None, name="callbackPort"
    )
    redirect_uri: str | None = msgspec.field(default=None, name="redirectUri")


class McpEntry(ProgramEntry, frozen=True, kw_only=True):
    """A server: a local program, or an address. With `enabled` alone it switches one of another layer."""

    type: Literal["local", "remote"] | None = None
    command: list[str] | None = None
    cwd: str | None = None
    environment: dict[str, str] | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    oauth: McpOAuth | bool | None = None
    timeout: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """How long the first turn waits for the connection, in milliseconds."""
    call_timeout: Annotated[int, msgspec.Meta(gt=0, le=3_600_000)] | None = None
    """How long a call may go without an answer or a report of progress, in milliseconds."""
    allow: list[str] | None = None
    """The server's tools that are offered, by the names that it gives them; wildcards. Without it all are."""
    deny: list[str] | None = None
    """Those that are not offered, whatever `allow` says."""
    box: bool | None = None
    """Whether a local server runs in the box that commands of agents run in."""
    enabled: bool | None = None

    def __post_init__(self) -> None:
        if self.type is None and (self.command or self.url or self.enabled is None):
            raise ValueError("an MCP server needs `type`: local or remote")
        if self.type == "local" and not self.command:
            raise ValueError("a local MCP server needs `command`, a list: the program and its arguments")
        if self.type == "remote" and not self.url:
            raise ValueError("a remote MCP server needs `url`")


class CheckEntry(ProgramEntry, frozen=True, kw_only=True):
    """A program that looks at files which an agent has changed. With `disabled` alone it switches one off.

    `$FILE` in an argument is the path of a file, and the command is run for each; the argument `$FILES` is
    all of their paths. A command with neither is run once.
    """

    command: list[str] | None = None
    files: list[str] | None = None
    """Globs; a check without any looks at every file."""
    formats: bool | None = None
    """It may rewrite the files: it runs before the others, and its result is what the agent is shown."""
    timeout: Annotated[int, msgspec.Meta(gt=0, le=600_000)] | None = None
    """In milliseconds."""
    environment: dict[str, str] | None = None
    disabled: bool | None = None

    def __post_init__(self) -> None:
        if not self.command and not self.disabled:
            raise ValueError("a check needs `command`, a list: the program and its arguments")


class FormatterEntry(ProgramEntry, frozen=True, kw_only=True):
    """A program that formats files of some extensions."""

    disabled: bool | None = None
    command: list[str] | None = None
    environment: dict[str, str] | None = None
    extensions: list[str] | None = None


class LspEntry(ProgramEntry, frozen=True, kw_only=True):
    """A language server. With `disabled` alone it switches one off."""

    disabled: bool | None = None
    command: list[str] | None = None
    extensions: list[str] | None = None
    env: dict[str, str] | None = None
    initialization: JsonMap | None = None

    def __post_init__(self) -> None:
        if not self.command and not self.disabled:
            raise ValueError("a language server needs `command`, a list: the program and its arguments")
