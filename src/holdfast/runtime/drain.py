"""Runs a claimed session until there is nothing left to say, then gives it back.

What must stay true: whatever happens in between, the session is left in order: no open text, no unsettled
call (but those that wait for a person), the error stored before the one `session.idle`, the claim released.
"""

import contextlib
from functools import partial

import anyio

from holdfast.errors import Conflict, HoldfastError, LeaseLost, StoreError
from holdfast.provider.request import size
from holdfast.runtime import recovery
from holdfast.runtime.answer import assistant_message, ending
from holdfast.runtime.answer.ending import Ending, as_interrupted
from holdfast.runtime.answer.outcome import TurnOutcome
from holdfast.runtime.budget import reservations
from holdfast.runtime.calls import permission_ask
from holdfast.runtime.calls.tool_calls import INTERRUPTED
from holdfast.runtime.compaction import write
from holdfast.runtime.engine import interrupt_requests, status_events
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch.epochs import ContextUnavailable
from holdfast.runtime.history import model_view, work
from holdfast.runtime.inbox import admission
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
from holdfast.tool.cancelling import ends_the_program, is_cancelled
from holdfast.tools.plain import described

_ROUNDS_MAX = 1_000


async def drain(run: Run, *, force: bool = False) -> None:
    """Work until idle. `force` goes on after an unknown outcome, which else waits for a person's word."""
    status_events.busy(run.engine.feed, run.recorder.session)
    try:
        for round_ in range(_ROUNDS_MAX):
            if not run.interrupted:
                with run.scope:
                    await _work(run, force=force)
            if run.abandoned:
                break
            with anyio.CancelScope(shield=True):
                if run.interrupted:
                    await _interrupted(run)
                if await _released(run, last=round_ == _ROUNDS_MAX - 1):
                    break
            run.again()
    except LeaseLost:
        run.abandoned = (
            True  # Another process may have the session now: nothing more is written or published.
        )
    except BaseException as error:
        if is_cancelled(error):
            raise
        # What could not be put in order waits for recovery; the claim must not be kept by a living owner.
        with anyio.CancelScope(shield=True), contextlib.suppress(StoreError):
            await run.engine.store.release(run.recorder.fence)
            run.released = True
        await status_events.idle(run.engine.feed, run.recorder.session)
        raise
    if not run.abandoned:
        await status_events.idle(run.engine.feed, run.recorder.session)


async def _work(run: Run, *, force: bool) -> None:
    failing = run.breaks = 0
    try:
        run.begun = True
        history: list[MessageWithParts] | None = await run.history.read()
        if run.history.is_open:
            assert history is not None
            if await recovery.recover(run, history):
                run.parked = True  # A call still waits for a person, or cannot be run again now.
                return
            history = None  # It has changed.
        while True:
            ended = await turn(run, history, force=force)
            history, force = None, True
            if ended.compacted and ended.next == "continue":
                continue  # It sets no bound of the work back.
            run.breaks = run.breaks if ended.malformed else 0
            failing = failing + 1 if ended.failed else 0
            if failing > run.engine.limits.failing_max and ended.next == "continue":
                message = f"every call of the last {failing} turns failed; the model makes no headway"
                await ending.give_up(run, UnknownFault(data=UnknownData(message=message)))
                ended = TurnOutcome(next="stop")
            if ended.next == "park":
                run.parked = True
                return
            if ended.next != "continue":
                return  # Whatever came since is seen when the session is given back.
    except BaseException as error:
        if ends_the_program(error):
            raise
        first = _leaf(error)
        if isinstance(first, LeaseLost):
            raise first from error
        # A prompt that could not be promoted waits: only somebody's word begins another try.
        run.parked = isinstance(first, ContextUnavailable)
        await _unexpected(run, first)


async def _unexpected(run: Run, error: BaseException) -> None:
    """An error that nobody foresaw ends the work with a name, not the process."""
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
    """The error inside groups of them; a lost claim before any other, since it forbids to write."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [_leaf(each) for each in error.exceptions]
    return next((each for each in leaves if isinstance(each, LeaseLost)), leaves[0])


async def _interrupted(run: Run) -> None:
    """Settle everything as interrupted, and answer whoever asked for it."""
    if not run.begun:
        await recovery.put_down(run, await run.history.read())
    await _settle_all(run, error=AbortedFault(data=MessageData(message=recovery.ABORTED)))
    await interrupt_requests.answer(run.engine.store, run.recorder)


async def _settle_all(run: Run, *, error: Fault) -> None:
    """End the last answer if it is still open, its calls and its reservation too."""
    await run.recorder.flush()
    history = await run.history.read()
    last = work.last_answer(history)
    if last is not None:
        info = await _stopped(run, last, error)
        history = [each if each is not last else MessageWithParts(info, last.parts) for each in history]
    for user in await _unanswered(run, history, error):
        await ending.end_unbegun(run, partial(assistant_message.unanswered, user), error, publish=False)
    status_events.error(run.engine.feed, run.recorder.session, error)


async def _stopped(run: Run, last: MessageWithParts, error: Fault) -> Message:
    """End the last answer with an error, unless it has ended and its calls are settled."""
    assert isinstance(last.info, AssistantMessage)
    over = {part.call_id for part in work.unsettled(last)}
    withdrawn = await permission_ask.withdraw(run.engine, run.recorder.session, over, INTERRUPTED)
    was_open = last.info.time.completed is None
    compacting = (await run.session()).time.compacting is not None
    if not (was_open or over or compacting):
        return last.info
    how = Ending(error=error, settles=as_interrupted) if was_open or over else Ending()
    edit = write.not_compacting if compacting else None
    info = await ending.end(run, last, how, before=lambda _: withdrawn, edit=edit, publish=False)
    if was_open:
        said = size.estimate("".join(work.words(last)))
        await reservations.broken_off(
            run.engine, await run.session(), last.info.id, run.turn_ms(), sent=True, said=said
        )
    return info


async def _unanswered(run: Run, history: list[MessageWithParts], error: Fault) -> list[UserMessage]:
    """The prompts whose work ends here without an answer that says so.

    The one that is worked on, if the model owes more: its last answer may be complete, its calls settled, and
    a summary is no part of the work. And one that could not be promoted; but not for an interrupt, which ends
    what runs, and leaves in the inbox what has not begun.
    """
    pending = {each.prompt.id for each in await admission.pending(run.engine, run.recorder.session)}
    spoken = model_view.spoken([each for each in history if each.info.id not in pending])
    found = [work.newest_user(spoken)] if work.owes_answer(spoken) else []
    newest = work.newest_user(history)
    waits = newest is not None and newest.info.id in pending and newest is history[-1]
    if waits and not isinstance(error, AbortedFault):
        found.append(newest)
    return [each.info for each in found if each is not None and isinstance(each.info, UserMessage)]


async def _released(run: Run, *, last: bool) -> bool:
    """Give the session back; not when a prompt has come meanwhile, which is seen to under the same claim."""
    await run.recorder.flush()
    if run.interrupted or run.parked or last:
        await run.engine.store.release(run.recorder.fence)
        run.released = True
        return True
    try:
        await run.engine.store.release(run.recorder.fence, settled=True)
    except Conflict:
        return False
    run.released = True
    return True
