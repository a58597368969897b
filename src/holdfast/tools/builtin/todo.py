"""The tools `todowrite` and `todoread`: the session's list of what is to be done."""

from typing import Annotated, Final, Literal

import msgspec

from holdfast.schema.session_lists import Todo
from holdfast.store.base import Store
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolOutput

TODOS_MAX: Final = 200
CONTENT_CHARS_MAX: Final = 1_000

WRITE: Final = """Replace the list of what is to be done, which the user sees: give the whole list each \
time. Use it for work of three steps or more, keep one entry in progress, and set each to completed as soon \
as it is done."""
READ: Final = "Show the list of what is to be done, as it was last written."

Content = Annotated[str, msgspec.Meta(min_length=1, max_length=CONTENT_CHARS_MAX)]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What the model writes of one entry."""

    content: Content
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    priority: Literal["high", "medium", "low"] = "medium"


def todowrite_tool() -> Tool:
    """The tool that replaces the list."""

    # Written twice, the list is the same.
    @tool(name="todowrite", description=WRITE, repeatable=True)
    async def todowrite(
        context: ToolContext, todos: Annotated[list[Entry], msgspec.Meta(max_length=TODOS_MAX)]
    ) -> ToolOutput:
        await context.ask("todowrite", ["*"], always=["*"])
        made = [Todo(content=each.content, status=each.status, priority=each.priority) for each in todos]
        await context.commit("todo", made)
        return _shown(made)

    return todowrite


def todoread_tool(store: Store) -> Tool:
    """The tool that shows the list."""

    @tool(name="todoread", description=READ, repeatable=True)
    async def todoread(context: ToolContext) -> ToolOutput:
        await context.ask("todoread", ["*"], always=["*"])
        records = await store.select("todo", session=context.session_id)
        return _shown([todo for record in records for todo in record.value()])

    return todoread


def _shown(todos: list[Todo]) -> ToolOutput:
    plain = msgspec.to_builtins(todos)
    count = sum(todo.status != "completed" for todo in todos)
    return ToolOutput(
        text=msgspec.json.format(msgspec.json.encode(todos), indent=2).decode(),
        title=f"{count} todos",
        metadata={"todos": plain},
    )
