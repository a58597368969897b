"""Whether a request fits its model, what a compaction can make of it, and what cannot shrink. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast import flags
from holdfast.provider.request import lowering, size
from holdfast.provider.request.request import Assistant, ProviderMessage, Request, Text, User
from holdfast.runtime.compaction import carry, current_request, divide, wording
from holdfast.runtime.compaction import measure as measuring
from holdfast.runtime.compaction.divide import Divided
from holdfast.runtime.compaction.measure import ContextLimits, Trigger
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.history import model_view
from holdfast.runtime.history.carried import Carried, carried_before
from holdfast.schema.fault import ContextOverflowData, ContextOverflowFault
from holdfast.schema.message import MessageWithParts
from holdfast.schema.session_lists import Todo
from holdfast.workspace.workspace import Workspace

SUMMARY_TOKENS_MAX: Final = 4_096


def is_off(workspace: Workspace) -> bool:
    """Whether the user wants no compaction without a request for it."""
    config = workspace.loaded.config.compaction
    return flags.enabled(flags.DISABLE_AUTOCOMPACT) or (config is not None and config.auto is False)


def limits_of(turn: PreparedTurn) -> ContextLimits:
    """The limits of the turn's model, with the user's own."""
    output = flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX)
    return measuring.context_limits(
        turn.model, turn.workspace.loaded.config.compaction, output_tokens_max=output
    )


def needed(turn: PreparedTurn, characters: int) -> Trigger | None:
    """Why the request has to be compacted before it is sent; None if it can be sent."""
    return called_for(turn, characters) if turn.compacts else None


def called_for(turn: PreparedTurn, characters: int) -> Trigger | None:
    """Why a request of so many characters calls for a compaction, automatic or requested."""
    room, history, model = limits_of(turn), turn.history, turn.model
    why = measuring.needed(room, history, model, characters=characters)
    if why is None or measuring.needed(room, history, model, characters=characters, usage=False) is not None:
        return why
    # The request fits by its length; only an earlier token count says otherwise. If no compaction could make
    # it shorter, or one has not lowered the count, let the provider decide.
    if not measuring.has_grown(history, model, _target(room)):
        return None
    everything = Divided(model_view.conversation(history), [])
    least = carry.carry(carried_before(history), current_request.current(history), everything.head, ())
    return None if useless(turn, everything, least, "", goes_on=True) is not None else why


def fits(turn: PreparedTurn) -> bool:
    """Whether the request fits by its length, whatever was counted."""
    characters = _fixed(turn) + _characters(turn, turn.shown)
    room = limits_of(turn)
    return measuring.needed(room, turn.history, turn.model, characters=characters, usage=False) is None


def divided(
    turn: PreparedTurn,
    conversation: list[MessageWithParts],
    todos: Sequence[Todo],
    *,
    overflowed: bool = False,
) -> Divided:
    """Head and tail, such that the tail leaves room for everything that is required.

    `overflowed`: the provider found the request too long, so the tail holds no media.
    """
    limits = limits_of(turn)
    config = turn.workspace.loaded.config.compaction
    configured = None if config is None else config.preserve_recent_tokens
    turns = None if config is None else config.tail_turns
    ratio = measuring.ratio(turn.history, turn.model)

    def measure(messages: Sequence[MessageWithParts]) -> int:
        return round(_characters(turn, messages) / ratio)

    wanted = divide.tail_tokens(limits.usable, configured)
    target = _target(limits)
    if target is not None:
        fixed = round(_fixed(turn) / ratio)
        # The tail leaves room for what is carried over: at most what a summary of everything would carry.
        before = carried_before(turn.history)
        most = carry.carry(before, current_request.current(turn.history), conversation, todos)
        carried = round(_wire(carry.text(most)) / ratio)
        wanted = max(0, min(wanted, target - fixed - carried - SUMMARY_TOKENS_MAX))
    found = divide.divide(
        conversation, measure, tokens_max=wanted, turns_max=turns, messages_max=_messages_max(limits)
    )
    return divide.without_media(found) if overflowed else found


def _messages_max(limits: ContextLimits) -> int:
    """How many messages the tail may have, so that the user's own limit holds after it."""
    if limits.max_messages is None:
        return divide.TAIL_MESSAGES_MAX
    return max(0, min(divide.TAIL_MESSAGES_MAX, limits.max_messages - measuring.MESSAGES_MIN))


