"""The Safe Provider-Turn Boundary: everything that is fixed right before a provider call.

In this order: agent and model are sampled, once, from the prompt that is to be answered; the Context Epoch is
begun where there is none; prompts are promoted; the epoch is reconciled with the world; what the epoch pins
for the agent is kept. A change of the world that comes after this waits for the next boundary.
"""

from collections.abc import Collection

from msgspec.structs import replace

from holdfast.runtime.compaction import fit
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.prepared_turn import PreparedTurn, Sampled
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch import epochs, nested_instructions, observe, pins, pruning
from holdfast.runtime.epoch import policy as authority
from holdfast.runtime.epoch.epochs import ContextUnavailable
from holdfast.runtime.history import model_view, work
from holdfast.runtime.history.epoch import Epoch
from holdfast.runtime.inbox import choice, promotion
from holdfast.runtime.inbox.promotion import Waiting
from holdfast.schema.message import MessageWithParts, UserMessage
from holdfast.schema.output_format import schema_of
from holdfast.schema.prompt import CompactionPartInput
from holdfast.schema.session import Session
from holdfast.tools import structured


async def prepare_turn(
    run: Run, everything: list[MessageWithParts] | None = None, *, force: bool = True
) -> PreparedTurn | None:
    """Promote what waits, and fix the turn; None when there is nothing to say.

    `everything` is the history, where it was just read. Without `force` a session that `plan.rests` goes on
    with its work for a prompt only: a compaction is made, and nothing more.
    """
    everything = await run.history.read() if everything is None else everything
    waiting = await promotion.pending(run.engine, run.recorder.session)
    if not all(run.history.has(each.prompt.id) for each in waiting):
        everything = await run.history.with_([each.prompt.id for each in waiting])
        waiting = [each for each in waiting if run.history.has(each.prompt.id)]
    history, unheard = _parted(everything, {each.prompt.id for each in waiting})
    spoken = _spoken(run, history)
    owed = work.owes_answer(spoken)
    rests = owed and not force and not any(map(_asks, waiting)) and _rests(run, history, waiting)
    owed = owed and not rests
    promoted = promotion.next_to_promote(waiting, idle=not owed)
    chosen = {each.prompt.id for each in promoted}
    joining = [message for message in unheard if message.info.id in chosen]
    asked = model_view.asked(history, joining) if run.history.has_compaction else None
    newest = work.newest_user([*spoken, *_spoken(run, joining)]) or asked
    # What wants no reply does not end the work that it joins, and neither does a compaction.
    owed = owed or any(map(_asks, promoted))
    if newest is None or (not owed and asked is None):
        _promote(run, promoted, joining)
        return None
    sampled, epoch = await _begun(run, newest, promoted, joining)
    _promote(run, promoted, joining)
    history = [*history, *joining]  # Their new place is behind everything that was said.
    ready = await _reconciled(run, sampled, epoch, history)
    return replace(ready, owed=owed, rests=rests, asked=asked)


def _parted(
    everything: list[MessageWithParts], waiting: Collection[str]
) -> tuple[list[MessageWithParts], list[MessageWithParts]]:
    """What the model has heard, and what waits: mostly the newest, so it is looked for from there."""
    unheard: list[MessageWithParts] = []
    between: list[MessageWithParts] = []
    index = len(everything)
    while len(unheard) < len(waiting) and index > 0:
        index -= 1
        message = everything[index]
        (unheard if message.info.id in waiting else between).append(message)
    return [*everything[:index], *reversed(between)], unheard[::-1]


def _spoken(run: Run, history: list[MessageWithParts]) -> list[MessageWithParts]:
    return model_view.spoken(history) if run.history.has_compaction else history


def _rests(run: Run, history: list[MessageWithParts], waiting: list[Waiting]) -> bool:
    """Whether what the model owes is left alone: the session was woken for a compaction, or has to wait."""
    return (any(map(_compacts, waiting)) and not run.answered) or work.rests(history)


def _asks(waiting: Waiting) -> bool:
    """Whether a prompt wants an answer of the model: a note and a compaction do not."""
    return not waiting.prompt.no_reply and not _compacts(waiting)


def _compacts(waiting: Waiting) -> bool:
    return any(isinstance(part, CompactionPartInput) for part in waiting.prompt.parts)


def _promote(run: Run, promoted: list[Waiting], joining: list[MessageWithParts]) -> None:
    if promoted:
        promotion.promote(run.engine, run.recorder, promoted, [message.info for message in joining])


