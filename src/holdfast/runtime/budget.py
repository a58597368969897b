"""Keeps a tree of sessions within its budget: reserved on the root before each call, settled after it.

What must stay true: two turns of one tree, in whatever processes, cannot both take the last of it; what was
spent never falls; a reservation ends with its turn, and that of a dead runner with its recovery.
"""

from collections.abc import Callable
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from holdfast.errors import Conflict
from holdfast.provider import size
from holdfast.provider.catalog import cost
from holdfast.provider.catalog.model import Model
from holdfast.provider.request import Request
from holdfast.runtime.recorder import session_put
from holdfast.runtime.room import Engine
from holdfast.schema.budget import NOTHING, Budget, Reserved, Spent
from holdfast.schema.session import Session
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.store.batch import Batch, Put, Unchanged

TURN_MS = 30 * 60 * 1_000
"""A reservation that nobody ends, because its runner was killed, counts no longer than this."""
_TRIES = 50
_DEPTH_MAX = 64


async def reserve(
    engine: Engine, session: Session, request: Request, turn: str, *, for_ms: int | None = None
) -> str | None:
    """Set aside what a turn may use at most; why not, when there is not enough left.

    `for_ms` bounds the reservation of a call that no recovery knows of.
    """
    if session.parent_id is None and session.budget is None:
        return None
    now_ms = engine.clock.now_ms()
    wanted = replace(_most(request), until=now_ms + (for_ms or TURN_MS))
    refusal: str | None = None

    def change(root: Session) -> Session | None:
        nonlocal refusal
        spent = _current(root.spent or NOTHING, now_ms)
        refusal = None if root.budget is None else refused(root.budget, spent, wanted, request.model)
        if refusal is not None or root.budget is None:
            return None
        return replace(root, spent=replace(spent, reserved={**spent.reserved, turn: wanted}))

    await _edit_root(engine, session, change)
    return refusal


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn has really used."""

    turn: str
    tokens: Tokens
    cost: cost.Cost
    time_ms: int


def settled(root: Session, used: Used) -> Session:
    """The root with a turn's reservation replaced by what it used. Pure."""
    had = root.spent or NOTHING
    left = {name: each for name, each in had.reserved.items() if name != used.turn}
    return replace(
        root,
        spent=replace(
            had,
            cost=float(Decimal(str(had.cost)) + used.cost.amount),
            tokens=had.tokens + int(_total(used.tokens)),
            time_ms=had.time_ms + max(0, used.time_ms),
            unknown=had.unknown or (None if used.cost.known else True),
            reserved=left,
        ),
    )


async def settled_above(
    engine: Engine, session: Session, used: Used
) -> tuple[tuple[Put, ...], tuple[Unchanged, ...]]:
    """What a turn of a child changes on the root of its tree: written together with the turn's own end."""
    if session.parent_id is None:
        return (), ()
    root = await _root(engine, session)
    record = await engine.store.session(root)
    if record is None or root == session.id:
        return (), ()
    return (session_put(settled(record.value(), used)),), (Unchanged(root, "session", root, record.seq),)


async def settle(engine: Engine, session: Session, used: Used) -> None:
    """Settle a call that is no turn of the session, such as the one for its title."""
    await _edit_root(engine, session, lambda root: settled(root, used))


async def broken_off(engine: Engine, session: Session, turn: str, time_ms: int) -> None:
    """End the reservation of a turn that came to no end: its time counts, what it used is unknown."""

    def change(root: Session) -> Session | None:
        spent = root.spent or NOTHING
        if root.budget is None and turn not in spent.reserved:
            return None
        left = {name: each for name, each in spent.reserved.items() if name != turn}
        return replace(root, spent=replace(spent, reserved=left, time_ms=spent.time_ms + max(0, time_ms)))

    await _edit_root(engine, session, change)


async def forget(engine: Engine, session: Session, turn: str) -> None:
    """End the reservation of a turn that never came to its end."""

    def change(root: Session) -> Session | None:
        if root.spent is None or turn not in root.spent.reserved:
            return None
        left = {name: each for name, each in root.spent.reserved.items() if name != turn}
        return replace(root, spent=replace(root.spent, reserved=left))

    await _edit_root(engine, session, change)


def _current(spent: Spent, now_ms: int) -> Spent:
    """Without the reservations whose time is over."""
    left = {name: each for name, each in spent.reserved.items() if each.until is None or each.until > now_ms}
    return replace(spent, reserved=left)


def refused(budget: Budget, spent: Spent, wanted: Reserved, model: Model) -> str | None:
    """Why a turn may not begin, in words; None when it may. Pure."""
    if budget.time_ms is not None and spent.time_ms >= budget.time_ms:
        return f"the budget of {budget.time_ms / 1000:g} s of work is used up ({spent.time_ms / 1000:g} s)"
    tokens = spent.tokens + wanted.tokens + sum(each.tokens for each in spent.reserved.values())
    if budget.tokens is not None and tokens > budget.tokens:
        return (
            f"the budget of {budget.tokens} tokens does not reach for the next request: {spent.tokens} are "
            f"used, and it may take {wanted.tokens}"
        )
    if budget.cost is None:
        return None
    if (model.prices is None or spent.unknown) and budget.unknown_price != "allow":
        return f"there is a budget in money, and the price of {model.provider_id}/{model.id} is not known"
    held = sum((Decimal(str(each.cost)) for each in spent.reserved.values()), Decimal(0))
    if Decimal(str(spent.cost)) + held + Decimal(str(wanted.cost)) > Decimal(str(budget.cost)):
        return (
            f"the budget of ${budget.cost:g} does not reach for the next request: ${spent.cost:.4g} is used, "
            f"and it may cost ${wanted.cost:.4g}"
        )
    return None


def _most(request: Request) -> Reserved:
    """What a request may use at most: its estimated length, and the longest answer allowed."""
    said = size.estimate_request(request)
    answer = request.controls.max_output_tokens or 0
    tokens = Tokens(input=said, output=answer, reasoning=0, cache=CacheTokens(read=0, write=0))
    return Reserved(cost=float(cost.cost(tokens, request.model.prices).amount), tokens=said + answer)


def _total(tokens: Tokens) -> float:
    return tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write


async def _edit_root(engine: Engine, session: Session, change: Callable[[Session], Session | None]) -> None:
    """Read, change and write the root of the tree as one step. It may be another process's session."""
    for attempt in range(_TRIES):
        root = await _root(engine, session)
        record = await engine.store.session(root)
        if record is None:
            return
        changed = change(record.value())
        if changed is None:
            return
        try:
            await engine.store.commit(
                Batch((session_put(changed),), (Unchanged(root, "session", root, record.seq),))
            )
        except Conflict:
            if attempt == _TRIES - 1:
                raise
        else:
            return


async def _root(engine: Engine, session: Session) -> str:
    above = session
    for _ in range(_DEPTH_MAX):
        if above.parent_id is None:
            break
        record = await engine.store.session(above.parent_id)
        if record is None:
            break
        above = record.value()
    return above.id
