"""Token counts, and adding them up. Costs are elsewhere: they need prices."""

from math import copysign, isfinite
from sys import float_info

from msgspec.structs import replace

from holdfast.schema.wire import Num, Wire


class CacheTokens(Wire, frozen=True, kw_only=True):
    """Tokens read from and written to a provider's prompt cache."""

    read: Num
    write: Num


class Tokens(Wire, frozen=True, kw_only=True):
    """The tokens of a step, a message or a session. `total` is what the provider reported, where it did."""

    total: Num | None = None
    input: Num
    output: Num
    reasoning: Num
    cache: CacheTokens


ZERO = Tokens(input=0, output=0, reasoning=0, cache=CacheTokens(read=0, write=0))


def plus(one: Num, other: Num) -> Num:
    """The sum, as far as a number holds it: what was imported may hold any number, and none is infinite."""
    total = one + other
    return total if isfinite(total) else copysign(float_info.max, total)


def add(one: Tokens, other: Tokens) -> Tokens:
    """The sum. It has a total only if both have one: a total of a part would be read as that of the whole."""
    both = one.total is not None and other.total is not None
    return Tokens(
        total=plus(one.total or 0, other.total or 0) if both else None,
        input=plus(one.input, other.input),
        output=plus(one.output, other.output),
        reasoning=plus(one.reasoning, other.reasoning),
        cache=CacheTokens(
            read=plus(one.cache.read, other.cache.read), write=plus(one.cache.write, other.cache.write)
        ),
    )


def subtract(one: Tokens, other: Tokens) -> Tokens:
    """What remains of `one` without `other`: the inverse of `add`, so it is not cut off at zero."""
    return add(one, _negative(other))


def _negative(tokens: Tokens) -> Tokens:
    return replace(
        tokens,
        total=None if tokens.total is None else -tokens.total,
        input=-tokens.input,
        output=-tokens.output,
        reasoning=-tokens.reasoning,
        cache=CacheTokens(read=-tokens.cache.read, write=-tokens.cache.write),
    )
