"""The body of a Responses request: instructions, input items, tools, controls and options. Pure.

The system blocks are one `instructions` text: it stands before everything else, stays the same bytes from
turn to turn, and servers that imitate the wire know it, as they do not know the role `developer`. The wire
has no penalties, seed, stop words or top_k; these controls are left out. `strict` is sent as off, because
the server's default rewrites a tool's schema.
"""

from typing import assert_never

from holdfast.provider.request import pieces
from holdfast.provider.request.request import NamedTool, Request, ToolChoice
from holdfast.provider.wire.openai_responses import item_ids, items
from holdfast.provider.wire.openai_role import Role
from holdfast.schema.wire import JsonMap

ENCRYPTED = "reasoning.encrypted_content"

# Model Request Options (the table in `catalog/ingest.py`) that this wire takes by their own names.
_SAME_NAMES = ("service_tier", "user", "metadata", "truncation")


def build(request: Request, role: Role | None = None) -> JsonMap:
    """The body, without the request's compatibility fields. `role`: see `openai_role`."""
    body: JsonMap = {"model": request.model.api_id}
    if instructions := "\n\n".join(text for text in request.system if text):
        body["instructions"] = instructions
    body["input"] = items.build(request, role)
    body["stream"] = True
    body["store"] = item_ids.stores(request)
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": pieces.complete_schema(tool.input),
                "strict": False,
            }
            for tool in request.tools
        ]
        if (choice := _tool_choice(request.tool_choice)) is not None:
            body["tool_choice"] = choice
    return body | _controls(request) | _options(request)


def _controls(request: Request) -> JsonMap:
    controls = request.controls
    fields: JsonMap = {
        "max_output_tokens": controls.max_output_tokens,
        "temperature": controls.temperature if request.model.temperature else None,
        "top_p": controls.top_p,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _options(request: Request) -> JsonMap:
    options = request.options
    fields = {name: options[name] for name in _SAME_NAMES if options.get(name) is not None}
    reasoning = {
        name: options[option]
        for name, option in (("effort", "reasoning_effort"), ("summary", "reasoning_summary"))
        if options.get(option) is not None
    }
    if reasoning:
        fields["reasoning"] = reasoning
    if (verbosity := options.get("verbosity")) is not None:
        fields["text"] = {"verbosity": verbosity}
    if include := _include(request):
        fields["include"] = include
    if (key := options.get("cache_key") or request.cache_key) is not None:
        fields["prompt_cache_key"] = key
    if (retention := options.get("cache_retention")) is not None:
        fields["prompt_cache_retention"] = retention
    if request.tools and options.get("parallel_tool_calls") is not None:
        fields["parallel_tool_calls"] = options["parallel_tool_calls"]
    return fields


def _include(request: Request) -> list[str]:
    """What the answer shall bring beside itself: thinking that is not stored must come back."""
    given = list(request.options.get("include") or ())
    wanted = request.model.reasoning and not item_ids.stores(request) and ENCRYPTED not in given
    return [*given, ENCRYPTED] if wanted else given


def _tool_choice(choice: ToolChoice) -> str | JsonMap | None:
    match choice:
        case "auto":
            return None
        case "none" | "required":
            return choice
        case NamedTool(name=name):
            return {"type": "function", "name": name}
        case _:
            assert_never(choice)
