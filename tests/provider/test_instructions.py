"""Which base instructions a model gets, and what all of them must hold."""

import re
from importlib import resources

import pytest
from msgspec.structs import replace

from holdfast.provider.catalog.model import Limit
from holdfast.provider.instructions import choose
from holdfast.provider.instructions.choose import FAMILIES, instructions
from holdfast.schema.agent import Agent
from tests.provider.history import GPT

TEXTS = ("core", "brief", "default", *(name for name, _ in FAMILIES))


@pytest.mark.parametrize(
    ("id", "family"),
    [
        ("claude-sonnet-4-5", "claude"),
        ("anthropic/claude-3.5-haiku", "claude"),
        ("gpt-5", "codex"),
        ("openai/gpt-5.1-codex-mini", "codex"),
        ("gpt-4.1", "gpt"),
        ("o3-mini", "gpt"),
        ("openai/o4-mini", "gpt"),
        ("gpt-oss-120b", "gpt"),
        ("gemini-2.5-pro", "gemini"),
        ("kimi-k2", "kimi"),
        ("moonshotai/kimi-k2-instruct", "kimi"),
        ("qwen3-coder", "kimi"),
        ("deepseek-chat", "default"),
        ("foo3-bar", "default"),
        ("solo1", "default"),
    ],
)
def test_the_family_is_told_by_the_name(id: str, family: str) -> None:
    """Short signs count only as whole words: `foo3` is no o3."""
    assert choose.family(replace(GPT, id=id, api_id=id)) == family


def test_a_model_with_a_small_context_gets_the_brief_text() -> None:
    """The limit decides; an unknown limit is not small."""
    small = replace(GPT, limit=Limit(context=8_192, output=2_048))

    assert instructions(small).startswith("You are a coding agent run by Holdfast.")
    assert len(instructions(small)) < 1_600
    assert len(instructions(replace(GPT, limit=Limit()))) > 4_000
    assert choose.is_brief(replace(GPT, limit=Limit(context=16_384)))
    assert not choose.is_brief(replace(GPT, limit=Limit(context=16_385)))


def test_every_text_is_there_and_has_a_family() -> None:
    """No text without a row, no row without a text."""
    files = {file.name for file in resources.files("holdfast.provider.instructions").iterdir()}

    assert {name for name in files if name.endswith(".md")} == {f"{name}.md" for name in TEXTS}


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_claims_to_be_another_product_or_changes_with_the_day(name: str) -> None:
    """What differs from day to day belongs to the System Context."""
    text = resources.files("holdfast.provider.instructions").joinpath(f"{name}.md").read_text("utf-8")

    assert not re.search(r"opencode|claude code|cursor|copilot|chatgpt|\b20\d\d\b", text, re.IGNORECASE)
    assert text == text.strip() + "\n"


def test_an_agents_text_comes_after_the_base_and_never_in_its_place() -> None:
    """What may be trusted and what a denial means hold for every agent; the hidden ones stand alone."""
    own = Agent(name="mine", mode="primary", permission=[], options={}, prompt="Be brief.")
    plain = Agent(name="build", mode="primary", permission=[], options={})
    title = Agent(
        name="title", mode="primary", native=True, hidden=True, permission=[], options={}, prompt="T"
    )

    assert choose.system_blocks(GPT, own) == (instructions(GPT), "Be brief.")
    assert choose.system_blocks(GPT, plain) == (instructions(GPT),)
    assert choose.system_blocks(GPT, title) == ("T",)
