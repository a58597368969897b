"""Compacts a session by hand: asks for it durably, unless there is no need."""

from typing import Literal

import msgspec

from holdfast.errors import InvalidInput, NotFound
from holdfast.provider.catalog.model import Model
from holdfast.provider.request import assemble, lowering, prefix
from holdfast.provider.request.request import ToolDefinition
from holdfast.runtime.compaction import fit
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.epoch import pins
from holdfast.runtime.epoch.pins import Pin
from holdfast.runtime.history import model_view, work
from holdfast.runtime.history.epoch import rules_of
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.runtime.inbox import admission, choice
from holdfast.runtime.inbox.admission import Prompt
from holdfast.schema import typed
from holdfast.schema.epoch import ContextEpoch
from holdfast.schema.message import MessageWithParts, UserMessage
from holdfast.schema.prompt import CompactionPartInput
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark
from holdfast.workspace.workspace import Workspace

Answer = Literal["admitted", "not needed"]


async def ask(engine: Engine, session: str, *, force: bool) -> Answer:
    """Ask for a compaction; without `force` only where a threshold is passed."""
    record = await engine.store.session(session)
    if record is None:
        raise NotFound(f"session {session[:60]} does not exist")
    history = await SessionHistory(engine.store, session).read()
    newest = work.newest_user(model_view.spoken(history))
    if newest is None and not force:
        return "not needed"
    if newest is None:
        raise InvalidInput(f"session {session} has nothing to compact: nothing was said since its beginning")
    assert isinstance(newest.info, UserMessage)
    if not force and not await _is_needed(engine, record.value(), newest.info, history):
        return "not needed"
    wish = newest.info
    prompt = Prompt(
        parts=[CompactionPartInput()], agent=wish.agent, model=wish.model, variant=wish.model.variant
    )
    await admission.admit(engine, session, prompt)
    return "admitted"


class _Next(msgspec.Struct, frozen=True, kw_only=True):
    """The request that would come next, for `fitting`."""

    workspace: Workspace
    model: Model
    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    history: list[MessageWithParts]
    shown: list[MessageWithParts]
    compacts: bool = True


async def _is_needed(
    engine: Engine, session: Session, user: UserMessage, history: list[MessageWithParts]
) -> bool:
    """Whether the request that would come next is over a threshold, measured as before a turn."""
    workspace = await engine.workspace(session)
    agent = choice.agent_in(session, workspace, user.agent)
    model = workspace.providers.model(user.model.provider_id, user.model.model_id)
    epochs = await engine.store.select("epoch", session=session.id, mark=Mark.OPEN)
    epoch = epochs[-1].value() if epochs else None
    pin = _pin(epoch, pins.key_of(agent, model))
    next_ = _Next(
        workspace=workspace,
        model=model,
        system=(*pin.system, epoch.baseline) if epoch is not None else pin.system,
        tools=pin.tools,
        history=history,
        shown=model_view.project(history),
    )
    request = assemble.assemble(
        model,
        system=next_.system,
        messages=lowering.lower(next_.shown, model, rules=rules_of(epoch)),
        tools=next_.tools,
        agent=agent,
    )
    return fit.called_for(next_, prefix.named(request).characters) is not None


def _pin(epoch: ContextEpoch | None, key: str) -> Pin:
    """What the agent is told; one that was not asked yet will be told about as much as another."""
    kept = {} if epoch is None else epoch.pins
    for data in (kept.get(key), *kept.values()):
        try:
            return typed.convert(data, Pin)
        except msgspec.ValidationError:
            continue
    return Pin(system=(), tools=())
