"""Begins Context Epochs and stores their changes.

What must stay true: a baseline is complete when an epoch begins, stored before the first prompt is promoted,
and used word for word while the epoch lasts; a change is one system message, stored together with the
snapshot that it produced. Sources are observed at a boundary, and only there.
"""

from collections.abc import Callable
from functools import partial
from typing import assert_never

import anyio
from msgspec.structs import replace

from holdfast.context import decisions, system_context
from holdfast.context.decisions import rendered
from holdfast.context.observation import Observation
from holdfast.context.results import (
    Initialized,
    Reconciliation,
    ReplacementBlocked,
    ReplacementReady,
    Unchanged,
    Updated,
)
from holdfast.context.snapshot import Snapshot
from holdfast.errors import ContextError
from holdfast.provider.request import lowering
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.prepared_turn import Sampled
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch import observe, tool_definitions
from holdfast.runtime.history.epoch import Epoch
from holdfast.schema.epoch import ContextEpoch, EpochTime
from holdfast.schema.ids import MessageID
from holdfast.schema.message import SystemMessage
from holdfast.schema.stored import Mark
from holdfast.schema.times import Created
from holdfast.store.batch import Put
from holdfast.store.put import put

PAUSE_S = 1.0


class ContextUnavailable(ContextError):
    """A source of the baseline cannot be read. The prompt waits in the inbox."""


async def current(run: Run) -> Epoch | None:
    """The epoch in force."""
    if run.epoch is None:
        found = await run.engine.store.select("epoch", session=run.recorder.session, mark=Mark.OPEN)
        run.epoch = Epoch(found[-1].value(), found[-1].position) if found else None
    return run.epoch


async def _keep(run: Run, value: ContextEpoch, position: int, *, stored: bool = False) -> Epoch:
    """Store a new state of the epoch in force, unless it is stored already."""
    if not stored:
        await run.recorder.commit(put(value))
    run.epoch = Epoch(value, position)
    return run.epoch


async def ensure_epoch(run: Run, chosen: Sampled) -> Epoch:
    """The epoch in force; a new one begins if there is none or the session has moved.

    If a source cannot be read, wait for it within a bound, visibly to clients; then raise
    `ContextUnavailable`.
    """
    known = await current(run)
    if known is not None and not known.value.left and known.value.directory == chosen.session.directory:
        return known
    cause = "first" if known is None else "move"
    made = await _first_baseline(run, chosen)
    return await _begin(run, chosen, made.baseline, made.snapshot, cause=cause, before=known)


async def _first_baseline(run: Run, chosen: Sampled) -> Initialized:
    """Wait until a complete baseline can be observed."""
    deadline = anyio.current_time() + run.engine.limits.context_wait_ms / 1_000
    attempt, why = 0, "nothing answered in time"
    while True:
        attempt += 1
        problems: list[str] = []
        # The last observation ends with the wait, however long its sources might still take.
        with anyio.CancelScope(deadline=deadline) as looking:
            observed = await observe.observe(run, chosen, None, problems=problems)
            made, observed = rendered(observed, system_context.initialize)
            if isinstance(made, Initialized):
                return made
            why = _why(made.keys, observed, problems)
        if looking.cancelled_caught or anyio.current_time() + PAUSE_S > deadline:
            raise ContextUnavailable(f"what the model must be told first cannot be read: {why}")
        now_ms = run.engine.clock.now_ms()
        status_events.retry(
            run.engine.feed,
            run.recorder.session,
            attempt=attempt,
            message=f"waiting for the system context: {why}",
            next_ms=now_ms + int(PAUSE_S * 1_000),
        )
        await anyio.sleep(PAUSE_S)


def _why(keys: tuple[str, ...], observed: Observation, problems: list[str]) -> str:
    missing = [f"{key}: {observed.notes.get(key, 'unavailable')}" for key in keys]
    return "; ".join([*missing, *problems])[:1_000]


async def _begin(
    run: Run, chosen: Sampled, baseline: str, snapshot: Snapshot, *, cause: str, before: Epoch | None
) -> Epoch:
    """Store a new epoch, and end the one before it in the same commit."""
    now_ms = run.engine.clock.now_ms()
    kept = snapshot.to_json()
    epoch = ContextEpoch(
        id=run.engine.mint.ascending("evt"),
        session_id=chosen.session.id,
        baseline=await observe.transform_baseline(run, chosen, baseline),
        snapshot=kept,
        begun=kept,
        cause=cause,
        pins=await _pins(run, chosen),
        nested=[] if before is None or cause == "move" else before.value.nested,
        directory=chosen.session.directory,
        lowering=lowering.RULES,
        time=EpochTime(created=now_ms),
    )
    puts = [put(epoch)]
    if before is not None:
        ended = replace(before.value.time, ended=now_ms)
        puts.append(put(replace(before.value, time=ended)))
    receipt = await run.recorder.commit(*puts)
    run.epoch = Epoch(epoch, receipt.numbers[-len(puts)])
    return replace(run.epoch, fresh=True)


