"""Names of models, and the choice when nobody names one."""

from decimal import Decimal

import pytest

from holdfast.errors import InvalidInput
from holdfast.provider.catalog import choose, name
from holdfast.provider.catalog.model import Model, Price, Prices, WireKind
from holdfast.provider.catalog.name import ModelName, parse_model


def model(id: str, *, tool_call: bool = True, dollars: int = 1) -> Model:
    price = Price(input=Decimal(dollars), output=Decimal(dollars))
    return Model(
        provider_id="p",
        id=id,
        api_id=id,
        name=id,
        wire=WireKind.OPENAI_CHAT,
        tool_call=tool_call,
        prices=Prices(base=price),
    )


@pytest.mark.parametrize(
    ("ids", "best", "small"),
    [
        (
            ["claude-opus-4-1", "claude-sonnet-4-5", "claude-sonnet-4-20250514", "claude-haiku-4-5"],
            "claude-sonnet-4-5",
            "claude-haiku-4-5",
        ),
        (
            ["gpt-4o-2024-11-20", "gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5-pro", "o3"],
            "gpt-5",
            "gpt-5-nano",
        ),
        (["gemini-2.0-flash", "gemini-2.5-flash", "gemini-2.5-pro"], "gemini-2.5-pro", "gemini-2.5-flash"),
        (
            ["openai/gpt-5", "anthropic/claude-sonnet-4.5", "x/tiny-1b"],
            "anthropic/claude-sonnet-4.5",
            "x/tiny-1b",
        ),
        (["grok-4.20", "grok-4.7", "grok-4.7-fast"], "grok-4.7", None),
        (["mistral/glm-5", "mistral-large-3", "gpt-oss-120b:free"], "mistral-large-3", None),
        (["minimax-m2"], "minimax-m2", None),
        ([], None, None),
    ],
)
def test_the_best_and_the_smallest(ids: list[str], best: str | None, small: str | None) -> None:
    """A family that carries an agent well, its newest, in its plain form; and a quick cheap one."""
    models = [model(id, dollars=1 if "nano" in id else 2) for id in ids]
    found = choose.best(models), choose.smallest(models)
    assert [one and one.id for one in found] == [best, small]


def test_a_model_without_tools_comes_last() -> None:
    """An agent is of no use without them."""
    found = choose.best([model("claude-sonnet-9", tool_call=False), model("unknown-1")])
    assert found is not None
    assert found.id == "unknown-1"


def test_a_name_has_a_provider_and_a_model() -> None:
    """Only the first slash parts them."""
    assert parse_model("openai/gpt-5") == ModelName("openai", "gpt-5")
    assert parse_model(" openrouter/openai/gpt-5 ") == ModelName("openrouter", "openai/gpt-5")
    assert str(ModelName("openrouter", "openai/gpt-5")) == "openrouter/openai/gpt-5"


@pytest.mark.parametrize("text", ["", "gpt-5", "/gpt-5", "openai/"])
def test_half_a_name_is_an_error(text: str) -> None:
    """It says how a name looks."""
    with pytest.raises(InvalidInput, match="names no model; write provider/model"):
        parse_model(text)


def test_a_suggestion_ends_a_message() -> None:
    """Near names, or nothing."""
    assert name.suggestion("anthropc", ["anthropic", "openai"]) == "; did you mean anthropic?"
    assert name.suggestion("zzz", ["anthropic", "openai"]) == ""
