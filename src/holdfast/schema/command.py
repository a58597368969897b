"""A command: a template that the user calls by name."""

from typing import Literal

from holdfast.schema.wire import Wire


class Command(Wire, frozen=True, kw_only=True):
    """`hints` are the placeholders of the template: `$1` …, then `$ARGUMENTS`."""

    name: str
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    source: Literal["command", "mcp", "skill"] | None = None
    template: str
    subtask: bool | None = None
    hints: list[str]
