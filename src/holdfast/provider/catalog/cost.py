"""What a step cost: tokens times prices, in exact decimal arithmetic. Pure.

What must stay true:

- A price that is not stated makes the cost unknown, never free, as soon as one token would need it. The
  exception is a model that costs nothing for input and output (a plan, a local one): its cache is free.
- The tier is chosen by the whole request, input + cache read + cache write, and must be exceeded; among those
  exceeded the largest counts. A tier's prices stand alone: what it leaves out is not taken from the base.
- Reasoning is charged as output.
- A cost is finite and not negative, whatever a provider reported.
"""

from decimal import Decimal
from math import isfinite

import msgspec

from holdfast.provider.catalog.model import Price, Prices
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import Num

MILLION = Decimal(1_000_000)


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars. When it is not `known`, the amount is 0 and says nothing."""

    amount: Decimal
    known: bool


UNKNOWN = Cost(amount=Decimal(0), known=False)


def cost(tokens: Tokens, prices: Prices | None) -> Cost:
    """The cost of a step."""
    if prices is None:
        return UNKNOWN
    read, write = _count(tokens.cache.read), _count(tokens.cache.write)
    fresh = _count(tokens.input)
    price = price_for(prices, fresh + read + write)
    free = price.input == 0 and price.output == 0
    amount = Decimal(0)
    for count, rate in (
        (fresh, price.input),
        (_count(tokens.output) + _count(tokens.reasoning), price.output),
        (read, price.cache_read),
        (write, price.cache_write),
    ):
        if not count or (rate is None and free):
            continue
        if rate is None or not rate.is_finite():
            return UNKNOWN
        amount += count * max(rate, Decimal(0))
    return Cost(amount=amount / MILLION, known=True)


def price_for(prices: Prices, request_tokens: Decimal | int) -> Price:
    """The price of a request of this length."""
    exceeded = [tier for tier in prices.tiers if request_tokens > tier.above]
    return max(exceeded, key=lambda tier: tier.above).price if exceeded else prices.base


def _count(number: Num) -> Decimal:
    # A provider may report nonsense; Decimal(str) keeps a float's printed value exact.
    return Decimal(str(number)) if isfinite(number) and number > 0 else Decimal(0)
