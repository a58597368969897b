"""The turn that would come next, from what the epoch has stored: no source is observed, nothing is
committed.
"""

import msgspec

from holdfast.provider.request import assemble, lowering
from holdfast.provider.request.request import Request
from holdfast.runtime import boundary
from holdfast.runtime.compaction import fit
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.epoch import observe, pins
from holdfast.runtime.epoch.pins import Pin
from holdfast.runtime.history import model_view, work
from holdfast.runtime.history.epoch import Epoch
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.schema.epoch import ContextEpoch, EpochTime
from holdfast.schema.message import UserMessage
from holdfast.schema.output_format import schema_of
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that may come, and its request."""

    turn: PreparedTurn
    request: Request
    pin: Pin
    """What the epoch pins for the agent and its model, or would pin."""
    in_force: bool
    """Whether the session has an epoch; otherwise the turn is shown in an empty one."""


async def preview(engine: Engine, session: Session) -> Preview | None:
    """What the model would be sent next; None while no prompt chose an agent and a model.

    Pinned tools are shown as pinned: this process may have other tools than the one that runs the session.
    """
    history = SessionHistory(engine.store, session.id)
    everything = await history.read()
    # After a compaction its own message may be the only prompt left.
    newest = work.newest_user(model_view.conversation(everything)) or work.newest_user(everything)
    if newest is None or not isinstance(newest.info, UserMessage):
        return None
    sampled = await boundary.sample_for(engine, session, newest.info)
    found = await engine.store.select("epoch", session=session.id, mark=Mark.OPEN)
    epoch = Epoch(found[-1].value(), found[-1].position) if found else _empty(session)
    former = history.former_context(epoch.position) if found else frozenset()
    current = [each for each in everything if each.info.id not in former]
    toolset = observe.toolset(engine, sampled)
    pin = pins.pinned(epoch.value.pins, sampled.agent, sampled.model, pins.definitions(toolset)).pin
    turn = PreparedTurn(
        session=session,
        workspace=sampled.workspace,
        user=sampled.user,
        agent=sampled.agent,
        model=sampled.model,
        variant=sampled.user.model.variant,
        epoch=epoch,
        system=(*pin.system, epoch.value.baseline) if epoch.value.baseline else pin.system,
        tools=(*pin.tools, *pins.formed(schema_of(sampled.user.format))),
        moved=(),
        history=current,
        shown=model_view.project(current),
        toolset=toolset,
        policy=sampled.policy,
        last_step=False,
        compacts=not fit.is_off(sampled.workspace),
    )
    messages = lowering.lower(turn.shown, turn.model, rules=epoch.rules)
    request = assemble.assemble(
        turn.model, system=turn.system, messages=messages, tools=turn.tools, agent=turn.agent
    )
    return Preview(turn=turn, request=request, pin=pin, in_force=bool(found))


def _empty(session: Session) -> Epoch:
    value = ContextEpoch(
        id="",
        session_id=session.id,
        baseline="",
        snapshot={},
        begun={},
        cause="",
        pins={},
        nested=[],
        directory=session.directory,
        lowering=lowering.RULES,
        time=EpochTime(created=0),
    )
    return Epoch(value, 0)
