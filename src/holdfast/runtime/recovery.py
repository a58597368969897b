"""Puts a session in order that a dead runner left: nothing is lost, nothing is done twice without need.

After the claim: process groups that the dead owner left on this machine are ended; open texts are closed with
what was saved; a call that only waited for the user is run again, with the user's replies, and so is a call
of a tool that may be repeated. Every other call that had begun is settled as *unknown*; the session then
waits for a prompt or `resume`.
"""

from typing import Final

import anyio
from msgspec.structs import replace

from holdfast.errors import HoldfastError, Refused, StoreError
from holdfast.log import event
from holdfast.provider.request import size
from holdfast.runtime import boundary
from holdfast.runtime.answer import ending
from holdfast.runtime.answer.ending import Ending, as_left
from holdfast.runtime.budget import reservations
from holdfast.runtime.calls import process_groups, question_ask, repetition
from holdfast.runtime.calls.permission_ask import PermissionAsk
from holdfast.runtime.calls.recorded_call import RecordedCall
from holdfast.runtime.calls.tool_calls import ToolCalls
from holdfast.runtime.compaction import write
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history import work
from holdfast.runtime.inbox import promotion
from holdfast.schema.fault import AbortedFault, Fault, MessageData, UnknownData, UnknownFault
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import ReasoningPart, StepStartPart, TextPart, ToolPart
from holdfast.schema.times import Span
from holdfast.schema.tool_state import (
    Completed,
    Ended,
    Started,
    ToolCompleted,
    ToolError,
    ToolPending,
    ToolRunning,
)
from holdfast.tools import structured
from holdfast.tools.execute import Settlement
from holdfast.tools.registry import Registration, Registry

ABORTED: Final = "The work was interrupted."
UNFINISHED: Final = "The compaction was cut off; the conversation stands as it was."


async def recover(run: Run, history: list[MessageWithParts]) -> bool:
    """Put the session in order. True if calls still wait for the user."""
    last = _left(history)
    if last is None:
        return False
    calls = work.unsettled(last)
    await process_groups.end_left(calls, run.engine.host)
    await _charge(run, last)
    waited = await find_waiting(run, last)
    again = await _select_repeatable(run, calls, waited)
    event.info(
        "runtime",
        "recovery",
        session=run.recorder.session,
        message=last.info.id,
        calls=len(calls),
        again=len(again),
        waiting=len(waited),
    )
    over = [part for part in calls if part not in again]
    if left := {part.call_id for part in over} & waited.keys():  # They asked in the middle of their work.
        await run.recorder.commit(*await question_ask.withdraw(run.engine, run.recorder.session, left))
    info = await _close(run, last, over)
    parked = await _run_again(run, history, info, again) if again else False
    run.answered = not parked and any(part.call_id in waited for part in again)
    return parked


def _left(history: list[MessageWithParts]) -> MessageWithParts | None:
    """The answer that a dead runner left: open, or with calls that are not settled."""
    last = work.last_answer(history)
    if last is None:
        return None
    assert isinstance(last.info, AssistantMessage)
    return None if last.info.time.completed is not None and not work.unsettled(last) else last


async def _charge(run: Run, last: MessageWithParts) -> None:
    """Charge the budget for a turn that the dead runner did not settle."""
    answer_tokens = size.estimate("".join(work.model_texts(last)))
    worked_ms = _last_ms(last) - last.info.time.created
    await reservations.settle_dead(
        run.engine,
        await run.session(),
        last.info.id,
        answer_tokens=answer_tokens,
        worked_ms=max(0, worked_ms),
    )


def _last_ms(message: MessageWithParts) -> int:
    """The latest time stored in a message: when the last of its parts began or ended."""
    times = [message.info.time.created]
    for part in message.parts:
        match part:
            case TextPart(time=Span(start=start, end=end)) | ReasoningPart(time=Span(start=start, end=end)):
                times += [start, end or start]
            case ToolPart(state=ToolRunning(time=Started(start=start))):
                times.append(start)
            case ToolPart(state=ToolCompleted(time=Completed(end=end)) | ToolError(time=Ended(end=end))):
                times.append(end or 0)
            case _:
                pass
    return max(times)


async def close_abandoned(run: Run, history: list[MessageWithParts]) -> None:
    """Close the unfinished answer of a dead runner without continuing it: the user interrupted.

    Calls that wait for the user are not closed here: they have had no effect yet, and the interrupt settles
    them.
    """
    last = work.last_answer(history)
    if last is None:
        return
    calls = work.unsettled(last)
    assert isinstance(last.info, AssistantMessage)
    await process_groups.end_left(calls, run.engine.host)
    await _charge(run, last)
    waited = await find_waiting(run, last)
    fault = AbortedFault(data=MessageData(message=ABORTED))
    await _close(run, last, [part for part in calls if part.call_id not in waited], error=fault)


