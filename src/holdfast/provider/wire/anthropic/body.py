"""The body of a Messages request: tools, system, messages, controls and options. Pure.

Thinking and sampling exclude one another on this wire: with thinking on, temperature, top_p and top_k are not
sent. Temperature and top_p exclude one another too: the temperature is sent. A model that must call a tool
may not think first: who demands a call depends on it, so the thinking gives way. `max_tokens` must be sent
and must exceed a thinking budget.
"""

from typing import Any, assert_never

from holdfast.provider.request import pieces
from holdfast.provider.request.request import NamedTool, Request, ToolChoice
from holdfast.provider.wire.anthropic import messages
from holdfast.schema.wire import JsonMap

OUTPUT_TOKENS_DEFAULT = 32_000


def build(request: Request) -> JsonMap:
    """The body, without the request's compatibility fields."""
    options = request.options
    thinking = _thinking(request)
    body: JsonMap = {
        "model": request.model.api_id,
        "max_tokens": _max_tokens(request, thinking),
        "stream": True,
    }
    if request.tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": pieces.complete_schema(tool.input),
            }
            for tool in request.tools
        ]
    if (choice := _tool_choice(request.tool_choice, options)) is not None and request.tools:
        body["tool_choice"] = choice
    if system := messages.system(request):
        body["system"] = system
    body["messages"] = messages.build(request)
    body |= _controls(request, thinking=thinking is not None and thinking.get("type") != "disabled")
    if thinking is not None:
        body["thinking"] = thinking
    return body | _options(options)


def _max_tokens(request: Request, thinking: JsonMap | None) -> int:
    limit = request.model.limit.output or OUTPUT_TOKENS_DEFAULT
    wanted = request.controls.max_output_tokens or min(limit, OUTPUT_TOKENS_DEFAULT)
    budget = (thinking or {}).get("budget_tokens") or 0
    return wanted if budget < wanted else max(min(budget + wanted, limit), budget + 1)


def _thinking(request: Request) -> JsonMap | None:
    thinking = request.options.get("thinking")
    forced = bool(request.tools) and request.tool_choice not in {"auto", "none"}
    if not isinstance(thinking, dict) or (forced and thinking.get("type") != "disabled"):
        return None
    # `include_thoughts` is a word of another wire's.
    return {name: value for name, value in thinking.items() if name != "include_thoughts"}


def _controls(request: Request, *, thinking: bool) -> JsonMap:
    controls = request.controls
    fields: JsonMap = {}
    if not thinking:
        warmth = controls.temperature if request.model.temperature else None
        sampling = {
            "temperature": warmth,
            "top_p": controls.top_p if warmth is None else None,
            "top_k": controls.top_k,
        }
        fields |= {name: value for name, value in sampling.items() if value is not None}
    if controls.stop:
        fields["stop_sequences"] = list(controls.stop)
    return fields


def _options(options: JsonMap) -> JsonMap:
    """Model Request Options (the table in `catalog/ingest.py`) by this wire's names, where it has one."""
    output: JsonMap = {}
    if (effort := options.get("reasoning_effort")) is not None:
        output["effort"] = effort
    if (budget := options.get("task_budget")) is not None:
        output["task_budget"] = budget
    fields: JsonMap = {"output_config": output} if output else {}
    if (user := options.get("user")) is not None:
        fields["metadata"] = {"user_id": user}
    if (tier := options.get("service_tier")) is not None:
        fields["service_tier"] = tier
    return fields


def _tool_choice(choice: ToolChoice, options: JsonMap) -> JsonMap | None:
    fields: dict[str, Any]
    match choice:
        case "auto":
            fields = {"type": "auto"}
        case "none":
            return {"type": "none"}
        case "required":
            fields = {"type": "any"}
        case NamedTool(name=name):
            fields = {"type": "tool", "name": name}
        case _:
            assert_never(choice)
    if options.get("parallel_tool_calls") is False:
        fields["disable_parallel_tool_use"] = True
    return fields if fields != {"type": "auto"} else None
