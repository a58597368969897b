"""Runs a claimed session until nothing is owed, then releases the claim.

What must stay true: however the work ends, the session is left in order: no open text, no unsettled call
(except those that wait for the user), the error stored before the one `session.idle`, the claim released.
"""

import contextlib
from functools import partial
from typing import Literal

import anyio
import msgspec

from holdfast.errors import Conflict, HoldfastError, LeaseLost, StoreError
from holdfast.provider.request import size
from holdfast.runtime import recovery
from holdfast.runtime.answer import assistant_message, ending
from holdfast.runtime.answer.ending import Ending, as_interrupted, as_left
from holdfast.runtime.answer.outcome import TurnOutcome
from holdfast.runtime.budget import reservations
from holdfast.runtime.calls import permission_reply, question_ask
from holdfast.runtime.calls.tool_calls import INTERRUPTED
from holdfast.runtime.compaction import write
from holdfast.runtime.engine import interrupt_requests, status_events
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch.epochs import ContextUnavailable
from holdfast.runtime.history import model_view, work
from holdfast.runtime.inbox import promotion
from holdfast.runtime.inbox.promotion import Waiting
from holdfast.runtime.turn import turn
from holdfast.schema.fault import (
    AbortedFault,
    BudgetFault,
    ContextFault,
    Fault,
    MessageData,
    UnknownData,
    UnknownFault,
)
from holdfast.schema.message import AssistantMessage, Message, MessageWithParts, UserMessage
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolRunning
from holdfast.store import reverted
from holdfast.toolkit.cancellation import ends_the_program, is_cancelled
from holdfast.tools.execute import Settlement
from holdfast.tools.plain import described

_ROUNDS_MAX = 1_000
_Rest = Literal["done", "parked"]
How = Literal[_Rest, "interrupted", "abandoned", "failed"]


class Drained(msgspec.Struct, frozen=True):
    """How a drain ended.

    done: nothing is owed; parked: a call waits for the user, or a prompt for its context; abandoned: another
    process may have the session; failed: the session could not be put in order, and waits for recovery.
    """

    how: How
    released: bool
    """Whether the claim is known to be released."""
    error: BaseException | None = None


async def drain(run: Run, *, force: bool = False) -> Drained:
    """Work until idle.

    `force`: continue although the outcome of the last tool call is unknown. Otherwise such a session stays
    idle until the user prompts or resumes it.
    """
    status_events.busy(run.engine.feed, run.recorder.session)
    try:
        drained = await _rounds(run, force=force)
    except LeaseLost:
        drained = Drained("abandoned", released=False)
    except BaseException as error:
        if is_cancelled(error):
            raise
        # Recovery will close what is still open. Release the claim now: as long as this process lives, no
        # other may take the session.
        released = False
        with anyio.CancelScope(shield=True), contextlib.suppress(StoreError):
            await run.engine.store.release(run.recorder.fence)
            released = True
        drained = Drained("failed", released, error)
    if drained.how != "abandoned":  # An abandoned run writes and publishes nothing more.
        await status_events.idle(run.engine.feed, run.recorder.session)
    return drained


async def _rounds(run: Run, *, force: bool) -> Drained:
    """Work and release the claim; work again if a prompt was admitted before the release."""
    started = False
    rest: _Rest = "done"
    for round_ in range(_ROUNDS_MAX):
        if not run.interrupted:
            started = True
            with run.scope:
                rest = await _work(run, force=force)
        if run.abandoned:
            break
        with anyio.CancelScope(shield=True):
            interrupted = run.interrupted  # One that comes during the release finds nothing more to settle.
            if interrupted:
                await _settle_interrupted(run, started=started)
            at_once = interrupted or rest != "done" or round_ == _ROUNDS_MAX - 1
            if await _release(run, at_once=at_once):
                return Drained("interrupted" if interrupted else rest, released=True)
        run.again()
    return Drained("abandoned", released=False)


