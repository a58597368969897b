"""Compacts a session by hand: asks for it durably, unless there is no need."""

from typing import Literal

import msgspec

from holdfast import flags
from holdfast.errors import InvalidInput, NotFound
from holdfast.provider import assemble, lowering, prefix
from holdfast.runtime import inbox, pins, plan, projecting
from holdfast.runtime.compacting import measuring
from holdfast.runtime.history import History
from holdfast.runtime.inbox import Prompt
from holdfast.runtime.pins import Pin
from holdfast.runtime.room import Engine
from holdfast.schema.epoch import ContextEpoch
from holdfast.schema.message import UserMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.prompt import CompactionPartInput
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark

Answer = Literal["admitted", "not needed"]


async def ask(engine: Engine, session: str, *, force: bool) -> Answer:
    """Ask for a compaction; without `force` only where a threshold is passed."""
    record = await engine.store.session(session)
    if record is None:
        raise NotFound(f"session {session[:60]} does not exist")
    history = await History(engine.store, session).read()
    newest = plan.newest_user(projecting.spoken(history))
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
    await inbox.admit(engine, session, prompt)
    return "admitted"


async def _is_needed(
    engine: Engine, session: Session, user: UserMessage, history: list[MessageWithParts]
) -> bool:
    """Whether the request that would come next is over a threshold, measured as before a turn."""
    around = await engine.around(session)
    agent = around.agents.get(user.agent)
    model = around.providers.model(user.model.provider_id, user.model.model_id)
    output = flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX)
    room = measuring.room(model, around.loaded.config.compaction, output_tokens_max=output)
    epochs = await engine.store.select("epoch", session=session.id, mark=Mark.OPEN)
    epoch = epochs[-1].value() if epochs else None
    pin = _pin(epoch, pins.key_of(agent, model))
    request = assemble.assemble(
        model,
        system=(*pin.system, epoch.baseline) if epoch is not None else pin.system,
        messages=lowering.lower(projecting.project(history), model),
        tools=pin.tools,
        agent=agent,
    )
    characters = prefix.named(request).characters
    return measuring.needed(room, history, model, characters=characters) is not None


def _pin(epoch: ContextEpoch | None, key: str) -> Pin:
    """What the agent is told; one that was not asked yet will be told about as much as another."""
    kept = {} if epoch is None else epoch.pins
    for data in (kept.get(key), *kept.values()):
        try:
            return msgspec.convert(data, Pin)
        except msgspec.ValidationError:
            continue
    return Pin(system=(), tools=())
