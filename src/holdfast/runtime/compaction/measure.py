"""How much room a model has, how long a request is, and whether it has to be compacted. Pure."""

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
"""Models of which it is kept how long a token is, the latest."""
RESERVED: Final = 20_000
ATTEMPTS_MAX: Final = 2
GROWN_SHARE: Final = 0.1
"""By how much of the room a count has to grow after a compaction that did not lower it, to count again."""
MESSAGES_MIN: Final = 4
"""What a compaction leaves in any case, with room for an answer: its request, the summary, our word."""

Trigger = Literal["estimate", "usage", "tokens", "messages"]


class ContextLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a request may hold. `usable` is None where the model's limits are not known."""

    usable: int | None
    max_tokens: int | None = None
    max_messages: int | None = None


def context_limits(
    model: Model, config: CompactionConfig | None, *, output_tokens_max: int | None = None
) -> ContextLimits:
    """The room of a model, with the person's own limits."""
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
    """Characters a token, as the model's own count of the last request told; four until it has told."""
    wanted = f"{model.provider_id}/{model.id}"
    return next(
        (each for name, each in _reported_ratios(history) if name == wanted), float(size.CHARACTERS_A_TOKEN)
    )


def ratios(history: Sequence[MessageWithParts]) -> dict[str, float]:
    """Characters a token, of each model that has told: a compaction must not make us forget it."""
    found: dict[str, float] = {}
    for name, each in _reported_ratios(history):
        found.setdefault(name, each)
    return dict(islice(found.items(), RATIOS_MAX))


def _reported_ratios(history: Sequence[MessageWithParts]) -> Iterator[tuple[str, float]]:
    """What models have told, the latest first. What was known at a compaction stands in its request."""
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
    """What the last answer and its request took, by the provider's own count; 0 when nobody told since the
    last compaction.
    """
    last = _last_counted(history)
    return 0 if last is None else _total(last.tokens)


def _last_counted(history: Sequence[MessageWithParts]) -> AssistantMessage | None:
    """The last answer that somebody counted, if it came after the last compaction; a summary is no answer."""
    for message in reversed(history):
        info = message.info
        if model_view.is_finished_summary(message):
            return None
        if isinstance(info, AssistantMessage) and not info.summary and _total(info.tokens):
            return info
    return None


def floor_tokens(history: Sequence[MessageWithParts], model: Model) -> int:
    """What this model counted where a compaction had just been made, or could not help: no other one will
    lower it either. 0 when it has counted nothing since.
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
    """Whether what was last counted says more than what no compaction could lower to the limit."""
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
    """Why a request of so many characters needs a compaction before it; None when it does not.

    Without `usage`: by its own length alone.
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
    """Why the next request needs a compaction before it; None when it does not.

    What another model counted says nothing about this one's room.
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
    """Whether there are more messages than the person wants."""
    return context_limits.max_messages is not None and messages > max(
        context_limits.max_messages, MESSAGES_MIN
    )


def attempts(history: Sequence[MessageWithParts]) -> int:
    """How often compaction was tried since an answer last came: the records tell, so a restart knows it."""
    for message in reversed(history):
        info = message.info
        if (part := model_view.compaction_of(message)) is not None:
            return part.attempt or 0  # One by hand does not count.
        if isinstance(info, UserMessage) and not model_view.is_continuing(message):
            break  # The person has spoken since.
        if isinstance(info, AssistantMessage) and _answers(info, message):
            break
    return 0


def _answers(info: AssistantMessage, message: MessageWithParts) -> bool:
    """Whether the provider took the request. One that found it too long leaves a message with nothing in it,
    which was broken off.
    """
    if info.summary or info.error is not None or not info.finish:
        return False
    said = any(isinstance(part, TextPart | ReasoningPart | ToolPart) for part in message.parts)
    return said or info.finish != work.BROKEN_OFF