def _target(limits: ContextLimits) -> int | None:
    """The most tokens the request after the compaction may have."""
    known = [each for each in (limits.usable, limits.max_tokens) if each is not None]
    return min(known, default=None)


def _characters(turn: PreparedTurn, messages: Sequence[MessageWithParts]) -> int:
    """The length of messages in a request."""
    shown = Request(model=turn.model, messages=lowering.lower(messages, turn.model))
    return size.characters(shown)


def _wire(text: str) -> int:
    """The length of a text in a request."""
    return len(msgspec.json.encode(text))


def _fixed(turn: PreparedTurn) -> int:
    """The length of the part of the request that no compaction shrinks."""
    return size.characters(Request(model=turn.model, tools=turn.tools, system=turn.system, messages=()))


def useless(
    turn: PreparedTurn, divided: Divided, carried: Carried, summary: str, *, goes_on: bool
) -> ContextOverflowFault | None:
    """Why a compaction with this summary would not help: the request would not fit, or be no shorter.

    `goes_on`: a message of ours that continues the work follows.
    """
    return _too_long(turn, divided, carried, summary) or _no_shorter(
        turn, divided, carried, summary, goes_on=goes_on
    )


def _no_shorter(
    turn: PreparedTurn, divided: Divided, carried: Carried, summary: str, *, goes_on: bool
) -> ContextOverflowFault | None:
    """Why the request would be no shorter. If the user limits the number of messages, fewer are enough."""
    if measuring.is_over(limits_of(turn), len(turn.shown)):
        return None
    opening = Text(text=lowering.COMPACTION), Text(text=carry.text(carried))
    messages: list[ProviderMessage] = [
        User(content=opening),
        Assistant(content=(Text(text=summary),)),
        *lowering.lower(divided.tail, turn.model),
    ]
    if goes_on:
        messages.append(User(content=(Text(text=wording.CONTINUE),)))
    before = _characters(turn, turn.shown)
    after = size.characters(Request(model=turn.model, messages=tuple(messages)))
    if after < before:
        return None
    ratio = measuring.ratio(turn.history, turn.model)
    return overflow(
        "a compaction would not make the request shorter: the conversation has about "
        f"{round(before / ratio)} tokens, and would have {round(after / ratio)}; "
        f"{items(turn, carried, divided.tail, summary)}"
    )


def _too_long(
    turn: PreparedTurn, divided: Divided, carried: Carried, summary: str
) -> ContextOverflowFault | None:
    """Why the request would still be too long, with this summary."""
    target = _target(limits_of(turn))
    if target is None:
        return None
    ratio = measuring.ratio(turn.history, turn.model)
    kept = _wire(carry.text(carried)) + _wire(summary)
    length = _fixed(turn) + kept + _characters(turn, divided.tail)
    if round(length / ratio) <= target:
        return None
    return overflow(
        f"the request cannot be brought under {target} tokens: {items(turn, carried, divided.tail, summary)}"
    )


def items(turn: PreparedTurn, carried: Carried, tail: Sequence[MessageWithParts], summary: str = "") -> str:
    """A list of what cannot shrink, in tokens."""
    ratio = measuring.ratio(turn.history, turn.model)
    lengths = {
        "instructions and context": sum(map(len, turn.system)),
        "tools": _fixed(turn) - sum(map(len, turn.system)),
        "current request": _wire(carried.request),
        "carried over": _wire(carry.text(carried)) - _wire(carried.request),
        "latest messages": _characters(turn, tail) if tail else 0,
        "summary": _wire(summary),
    }
    return ", ".join(f"{name} {round(length / ratio)}" for name, length in lengths.items() if length > 0)


def overflow(message: str) -> ContextOverflowFault:
    return ContextOverflowFault(data=ContextOverflowData(message=message))