async def _begun(
    run: Run, newest: MessageWithParts, promoted: list[Waiting], joining: list[MessageWithParts]
) -> tuple[Sampled, Epoch]:
    """Who answers, and the epoch in force: before anything is promoted, so that what cannot be told to the
    model leaves the prompt where it is.
    """
    assert isinstance(newest.info, UserMessage)
    try:
        chosen = await sample_turn(run, newest.info)
        return chosen, await epochs.ensure_epoch(run, chosen)
    except ContextUnavailable:
        raise
    except Exception:
        _promote(run, promoted, joining)  # Its answer holds the error.
        raise


async def sample_turn(run: Run, user: UserMessage) -> Sampled:
    """Agent, model and policy of a prompt, fixed for a turn."""
    session = await run.session() if run.history.record is None else run.history.record.value()
    sampled = await sampled_for(run.engine, session, user)
    sampled.workspace.check_here(session.id)
    wishes = sampled.workspace.loaded.config.experimental
    run.summarises = wishes is not None and bool(wishes.message_summary)
    return sampled


async def sampled_for(engine: Engine, session: Session, user: UserMessage) -> Sampled:
    """Who answers a prompt, as the settings are now."""
    workspace = await engine.workspace(session)
    agent = choice.agent_in(session, workspace, user.agent)
    model = workspace.providers.model(user.model.provider_id, user.model.model_id)
    policy = await authority.policy_of(engine, session, workspace, agent)
    return Sampled(session=session, workspace=workspace, user=user, agent=agent, model=model, policy=policy)


async def _reconciled(
    run: Run, chosen: Sampled, epoch: Epoch, history: list[MessageWithParts]
) -> PreparedTurn:
    """Tell the model what changed since it was last told, and fix the turn."""
    nested = await nested_instructions.find_nested(run, chosen, epoch)
    told = None
    # An epoch that begins at this boundary has just looked at the world.
    if not epoch.fresh or (nested or []) != epoch.value.nested:
        compacted = run.history.summarised_since(epoch.position)
        epoch, told = await epochs.reconcile(
            run, chosen, epoch, compacted=compacted, nested=epoch.value.nested if nested is None else nested
        )
    if nested is not None:
        run.history.touched.clear()  # Stored: an interrupt before this line leaves them to the next boundary.
    former = run.history.told_before(epoch.position)
    if former:
        history = [each for each in history if each.info.id not in former]
    if told is not None:
        history.append(MessageWithParts(told, ()))
    history, epoch = await pruning.prune(run, chosen, epoch, history)
    return await prepared(run, chosen, epoch, history)


async def prepared(
    run: Run,
    chosen: Sampled,
    epoch: Epoch,
    history: list[MessageWithParts],
    *,
    keep: bool = True,
) -> PreparedTurn:
    """The turn, with what its epoch pins. Without `keep` nothing is pinned: no request is made of it."""
    agent, model, user = chosen.agent, chosen.model, chosen.user
    toolset = observe.toolset(run.engine, chosen)
    pinned = pins.pinned(epoch.value.pins, agent, model, pins.definitions(toolset))
    if pinned.pins is not None and keep:
        epoch = await epochs.keep_pins(run, epoch, pinned.pins, pinned.moved)
    form = schema_of(user.format)
    if form is not None:
        toolset = toolset.plus(structured.structured_tool(form))
    return PreparedTurn(
        session=chosen.session,
        workspace=chosen.workspace,
        user=user,
        agent=agent,
        model=model,
        variant=user.model.variant,
        epoch=epoch,
        system=(*pinned.pin.system, epoch.value.baseline) if epoch.value.baseline else pinned.pin.system,
        tools=(*pinned.pin.tools, *pins.formed(form)),
        moved=epoch.value.reasons,
        history=history,
        shown=model_view.project(history) if run.history.has_compaction else history,
        compacted=run.history.summarised_since(0),
        toolset=toolset,
        policy=chosen.policy,
        compacts=not fit.is_off(chosen.workspace),
        last_step=agent.steps is not None and work.steps_since_prompt(history) + 1 >= agent.steps,
    )


async def prepare_again(run: Run, user: UserMessage, history: list[MessageWithParts]) -> PreparedTurn:
    """The turn of calls that are run again."""
    chosen = await sample_turn(run, user)
    return await prepared(run, chosen, await epochs.ensure_epoch(run, chosen), history, keep=False)
