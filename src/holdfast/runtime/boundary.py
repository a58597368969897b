"""The Safe Provider-Turn Boundary: everything that is fixed right before a provider call.

In this order: agent and model are sampled, once, from the prompt that is to be answered; a Context Epoch is
begun if there is none; prompts are promoted; the epoch is reconciled with the Context Sources; what the epoch
pins for the agent is stored. A change that comes after this waits for the next boundary.
"""

from collections.abc import Collection

from msgspec.structs import replace

from holdfast.runtime.compaction import fit
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.prepared_turn import PreparedTurn, Sampled
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch import epochs, nested_instructions, observe, pins, pruning, tool_definitions
from holdfast.runtime.epoch import policy as authority
from holdfast.runtime.epoch.epochs import ContextUnavailable
from holdfast.runtime.history import model_view, work
from holdfast.runtime.history.epoch import Epoch
from holdfast.runtime.inbox import choice, promotion
from holdfast.runtime.inbox.promotion import Waiting, asks, compacts
from holdfast.schema.message import MessageWithParts, UserMessage
from holdfast.schema.output_format import schema_of
from holdfast.schema.session import Session
from holdfast.tools import structured


async def prepare_turn(
    run: Run, everything: list[MessageWithParts] | None = None, *, force: bool = True
) -> PreparedTurn | None:
    """Promote waiting prompts and prepare the next turn. None when the model owes no answer.

    `everything`: the history, if the caller has just read it. `force`: continue although the session rests
    (see `work.rests`). Without it such a session continues only for a prompt; a waiting compaction is made,
    and nothing more.
    """
    ended = await run.recorder.deferred_end()
    everything = await run.history.read() if everything is None else everything
    everything = everything if ended is None else _with_end(everything, ended)
    waiting = await promotion.pending(run.engine, run.recorder.session)
    if not all(run.history.has(each.prompt.id) for each in waiting):
        everything = await run.history.with_([each.prompt.id for each in waiting])
        everything = everything if ended is None else _with_end(everything, ended)
        waiting = [each for each in waiting if run.history.has(each.prompt.id)]
    history, unseen = _split(everything, {each.prompt.id for each in waiting})
    conversation = _conversation(run, history)
    owed = work.owes_answer(conversation)
    rests = owed and not force and not any(map(asks, waiting)) and _rests(run, history, waiting)
    owed = owed and not rests
    begins = not owed
    promoted = promotion.next_to_promote(waiting, idle=begins)
    chosen = {each.prompt.id for each in promoted}
    joining = [message for message in unseen if message.info.id in chosen]
    asked = model_view.asked(history, joining) if run.history.has_compaction else None
    newest = work.newest_user([*conversation, *_conversation(run, joining)]) or asked
    # A prompt without reply joins the work and does not end it, and neither does a compaction.
    owed = owed or any(map(asks, promoted))
    if newest is None or (not owed and asked is None):
        _promote(run, promoted, joining)
        return None
    run.at_hand = [each.prompt.id for each in promoted if asks(each)] if begins else []
    sampled, epoch = await _begin(run, newest, promoted, joining)
    _promote(run, promoted, joining)
    run.at_hand = []
    history = [*history, *joining]  # Promotion places them after everything else.
    ready = await _reconcile(run, sampled, epoch, history)
    return replace(ready, owed=owed, rests=rests, asked=asked)


def _with_end(everything: list[MessageWithParts], ended: MessageWithParts) -> list[MessageWithParts]:
    """The history with the end of the last answer, which is not stored yet."""
    for index in range(len(everything) - 1, -1, -1):
        message = everything[index]
        if message.info.id == ended.info.id and message.info != ended.info:
            everything[index] = MessageWithParts(ended.info, (*message.parts, *ended.parts))
            break
    return everything


def _split(
    everything: list[MessageWithParts], waiting: Collection[str]
) -> tuple[list[MessageWithParts], list[MessageWithParts]]:
    """The messages in the model's history, and those that wait (mostly the newest: searched backwards)."""
    unseen: list[MessageWithParts] = []
    between: list[MessageWithParts] = []
    index = len(everything)
    while len(unseen) < len(waiting) and index > 0:
        index -= 1
        message = everything[index]
        (unseen if message.info.id in waiting else between).append(message)
    return [*everything[:index], *reversed(between)], unseen[::-1]


