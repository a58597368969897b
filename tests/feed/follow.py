"""What tests about follow share."""

from holdfast.feed.frame import Delta
from holdfast.schema.stored import Mark
from holdfast.store.batch import Put
from holdfast.testing.store_contract.build import S1, msg, part, prt


def opening(n: int, message: int, words: str) -> Put:
    """A text part that is still being written."""
    return part(n, message, {"type": "text", "text": words, "time": {"start": 1}}, mark=Mark.OPEN)


def delta(n: int, message: int, offset: int, words: str) -> Delta:
    """Live text."""
    return Delta(S1, msg(message), prt(n), "text", offset, words)
