"""Writes the end of a call to a model together with what it took: one commit, whoever else writes.

What must stay true: a crash leaves either both or neither, on the session and on the root of its tree.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from holdfast.errors import Conflict
from holdfast.runtime.budget import reservations, spending
from holdfast.runtime.budget.totals import with_step
from holdfast.runtime.engine.recorder import Ids
from holdfast.runtime.engine.run import Run
from holdfast.schema.session import Session
from holdfast.store.batch import Change, Unchanged
from holdfast.store.put import put
from holdfast.store.record import SessionRecord

_TRIES = 30


async def change(
    run: Run, compose: Callable[[Ids], Sequence[Change]], edit: Callable[[Session], Session]
) -> None:
    """Write what `compose` makes together with a change of the session, whoever else changes it."""
    for attempt in range(_TRIES):
        record = await _record(run)
        whole = put(edit(record.value()))
        unchanged = Unchanged(run.recorder.session, "session", run.recorder.session, record.seq)
        try:
            await run.recorder.write(
                lambda ids, whole=whole: [*compose(ids), whole],  # type: ignore[misc]
                expect=(unchanged,),
            )
        except Conflict:
            if attempt == _TRIES - 1:
                raise
        else:
            return


async def settle(
    run: Run,
    used: spending.Used,
    now_ms: int,
    compose: Callable[[Ids], Sequence[Change]],
    *,
    change: Callable[[Session], Session] = lambda session: session,
) -> None:
    """Write what `compose` makes, add what was used to the totals, and `change` the session besides."""
    # Nobody but us writes it, mostly: what the turn began with is tried first.
    known = run.history.record or await _record(run)
    async with run.engine.trees.of(await reservations.root_of(run.engine, known.value())):
        for attempt in range(_TRIES):
            record = known if attempt == 0 else await _record(run)
            session = with_step(change(record.value()), float(used.cost.amount), used.tokens)
            if session.parent_id is None:
                session = spending.settled(session, used)
            session = replace(session, time=replace(session.time, updated=max(now_ms, session.time.updated)))
            above, meanwhile = await reservations.settled_above(run.engine, session, used)
            unchanged = Unchanged(session.id, "session", session.id, record.seq)
            whole = put(session)
            try:
                await run.recorder.write(
                    lambda ids, whole=whole, above=above: [*compose(ids), whole, *above],  # type: ignore[misc]
                    expect=(unchanged, *meanwhile),
                )
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
                await reservations.pause(attempt)
            else:
                return


async def _record(run: Run) -> SessionRecord:
    record = await run.engine.store.session(run.recorder.session)
    assert record is not None, "a claimed session cannot be removed"
    return record
