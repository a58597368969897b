"""Whether a request extends the one before it in its epoch, and if not, why: law 7. Pure.

Each step keeps the names of the blocks that it added, so that the whole request before can be named from the
history alone, after a restart and in a fork too.
"""

from collections.abc import Sequence
from operator import eq
from typing import Final

from msgspec.structs import replace

from holdfast.schema.message import AssistantMessage, UserMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.output_format import JsonSchemaFormat, OutputFormat
from holdfast.schema.part import StepPrefix, StepStartPart

FAULT: Final = "fault"
"""The reason of a prefix that moved without one."""


class Before:
    """The request before, in this epoch: the names of its blocks, and the answer that it got."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.answer: AssistantMessage | None = None


def before(
    history: Sequence[MessageWithParts], epoch: str, *, sent: tuple[str, list[str]] | None = None
) -> Before:
    """The last request of the epoch that the history tells of.

    `sent` is what this process remembers of it: the answer's id, and the names of the blocks.
    """
    if sent is not None and (known := _remembered(history, epoch, *sent)) is not None:
        return known
    found = Before()
    for message in history:
        for part in message.parts:
            if isinstance(part, StepStartPart) and part.prefix is not None and part.prefix.epoch == epoch:
                del found.blocks[part.prefix.kept :]
                found.blocks += part.prefix.blocks
                assert isinstance(message.info, AssistantMessage)
                found.answer = message.info
    return found


def _remembered(
    history: Sequence[MessageWithParts], epoch: str, answer: str, blocks: list[str]
) -> Before | None:
    """What is remembered, if the last answer of the history is the one that it belongs to."""
    for message in reversed(history):
        steps = [part for part in message.parts if isinstance(part, StepStartPart)]
        if not steps:
            continue
        prefix = steps[-1].prefix
        if message.info.id != answer or prefix is None or prefix.epoch != epoch:
            return None
        assert isinstance(message.info, AssistantMessage)
        found = Before()
        found.blocks, found.answer = list(blocks), message.info
        return found
    return None


def step(epoch: str, last: Before, blocks: Sequence[str], causes: Sequence[str], *, chars: int) -> StepPrefix:
    """What the step keeps. `causes` are the reasons known for a prefix that may have moved."""
    kept = _common(last.blocks, blocks)
    added = StepPrefix(epoch=epoch, kept=kept, blocks=list(blocks[kept:]), chars=chars)
    if kept == len(last.blocks):
        return added
    return replace(added, moved=causes[0] if causes else FAULT, block=kept)


def causes(
    last: Before, history: Sequence[MessageWithParts], user: UserMessage, *, also: Sequence[str] = ()
) -> list[str]:
    """Why the prefix may differ from that of the request before: what is different now, by name."""
    answer = last.answer
    if answer is None:
        return list(also)
    found = list(also)
    if (answer.provider_id, answer.model_id) != (user.model.provider_id, user.model.model_id):
        found.append("model")
    if answer.agent != user.agent:
        found.append("agent")
    asked = next((each.info for each in reversed(history) if each.info.id == answer.parent_id), None)
    if isinstance(asked, UserMessage) and _form(asked.format) != _form(user.format):
        found.append("output format")
    return found


def _form(given: OutputFormat | None) -> object:
    return given.schema if isinstance(given, JsonSchemaFormat) else None


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(map(eq, one, other))
    return next((index for index, is_same in pairs if not is_same), min(len(one), len(other)))
