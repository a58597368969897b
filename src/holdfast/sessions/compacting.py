"""Compacts a session by hand: asks for it durably, unless there is no need."""

from typing import Literal

import msgspec

from holdfast import flags
from holdfast.errors import InvalidInput, NotFound
from holdfast.provider import lowering, size
from holdfast.provider.request import Request
from holdfast.runtime import inbox, plan, projecting
from holdfast.runtime.compacting import measuring
from holdfast.runtime.history import History
from holdfast.runtime.inbox import Prompt
from holdfast.runtime.room import Engine
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
    around = await engine.around(session)
    model = around.providers.model(user.model.provider_id, user.model.model_id)
    output = flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX)
    room = measuring.room(model, around.loaded.config.compaction, output_tokens_max=output)
    shown = Request(model=model, messages=lowering.lower(projecting.project(history), model))
    epochs = await engine.store.select("epoch", session=session.id, mark=Mark.OPEN)
    told = sum(
        len(each.baseline) + len(msgspec.json.encode(each.pins)) for each in (e.value() for e in epochs)
    )
    ratio = measuring.ratio(history, model)
    estimated = round((size.characters(shown) + told) / ratio)
    return measuring.trigger(room, history, estimated=estimated, same_model=True) is not None
