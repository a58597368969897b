"""Writes the end of a call to a model together with its usage: one commit, also if others write meanwhile.

What must stay true: a crash leaves both or neither, on the session and on the root of its tree.
"""

from collections.abc import Callable

from msgspec.structs import replace

from holdfast.runtime.budget import reservations, spending
from holdfast.runtime.budget.totals import with_step
from holdfast.runtime.engine.recorder import Made
from holdfast.runtime.engine.run import Run
from holdfast.schema.session import Session
from holdfast.store.batch import Settled, Unchanged
from holdfast.store.on_conflict import TRIES, on_conflict
from holdfast.store.put import put
from holdfast.store.record import SessionRecord


async def change(run: Run, compose: Made, edit: Callable[[Session], Session]) -> None:
    """Write what `compose` makes together with a change of the session; repeated on a conflict."""

    async def once() -> None:
        record = await _record(run)
        whole = put(edit(record.value()))
        unchanged = Unchanged(run.recorder.session, "session", run.recorder.session, record.seq)
        await run.recorder.write(lambda ids: [*compose(ids), whole], expect=(unchanged,))

    await on_conflict(once)


async def settle(
    run: Run,
    used: spending.Used,
    now_ms: int,
    compose: Made,
    *,
    change: Callable[[Session], Session] = lambda session: session,
    release: bool = False,
) -> None:
    """Write what `compose` makes, add the usage to the totals, and `change` the session as well.

    `release`: release the claim in the same commit, unless a prompt waits; tried once.
    """
    known = run.history.record
    settled = (Settled(run.recorder.session, "prompt"),) if release else ()

    async def once() -> None:
        nonlocal known
        # Mostly only this process writes it: try the session as the turn read it first.
        record, known = known or await _record(run), None
        session = with_step(change(record.value()), float(used.cost.amount), used.tokens)
        if session.parent_id is None:
            session = spending.settled(session, used)
        session = replace(session, time=replace(session.time, updated=max(now_ms, session.time.updated)))
        above, meanwhile = await reservations.settle_root(run.engine, session, used)
        unchanged = Unchanged(session.id, "session", session.id, record.seq)
        whole = put(session)
        expect = (unchanged, *meanwhile, *settled)
        receipt = await run.recorder.write(
            lambda ids: [*compose(ids), whole, *above], expect=expect, release=release
        )
        written = receipt.numbers[len(receipt.numbers) - len(above) - 1]
        run.history.record = replace(record, seq=written, data=whole.data)

    root = await reservations.root_of(run.engine, (known or await _record(run)).value())
    async with run.engine.trees.of(root):
        await on_conflict(once, tries=1 if release else TRIES)


async def _record(run: Run) -> SessionRecord:
    record = await run.engine.store.session(run.recorder.session)
    assert record is not None, "a claimed session cannot be removed"
    return record
