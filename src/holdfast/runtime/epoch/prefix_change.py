"""Does a request begin with the same blocks as the one before it? If not: which block differs, and why
(design law 7). Pure.

Each step stores the names of the blocks that it added, so that the whole previous request can be named from
the history alone, also after a restart and in a fork.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import eq
from typing import Final

from msgspec.structs import replace

from holdfast.schema.epoch import ContextEpoch, SentRequest
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.output_format import schema_of
from holdfast.schema.part import StepPrefix, StepStartPart

FAULT: Final = "fault"
"""The reason of a prefix that moved without one."""
EDIT: Final = "edit"
PRUNING: Final = "pruning"
QUARANTINE: Final = "quarantined block"

UNKNOWN: Final = ""
"""The name of a block that is stored nowhere any more: it is equal to every block."""

_OF_MESSAGES: Final = frozenset({EDIT, PRUNING, QUARANTINE})
"""Reasons that change nothing before the messages."""
_OF_HEAD: Final = frozenset({"tools", "output format"})
"""Reasons that change only what comes before the messages."""


def requests(history: Iterable[MessageWithParts]) -> list[str]:
    """The epoch of each request in the history, in order."""
    return [
        part.prefix.epoch
        for message in history
        for part in message.parts
        if isinstance(part, StepStartPart) and part.prefix is not None
    ]


def before(
    history: Sequence[MessageWithParts],
    epoch: ContextEpoch,
    *,
    remembered: tuple[str, list[str]] | None = None,
) -> SentRequest | None:
    """The last request of the epoch; None if the history has none.

    `remembered` is what this process knows of it: the answer's id, and the names of the blocks.
    """
    if epoch.sent is not None:
        return epoch.sent
    if remembered is not None and (known := _remembered(history, epoch.id, *remembered)) is not None:
        return known
    found: SentRequest | None = None
    for message, _, names in _named(history, epoch.id):
        found = _sent(history, message, names)
    return found


def _named(
    history: Iterable[MessageWithParts], epoch: str
) -> Iterator[tuple[AssistantMessage, StepStartPart, list[str]]]:
    """Each step of the epoch, with its answer and the names of all blocks of its request."""
    names: list[str] = []
    for message in history:
        for part in message.parts:
            if isinstance(part, StepStartPart) and part.prefix is not None and part.prefix.epoch == epoch:
                # A step that named some of them may have been removed as damaged.
                names = names + [UNKNOWN] * (part.prefix.kept - len(names))
                names[part.prefix.kept :] = part.prefix.blocks
                assert isinstance(message.info, AssistantMessage)
                yield message.info, part, names


def _sent(history: Sequence[MessageWithParts], answer: AssistantMessage, names: Sequence[str]) -> SentRequest:
    asked = next((each.info for each in reversed(history) if each.info.id == answer.parent_id), None)
    return SentRequest(
        blocks=list(names),
        provider_id=answer.provider_id,
        model_id=answer.model_id,
        agent=answer.agent,
        schema=schema_of(asked.format) if isinstance(asked, UserMessage) else None,
    )


def _remembered(
    history: Sequence[MessageWithParts], epoch: str, answer: str, blocks: list[str]
) -> SentRequest | None:
    """What is remembered, if it belongs to the last answer of the history."""
    for message in reversed(history):
        steps = [part for part in message.parts if isinstance(part, StepStartPart)]
        if not steps:
            continue
        prefix = steps[-1].prefix
        if message.info.id != answer or prefix is None or prefix.epoch != epoch:
            return None
        assert isinstance(message.info, AssistantMessage)
        return _sent(history, message.info, blocks)
    return None


def named_whole(
    history: Sequence[MessageWithParts], epoch: str, gone: Collection[str]
) -> list[StepStartPart]:
    """The steps that must name all their blocks, because the step before that names the rest of them is
    removed with `gone`.
    """
    found = []
    hole = False
    for message, part, names in _named(history, epoch):
        if message.id in gone or part.id in gone:
            hole = True
        elif hole:
            assert part.prefix is not None
            found.append(replace(part, prefix=replace(part.prefix, kept=0, blocks=list(names))))
            hole = False
    return found


def step(
    epoch: ContextEpoch,
    last: SentRequest | None,
    blocks: Sequence[str],
    causes: Sequence[str],
    *,
    chars: int,
    head: int,
) -> StepPrefix:
    """What the step stores.

    `causes`: the reasons known for a prefix that may have moved; `head`: how many blocks come before the
    messages.
    """
    sent = [] if last is None else last.blocks
    same = _common(sent, blocks)
    # After a removal the earlier steps do not name them any more.
    kept = 0 if epoch.sent is not None else same
    added = StepPrefix(epoch=epoch.id, kept=kept, blocks=list(blocks[kept:]), chars=chars)
    if same == len(sent):
        return added
    # A reason that cannot have changed this block does not count: it would hide the real one.
    elsewhere = _OF_MESSAGES if same < head else _OF_HEAD
    fitting = [cause for cause in causes if cause not in elsewhere]
    return replace(added, moved=fitting[0] if fitting else FAULT, block=same)


def causes(last: SentRequest | None, user: UserMessage, *, also: Sequence[str] = ()) -> list[str]:
    """The reasons why the prefix may differ from that of the request before."""
    found = list(also)
    if last is None:
        return found
    if (last.provider_id, last.model_id) != (user.model.provider_id, user.model.model_id):
        found.append("model")
    if last.agent != user.agent:
        found.append("agent")
    if last.schema != schema_of(user.format):
        found.append("output format")
    return found


def begins(sent: Sequence[str], blocks: Sequence[str]) -> bool:
    """Whether a request that was sent began with these blocks."""
    return len(sent) >= len(blocks) and _common(sent, blocks) == len(blocks)


def _common(sent: Sequence[str], blocks: Sequence[str]) -> int:
    same: Iterable[bool] = map(eq, sent, blocks)
    if UNKNOWN in sent:
        same = (was in (now, UNKNOWN) for was, now in zip(sent, blocks, strict=False))
    return next((index for index, is_same in enumerate(same) if not is_same), min(len(sent), len(blocks)))
