"""Puts a request together: the blocks, and the settings of model, variant and agent over one another. Pure.

What must stay true: the blocks go in as they were given; tools are sorted by name, so that the order of their
registration cannot move the prefix.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.provider.catalog import ingest, settings
from holdfast.provider.catalog.model import Model, Settings
from holdfast.provider.request import cache_marks
from holdfast.provider.request.request import (
    GenerationControls,
    ProviderMessage,
    Request,
    ToolChoice,
    ToolDefinition,
)
from holdfast.schema import typed
from holdfast.schema.agent import Agent

OUTPUT_TOKENS_MAX: Final = 32_000
"""The most tokens that an answer may have, unless the flag EXPERIMENTAL_OUTPUT_TOKEN_MAX says otherwise."""


def assemble(
    model: Model,
    *,
    system: Sequence[str],
    messages: Sequence[ProviderMessage],
    tools: Sequence[ToolDefinition] = (),
    tool_choice: ToolChoice = "auto",
    agent: Agent | None = None,
    variant: str | None = None,
    output_tokens_max: int | None = None,
    cache_key: str | None = None,
    session: str | None = None,
) -> Request:
    """The request, cache marks included. An unknown variant is the caller's mistake."""
    chosen = settings.select(model, variant)
    if agent is not None:
        chosen = settings.overlay(chosen, _of_agent(agent, model))
    request = Request(
        model=model,
        tools=tuple(sorted(tools, key=lambda tool: tool.name)),
        system=tuple(system),
        messages=tuple(messages),
        tool_choice=tool_choice,
        controls=_controls(chosen, model, output_tokens_max),
        options=chosen.options,
        body=chosen.body,
        headers=chosen.headers,
        cache_key=cache_key,
        session=session,
    )
    return cache_marks.marked(request)


def output_tokens(model: Model, output_tokens_max: int | None = None) -> int:
    """How many tokens the answer may have: the model's limit within ours; ours where its limit is unknown."""
    ours = output_tokens_max or OUTPUT_TOKENS_MAX
    if model.limit.context and not model.limit.input:
        ours = min(
            ours, max(1, model.limit.context // 2)
        )  # Some of the window must be left for the question.
    return min(model.limit.output, ours) if model.limit.output else ours


def _of_agent(agent: Agent, model: Model) -> Settings:
    given = ingest.partition(model.npm, agent.options)
    own = {"temperature": agent.temperature, "top_p": agent.top_p}
    return replace(
        given, controls=given.controls | {name: value for name, value in own.items() if value is not None}
    )


def _controls(chosen: Settings, model: Model, output_tokens_max: int | None) -> GenerationControls:
    controls = typed.convert(chosen.controls, GenerationControls)
    if not model.temperature:  # Such a model refuses the request for it.
        controls = replace(controls, temperature=None)
    most = output_tokens(model, output_tokens_max)
    wanted = controls.max_output_tokens
    return replace(controls, max_output_tokens=most if wanted is None else min(wanted, most))