async def _pins(run: Run, chosen: Sampled) -> dict[str, object]:
    """What an epoch pins when it begins: texts and tools of the agent that it begins for."""
    pinned = await tool_definitions.pin(run.engine, chosen, {}, observe.toolset(run.engine, chosen))
    return pinned.pins or {}


async def reconcile(
    run: Run, chosen: Sampled, epoch: Epoch, *, compacted: bool, nested: list[str]
) -> tuple[Epoch, SystemMessage | None]:
    """Compare the sources with what the model was told. Returns the epoch to continue with, and the system
    message about the change, if any.

    `compacted`: a summary was written since the epoch began, so a new epoch with a fresh baseline begins.
    """
    value = epoch.value
    if nested != value.nested:
        value = replace(value, nested=nested)
    observed = await observe.observe(run, chosen, value)
    match _decided(run, observed, value, compacted=compacted):
        case Unchanged():
            return await _keep(run, value, epoch.position, stored=value is epoch.value), None
        case ReplacementReady(baseline=baseline, snapshot=fresh):
            cause = "compaction" if compacted else "incompatible"
            return await _begin(
                run, chosen, baseline, fresh, cause=cause, before=Epoch(value, epoch.position)
            ), None
        case Updated(text=text, snapshot=admitted):
            updated = replace(value, snapshot=admitted.to_json())
            message = await _write_update(run, updated, text)
            return await _keep(run, updated, epoch.position, stored=True), message
        case never:
            assert_never(never)


def _decided(
    run: Run, observed: Observation, epoch: ContextEpoch, *, compacted: bool
) -> Unchanged | Updated | ReplacementReady:
    """What to do about the observation. Warns about a source that cannot render a change."""
    snapshot = Snapshot.readable(epoch.snapshot)
    # A snapshot that cannot be read cannot be compared: tell everything again.
    decide: Callable[..., Reconciliation]
    decide = (
        system_context.replace
        if compacted or len(snapshot) < len(epoch.snapshot)
        else system_context.reconcile
    )
    action, seen = rendered(observed, partial(decide, snapshot=snapshot))
    if isinstance(action, ReplacementBlocked):
        held, seen = rendered(seen, partial(decisions.replace, snapshot=snapshot))
        action = held
    for key, note in seen.notes.items():
        if observed.notes.get(key) != note:
            run.engine.warn(note)
    return action


async def _write_update(run: Run, epoch: ContextEpoch, text: str) -> SystemMessage | None:
    """Write one Mid-Conversation System Message together with the snapshot; none without a text."""
    if not text:
        await run.recorder.commit(put(epoch))
        return None

    def make(id: MessageID) -> SystemMessage:
        now = Created(created=run.engine.clock.now_ms())
        return SystemMessage(id=id, session_id=epoch.session_id, time=now, text=text, snapshot=epoch.snapshot)

    return await run.recorder.add_message(make, put(epoch))


async def keep_pins(run: Run, epoch: Epoch, pins: dict[str, object], moved: str | None) -> Epoch:
    """Store pins before the model is sent them; `moved` is why they differ from the earlier ones."""
    return await _keep(run, replace(because(epoch.value, moved), pins=pins), epoch.position)


async def keep_reason(run: Run, epoch: Epoch, reason: str, *puts: Put) -> Epoch:
    """Store the reason why the next request begins differently, together with what makes it so."""
    value = because(epoch.value, reason)
    await run.recorder.commit(*puts, put(value))
    return await _keep(run, value, epoch.position, stored=True)


def sent(epoch: ContextEpoch) -> ContextEpoch | None:
    """The epoch after a request is sent: its reasons are used up. None if it had none."""
    return replace(epoch, reasons=(), sent=None) if epoch.reasons or epoch.sent is not None else None


def because(epoch: ContextEpoch, reason: str | None) -> ContextEpoch:
    """The epoch with a reason why its next request begins differently."""
    if reason is None or reason in epoch.reasons:
        return epoch
    return replace(epoch, reasons=(*epoch.reasons, reason))
