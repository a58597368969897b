"""The body of a Gemini request: contents, system instruction, tools, generation config. Pure.

Each system block is a part of the system instruction, so that a later block leaves the earlier ones as they
are. The wire steers thinking by a level or by a number of tokens, never both; which one a model takes goes
by its generation.
"""

from typing import assert_never

from holdfast.provider.catalog.model import Model
from holdfast.provider.request.request import NamedTool, Request, ToolChoice, ToolDefinition
from holdfast.provider.wire.gemini import contents, generation, schema
from holdfast.schema.wire import JsonMap

# The vendor's own reading of an effort: as tokens for models without levels, and as one of its levels.
_BUDGETS = {"none": 0, "minimal": 1_024, "low": 1_024, "medium": 8_192}
_BUDGET_MOST = 24_576
_LEVELS = {"none": "MINIMAL", "xhigh": "HIGH", "max": "HIGH"}


def build(request: Request) -> JsonMap:
    """The body, without the request's compatibility fields."""
    body: JsonMap = {}
    if system := [{"text": text} for text in request.system if text]:
        body["systemInstruction"] = {"parts": system}
    body["contents"] = contents.build(request)
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in request.tools]}]
        if (calling := _calling(request.tool_choice)) is not None:
            body["toolConfig"] = {"functionCallingConfig": calling}
    if config := _controls(request) | _thinking(request.model, request.options):
        body["generationConfig"] = config
    if (tier := request.options.get("service_tier")) is not None:
        body["serviceTier"] = tier
    return body


def _declaration(tool: ToolDefinition) -> JsonMap:
    fields: JsonMap = {"name": tool.name, "description": tool.description}
    if (parameters := schema.parameters(tool.input)) is not None:
        fields["parameters"] = parameters
    return fields


def _controls(request: Request) -> JsonMap:
    controls = request.controls
    fields: JsonMap = {
        "maxOutputTokens": controls.max_output_tokens,
        "temperature": controls.temperature if request.model.temperature else None,
        "topP": controls.top_p,
        "topK": controls.top_k,
        "frequencyPenalty": controls.frequency_penalty,
        "presencePenalty": controls.presence_penalty,
        "seed": controls.seed,
        "stopSequences": list(controls.stop) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _thinking(model: Model, options: JsonMap) -> JsonMap:
    """Model Request Options (the table in `catalog/ingest.py`) as a thinking config."""
    given = options.get("thinking")
    thinking: JsonMap = given if isinstance(given, dict) else {}
    effort = options.get("reasoning_effort")
    budget = 0 if thinking.get("type") == "disabled" else thinking.get("budget_tokens")
    config: JsonMap = {}
    if effort is not None and generation.takes_levels(model):
        config["thinkingLevel"] = _LEVELS.get(effort, str(effort).upper())
    elif budget is not None:
        config["thinkingBudget"] = budget
    elif effort is not None:
        config["thinkingBudget"] = _BUDGETS.get(effort, _BUDGET_MOST)
    if thinking.get("include_thoughts") is not None:
        config["includeThoughts"] = thinking["include_thoughts"]
    return {"thinkingConfig": config} if config else {}


def _calling(choice: ToolChoice) -> JsonMap | None:
    match choice:
        case "auto":
            return None
        case "none":
            return {"mode": "NONE"}
        case "required":
            return {"mode": "ANY"}
        case NamedTool(name=name):
            return {"mode": "ANY", "allowedFunctionNames": [name]}
        case _:
            assert_never(choice)
