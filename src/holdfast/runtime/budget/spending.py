"""What a tree of sessions has spent and may still spend, as plain functions over values. Pure."""

from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from holdfast.provider.catalog import cost
from holdfast.provider.catalog.model import Model
from holdfast.provider.request import size
from holdfast.provider.request.request import Request
from holdfast.schema.budget import NOTHING, Budget, Reserved, Spent
from holdfast.schema.session import Session
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.store.owner import LEASE_MS


class Moment(NamedTuple):
    """A time of the boot clock, which cannot be set: it has a meaning only on this boot of this machine."""

    boot: str
    ms: int


def worked_ms(spent: Spent, now: Moment) -> int:
    """How long the tree has worked by now, including turns under way on this machine. Pure."""
    begun = _begun(spent.reserved.values(), now.boot)
    return spent.time_ms + (max(0, now.ms - min(begun)) if begun else 0)


def _begun(reserved: Iterable[Reserved], boot: str | None) -> list[int]:
    """When the turns of one boot began."""
    return [each.since for each in reserved if each.since is not None and each.boot == boot]


def without(spent: Spent, turn: str, *, time_ms: int) -> Spent:
    """End a turn's reservation. Its time counts, except while another turn runs that will count it."""
    ended = spent.reserved.get(turn)
    left = {name: each for name, each in spent.reserved.items() if name != turn}
    begun = [] if ended is None else _begun(left.values(), ended.boot)
    if ended is not None and ended.since is not None and begun:
        time_ms = min(time_ms, max(0, min(begun) - ended.since))
    return replace(spent, reserved=left, time_ms=spent.time_ms + max(0, time_ms))


def after_failure(spent: Spent, turn: str, *, answer_tokens: int, time_ms: int) -> Spent:
    """End a turn without an end: the request's tokens are spent, and those that came of the answer."""
    held = spent.reserved.get(turn)
    spent = without(spent, turn, time_ms=time_ms)
    if held is None or held.sent is None:
        return spent
    answer = held.tokens - held.sent
    share = min(1.0, answer_tokens / answer) if answer > 0 else 0.0
    sent_cost = Decimal(str(held.sent_cost or 0))
    lost = sent_cost + (Decimal(str(held.cost)) - sent_cost) * Decimal(str(share))
    return replace(
        spent,
        tokens=spent.tokens + held.sent + min(answer_tokens, answer),
        cost=float(Decimal(str(spent.cost)) + lost),
        unknown=spent.unknown or held.unknown,
    )


def after_death(spent: Spent, turn: str, now: Moment, *, answer_tokens: int, worked_ms: int = 0) -> Spent:
    """End a turn whose runner died at an unknown time; it is known to have worked for `worked_ms`.

    On the same boot its time counts until now, but no longer than a lease after what is known: a runner that
    is down for a night does not use up the budget, and one that is killed again and again does. On another
    boot or machine only what is known counts.
    """
    held = spent.reserved.get(turn)
    if held is None:
        return spent  # It was ended and counted before.
    time_ms = 0
    if held.since is not None and held.boot == now.boot:
        time_ms = min(now.ms - held.since, worked_ms + LEASE_MS)
    elif held.since is not None:
        time_ms = worked_ms
    return after_failure(spent, turn, answer_tokens=answer_tokens, time_ms=time_ms)


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn has really used."""

    turn: str
    tokens: Tokens
    cost: cost.Cost
    time_ms: int


def settled(root: Session, used: Used) -> Session:
    """The root with a turn's reservation replaced by what it used. Pure."""
    had = without(root.spent or NOTHING, used.turn, time_ms=used.time_ms)
    return replace(
        root,
        spent=replace(
            had,
            cost=float(Decimal(str(had.cost)) + used.cost.amount),
            tokens=had.tokens + int(total(used.tokens)),
            unknown=had.unknown or (None if used.cost.known else True),
        ),
    )


def still_reserved(spent: Spent, now: Moment, over: Collection[str]) -> Spent:
    """Without the reservations that have ended, and those of runners that are gone."""
    for turn in over:
        spent = after_death(spent, turn, now, answer_tokens=0)
    left = {name: each for name, each in spent.reserved.items() if not _has_ended(each, now)}
    return replace(spent, reserved=left)


def _has_ended(each: Reserved, now: Moment) -> bool:
    """Whether a reservation with a time limit has ended.

    One of another boot cannot be judged and counts as ended: it is small, and this machine may have been
    restarted since.
    """
    return each.until is not None and (each.boot != now.boot or each.until <= now.ms)


def refused(budget: Budget, spent: Spent, wanted: Reserved, model: Model, now: Moment) -> str | None:
    """Why a turn may not begin, as a sentence; None if it may. Pure."""
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


def most(request: Request) -> Reserved:
    """What a request may use at most: its estimated length, and the longest answer allowed."""
    request_tokens = size.estimate_request(request)
    answer = request.controls.max_output_tokens or 0
    return Reserved(
        cost=_cost(request, request_tokens, answer),
        tokens=request_tokens + answer,
        sent=request_tokens,
        sent_cost=_cost(request, request_tokens, 0),
        unknown=True if request.model.prices is None else None,
    )


def _cost(request: Request, input: int, output: int) -> float:
    tokens = Tokens(input=input, output=output, reasoning=0, cache=CacheTokens(read=0, write=0))
    return float(cost.cost(tokens, request.model.prices).amount)


def total(tokens: Tokens) -> float:
    return tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write
