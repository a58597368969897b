"""Parts options in the shape of the AI SDK (settings, models.dev) into the three domains of seed 000. Pure.

Generation Controls, named as in `GenerationControls`, mean the same to every model:
  max_output_tokens · temperature · top_p · top_k · frequency_penalty · presence_penalty · seed · stop

Model Request Options, the one vocabulary that adapters translate from:

| name                | value                                          | on the wires, roughly
|---------------------|------------------------------------------------|--------------------------------------
| reasoning_effort    | "none" "minimal" "low" "medium" "high"         | Responses reasoning.effort, Chat
|                     | "xhigh" "max", or a provider's own word        | reasoning_effort, Messages
|                     |                                                | output_config.effort, Gemini level
| reasoning_summary   | "auto" "concise" "detailed"                    | Responses reasoning.summary
| thinking            | {type: "enabled" "adaptive" "disabled",        | Messages thinking, Gemini thinking-
|                     |  budget_tokens, display, include_thoughts}     | Config (Budget, includeThoughts)
| verbosity           | "low" "medium" "high"                          | Responses text.verbosity, Chat same
| store               | bool                                           | store
| include             | [str]                                          | Responses include
| service_tier        | str                                            | service_tier
| parallel_tool_calls | bool                                           | parallel_tool_calls, Messages tool_
|                     |                                                | choice.disable_parallel_tool_use
| cache_key           | str                                            | prompt_cache_key
| cache_retention     | "in_memory" "24h"                              | prompt_cache_retention
| user                | str                                            | user, Messages metadata.user_id
| task_budget         | object                                         | Messages output_config.task_budget
| metadata            | {str: str}                                     | metadata
| truncation          | "auto" "disabled"                              | Responses truncation

Everything else is a compatibility field: it goes into `body` and onto the wire as it stands, merged deeply.
Where a package renames such a field itself, the wire's name is written here (`logitBias` → `logit_bias`).

What must stay true: no option is lost except those in `LOCAL`, which speak to the SDK, not the provider; and
what belongs to the connection (a key, an address) never reaches a body.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.provider.catalog.model import Settings
from holdfast.schema.wire import JsonMap

CONTROLS = {
    "maxOutputTokens": "max_output_tokens",
    "maxTokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "temperature": "temperature",
    "topP": "top_p",
    "top_p": "top_p",
    "topK": "top_k",
    "top_k": "top_k",
    "frequencyPenalty": "frequency_penalty",
    "frequency_penalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stopSequences": "stop",
    "stop": "stop",
}
INTEGERS = frozenset({"max_output_tokens", "top_k", "seed"})

CONNECTION = frozenset(
    {
        *("apiKey", "authToken", "baseURL", "name", "headers", "fetch", "enterpriseUrl", "setCacheKey"),
        *("timeout", "headerTimeout", "chunkTimeout", "organization", "project", "region", "profile"),
        *("accessKeyId", "secretAccessKey", "sessionToken", "resourceName", "apiVersion", "includeUsage"),
        *("useCompletionUrls", "useDeploymentBasedUrls"),
    }
)
LOCAL = frozenset(
    {"strictJsonSchema", "structuredOutputs", "structuredOutputMode", "forceReasoning", "systemMessageMode"}
)

# Names that mean the same in every package.
COMMON = {
    "reasoningEffort": "reasoning_effort",
    "textVerbosity": "verbosity",
    "promptCacheKey": "cache_key",
    "parallelToolCalls": "parallel_tool_calls",
    "serviceTier": "service_tier",
    "user": "user",
}
OPENAI = {
    "reasoningSummary": "reasoning_summary",
    "promptCacheRetention": "cache_retention",
    "store": "store",
    "include": "include",
    "metadata": "metadata",
    "truncation": "truncation",
}
ANTHROPIC = {"effort": "reasoning_effort", "taskBudget": "task_budget"}

RENAMED: dict[str, dict[str, str]] = {
    "openai": {
        "logitBias": "logit_bias",
        "topLogprobs": "top_logprobs",
        "safetyIdentifier": "safety_identifier",
        "previousResponseId": "previous_response_id",
        "maxToolCalls": "max_tool_calls",
        "maxCompletionTokens": "max_completion_tokens",
    },
    "anthropic": {"cacheControl": "cache_control", "contextManagement": "context_management"},
    "groq": {"reasoningFormat": "reasoning_format"},
    "mistral": {
        "safePrompt": "safe_prompt",
        "documentImageLimit": "document_image_limit",
        "documentPageLimit": "document_page_limit",
    },
    "xai": {"searchParameters": "search_parameters"},
}
GENERATION_CONFIG = frozenset(
    {"responseModalities", "mediaResolution", "audioTimestamp", "speechConfig", "imageConfig"}
)


def partition(npm: str, options: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Settings:
    """Options of a model, a variant or an agent, in the words of the AI SDK package `npm`."""
    kind = kind_of(npm)
    found = _Parts(dict(headers or {}))
    for name, value in options.items():
        if value is None or name in CONNECTION or name in LOCAL:
            continue
        if name in CONTROLS:
            found.controls[CONTROLS[name]] = _control(CONTROLS[name], value)
        elif not _special(kind, name, value, found):
            _plain(kind, name, value, found)
    return Settings(controls=found.controls, options=found.options, body=found.body, headers=found.headers)


def kind_of(npm: str) -> str:
    """Which dialect of options a package speaks; `compatible` for what is not known."""
    if npm in ("@ai-sdk/openai", "@ai-sdk/azure", "@ai-sdk/github-copilot"):
        return "openai"
    if npm in ("@ai-sdk/anthropic", "@ai-sdk/google-vertex/anthropic"):
        return "anthropic"
    if npm in ("@ai-sdk/google", "@ai-sdk/google-vertex"):
        return "google"
    if npm.startswith("@ai-sdk/amazon-bedrock"):
        return "bedrock"
    named = {"@openrouter/ai-sdk-provider": "openrouter", "@ai-sdk/groq": "groq"}
    named |= {"@ai-sdk/xai": "xai", "@ai-sdk/mistral": "mistral"}
    return named.get(npm, "compatible")


class _Parts:
    def __init__(self, headers: dict[str, str]) -> None:
        self.controls: JsonMap = {}
        self.options: JsonMap = {}
        self.body: JsonMap = {}
        self.headers = headers


def _plain(kind: str, name: str, value: Any, found: _Parts) -> None:
    names = COMMON | (OPENAI if kind == "openai" else ANTHROPIC if kind == "anthropic" else {})
    if name in names:
        found.options[names[name]] = value
    else:
        found.body[RENAMED.get(kind, {}).get(name, name)] = value


def _special(kind: str, name: str, value: Any, found: _Parts) -> bool:
    """Options that are more than a name and a value."""
    match kind, name, value:
        case "anthropic", "thinking", dict():
            found.options["thinking"] = _thinking(value)
        case "anthropic", "disableParallelToolUse", bool():
            found.options["parallel_tool_calls"] = not value
        case "anthropic", "metadata", {"userId": user}:
            found.options["user"] = user
        case "anthropic", "anthropicBeta", list():
            found.headers["anthropic-beta"] = ",".join(str(item) for item in value)
        case "anthropic", "sendReasoning" | "toolStreaming", _:
            pass  # local to the SDK
        case "google", "thinkingConfig", dict():
            _gemini_thinking(value, found)
        case "google", name, _ if name in GENERATION_CONFIG:
            found.body.setdefault("generationConfig", {})[name] = value
        case "bedrock", "reasoningConfig", dict():
            _bedrock_thinking(value, found)
        case "bedrock", "additionalModelRequestFields", dict():
            found.body.update(value)
        case "xai", "parallel_function_calling", bool():
            found.options["parallel_tool_calls"] = value
        case _:
            return False
    return True


def _thinking(value: Mapping[str, Any]) -> JsonMap:
    renamed = {"budgetTokens": "budget_tokens", "includeThoughts": "include_thoughts"}
    return {renamed.get(name, name): item for name, item in value.items()}


def _gemini_thinking(value: Mapping[str, Any], found: _Parts) -> None:
    rest = dict(value)
    level = rest.pop("thinkingLevel", None)
    budget = rest.pop("thinkingBudget", None)
    if level is not None:
        found.options["reasoning_effort"] = level
    if budget is not None:
        rest["budget_tokens"] = budget
    if rest:
        found.options["thinking"] = _thinking(rest)


def _bedrock_thinking(value: Mapping[str, Any], found: _Parts) -> None:
    rest = dict(value)
    effort = rest.pop("maxReasoningEffort", None)
    if effort is not None:
        found.options["reasoning_effort"] = effort
    if rest:
        found.options["thinking"] = _thinking(rest)


def _control(name: str, value: Any) -> Any:
    if name == "stop":
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise InvalidInput("the option stopSequences must be a list of texts")
        return words
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InvalidInput(f"the option {name} must be a number")
    if name in INTEGERS:
        if value != int(value):
            raise InvalidInput(f"the option {name} must be a whole number")
        return int(value)
    return value
