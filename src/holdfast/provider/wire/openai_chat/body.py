"""The body of a Chat Completions request: messages, tools, controls and options. Pure."""

from typing import assert_never

from holdfast.provider.request import pieces
from holdfast.provider.request.request import NamedTool, Request, ToolChoice
from holdfast.provider.wire.openai_chat import dialect, messages
from holdfast.provider.wire.openai_chat.dialect import Dialect
from holdfast.provider.wire.openai_role import Role
from holdfast.schema.wire import JsonMap

# Model Request Options (the table in `catalog/ingest.py`) that this wire takes by their own names.
_SAME_NAMES = ("reasoning_effort", "verbosity", "store", "service_tier", "user", "metadata", "thinking")


def build(request: Request, role: Role | None = None) -> JsonMap:
    """The body, without the request's compatibility fields. `role`: see `openai_role`."""
    server = dialect.of(request.model)
    body: JsonMap = {
        "model": request.model.api_id,
        "messages": messages.build(request, server, role),
        "stream": True,
    }
    if not server.mistral:  # It reports the usage unasked, and refuses what it does not know.
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": pieces.complete_schema(tool.input),
                },
            }
            for tool in request.tools
        ]
        if (choice := _tool_choice(request.tool_choice)) is not None:
            body["tool_choice"] = choice
    return body | _controls(request, server) | _options(request, server)


def _controls(request: Request, server: Dialect) -> JsonMap:
    controls = request.controls
    fields: JsonMap = {
        # OpenAI gave the field a new name; most others know the old one alone.
        "max_completion_tokens" if server.own else "max_tokens": controls.max_output_tokens,
        "temperature": controls.temperature if request.model.temperature else None,
        "top_p": controls.top_p,
        "top_k": None if server.own or server.mistral else controls.top_k,
        "frequency_penalty": controls.frequency_penalty,
        "presence_penalty": controls.presence_penalty,
        "random_seed" if server.mistral else "seed": controls.seed,
        "stop": list(controls.stop) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _options(request: Request, server: Dialect) -> JsonMap:
    options = request.options
    fields = {name: options[name] for name in _SAME_NAMES if options.get(name) is not None}
    if server.own:
        fields.pop("thinking", None)
        if (key := options.get("cache_key") or request.cache_key) is not None:
            fields["prompt_cache_key"] = key
        if (retention := options.get("cache_retention")) is not None:
            fields["prompt_cache_retention"] = retention
    if server.details and "reasoning_effort" in fields:
        fields["reasoning"] = {"effort": fields.pop("reasoning_effort")}
    if request.tools and options.get("parallel_tool_calls") is not None:
        fields["parallel_tool_calls"] = options["parallel_tool_calls"]
    return fields


def _tool_choice(choice: ToolChoice) -> str | JsonMap | None:
    match choice:
        case "auto":
            return None
        case "none" | "required":
            return choice
        case NamedTool(name=name):
            return {"type": "function", "function": {"name": name}}
        case _:
            assert_never(choice)
