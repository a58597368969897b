"""Keeps a tree of sessions within its budget: reserved on the root before each call, settled after it.

What must stay true: two turns of one tree, in whatever processes, cannot both take the last of it; what was
spent never falls; a reservation ends with its turn, and that of a dead runner when somebody asks next.
"""

import random
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from typing import NamedTuple

import anyio
import msgspec
from msgspec.structs import replace

from holdfast.errors import Conflict, HoldfastError
from holdfast.provider.catalog import cost
from holdfast.provider.catalog.model import Model
from holdfast.provider.request import size
from holdfast.provider.request.request import Request
from holdfast.runtime.engine.engine import Engine
from holdfast.schema.budget import NOTHING, Budget, Reserved, Spent
from holdfast.schema.session import Session
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.store.batch import Batch, Put, Unchanged
from holdfast.store.owner import LEASE_MS
from holdfast.store.put import put

_TRIES = 50
_PAUSE_S = 0.02
_DEPTH_MAX = 64


class Moment(NamedTuple):
    """A reading of the clock that nobody can set: it means something on this boot of this machine only."""

    boot: str
    ms: int


def _now(engine: Engine) -> Moment:
    return Moment(engine.host.boot, engine.clock.boot_ms())


class OutOfTime(HoldfastError):
    """The time of the tree was used up in the middle of a turn."""


async def reserve(
    engine: Engine, session: Session, request: Request, turn: str, *, for_ms: int | None = None
) -> str | None:
    """Set aside what a turn may use at most; why not, when there is not enough left.

    `for_ms` bounds the reservation of a call that no recovery knows of. That of a turn counts for as long as
    somebody runs its session.
    """
    if session.parent_id is None and session.budget is None:
        return None
    now = _now(engine)
    wanted = replace(_most(request), boot=now.boot)
    if for_ms is None:
        wanted = replace(wanted, session=session.id, since=now.ms)
    else:
        wanted = replace(wanted, until=now.ms + for_ms)
    refusal: str | None = None

    def change(root: Session, over: Collection[str]) -> Session | None:
        nonlocal refusal
        spent = _current(root.spent or NOTHING, now, over)
        refusal = None if root.budget is None else refused(root.budget, spent, wanted, request.model, now)
        if refusal is not None or root.budget is None:
            return None
        return replace(root, spent=replace(spent, reserved={**spent.reserved, turn: wanted}))

    await _edit_root(engine, session, change, is_turn=for_ms is None)
    return refusal


async def heard(engine: Engine, session: Session, turn: str, tokens: Tokens, model: Model) -> None:
    """Hold back no more than what the answer took, once it has come: its calls may run for long, and others
    of the tree want to go on meanwhile.
    """
    took, total = cost.cost(tokens, model.prices), int(_total(tokens))

    def change(root: Session, _: Collection[str]) -> Session | None:
        held = None if root.spent is None else root.spent.reserved.get(turn)
        if root.spent is None or held is None:
            return None
        amount = float(took.amount)
        now = replace(held, cost=amount, tokens=total, sent=total, sent_cost=amount)
        return replace(root, spent=replace(root.spent, reserved={**root.spent.reserved, turn: now}))

    if session.parent_id is not None or session.budget is not None:
        await _edit_root(engine, session, change)


async def time_left_s(engine: Engine, session: Session) -> float | None:
    """How long the tree may still work; None where nobody set a bound."""
    if session.parent_id is None and session.budget is None:
        return None
    record = await engine.store.session(await root_of(engine, session))
    root = None if record is None else record.value()
    if root is None or root.budget is None or root.budget.time_ms is None:
        return None
    used_ms = worked_ms(root.spent or NOTHING, _now(engine))
    return max(0, root.budget.time_ms - used_ms) / 1_000


def worked_ms(spent: Spent, now: Moment) -> int:
    """How long the tree has worked by now, turns under way on this machine included. Pure."""
    begun = _begun(spent.reserved.values(), now.boot)
    return spent.time_ms + (max(0, now.ms - min(begun)) if begun else 0)


def _begun(reserved: Iterable[Reserved], boot: str | None) -> list[int]:
    """When the turns of one boot began."""
    return [each.since for each in reserved if each.since is not None and each.boot == boot]


def _without(spent: Spent, turn: str, *, time_ms: int) -> Spent:
    """The end of a turn's reservation, its time counted as far as no other turn runs that will count it."""
    ended = spent.reserved.get(turn)
    left = {name: each for name, each in spent.reserved.items() if name != turn}
    begun = [] if ended is None else _begun(left.values(), ended.boot)
    if ended is not None and ended.since is not None and begun:
        time_ms = min(time_ms, max(0, min(begun) - ended.since))
    return replace(spent, reserved=left, time_ms=spent.time_ms + max(0, time_ms))


