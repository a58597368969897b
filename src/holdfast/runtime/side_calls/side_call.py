"""Asks a small model for a short text, beside the work: once, within a bound and within the budget.

What must stay true: it never delays or fails a turn.
"""

import re

import anyio

from holdfast.provider.catalog import cost
from holdfast.provider.catalog.model import Model
from holdfast.provider.request.request import Request
from holdfast.runtime.answer.completion import Completion, complete
from holdfast.runtime.budget import reservations, spending
from holdfast.runtime.engine.engine import Engine
from holdfast.schema.agent import Agent
from holdfast.schema.session import Session
from holdfast.text import printable
from holdfast.workspace.workspace import Workspace

WAIT_S = 60.0
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


def model_of(agent: Agent, workspace: Workspace, main: Model) -> Model:
    """The agent's own model, else the small one that goes with the main one."""
    if agent.model is not None:
        return workspace.providers.model(agent.model.provider_id, agent.model.model_id)
    return workspace.providers.small_model(workspace.loaded.config.small_model, main)


async def ask(engine: Engine, workspace: Workspace, session: Session, request: Request, key: str) -> str:
    """The model's text without its thoughts; empty if the model fails or the budget does not suffice.

    `key` names the reservation: a session has at most one call of a kind under way.
    """
    if await reservations.reserve(engine, session, request, key, for_ms=int(WAIT_S * 1_000)) is not None:
        return ""
    try:
        return await _complete(engine, workspace, session, request, key)
    finally:
        with anyio.CancelScope(shield=True):
            await reservations.forget(engine, session, key)


async def _complete(
    engine: Engine, workspace: Workspace, session: Session, request: Request, key: str
) -> str:
    result = await complete(engine.provider(workspace), request)
    if not isinstance(result, Completion):
        return ""
    spent = cost.cost(result.tokens, request.model.prices)
    used = spending.Used(turn=key, tokens=result.tokens, cost=spent, time_ms=0)
    await reservations.settle(engine, session, used)
    return _THOUGHT.sub("", result.text).strip()


def first_line(text: str, chars_max: int) -> str:
    """The first line that is not empty, without quotes and control characters, shortened. Pure."""
    for line in text.splitlines():
        found = printable(line, "").strip().strip("\"'`*#").strip()
        if found:
            return found if len(found) <= chars_max else found[: chars_max - 3] + "..."
    return ""
