"""Variants: what each family offers of itself, what the settings change, and asking for one that is not."""

from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.provider.catalog import settings, variants
from holdfast.provider.catalog.compose import compose
from holdfast.provider.catalog.model import Settings
from holdfast.schema.provider_entry import ModelEntry, ReasoningOption

OPENAI, COMPATIBLE = "@ai-sdk/openai", "@ai-sdk/openai-compatible"


def names(npm: str, id: str, **more: Any) -> list[str]:
    return list(variants.defaults(npm, id, reasoning=True, **more))


@pytest.mark.parametrize(
    ("npm", "id", "expected"),
    [
        (OPENAI, "gpt-5", "minimal low medium high"),
        (OPENAI, "gpt-5-codex", "low medium high"),
        (OPENAI, "gpt-5-pro", "high"),
        (OPENAI, "gpt-5-chat-latest", ""),
        (OPENAI, "gpt-5.1", "none low medium high"),
        (OPENAI, "gpt-5.1-codex-max", "low medium high xhigh"),
        (OPENAI, "gpt-5.2", "none low medium high xhigh"),
        (OPENAI, "gpt-5.2-pro", "medium high xhigh"),
        (OPENAI, "gpt-5.3-codex", "none low medium high xhigh"),
        (OPENAI, "o3", "low medium high"),
        (OPENAI, "o3-deep-research", "medium"),
        ("@openrouter/ai-sdk-provider", "openai/gpt-5.2", "none low medium high xhigh"),
        (COMPATIBLE, "some-thinker", "low medium high"),
        (COMPATIBLE, "deepseek-r1", ""),
        (COMPATIBLE, "qwen3-235b-thinking", ""),
        ("@ai-sdk/xai", "grok-3-mini", "low high"),
        ("@ai-sdk/xai", "grok-4", ""),
        ("@ai-sdk/anthropic", "claude-sonnet-4-20250514", "high max"),
        ("@ai-sdk/anthropic", "claude-3-7-sonnet-20250219", "high max"),
        ("@ai-sdk/anthropic", "claude-opus-4-6", "low medium high max"),
        ("@ai-sdk/anthropic", "claude-opus-4.7", "low medium high xhigh max"),
        ("@ai-sdk/anthropic", "claude-sonnet-5", "low medium high xhigh max"),
        ("@ai-sdk/anthropic", "MiniMax-M2", ""),
        ("@ai-sdk/amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", "high max"),
        ("@ai-sdk/google", "gemini-2.5-pro", "high max"),
        ("@ai-sdk/google", "gemini-3.1-pro-preview", "low medium high"),
        ("@ai-sdk/google", "gemini-3-flash-preview", "minimal low medium high"),
    ],
)
def test_each_family_offers_its_own(npm: str, id: str, expected: str) -> None:
    """Weakest first; none where an effort would be refused or ignored."""
    assert names(npm, id) == expected.split()


def test_a_model_that_does_not_reason_has_none() -> None:
    """There is nothing to steer."""
    assert variants.defaults(OPENAI, "gpt-4o", reasoning=False) == {}


def test_what_the_data_states_counts() -> None:
    """Over any rule, and an empty statement means none."""
    stated = (ReasoningOption(type="effort", values=(None, "low", "max")),)
    assert names(OPENAI, "gpt-5", options=stated) == ["none", "low", "max"]
    assert names(COMPATIBLE, "some-thinker", options=()) == []


