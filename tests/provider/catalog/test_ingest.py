"""Options in the AI SDK's shape, parted: a table of packages and options."""

from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.provider.catalog import ingest
from holdfast.provider.catalog.model import Settings

OPENAI, AZURE = "@ai-sdk/openai", "@ai-sdk/azure"
ANTHROPIC, VERTEX_ANTHROPIC = "@ai-sdk/anthropic", "@ai-sdk/google-vertex/anthropic"
GOOGLE, BEDROCK = "@ai-sdk/google", "@ai-sdk/amazon-bedrock"
COMPATIBLE, OPENROUTER = "@ai-sdk/openai-compatible", "@openrouter/ai-sdk-provider"
GROQ, XAI, MISTRAL = "@ai-sdk/groq", "@ai-sdk/xai", "@ai-sdk/mistral"


def options(**given: Any) -> Settings:
    return Settings(options=given)


def body(**given: Any) -> Settings:
    return Settings(body=given)


TABLE: list[tuple[str, dict[str, Any], Settings]] = [
    (OPENAI, {}, Settings()),
    (OPENAI, {"temperature": 0.5, "topP": 1}, Settings(controls={"temperature": 0.5, "top_p": 1})),
    (COMPATIBLE, {"top_k": 40.0, "seed": 7}, Settings(controls={"top_k": 40, "seed": 7})),
    (COMPATIBLE, {"maxOutputTokens": 100}, Settings(controls={"max_output_tokens": 100})),
    (GOOGLE, {"stopSequences": ["END"]}, Settings(controls={"stop": ["END"]})),
    (GOOGLE, {"stop": "END"}, Settings(controls={"stop": ["END"]})),
    (
        XAI,
        {"frequencyPenalty": 1, "presencePenalty": -1},
        Settings(controls={"frequency_penalty": 1, "presence_penalty": -1}),
    ),
    (OPENAI, {"temperature": None}, Settings()),
    (OPENAI, {"reasoningEffort": "high"}, options(reasoning_effort="high")),
    (AZURE, {"reasoningSummary": "auto", "store": False}, options(reasoning_summary="auto", store=False)),
    (OPENAI, {"textVerbosity": "low"}, options(verbosity="low")),
    (OPENAI, {"promptCacheKey": "k", "include": ["x"]}, options(cache_key="k", include=["x"])),
    (OPENAI, {"serviceTier": "flex", "user": "u"}, options(service_tier="flex", user="u")),
    (OPENAI, {"parallelToolCalls": False}, options(parallel_tool_calls=False)),
    (OPENAI, {"promptCacheRetention": "24h"}, options(cache_retention="24h")),
    (OPENAI, {"logitBias": {"1": 2}}, body(logit_bias={"1": 2})),
    (OPENAI, {"strictJsonSchema": True}, Settings()),
    (OPENAI, {"service_tier": "priority"}, body(service_tier="priority")),
    (
        ANTHROPIC,
        {"thinking": {"type": "enabled", "budgetTokens": 16000}},
        options(thinking={"type": "enabled", "budget_tokens": 16000}),
    ),
    (
        VERTEX_ANTHROPIC,
        {"thinking": {"type": "adaptive", "display": "summarized"}, "effort": "max"},
        options(thinking={"type": "adaptive", "display": "summarized"}, reasoning_effort="max"),
    ),
    (ANTHROPIC, {"disableParallelToolUse": True}, options(parallel_tool_calls=False)),
    (ANTHROPIC, {"metadata": {"userId": "u"}}, options(user="u")),
    (ANTHROPIC, {"taskBudget": {"total": 5}}, options(task_budget={"total": 5})),
    (ANTHROPIC, {"cacheControl": {"type": "ephemeral"}}, body(cache_control={"type": "ephemeral"})),
    (ANTHROPIC, {"anthropicBeta": ["a", "b"]}, Settings(headers={"anthropic-beta": "a,b"})),
    (ANTHROPIC, {"sendReasoning": False, "speed": "fast"}, body(speed="fast")),
    (
        GOOGLE,
        {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 0}},
        options(thinking={"include_thoughts": True, "budget_tokens": 0}),
    ),
    (GOOGLE, {"thinkingConfig": {"thinkingLevel": "low"}}, options(reasoning_effort="low")),
    (GOOGLE, {"safetySettings": []}, body(safetySettings=[])),
    (GOOGLE, {"responseModalities": ["TEXT"]}, body(generationConfig={"responseModalities": ["TEXT"]})),
    (
        BEDROCK,
        {"reasoningConfig": {"type": "enabled", "budgetTokens": 9}},
        options(thinking={"type": "enabled", "budget_tokens": 9}),
    ),
    (
        BEDROCK,
        {"reasoningConfig": {"type": "adaptive", "maxReasoningEffort": "max"}},
        options(thinking={"type": "adaptive"}, reasoning_effort="max"),
    ),
    (BEDROCK, {"additionalModelRequestFields": {"a": 1}}, body(a=1)),
    (COMPATIBLE, {"reasoningEffort": "low"}, options(reasoning_effort="low")),
    (COMPATIBLE, {"thinking": {"type": "enabled"}}, body(thinking={"type": "enabled"})),
    (COMPATIBLE, {"chat_template_kwargs": {"x": 1}}, body(chat_template_kwargs={"x": 1})),
    ("some-unknown-package", {"enable_thinking": True}, body(enable_thinking=True)),
    (
        OPENROUTER,
        {"reasoning": {"effort": "high"}, "usage": {"include": True}},
        body(reasoning={"effort": "high"}, usage={"include": True}),
    ),
    (GROQ, {"reasoningFormat": "parsed"}, body(reasoning_format="parsed")),
    (XAI, {"parallel_function_calling": True}, options(parallel_tool_calls=True)),
    (MISTRAL, {"safePrompt": True}, body(safe_prompt=True)),
    (COMPATIBLE, {"apiKey": "sk-secret", "baseURL": "x", "headers": {"a": "b"}}, Settings()),
]


@pytest.mark.parametrize(("npm", "given", "expected"), TABLE)
def test_options_are_parted(npm: str, given: dict[str, Any], expected: Settings) -> None:
    """Each option goes to its domain under our name, and nothing of the connection reaches a body."""
    assert ingest.partition(npm, given) == expected


def test_headers_come_along() -> None:
    """A model's own headers and those that options ask for."""
    found = ingest.partition(ANTHROPIC, {"anthropicBeta": ["a"]}, {"x-mine": "1"})
    assert found == Settings(headers={"x-mine": "1", "anthropic-beta": "a"})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"temperature": True}, "temperature must be a number"),
        ({"topP": float("inf")}, "top_p must be a number"),
        ({"topK": 1.5}, "top_k must be a whole number"),
        ({"stopSequences": [1]}, "stopSequences must be a list of texts"),
    ],
)
def test_a_control_of_the_wrong_kind_is_an_error(given: dict[str, Any], told: str) -> None:
    """Controls mean the same everywhere, so a wrong one is known before any provider sees it."""
    with pytest.raises(InvalidInput, match=told):
        ingest.partition(OPENAI, given)


def test_what_is_given_is_not_changed() -> None:
    """Pure: nested options are copied before they are renamed."""
    given = {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True}}
    ingest.partition(GOOGLE, given)
    assert given == {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True}}
