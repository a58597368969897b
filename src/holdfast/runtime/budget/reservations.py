"""Keeps a tree of sessions within its budget: reserved on the root before each call, settled after it.

What must stay true: two turns of one tree, in whatever processes, cannot both take the last of it; the amount
spent never falls; a reservation ends with its turn, and that of a dead runner at the next reservation.
"""

from collections.abc import Callable, Collection

from msgspec.structs import replace

from holdfast.errors import HoldfastError
from holdfast.provider.catalog import cost
from holdfast.provider.catalog.model import Model
from holdfast.provider.request.request import Request
from holdfast.runtime.budget.spending import (
    Moment,
    Used,
    after_death,
    after_failure,
    most,
    refused,
    settled,
    still_reserved,
    total,
    without,
    worked_ms,
)
from holdfast.runtime.engine.engine import Engine
from holdfast.schema.budget import NOTHING, Spent
from holdfast.schema.session import Session
from holdfast.schema.usage import Tokens
from holdfast.store.batch import Batch, Put, Unchanged
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put

_DEPTH_MAX = 64


def _now(engine: Engine) -> Moment:
    return Moment(engine.host.boot, engine.clock.boot_ms())


class OutOfTime(HoldfastError):
    """The tree's budget of time was used up in the middle of a turn."""


async def reserve(
    engine: Engine, session: Session, request: Request, turn: str, *, for_ms: int | None = None
) -> str | None:
    """Reserve what a turn may use at most; returns why not, if too little is left.

    `for_ms` bounds the reservation of a side call, which no recovery settles. That of a turn counts as long
    as a process runs its session.
    """
    if session.parent_id is None and session.budget is None:
        return None
    now = _now(engine)
    wanted = replace(most(request), boot=now.boot)
    if for_ms is None:
        wanted = replace(wanted, session=session.id, since=now.ms)
    else:
        wanted = replace(wanted, until=now.ms + for_ms)
    refusal: str | None = None

    def change(root: Session, over: Collection[str]) -> Session | None:
        nonlocal refusal
        spent = still_reserved(root.spent or NOTHING, now, over)
        refusal = None if root.budget is None else refused(root.budget, spent, wanted, request.model, now)
        if refusal is not None or root.budget is None:
            return None
        return replace(root, spent=replace(spent, reserved={**spent.reserved, turn: wanted}))

    await _edit_root(engine, session, change, is_turn=for_ms is None)
    return refusal


async def shrink_reservation(
    engine: Engine, session: Session, turn: str, tokens: Tokens, model: Model
) -> None:
    """Shrink the reservation to what the answer took: its calls may run for long, others need the rest."""
    took, count = cost.cost(tokens, model.prices), int(total(tokens))

    def change(root: Session, _: Collection[str]) -> Session | None:
        held = None if root.spent is None else root.spent.reserved.get(turn)
        if root.spent is None or held is None:
            return None
        amount = float(took.amount)
        now = replace(held, cost=amount, tokens=count, sent=count, sent_cost=amount)
        return replace(root, spent=replace(root.spent, reserved={**root.spent.reserved, turn: now}))

    if session.parent_id is not None or session.budget is not None:
        await _edit_root(engine, session, change)


async def time_left_s(engine: Engine, session: Session) -> float | None:
    """How long the tree may still work; None without a bound."""
    if session.parent_id is None and session.budget is None:
        return None
    record = await engine.store.session(await root_of(engine, session))
    root = None if record is None else record.value()
    if root is None or root.budget is None or root.budget.time_ms is None:
        return None
    used_ms = worked_ms(root.spent or NOTHING, _now(engine))
    return max(0, root.budget.time_ms - used_ms) / 1_000