def _conversation(run: Run, history: list[MessageWithParts]) -> list[MessageWithParts]:
    return model_view.conversation(history) if run.history.has_compaction else history


def _rests(run: Run, history: list[MessageWithParts], waiting: list[Waiting]) -> bool:
    """Whether the owed answer has to wait: the session was woken for a compaction only, or rests."""
    return (any(map(compacts, waiting)) and not run.answered) or work.rests(history)


def _promote(run: Run, promoted: list[Waiting], joining: list[MessageWithParts]) -> None:
    if promoted:
        promotion.promote(run.engine, run.recorder, promoted, [message.info for message in joining])


async def _begin(
    run: Run, newest: MessageWithParts, promoted: list[Waiting], joining: list[MessageWithParts]
) -> tuple[Sampled, Epoch]:
    """Sample agent and model, and begin the epoch if there is none.

    Before anything is promoted: if the System Context cannot be read, the prompt stays in the inbox.
    """
    assert isinstance(newest.info, UserMessage)
    try:
        chosen = await sample_turn(run, newest.info)
        return chosen, await epochs.ensure_epoch(run, chosen)
    except ContextUnavailable:
        raise
    except Exception:
        _promote(run, promoted, joining)  # The error is stored as the answer to it.
        raise


async def sample_turn(run: Run, user: UserMessage) -> Sampled:
    """Sample agent, model and policy of a prompt for one turn, and connect its MCP servers."""
    session = await run.session() if run.history.record is None else run.history.record.value()
    sampled = await sample_for(run.engine, session, user)
    sampled.workspace.check_here(session.id)
    await run.engine.connect(session, sampled.workspace)
    settings = sampled.workspace.loaded.config.experimental
    run.summarises = settings is not None and bool(settings.message_summary)
    return sampled


async def sample_for(engine: Engine, session: Session, user: UserMessage) -> Sampled:
    """Agent, model and policy of a prompt, by the settings as they are now."""
    workspace = await engine.workspace(session)
    agent = choice.agent_in(session, workspace, user.agent)
    model = workspace.providers.model(user.model.provider_id, user.model.model_id)
    policy = await authority.policy_of(engine, session, workspace, agent)
    return Sampled(session=session, workspace=workspace, user=user, agent=agent, model=model, policy=policy)


async def _reconcile(
    run: Run, chosen: Sampled, epoch: Epoch, history: list[MessageWithParts]
) -> PreparedTurn:
    """Write what changed in the System Context since the model was last told, and prepare the turn."""
    nested = await nested_instructions.find_nested(run, chosen, epoch)
    update = None
    # An epoch that began at this boundary has just observed every source.
    if not epoch.fresh or (nested or []) != epoch.value.nested:
        compacted = run.history.summarised_since(epoch.position)
        epoch, update = await epochs.reconcile(
            run, chosen, epoch, compacted=compacted, nested=epoch.value.nested if nested is None else nested
        )
    if nested is not None:
        # Stored by now. An interrupt before this line leaves them to the next boundary.
        run.history.unsearched_ids.clear()
    former = run.history.former_context(epoch.position)
    if former:
        history = [each for each in history if each.info.id not in former]
    if update is not None:
        history.append(MessageWithParts(update, ()))
    history, epoch = await pruning.prune(run, chosen, epoch, history)
    return await _prepare(run, chosen, epoch, history)


async def _prepare(
    run: Run,
    chosen: Sampled,
    epoch: Epoch,
    history: list[MessageWithParts],
    *,
    again: bool = False,
) -> PreparedTurn:
    """The turn, with what its epoch pins. `again`: only calls are run, and no request is made of it."""
    agent, model, user = chosen.agent, chosen.model, chosen.user
    toolset = observe.toolset(run.engine, chosen, again=again)
    pinned = await tool_definitions.pin(run.engine, chosen, epoch.value.pins, toolset)
    if pinned.pins is not None and not again:
        epoch = await epochs.keep_pins(run, epoch, pinned.pins, pinned.moved)
    if chosen.session.reverted:
        run.reverted_ms = chosen.session.reverted[-1].time.created
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
    """The turn in which recovery runs calls again."""
    chosen = await sample_turn(run, user)
    return await _prepare(run, chosen, await epochs.ensure_epoch(run, chosen), history, again=True)
