"""Declares tools: a decorated function with type hints.

    @tool(repeatable=True)
    async def weather(context: ToolContext, city: Annotated[str, "The name of a city"], days: int = 1) -> str:
        '''Tell the weather of the next days.'''

The first parameter is the context, the others are the input: their types are the JSON schema that the model
sees, the docstring is the description. Input is checked before the function is called. What must stay true:
the same function gives the same definition, byte for byte.
"""

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import typed
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.output import ToolFailure, ToolOutput

Answer = ToolOutput | str
Run = Callable[[ToolContext, JsonMap], Awaitable[Answer]]


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_name(name: str) -> None:
    """Raise for what no provider takes as the name of a tool."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name[:80]!r} is no name of a tool: letters, digits, _ and -, at most 64")


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool. `permission` is the key that its rules go by; `repeatable` says that running it twice does no
    harm, so that a call which a crash cut off may simply be run again. `notes_files`: it writes no file
    without `context.keep`, so that whatever else changes in the project meanwhile is not its work.
    """

    name: str
    description: str
    schema: JsonMap
    run: Run
    permission: str
    repeatable: bool = False
    writes: bool = False
    """It may change files although it may be repeated."""
    asks_midway: bool = False
    """It may put questions to the user after it has begun, so a call that a crash cut off while it waited for
    an answer cannot be run again for it.
    """
    notes_files: bool = False


def tool(
    *,
    name: str | None = None,
    permission: str | None = None,
    description: str | None = None,
    repeatable: bool = False,
    notes_files: bool = False,
) -> Callable[[Callable[..., Awaitable[Answer]]], Tool]:
    """Make a tool of an async function."""

    def made(function: Callable[..., Awaitable[Answer]]) -> Tool:
        own = name or function.__name__
        check_name(own)
        if not inspect.iscoroutinefunction(function):
            raise InvalidInput(f"the tool {own} must be an async function")
        input_type = _input_type(own, function)

        async def run(context: ToolContext, input: JsonMap) -> Answer:
            try:
                value = typed.convert(input, input_type)
            except msgspec.ValidationError as error:
                raise ToolFailure(
                    f"The arguments of {own} are not valid: {error}. Call it again with arguments that fit "
                    "its schema."
                ) from error
            return await function(
                context, **{field: getattr(value, field) for field in value.__struct_fields__}
            )

        return Tool(
            name=own,
            description=description or inspect.getdoc(function) or "",
            schema=_schema(input_type),
            run=run,
            permission=permission or own,
            repeatable=repeatable,
            notes_files=notes_files,
        )

    return made


def _input_type(name: str, function: Callable[..., Any]) -> type[msgspec.Struct]:
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for each in parameters:
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) or each.name not in hints:
            raise InvalidInput(f"the parameter {each.name} of the tool {name} needs a name and a type")
        hint = _described(hints[each.name])
        fields.append((each.name, hint) if each.default is each.empty else (each.name, hint, each.default))
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True, frozen=True)


def _described(hint: Any) -> Any:
    """A plain string beside a type describes the parameter."""
    if get_origin(hint) is not Annotated:
        return hint
    base, *notes = get_args(hint)
    kept = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[(base, *kept)]


def _schema(input_type: type[msgspec.Struct]) -> JsonMap:
    _, components = msgspec.json.schema_components([input_type], ref_template="#/$defs/{name}")
    own = components.pop(input_type.__name__)
    own.pop("title", None)
    own.setdefault("required", [])
    return own if not components else {**own, "$defs": components}
