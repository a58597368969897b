"""Whether a request fits its model, what a compaction can make of it, and what cannot shrink. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast import flags
from holdfast.provider import lowering, size
from holdfast.provider.request import Assistant, ProviderMessage, Request, Text, User
from holdfast.runtime import projecting
from holdfast.runtime.boundary import Ready
from holdfast.runtime.compacting import carrying, dividing, measuring, requesting, wording
from holdfast.runtime.compacting.carrying import Carried
from holdfast.runtime.compacting.dividing import Divided
from holdfast.runtime.compacting.measuring import Room, Trigger
from holdfast.schema.fault import ContextOverflowData, ContextOverflowFault
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.todo import Todo

SUMMARY_TOKENS_MAX: Final = 4_096


def is_off(ready: Ready) -> bool:
    """Whether a person wants no compaction that nobody asked for."""
    config = ready.around.loaded.config.compaction
    return flags.enabled(flags.DISABLE_AUTOCOMPACT) or (config is not None and config.auto is False)


def room_of(ready: Ready) -> Room:
    """The room of the turn's model."""
    output = flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX)
    return measuring.room(ready.model, ready.around.loaded.config.compaction, output_tokens_max=output)


def needed(ready: Ready, characters: int) -> Trigger | None:
    """Why the request has to be compacted before it is sent; None when it can go."""
    if is_off(ready):
        return None
    room, history, model = room_of(ready), ready.history, ready.model
    why = measuring.needed(room, history, model, characters=characters)
    if why is None or measuring.needed(room, history, model, characters=characters, usage=False) is not None:
        return why
    # Only what was counted before speaks against a request that fits by its length. Where no compaction could
    # make it shorter, the provider is to judge.
    everything = Divided(projecting.spoken(history), [])
    least = carrying.carry(carrying.carried_before(history), requesting.current(history), everything.head, ())
    return None if useless(ready, everything, least, "", goes_on=True) is not None else why


def divided(
    ready: Ready, spoken: list[MessageWithParts], todos: Sequence[Todo], *, overflowed: bool = False
) -> Divided:
    """Head and tail, such that the tail leaves room for everything that has to be there.

    `overflowed`: the provider found the request too long, so the tail holds no media.
    """
    limits = room_of(ready)
    config = ready.around.loaded.config.compaction
    configured = None if config is None else config.preserve_recent_tokens
    turns = None if config is None else config.tail_turns
    ratio = measuring.ratio(ready.history, ready.model)

    def measure(messages: Sequence[MessageWithParts]) -> int:
        return round(_characters(ready, messages) / ratio)

    wanted = dividing.tail_tokens(limits.usable, configured)
    target = _target(limits)
    if target is not None:
        fixed = round(_fixed(ready) / ratio)
        # The tail gives way to what is carried over: at most what a summary of everything would carry.
        before = carrying.carried_before(ready.history)
        most = carrying.carry(before, requesting.current(ready.history), spoken, todos)
        carried = round(_wire(carrying.text(most)) / ratio)
        wanted = max(0, min(wanted, target - fixed - carried - SUMMARY_TOKENS_MAX))
    found = dividing.divide(
        spoken, measure, tokens_max=wanted, turns_max=turns, messages_max=_messages_max(limits)
    )
    return dividing.without_media(found) if overflowed else found


def _messages_max(limits: Room) -> int:
    """How many messages the tail may have, so that the person's own limit is kept to after it."""
    if limits.max_messages is None:
        return dividing.TAIL_MESSAGES_MAX
    return max(0, min(dividing.TAIL_MESSAGES_MAX, limits.max_messages - measuring.MESSAGES_MIN))


def _target(limits: Room) -> int | None:
    """What the request after the compaction may have at most."""
    known = [each for each in (limits.usable, limits.max_tokens) if each is not None]
    return min(known, default=None)


def _characters(ready: Ready, messages: Sequence[MessageWithParts]) -> int:
    """How long messages are for the model."""
    shown = Request(model=ready.model, messages=lowering.lower(messages, ready.model))
    return size.characters(shown)


def _wire(text: str) -> int:
    """How long a text is in a request."""
    return len(msgspec.json.encode(text))


def _fixed(ready: Ready) -> int:
    """How long the part of the request is that no compaction shrinks."""
    return size.characters(Request(model=ready.model, tools=ready.tools, system=ready.system, messages=()))


def useless(
    ready: Ready, divided: Divided, carried: Carried, summary: str, *, goes_on: bool
) -> ContextOverflowFault | None:
    """Why a compaction with this summary would not help: the request would not fit, or be no shorter.

    `goes_on`: our word to go on stands behind it.
    """
    return _too_long(ready, divided, carried, summary) or _no_shorter(
        ready, divided, carried, summary, goes_on=goes_on
    )


def _no_shorter(
    ready: Ready, divided: Divided, carried: Carried, summary: str, *, goes_on: bool
) -> ContextOverflowFault | None:
    """Why the request would be as long as it was. Where a person wants few messages, fewer are enough."""
    if measuring.is_over(room_of(ready), len(ready.shown)):
        return None
    told = Text(text=lowering.COMPACTION), Text(text=carrying.text(carried))
    view: list[ProviderMessage] = [
        User(content=told),
        Assistant(content=(Text(text=summary),)),
        *lowering.lower(divided.tail, ready.model),
    ]
    if goes_on:
        view.append(User(content=(Text(text=wording.CONTINUE),)))
    before = _characters(ready, ready.shown)
    after = size.characters(Request(model=ready.model, messages=tuple(view)))
    if after < before:
        return None
    ratio = measuring.ratio(ready.history, ready.model)
    return overflow(
        "a compaction would not make the request shorter: the conversation has about "
        f"{round(before / ratio)} tokens, and would have {round(after / ratio)}; "
        f"{items(ready, carried, divided.tail, summary)}"
    )


def _too_long(ready: Ready, divided: Divided, carried: Carried, summary: str) -> ContextOverflowFault | None:
    """Why the request would still be too long, with this summary."""
    target = _target(room_of(ready))
    if target is None:
        return None
    ratio = measuring.ratio(ready.history, ready.model)
    kept = _wire(carrying.text(carried)) + _wire(summary)
    length = _fixed(ready) + kept + _characters(ready, divided.tail)
    if round(length / ratio) <= target:
        return None
    return overflow(
        f"the request cannot be brought under {target} tokens: {items(ready, carried, divided.tail, summary)}"
    )


def items(ready: Ready, carried: Carried, tail: Sequence[MessageWithParts], summary: str = "") -> str:
    """What cannot shrink, in tokens."""
    ratio = measuring.ratio(ready.history, ready.model)
    lengths = {
        "instructions and context": sum(map(len, ready.system)),
        "tools": _fixed(ready) - sum(map(len, ready.system)),
        "current request": _wire(carried.request),
        "carried over": _wire(carrying.text(carried)) - _wire(carried.request),
        "latest messages": _characters(ready, tail) if tail else 0,
        "summary": _wire(summary),
    }
    return ", ".join(f"{name} {round(length / ratio)}" for name, length in lengths.items() if length > 0)


def overflow(message: str) -> ContextOverflowFault:
    return ContextOverflowFault(data=ContextOverflowData(message=message))
