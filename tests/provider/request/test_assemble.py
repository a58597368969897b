"""A request is put together from model, variant and agent, each over the one before."""

import pytest
from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.provider.catalog.model import Limit, Settings
from holdfast.provider.request.assemble import OUTPUT_TOKENS_MAX, assemble, output_tokens
from holdfast.provider.request.request import (
    CacheMarks,
    GenerationControls,
    Request,
    SystemUpdate,
    Text,
    ToolDefinition,
    User,
)
from holdfast.schema.agent import Agent
from tests.provider.history import CLAUDE, GPT

ASK = User(content=(Text(text="q"),))
AGENT = Agent(name="a", mode="primary", permission=[], options={})
VARIED = replace(
    GPT,
    limit=Limit(context=100_000, output=8_000),
    settings=Settings(controls={"temperature": 0.1}, options={"store": False}, headers={"x": "model"}),
    variants={"high": Settings(options={"reasoning_effort": "high"}, headers={"x": "variant"})},
)


def tool(name: str) -> ToolDefinition:
    """A tool without arguments."""
    return ToolDefinition(name=name, description=name, input={"type": "object"})


def test_an_unknown_variant_is_an_error_that_names_those_there_are() -> None:
    """`default` stands for none."""
    with pytest.raises(InvalidInput, match="has no variant 'low'; it has: high, or default"):
        assemble(VARIED, system=(), messages=(ASK,), variant="low")

    assert assemble(VARIED, system=(), messages=(ASK,), variant="default").options == {"store": False}


def test_the_agent_wins_over_the_variant_and_the_variant_over_the_model() -> None:
    """Its options are parted into the three domains like a model's."""
    agent = replace(
        AGENT, temperature=0.7, top_p=0.9, options={"reasoningEffort": "low", "topK": 4, "odd": 1}
    )

    request = assemble(VARIED, system=("s",), messages=(ASK,), agent=agent, variant="high", session="ses_1")

    assert request == Request(
        model=VARIED,
        system=("s",),
        messages=(ASK,),
        controls=GenerationControls(temperature=0.7, top_p=0.9, top_k=4, max_output_tokens=8_000),
        options={"store": False, "reasoning_effort": "low"},
        body={"odd": 1},
        headers={"x": "variant"},
        session="ses_1",
    )


def test_tools_are_sorted_and_marks_are_set() -> None:
    """The order of registration does not move the prefix."""
    request = assemble(
        CLAUDE,
        system=("a", "b"),
        messages=(ASK, SystemUpdate(text="u")),
        tools=(tool("z"), tool("a")),
        cache_key="k",
    )

    assert [each.name for each in request.tools] == ["a", "z"]
    assert request.marks == CacheMarks(system=(1,), messages=(1,))


def test_a_model_that_takes_no_temperature_gets_none() -> None:
    """It would refuse the request."""
    agent = replace(AGENT, temperature=0.7)

    assert assemble(
        replace(GPT, temperature=False), system=(), messages=(ASK,), agent=agent
    ).controls == GenerationControls(max_output_tokens=OUTPUT_TOKENS_MAX)


@pytest.mark.parametrize(
    ("limit", "flag", "most"),
    [(0, None, 32_000), (8_000, None, 8_000), (64_000, None, 32_000), (64_000, 50_000, 50_000), (0, 9, 9)],
)
def test_the_answer_is_bounded(limit: int, flag: int | None, most: int) -> None:
    """By the model's limit and by ours; an unknown limit leaves ours."""
    assert output_tokens(replace(GPT, limit=Limit(output=limit)), flag) == most


def test_a_wish_for_fewer_tokens_is_kept() -> None:
    """A wish for more is cut to the limit."""
    fewer = replace(VARIED, settings=Settings(controls={"max_output_tokens": 100}))
    more = replace(VARIED, settings=Settings(controls={"max_output_tokens": 10_000}))

    assert assemble(fewer, system=(), messages=(ASK,)).controls.max_output_tokens == 100
    assert assemble(more, system=(), messages=(ASK,)).controls.max_output_tokens == 8_000