async def _work(run: Run, *, force: bool) -> _Rest:
    """Take turns until nothing is owed, or nothing can be done now."""
    failing = run.breaks = 0
    try:
        history: list[MessageWithParts] | None = await run.history.read()
        if run.history.record is not None and reverted.point_in(run.history.record.data) is not None:
            return "parked"  # A session rests while a revert is staged: the next prompt commits it.
        if run.history.is_open:
            assert history is not None
            if await recovery.recover(run, history):
                return "parked"  # A call still waits for the user, or cannot be run again now.
            history = None  # Recovery changed it.
        while True:
            ended = await turn(run, history, force=force)
            history, force = None, True
            if ended.compacted and ended.next == "continue":
                continue  # A compaction resets none of the bounds below.
            run.breaks = run.breaks if ended.malformed else 0
            failing = failing + 1 if ended.failed else 0
            if failing > run.engine.limits.failing_max and ended.next == "continue":
                message = f"every call of the last {failing} turns failed; the model makes no headway"
                await ending.give_up(run, UnknownFault(data=UnknownData(message=message)))
                ended = TurnOutcome(next="stop")
            if ended.next != "continue":
                # Prompts admitted since then are found by the release.
                return "parked" if ended.next == "park" else "done"
    except BaseException as error:
        if ends_the_program(error):
            raise
        first = _leaf(error)
        if isinstance(first, LeaseLost):
            raise first from error
        await _end_with_error(run, first)
        # A prompt that could not be promoted waits for the user, or a caller, to wake the session again.
        return "parked" if isinstance(first, ContextUnavailable) else "done"


async def _end_with_error(run: Run, error: BaseException) -> None:
    """End the work with an unexpected error as its stored reason; the process goes on."""
    known = isinstance(error, HoldfastError)
    message = str(error)[:1_000] if known else described(error)
    fault: UnknownFault | ContextFault | BudgetFault = UnknownFault(data=UnknownData(message=message))
    if isinstance(error, reservations.OutOfTime):
        fault = BudgetFault(data=MessageData(message=message))
    if isinstance(error, ContextUnavailable):
        fault = ContextFault(data=MessageData(message=message))
    with anyio.CancelScope(shield=True):
        await _settle_all(run, error=fault)


