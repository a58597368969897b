"""Adds what steps used to their session. Pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.schema import usage
from holdfast.schema.part import StepFinishPart
from holdfast.schema.session import Session
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import Num


def with_step(session: Session, cost: Num, tokens: Tokens) -> Session:
    """The session with one more step in its totals."""
    known = session.tokens or usage.ZERO
    return replace(
        session,
        cost=usage.plus(session.cost or 0, cost),
        tokens=replace(usage.add(known, tokens), total=None),
    )


def with_usage(
    session: Session, *, added: Sequence[StepFinishPart] = (), gone: Sequence[StepFinishPart] = ()
) -> Session:
    """The session with its totals changed by the steps that were added and removed."""
    cost, tokens = session.cost or 0, session.tokens or usage.ZERO
    for part in added:
        cost, tokens = usage.plus(cost, part.cost), usage.add(tokens, part.tokens)
    for part in gone:
        cost, tokens = usage.plus(cost, -part.cost), usage.subtract(tokens, part.tokens)
    return replace(session, cost=cost, tokens=replace(tokens, total=None))
