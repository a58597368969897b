"""The agent, the model and the variant that answer a prompt, by the rules of the specification. Pure."""

import msgspec
from msgspec.structs import replace

from holdfast.errors import InvalidInput, NotFound
from holdfast.provider.catalog.model import Model
from holdfast.provider.catalog.settings import NO_VARIANT
from holdfast.schema.agent import Agent
from holdfast.schema.model import ModelRef
from holdfast.schema.session import Session
from holdfast.workspace.workspace import Workspace


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt asks for; None leaves the choice to the session and the settings."""

    agent: str | None = None
    model: ModelRef | None = None
    variant: str | None = None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The agent and the model that answer a prompt."""

    agent: Agent
    model: ModelRef
    """With its variant."""


def choose(wish: Wish, session: Session, workspace: Workspace, *, last: ModelRef | None = None) -> Choice:
    """The choice for a prompt. What it names must exist; the rest is chosen in the specified order."""
    agent = agent_in(session, workspace, wish.agent or session.agent or workspace.agents.default)
    run = session.agent_run
    is_run = run is not None and run.agent == agent.name
    if agent.mode == "subagent" and wish.agent is not None and session.parent_id is None and not is_run:
        raise InvalidInput(f"{agent.name} works only for other agents; choose a primary agent")
    model, kept = _model(wish, agent, session, workspace, last)
    known = workspace.providers.model(model.provider_id, model.model_id)
    return Choice(agent=agent, model=_with_variant(wish, agent, known, model, kept))


def agent_in(session: Session, workspace: Workspace, name: str) -> Agent:
    """The agent of that name; for an agent run, with the prompt that the caller gave."""
    agent = workspace.agents.get(name)
    run = session.agent_run
    given = run is not None and run.agent == agent.name and run.prompt is not None
    return replace(agent, prompt=run.prompt) if run is not None and given else agent


def _model(
    wish: Wish, agent: Agent, session: Session, workspace: Workspace, last: ModelRef | None
) -> tuple[ModelRef, str | None]:
    """The model, and the variant stored where it was found."""
    if wish.model is not None:
        return wish.model, wish.model.variant
    if agent.model is not None:
        return agent.model, None
    if session.model is not None:
        own = session.model
        return ModelRef(provider_id=own.provider_id, model_id=own.id), own.variant
    if last is not None:
        return last, last.variant
    found = workspace.providers.default_model(workspace.loaded.config.model)
    return ModelRef(provider_id=found.provider_id, model_id=found.id), None


def _with_variant(wish: Wish, agent: Agent, model: Model, ref: ModelRef, kept: str | None) -> ModelRef:
    variant = wish.variant or kept
    is_agents = agent.model is not None and (agent.model.provider_id, agent.model.model_id) == (
        ref.provider_id,
        ref.model_id,
    )
    if variant is None and is_agents and agent.variant in model.variants:
        variant = agent.variant
    if variant is not None and variant != NO_VARIANT and variant not in model.variants:
        known = ", ".join(model.variants) or "none"
        raise NotFound(f"{ref.provider_id}/{ref.model_id} has no variant {variant[:40]!r}; it has: {known}")
    return ModelRef(
        provider_id=ref.provider_id,
        model_id=ref.model_id,
        variant=None if variant == NO_VARIANT else variant,
    )
