"""A model's limits, the length of a request, and whether it has to be compacted. Pure."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Literal

import msgspec

from holdfast.provider.catalog.model import Model
from holdfast.provider.request import assemble, size
from holdfast.runtime.history import model_view, work
from holdfast.runtime.history.carried import carried_in
from holdfast.schema.config import CompactionConfig
from holdfast.schema.fault import ContextOverflowFault
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import ReasoningPart, StepStartPart, TextPart, ToolPart
from holdfast.schema.usage import Tokens

RATIO_MIN: Final = 2.0
RATIO_MAX: Final = 6.0
RATIOS_MAX: Final = 16
"""How many models' ratios are kept, the latest."""
RESERVED: Final = 20_000
ATTEMPTS_MAX: Final = 2
GROWN_SHARE: Final = 0.1
"""By what share of the limit a count has to grow, after a compaction that did not lower it, to count
again.
"""
MESSAGES_MIN: Final = 4
"""The messages that every compaction leaves, with room for an answer: its request, the summary, the one that
continues the work.
"""

Trigger = Literal["estimate", "usage", "tokens", "messages"]


class ContextLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a request may be. `usable` is None if the model's limits are not known."""

    usable: int | None
    max_tokens: int | None = None
    max_messages: int | None = None


def context_limits(
    model: Model, config: CompactionConfig | None, *, output_tokens_max: int | None = None
) -> ContextLimits:
    """The limits of a model, with the user's own."""
    config = config or CompactionConfig()
    answer = assemble.output_tokens(model, output_tokens_max)
    usable: int | None = None
    if model.limit.input:
        reserved = min(RESERVED, answer) if config.reserved is None else config.reserved
        usable = max(0, model.limit.input - reserved)
    elif model.limit.context:
        usable = max(0, model.limit.context - answer - (config.reserved or 0))
    return ContextLimits(usable=usable, max_tokens=config.max_tokens, max_messages=config.max_messages)


def ratio(history: Sequence[MessageWithParts], model: Model) -> float:
    """Characters per token, by the model's own count of the last request; four until there is one."""
    wanted = f"{model.provider_id}/{model.id}"
    return next(
        (each for name, each in _reported_ratios(history) if name == wanted), float(size.CHARACTERS_A_TOKEN)
    )


def ratios(history: Sequence[MessageWithParts]) -> dict[str, float]:
    """Characters per token of each model that has counted: carried over by a compaction."""
    found: dict[str, float] = {}
    for name, each in _reported_ratios(history):
        found.setdefault(name, each)
    return dict(islice(found.items(), RATIOS_MAX))


def _reported_ratios(history: Sequence[MessageWithParts]) -> Iterator[tuple[str, float]]:
    """The counts of models, the latest first. Those from before a compaction are in its message."""
    for message in reversed(history):
        info = message.info
        if isinstance(info, UserMessage) and (carried := carried_in(message)) is not None:
            yield from ((name, _within(each)) for name, each in carried.ratios.items())
        if not isinstance(info, AssistantMessage) or info.summary:
            continue
        sent = next((part.prefix for part in message.parts if isinstance(part, StepStartPart)), None)
        counted = info.tokens.input + info.tokens.cache.read + info.tokens.cache.write
        if sent is not None and sent.chars and counted:
            yield f"{info.provider_id}/{info.model_id}", _within(sent.chars / counted)


def _within(ratio: float) -> float:
    return min(RATIO_MAX, max(RATIO_MIN, ratio))


def reported(history: Sequence[MessageWithParts]) -> int:
    """The provider's count for the last answer and its request; 0 without one since the last compaction."""
    last = _last_counted(history)
    return 0 if last is None else _total(last.tokens)


def _last_counted(history: Sequence[MessageWithParts]) -> AssistantMessage | None:
    """The last answer with a token count, if it came after the last compaction; a summary does not count."""
    for message in reversed(history):
        info = message.info
        if model_view.is_finished_summary(message):
            return None
        if isinstance(info, AssistantMessage) and not info.summary and _total(info.tokens):
            return info
    return None


def floor_tokens(history: Sequence[MessageWithParts], model: Model) -> int:
    """The token count this model reported right after a compaction, or when one failed.

    Another compaction cannot get below it. 0 if it has counted nothing since.
    """
    found = last = 0
    fresh = False
    for message in history:
        info = message.info
        if not isinstance(info, AssistantMessage):
            continue
        if model_view.is_finished_summary(message):
            found, last, fresh = 0, 0, True
        elif info.summary:
            found = last if isinstance(info.error, ContextOverflowFault) else found
        elif (info.provider_id, info.model_id) == (model.provider_id, model.id) and _total(info.tokens):
            last = _total(info.tokens)
            found, fresh = (last if fresh else found), False
    return found


def has_grown(history: Sequence[MessageWithParts], model: Model, limit: int | None) -> bool:
    """Whether the last count is above what a compaction could not lower to the limit."""
    known = floor_tokens(history, model)
    return limit is None or known <= limit or reported(history) > known + limit * GROWN_SHARE


def _total(tokens: Tokens) -> int:
    return int(tokens.input + tokens.cache.read + tokens.cache.write + tokens.output)


def needed(
    context_limits: ContextLimits,
    history: Sequence[MessageWithParts],
    model: Model,
    *,
    characters: int,
    usage: bool = True,
) -> Trigger | None:
    """Why a request of so many characters needs a compaction before it; None if it does not.

    Without `usage`: by its length alone.
    """
    last = _last_counted(history) if usage else None
    return trigger(
        context_limits,
        history,
        estimated=round(characters / ratio(history, model)),
        same_model=last is not None and (last.provider_id, last.model_id) == (model.provider_id, model.id),
    )


def trigger(
    context_limits: ContextLimits, history: Sequence[MessageWithParts], *, estimated: int, same_model: bool
) -> Trigger | None:
    """Why the next request needs a compaction before it; None if it does not.

    A count by another model says nothing about this one.
    """
    used = reported(history) if same_model else 0
    if context_limits.usable is not None and estimated > context_limits.usable:
        return "estimate"
    if context_limits.usable is not None and used > context_limits.usable:
        return "usage"
    if context_limits.max_tokens is not None and max(used, estimated) > context_limits.max_tokens:
        return "tokens"
    if context_limits.max_messages is not None and is_over(context_limits, len(model_view.project(history))):
        return "messages"
    return None


def is_over(context_limits: ContextLimits, messages: int) -> bool:
    """Whether there are more messages than the user's limit."""
    return context_limits.max_messages is not None and messages > max(
        context_limits.max_messages, MESSAGES_MIN
    )


def attempts(history: Sequence[MessageWithParts]) -> int:
    """How often compaction was tried since the last answer: from the records, so a restart knows it."""
    for message in reversed(history):
        info = message.info
        if (part := model_view.compaction_of(message)) is not None:
            return part.attempt or 0  # A requested one does not count.
        if isinstance(info, UserMessage) and not model_view.is_continuing(message):
            break  # The user has prompted since.
        if isinstance(info, AssistantMessage) and _answers(info, message):
            break
    return 0


def _answers(info: AssistantMessage, message: MessageWithParts) -> bool:
    """Whether the provider accepted the request; if not, its message is empty and broke off."""
    if info.summary or info.error is not None or not info.finish:
        return False
    has_output = any(isinstance(part, TextPart | ReasoningPart | ToolPart) for part in message.parts)
    return has_output or info.finish != work.BROKEN_OFF
