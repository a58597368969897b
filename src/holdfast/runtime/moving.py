"""Whether a request extends the one before it in its epoch, and if not, why: law 7. Pure.

Each step keeps the names of the blocks that it added, so that the whole request before can be named from the
history alone, after a restart and in a fork too.
"""

from collections.abc import Iterable, Sequence
from operator import eq
from typing import Final

from msgspec.structs import replace

from holdfast.schema.message import AssistantMessage, UserMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.output_format import JsonSchemaFormat, OutputFormat
from holdfast.schema.part import StepPrefix, StepStartPart

FAULT: Final = "fault"
"""The reason of a prefix that moved without one."""
EDIT: Final = "edit"
PRUNING: Final = "pruning"

UNKNOWN: Final = ""
"""The name of a block that is told nowhere any more: it passes for every block."""

_OF_MESSAGES: Final = frozenset({EDIT, PRUNING})
"""Reasons that move nothing before the messages."""
_OF_HEAD: Final = frozenset({"tools", "output format"})
"""Reasons that move what stands before the messages, and nothing else."""


class Before:
    """The request before, in this epoch: the names of its blocks, and the answer that it got."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.answer: AssistantMessage | None = None


def requests(history: Iterable[MessageWithParts]) -> list[str]:
    """The epoch of each request that the history tells of, the first first."""
    return [
        part.prefix.epoch
        for message in history
        for part in message.parts
        if isinstance(part, StepStartPart) and part.prefix is not None
    ]


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
                # The step that named some of them may be gone: a person removed its answer.
                found.blocks += [UNKNOWN] * (part.prefix.kept - len(found.blocks))
                found.blocks[part.prefix.kept :] = part.prefix.blocks
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


def step(
    epoch: str, last: Before, blocks: Sequence[str], causes: Sequence[str], *, chars: int, head: int
) -> StepPrefix:
    """What the step keeps. `causes` are the reasons known for a prefix that may have moved; `head` is how
    many blocks stand before the messages.
    """
    kept = _common(last.blocks, blocks)
    added = StepPrefix(epoch=epoch, kept=kept, blocks=list(blocks[kept:]), chars=chars)
    if kept == len(last.blocks):
        return added
    # A reason that cannot have moved this block is none: it would hide the one that did.
    elsewhere = _OF_MESSAGES if kept < head else _OF_HEAD
    fitting = [cause for cause in causes if cause not in elsewhere]
    return replace(added, moved=fitting[0] if fitting else FAULT, block=kept)


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


def begins(sent: Sequence[str], blocks: Sequence[str]) -> bool:
    """Whether a request that was sent began with these blocks."""
    return len(sent) >= len(blocks) and _common(sent, blocks) == len(blocks)


def _common(sent: Sequence[str], blocks: Sequence[str]) -> int:
    same: Iterable[bool] = map(eq, sent, blocks)
    if UNKNOWN in sent:
        same = (was in (now, UNKNOWN) for was, now in zip(sent, blocks, strict=False))
    return next((index for index, is_same in enumerate(same) if not is_same), min(len(sent), len(blocks)))