async def settle_root(
    engine: Engine, session: Session, used: Used
) -> tuple[tuple[Put, ...], tuple[Unchanged, ...]]:
    """The change of the tree's root by a child's turn, to be written together with the turn's own end."""
    if session.parent_id is None:
        return (), ()
    root = await root_of(engine, session)
    record = await engine.store.session(root)
    if record is None or root == session.id:
        return (), ()
    return (put(settled(record.value(), used)),), (Unchanged(root, "session", root, record.seq),)


async def settle(engine: Engine, session: Session, used: Used) -> None:
    """Settle a side call, such as the one for a title."""
    await _edit_root(engine, session, lambda root, _: settled(root, used))


async def settle_unfinished(
    engine: Engine, session: Session, turn: str, time_ms: int, *, sent: bool, answer_tokens: int = 0
) -> None:
    """End the reservation of a turn without an end: its time counts, and its tokens by our estimate.

    `sent`: the provider has received the request; `answer_tokens`: so many tokens of an answer came.
    """

    def change(root: Session, _: Collection[str]) -> Session | None:
        spent = root.spent or NOTHING
        if root.budget is None and turn not in spent.reserved:
            return None
        if sent:
            return replace(
                root, spent=after_failure(spent, turn, answer_tokens=answer_tokens, time_ms=time_ms)
            )
        return replace(root, spent=without(spent, turn, time_ms=time_ms))

    await _edit_root(engine, session, change)


async def settle_dead(
    engine: Engine, session: Session, turn: str, *, answer_tokens: int, worked_ms: int
) -> None:
    """End the reservation of a dead runner's turn, unless another turn of the tree has."""
    now = _now(engine)

    def change(root: Session, _: Collection[str]) -> Session | None:
        spent = root.spent or NOTHING
        if turn not in spent.reserved:
            return None
        return replace(
            root, spent=after_death(spent, turn, now, answer_tokens=answer_tokens, worked_ms=worked_ms)
        )

    await _edit_root(engine, session, change)


async def forget(engine: Engine, session: Session, turn: str) -> None:
    """End an unused reservation, if it still exists."""

    def change(root: Session, _: Collection[str]) -> Session | None:
        if root.spent is None or turn not in root.spent.reserved:
            return None
        return replace(root, spent=without(root.spent, turn, time_ms=0))

    await _edit_root(engine, session, change)


async def _edit_root(
    engine: Engine,
    session: Session,
    change: Callable[[Session, Collection[str]], Session | None],
    *,
    is_turn: bool = False,
) -> None:
    """Read, change and write the root of the tree atomically. Another process may run that session.

    `change` also gets the turns whose runners are gone.
    """
    root = await root_of(engine, session)

    async def once() -> None:
        record = await engine.store.session(root)
        if record is None:
            return
        value = record.value()
        asking = session.id if is_turn else None
        changed = change(value, await _find_over(engine, value.spent or NOTHING, asking))
        if changed is not None:
            unchanged = Unchanged(root, "session", root, record.seq)
            await engine.store.commit(Batch((put(changed),), (unchanged,)))

    async with engine.trees.of(root):
        await on_conflict(once, tries=50)  # Many children may write at once.


async def _find_over(engine: Engine, spent: Spent, asking: str | None) -> list[str]:
    """Turns with a reservation whose sessions no process runs any more.

    A session has one turn at a time: for the session that reserves now, an older reservation is of an earlier
    runner.
    """
    over = []
    for turn, each in spent.reserved.items():
        if each.session is None:
            continue
        if each.session == asking:
            over.append(turn)
        else:
            record = await engine.store.session(each.session)
            if record is None or not record.busy:
                over.append(turn)
    return over


async def root_of(engine: Engine, session: Session) -> str:
    """The root of a session's tree; it is looked for once."""
    if session.parent_id is None:
        return session.id
    if (known := engine.trees.root(session.id)) is not None:
        return known
    above = session
    for _ in range(_DEPTH_MAX):
        if above.parent_id is None:
            break
        record = await engine.store.session(above.parent_id)
        if record is None:
            break
        above = record.value()
    engine.trees.note_root(session.id, above.id)
    return above.id