@pytest.mark.parametrize(
    ("npm", "id", "variant", "expected"),
    [
        (
            OPENAI,
            "gpt-5",
            "high",
            {
                "reasoning_effort": "high",
                "reasoning_summary": "auto",
                "include": ["reasoning.encrypted_content"],
            },
        ),
        (COMPATIBLE, "some-thinker", "low", {"reasoning_effort": "low"}),
        (
            "@ai-sdk/anthropic",
            "claude-opus-4-6",
            "max",
            {"thinking": {"type": "adaptive"}, "reasoning_effort": "max"},
        ),
        (
            "@ai-sdk/anthropic",
            "claude-sonnet-4-5",
            "max",
            {"thinking": {"type": "enabled", "budget_tokens": 31_999}},
        ),
        (
            "@ai-sdk/google",
            "gemini-2.5-flash",
            "max",
            {"thinking": {"include_thoughts": True, "budget_tokens": 24_576}},
        ),
        (
            "@ai-sdk/google",
            "gemini-3-pro-preview",
            "low",
            {"thinking": {"include_thoughts": True}, "reasoning_effort": "low"},
        ),
    ],
)
def test_a_variant_speaks_our_vocabulary(npm: str, id: str, variant: str, expected: dict[str, Any]) -> None:
    """Whole settings, in the words of ingest.py."""
    assert variants.defaults(npm, id, reasoning=True)[variant] == Settings(options=expected)


def test_a_thinking_budget_leaves_room_for_the_answer() -> None:
    """It is cut to the model's output, and a variant below the least budget is not offered."""
    found = variants.defaults("@ai-sdk/anthropic", "claude-x-4", reasoning=True, output_limit=8_192)
    budgets = {name: one.options["thinking"]["budget_tokens"] for name, one in found.items()}
    assert budgets == {"high": 4_095, "max": 8_191}
    assert list(variants.defaults("@ai-sdk/anthropic", "claude-x-4", reasoning=True, output_limit=2_000)) == [
        "max"
    ]


def test_the_settings_change_add_and_switch_off() -> None:
    """A variant of the settings is laid over ours of the same name; `disabled` takes one away."""
    entry = ModelEntry(
        reasoning=True,
        options={"reasoningEffort": "medium"},
        variants={
            "high": {"textVerbosity": "low"},
            "low": {"disabled": True},
            "mine": {"temperature": 1, "extra_field": 2},
        },
    )
    model = compose("p", "m", entry, npm=COMPATIBLE)
    assert model.variants == {
        "medium": Settings(options={"reasoning_effort": "medium"}),
        "high": Settings(options={"reasoning_effort": "high", "verbosity": "low"}),
        "mine": Settings(controls={"temperature": 1}, body={"extra_field": 2}),
    }
    assert settings.select(model, "high").options == {"reasoning_effort": "high", "verbosity": "low"}
    assert settings.select(model, "mine").options == {"reasoning_effort": "medium"}


def test_no_variant_and_default_are_the_same() -> None:
    """`default` stands for none, even where nothing is offered."""
    model = compose("p", "m", ModelEntry(options={"user": "u"}), npm=OPENAI)
    assert (
        settings.select(model, None) == settings.select(model, "default") == Settings(options={"user": "u"})
    )


def test_an_unknown_variant_is_an_error_that_lists_them() -> None:
    """The person asked for it by name, so it is not passed over."""
    model = compose("openai", "gpt-5", ModelEntry(reasoning=True), npm=OPENAI)
    with pytest.raises(
        InvalidInput, match="openai/gpt-5 has no variant 'ultra'; it has: minimal, low, medium, high"
    ):
        settings.select(model, "ultra")
    with pytest.raises(InvalidInput, match="it has: none, or default"):
        settings.select(compose("p", "m", ModelEntry(), npm=OPENAI), "high")


def test_settings_are_laid_over_one_another() -> None:
    """Objects are merged deeply, anything else is replaced, and neither side is changed."""
    base = Settings(controls={"seed": 1}, options={"thinking": {"type": "enabled", "budget_tokens": 1}})
    over = Settings(options={"thinking": {"budget_tokens": 2}}, body={"a": [1]}, headers={"x": "y"})
    assert settings.overlay(base, over) == Settings(
        controls={"seed": 1},
        options={"thinking": {"type": "enabled", "budget_tokens": 2}},
        body={"a": [1]},
        headers={"x": "y"},
    )
    assert base.options == {"thinking": {"type": "enabled", "budget_tokens": 1}}