def _lost(spent: Spent, turn: str, *, said: int, time_ms: int) -> Spent:
    """The end of a turn that came to none: what was sent is gone, and what was said of the answer."""
    held = spent.reserved.get(turn)
    spent = _without(spent, turn, time_ms=time_ms)
    if held is None or held.sent is None:
        return spent
    answer = held.tokens - held.sent
    share = min(1.0, said / answer) if answer > 0 else 0.0
    sent_cost = Decimal(str(held.sent_cost or 0))
    lost = sent_cost + (Decimal(str(held.cost)) - sent_cost) * Decimal(str(share))
    return replace(
        spent,
        tokens=spent.tokens + held.sent + min(said, answer),
        cost=float(Decimal(str(spent.cost)) + lost),
        unknown=spent.unknown or held.unknown,
    )


def _died(spent: Spent, turn: str, now: Moment, *, said: int, worked_ms: int = 0) -> Spent:
    """The end of a turn whose runner died. When it died is stored nowhere; `worked_ms` is known of it.

    On the same boot its time counts until now, but no longer than a lease after what is known: a runner that
    is down for a night does not use up the budget, and one that is killed at once again and again does. Of
    another boot, or another machine, only what is known counts.
    """
    held = spent.reserved.get(turn)
    if held is None:
        return spent  # Whoever ended it has counted it.
    time_ms = 0
    if held.since is not None and held.boot == now.boot:
        time_ms = min(now.ms - held.since, worked_ms + LEASE_MS)
    elif held.since is not None:
        time_ms = worked_ms
    return _lost(spent, turn, said=said, time_ms=time_ms)


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn has really used."""

    turn: str
    tokens: Tokens
    cost: cost.Cost
    time_ms: int


def settled(root: Session, used: Used) -> Session:
    """The root with a turn's reservation replaced by what it used. Pure."""
    had = _without(root.spent or NOTHING, used.turn, time_ms=used.time_ms)
    return replace(
        root,
        spent=replace(
            had,
            cost=float(Decimal(str(had.cost)) + used.cost.amount),
            tokens=had.tokens + int(_total(used.tokens)),
            unknown=had.unknown or (None if used.cost.known else True),
        ),
    )


async def settled_above(
    engine: Engine, session: Session, used: Used
) -> tuple[tuple[Put, ...], tuple[Unchanged, ...]]:
    """What a turn of a child changes on the root of its tree: written together with the turn's own end."""
    if session.parent_id is None:
        return (), ()
    root = await root_of(engine, session)
    record = await engine.store.session(root)
    if record is None or root == session.id:
        return (), ()
    return (put(settled(record.value(), used)),), (Unchanged(root, "session", root, record.seq),)


async def settle(engine: Engine, session: Session, used: Used) -> None:
    """Settle a call that is no turn of the session, such as the one for its title."""
    await _edit_root(engine, session, lambda root, _: settled(root, used))


async def broken_off(
    engine: Engine, session: Session, turn: str, time_ms: int, *, sent: bool, said: int = 0
) -> None:
    """End the reservation of a turn that came to no end: its time counts, and what it took by our estimate.

    `sent`: the provider has taken the request; `said`: so many tokens of an answer came.
    """

    def change(root: Session, _: Collection[str]) -> Session | None:
        spent = root.spent or NOTHING
        if root.budget is None and turn not in spent.reserved:
            return None
        if sent:
            return replace(root, spent=_lost(spent, turn, said=said, time_ms=time_ms))
        return replace(root, spent=_without(spent, turn, time_ms=time_ms))

    await _edit_root(engine, session, change)


async def died(engine: Engine, session: Session, turn: str, *, said: int, worked_ms: int) -> None:
    """End the reservation of a turn that a dead runner has left, unless another turn of the tree has."""
    now = _now(engine)

    def change(root: Session, _: Collection[str]) -> Session | None:
        spent = root.spent or NOTHING
        if turn not in spent.reserved:
            return None
        return replace(root, spent=_died(spent, turn, now, said=said, worked_ms=worked_ms))

    await _edit_root(engine, session, change)


async def forget(engine: Engine, session: Session, turn: str) -> None:
    """End a reservation that came to nothing, if it is still there."""

    def change(root: Session, _: Collection[str]) -> Session | None:
        if root.spent is None or turn not in root.spent.reserved:
            return None
        return replace(root, spent=_without(root.spent, turn, time_ms=0))

    await _edit_root(engine, session, change)


