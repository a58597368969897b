"""Divides a history into what is summarised and the tail that is kept word for word. Pure."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from holdfast.schema.file_part import FilePart
from holdfast.schema.message import MessageWithParts, UserMessage
from holdfast.schema.part import ToolPart

TAIL_TOKENS_MIN: Final = 2_000
TAIL_TOKENS_MAX: Final = 15_000
TAIL_SHARE: Final = 0.25
TAIL_MESSAGES_MAX: Final = 20

Measure = Callable[[Sequence[MessageWithParts]], int]
"""Estimates the tokens of messages for the model."""


class Divided(msgspec.Struct, frozen=True):
    """What is summarised, and what is kept."""

    head: list[MessageWithParts]
    tail: list[MessageWithParts]


def tail_tokens(usable: int | None, configured: int | None) -> int:
    """How many tokens the tail may have."""
    if configured is not None:
        return configured
    share = TAIL_TOKENS_MAX if usable is None else int(usable * TAIL_SHARE)
    return min(TAIL_TOKENS_MAX, max(TAIL_TOKENS_MIN, share))


def divide(
    conversation: Sequence[MessageWithParts],
    measure: Measure,
    *,
    tokens_max: int,
    turns_max: int | None = None,
    messages_max: int = TAIL_MESSAGES_MAX,
) -> Divided:
    """Keep whole turns from the end while they fit; split the first that does not, where its end fits.

    A tail never begins with results whose calls were summarised: a message holds both, so any message will
    do. If the tail would be the whole history, there is no tail and everything is summarised.
    """
    begin = len(conversation)
    left = tokens_max
    turns = 0
    for start, end in _turns(conversation):
        if turns_max is not None and turns >= turns_max:
            break
        size = measure(conversation[start:end])
        if size > left or len(conversation) - start > messages_max:
            begin = _split(conversation, (start, end), measure, left, messages_max)
            break
        begin, left, turns = start, left - size, turns + 1
    if begin == 0:
        begin = len(conversation)
    return Divided(list(conversation[:begin]), list(conversation[begin:]))


def _turns(conversation: Sequence[MessageWithParts]) -> list[tuple[int, int]]:
    """The bounds of turns, the last first. What comes before the first prompt is a turn too."""
    starts = [index for index, each in enumerate(conversation) if isinstance(each.info, UserMessage)]
    if not starts or starts[0] != 0:
        starts = [0, *starts]
    return list(reversed(list(zip(starts, [*starts[1:], len(conversation)], strict=True))))


def _split(
    conversation: Sequence[MessageWithParts],
    turn: tuple[int, int],
    measure: Measure,
    left: int,
    messages_max: int,
) -> int:
    """The earliest message within a turn from which its rest fits."""
    start, begin = turn
    while begin > start + 1:
        size = measure(conversation[begin - 1 : begin])
        if size > left or len(conversation) - (begin - 1) > messages_max:
            break
        begin, left = begin - 1, left - size
    return begin


def without_media(divided: Divided) -> Divided:
    """The same, with the tail beginning after the last message with media."""
    last = max((index for index, each in enumerate(divided.tail) if _has_media(each)), default=-1)
    return Divided([*divided.head, *divided.tail[: last + 1]], divided.tail[last + 1 :])


def _has_media(message: MessageWithParts) -> bool:
    return any(
        isinstance(part, FilePart)
        or (isinstance(part, ToolPart) and bool(getattr(part.state, "attachments", None)))
        for part in message.parts
    )