def _leaf(error: BaseException) -> BaseException:
    """The first error inside nested groups. A lost claim takes precedence: it forbids every write."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [_leaf(each) for each in error.exceptions]
    return next((each for each in leaves if isinstance(each, LeaseLost)), leaves[0])


async def _settle_interrupted(run: Run, *, started: bool) -> None:
    """Settle everything as interrupted, and answer the interrupt requests.

    If the interrupt came before the drain had `started`, the previous runner's unfinished answer is closed
    first.
    """
    if not run.keeps_inbox:
        await _stop_inbox(run)
    if not started:
        await recovery.close_abandoned(run, await run.history.read())
    await _settle_all(run, error=AbortedFault(data=MessageData(message=recovery.ABORTED)))
    await interrupt_requests.answer(run.engine.store, run.recorder)


async def _stop_inbox(run: Run) -> None:
    """Promote the prompts that were about to begin work: they are what the interrupt ends.

    Prompts that wait behind work that was under way stay in the inbox, and no owner takes them up by itself.
    """
    waiting = await promotion.pending(run.engine, run.recorder.session)
    # What came after the interrupt is not what it means.
    meant = [each for each in waiting if not run.asked_at or each.position <= run.asked_at]
    at_hand = run.at_hand
    if at_hand is None:
        at_hand = await _find_at_hand(run, waiting, meant)
    chosen = [each for each in meant if each.prompt.id in at_hand]
    if chosen:
        known = await run.history.with_(at_hand)
        messages = [each.info for each in known if each.info.id in at_hand]
        promotion.promote(run.engine, run.recorder, chosen, messages)
    promotion.withdraw(run.recorder, [each for each in meant if each not in chosen])


async def _find_at_hand(run: Run, waiting: list[Waiting], meant: list[Waiting]) -> list[str]:
    """Which of the prompts that are meant would have begun work; none if other work was under way."""
    pending = {each.prompt.id for each in waiting}
    history = [each for each in await run.history.read() if each.info.id not in pending]
    if run.history.is_open or work.owes_answer(model_view.conversation(history)):
        return []
    chosen = promotion.next_to_promote(meant, idle=True)
    return [each.prompt.id for each in chosen if promotion.asks(each)]


async def _settle_all(run: Run, *, error: Fault) -> None:
    """End the last answer if it is still open, with its calls and its reservation."""
    await run.recorder.flush()
    history = await run.history.read()
    last = work.last_answer(history)
    if last is not None:
        info = await _stop_last_answer(run, last, error)
        history = [each if each is not last else MessageWithParts(info, last.parts) for each in history]
    for user in await _find_unanswered(run, history, error):
        await ending.end_unbegun(run, partial(assistant_message.unanswered, user), error, publish=False)
    status_events.error(run.engine.feed, run.recorder.session, error)


async def _stop_last_answer(run: Run, last: MessageWithParts, error: Fault) -> Message:
    """End the last answer with an error, unless it has ended and its calls are settled."""
    assert isinstance(last.info, AssistantMessage)
    over = {part.call_id for part in work.unsettled(last)}
    withdrawn = await permission_reply.withdraw(run.engine, run.recorder.session, over, INTERRUPTED)
    withdrawn += await question_ask.withdraw(run.engine, run.recorder.session, over)
    was_open = last.info.time.completed is None
    compacting = (await run.session()).time.compacting is not None
    if not (was_open or over or compacting):
        return last.info
    asking = await recovery.find_waiting(run, last)

    def settles(call: ToolPart) -> Settlement:
        # A call that runs settles itself, whatever ends it. If it could not, what it did is not known.
        runs = isinstance(call.state, ToolRunning) and call.call_id not in asking
        return as_left(call) if runs else as_interrupted(call)

    how = Ending(error=error, settles=settles) if was_open or over else Ending()
    edit = write.not_compacting if compacting else None
    info = await ending.end(run, last, how, before=lambda _: withdrawn, edit=edit, publish=False)
    if was_open:
        answer_tokens = size.estimate("".join(work.model_texts(last)))
        await reservations.settle_unfinished(
            run.engine,
            await run.session(),
            last.info.id,
            run.turn_ms(),
            sent=True,
            answer_tokens=answer_tokens,
        )
    return info


async def _find_unanswered(run: Run, history: list[MessageWithParts], error: Fault) -> list[UserMessage]:
    """The prompts whose work ends here and that have no answer to hold the error.

    These are the prompt that is worked on, if the model owes more (its last answer may be complete, its calls
    settled; a summary does not count), and a prompt that could not be promoted. The latter not for an
    interrupt: it stops what runs and leaves the inbox alone.
    """
    pending = {each.prompt.id for each in await promotion.pending(run.engine, run.recorder.session)}
    conversation = model_view.conversation([each for each in history if each.info.id not in pending])
    found = [work.newest_user(conversation)] if work.owes_answer(conversation) else []
    newest = work.newest_user(history)
    waits = newest is not None and newest.info.id in pending and newest is history[-1]
    if waits and not isinstance(error, AbortedFault):
        found.append(newest)
    return [each.info for each in found if each is not None and isinstance(each.info, UserMessage)]


async def _release(run: Run, *, at_once: bool) -> bool:
    """Release the claim; False if a prompt was admitted meanwhile, which is then worked on under the same
    claim.

    `at_once`: release although prompts wait.
    """
    # The end of the last answer is mostly not written yet: both are one commit, unless another writer came.
    with contextlib.suppress(Conflict):
        if not at_once and await run.recorder.write_deferred(release=True):
            return True
    await run.recorder.flush()
    try:
        await run.engine.store.release(run.recorder.fence, settled=not at_once)
    except Conflict:
        if at_once:
            raise
        return False
    return True
