"""Adds what steps used to their session. Pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.schema import usage
from holdfast.schema.part import StepFinishPart
from holdfast.schema.session import Session


def with_usage(
    session: Session, *, added: Sequence[StepFinishPart] = (), gone: Sequence[StepFinishPart] = ()
) -> Session:
    """The session with its totals moved by what came and what went."""
    cost, tokens = session.cost or 0, session.tokens or usage.ZERO
    for part in added:
        cost, tokens = cost + part.cost, usage.add(tokens, part.tokens)
    for part in gone:
        cost, tokens = cost - part.cost, usage.subtract(tokens, part.tokens)
    return replace(session, cost=cost, tokens=replace(tokens, total=None))