async def settle_left(run: Run, history: list[MessageWithParts]) -> None:
    """Settle what a dead runner left, and continue nothing: the user does something else in the session.

    `Refused` while a call waits for the user, or for its reply to be heard: it would be forgotten.
    """
    last = _left(history)
    if last is None:
        return
    calls = work.unsettled(last)
    if {part.call_id for part in calls} & (await find_waiting(run, last)).keys():
        raise Refused(
            f"a call of session {run.recorder.session} waits for an answer; give it, or interrupt the session"
        )
    await process_groups.end_left(calls, run.engine.host)
    await _charge(run, last)
    await _close(run, last, calls)


async def find_waiting(run: Run, last: MessageWithParts) -> dict[str, bool]:
    """The calls of an answer that asked the user and have not received a reply; whether by a question."""
    records = await run.engine.store.select("request", session=run.recorder.session)
    return work.waiting(last, [record.value() for record in records])


async def _select_repeatable(run: Run, calls: list[ToolPart], waited: dict[str, bool]) -> list[ToolPart]:
    """Calls that may be run again: they only waited for the user, or their tool may be repeated."""
    session, workspace = await run.session(), None
    try:
        workspace = await run.engine.workspace(session)
        await run.engine.connect(session, workspace)
    except StoreError:
        raise
    except HoldfastError:
        pass  # Settings that cannot be read bring no plugins, and `prepare_again` says so.
    registry = run.engine.tools(session, workspace)
    found = []
    for part in calls:
        registration = _registered(registry, part)
        harmless = registration is not None and registration.tool.repeatable
        midway = registration is not None and registration.tool.asks_midway
        only_waited = part.call_id in waited and not (midway and waited[part.call_id])
        if not isinstance(part.state, ToolPending) and (only_waited or harmless):
            found.append(part)
    return found


def _registered(registry: Registry, part: ToolPart) -> Registration | None:
    return registry.current(part.tool) or registry.current(part.tool.lower())


async def _close(
    run: Run, last: MessageWithParts, over: list[ToolPart], *, error: Fault | None = None
) -> AssistantMessage:
    """Close what cannot be run again: calls, open texts and the message itself."""
    info = last.info
    assert isinstance(info, AssistantMessage)
    ids = {part.id for part in over}

    def settles(call: ToolPart) -> Settlement | None:
        return as_left(call) if call.id in ids else None

    if info.time.completed is not None:
        return await ending.end(run, last, Ending(settles=settles)) if over else info
    # An unfinished summary counts for nothing: the earlier compaction stays in force.
    error = error or (AbortedFault(data=MessageData(message=UNFINISHED)) if info.summary else info.error)
    edit = write.not_compacting if info.summary else None
    return await ending.end(run, last, ending.cut_off(last, settles, error), edit=edit, publish=False)


async def _run_again(
    run: Run, history: list[MessageWithParts], info: AssistantMessage, calls: list[ToolPart]
) -> bool:
    user = next((each.info for each in history if each.info.id == info.parent_id), None)
    if not isinstance(user, UserMessage):
        await _close(run, MessageWithParts(info, tuple(calls)), calls)
        return False
    # The rules of the agent that made the calls apply.
    try:
        ready = await boundary.prepare_again(run, replace(user, agent=info.agent), history)
    except HoldfastError as error:
        # Settings cannot be read, or the model is gone: the calls and their requests stay open.
        status_events.error(
            run.engine.feed,
            run.recorder.session,
            UnknownFault(data=UnknownData(message=f"calls that wait cannot be run again: {error}"[:1_000])),
        )
        return True
    steps = [part for each in history if each.info.id == info.id for part in each.parts]
    step = next((part for part in reversed(steps) if isinstance(part, StepStartPart)), None)
    settling = ToolCalls(run, ready, PermissionAsk(run, ready, again=True), step)
    made = repetition.calls_since_prompt(history)
    numbers = {each.id: number for number, each in enumerate(made)}
    # A process without the tool leaves the call to one that has it, unless a prompt waits.
    registry = run.engine.tools(ready.session, ready.workspace)
    here = [part for part in calls if part.tool == structured.NAME or _registered(registry, part)]
    if len(here) < len(calls) and await promotion.pending(run.engine, run.recorder.session):
        here = calls
    async with anyio.create_task_group() as group:
        settling.within(group)
        for part in here:
            row = repetition.repeated(made[: numbers.get(part.id, 0)], part)
            await settling.start(RecordedCall(part, None), row)
    await settling.observe()
    if settling.structured_output is not None or settling.looped is not None:
        how = Ending(structured=settling.structured_output, error=settling.looped)
        await ending.end(run, MessageWithParts(info, ()), how)
    return settling.parked or len(here) < len(calls)