def _current(spent: Spent, now: Moment, over: Collection[str]) -> Spent:
    """Without the reservations whose time is over, and those of runners who are gone."""
    for turn in over:
        spent = _died(spent, turn, now, said=0)
    left = {name: each for name, each in spent.reserved.items() if not _has_ended(each, now)}
    return replace(spent, reserved=left)


def _has_ended(each: Reserved, now: Moment) -> bool:
    """Whether a reservation that ends by itself has. One of another boot cannot be judged, and counts no
    more: it is small, and this machine may have been started anew since.
    """
    return each.until is not None and (each.boot != now.boot or each.until <= now.ms)


def refused(budget: Budget, spent: Spent, wanted: Reserved, model: Model, now: Moment) -> str | None:
    """Why a turn may not begin, in words; None when it may. Pure."""
    if budget.time_ms is not None and (worked := worked_ms(spent, now)) >= budget.time_ms:
        return f"the budget of {budget.time_ms / 1000:g} s of work is used up ({worked / 1000:g} s)"
    under_way = sum(each.tokens for each in spent.reserved.values())
    if budget.tokens is not None and spent.tokens + under_way + wanted.tokens > budget.tokens:
        return (
            f"the budget of {budget.tokens} tokens does not reach for the next request: {spent.tokens} are "
            f"used, {under_way} held back for turns under way, and it may take {wanted.tokens}"
        )
    if budget.cost is None:
        return None
    if model.prices is None and budget.unknown_price != "allow":
        return f"there is a budget in money, and the price of {model.provider_id}/{model.id} is not known"
    if spent.unknown and budget.unknown_price != "allow":
        return "there is a budget in money, and some of what was spent before had no known price"
    held = sum((Decimal(str(each.cost)) for each in spent.reserved.values()), Decimal(0))
    if Decimal(str(spent.cost)) + held + Decimal(str(wanted.cost)) > Decimal(str(budget.cost)):
        return (
            f"the budget of ${budget.cost:g} does not reach for the next request: ${spent.cost:.4g} is used, "
            f"${held:.4g} held back for turns under way, and it may cost ${wanted.cost:.4g}"
        )
    return None


def _most(request: Request) -> Reserved:
    """What a request may use at most: its estimated length, and the longest answer allowed."""
    said = size.estimate_request(request)
    answer = request.controls.max_output_tokens or 0
    return Reserved(
        cost=_cost(request, said, answer),
        tokens=said + answer,
        sent=said,
        sent_cost=_cost(request, said, 0),
        unknown=True if request.model.prices is None else None,
    )


def _cost(request: Request, input: int, output: int) -> float:
    tokens = Tokens(input=input, output=output, reasoning=0, cache=CacheTokens(read=0, write=0))
    return float(cost.cost(tokens, request.model.prices).amount)


def _total(tokens: Tokens) -> float:
    return tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write


async def _edit_root(
    engine: Engine,
    session: Session,
    change: Callable[[Session, Collection[str]], Session | None],
    *,
    is_turn: bool = False,
) -> None:
    """Read, change and write the root of the tree as one step. It may be another process's session.

    `change` is also given the turns whose runners are gone.
    """
    root = await root_of(engine, session)
    async with engine.trees.of(root):
        for attempt in range(_TRIES):
            record = await engine.store.session(root)
            if record is None:
                return
            value = record.value()
            asking = session.id if is_turn else None
            changed = change(value, await _over(engine, value.spent or NOTHING, asking))
            if changed is None:
                return
            try:
                await engine.store.commit(
                    Batch((put(changed),), (Unchanged(root, "session", root, record.seq),))
                )
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
                await pause(attempt)
            else:
                return


async def pause(attempt: int) -> None:
    """Let another process finish what it writes; longer, and less in step with it, each time."""
    await anyio.sleep(random.random() * _PAUSE_S * min(attempt, 10))  # noqa: S311 - a pause, not a secret


async def _over(engine: Engine, spent: Spent, asking: str | None) -> list[str]:
    """Turns that hold something back though nobody runs their sessions any more. A session has one turn at a
    time: what that of a new one still holds is of a runner before him.
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
    """The root of the tree that a session stands in."""
    above = session
    for _ in range(_DEPTH_MAX):
        if above.parent_id is None:
            break
        record = await engine.store.session(above.parent_id)
        if record is None:
            break
        above = record.value()
    return above.id
