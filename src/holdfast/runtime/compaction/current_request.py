"""The user's current request, word for word: every prompt that is still being worked on. Pure.

A prompt in between joins the request under way; it does not replace it. A request ends with an answer that
ended the work, with success or without, or with a compaction that could not carry the request and recorded
that.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.runtime.compaction.carry import Wanted
from holdfast.runtime.history import model_view, work
from holdfast.runtime.history.carried import carried_before
from holdfast.schema.fault import ContextOverflowFault
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage


class _Found(NamedTuple):
    messages: list[MessageWithParts]
    owed: bool
    """Whether nothing has ended the work on them."""
    to_the_start: bool
    """Whether nothing has ended any work before them."""


def current(history: Sequence[MessageWithParts]) -> Wanted:
    """The request of a history that begins with the last compaction and its kept tail."""
    before = carried_before(history)
    everything = _found(history)
    since = _found(_since(history)) if before.request else everything
    if not since.messages:
        return Wanted(
            text=before.request,
            system=before.system,
            owed=before.owed and since.owed,
            continued=True,
            messages=everything.messages,
        )
    continued = before.owed and since.to_the_start
    texts = [work.prompt_text(each) for each in since.messages]
    instructions = [each.info.system for each in since.messages if isinstance(each.info, UserMessage)]
    system = [before.system, *instructions] if continued else instructions
    return Wanted(
        text="\n\n".join([before.request, *texts] if continued else texts),
        system="\n\n".join(dict.fromkeys(text for text in system if text)),
        owed=since.owed,
        continued=continued,
        messages=everything.messages if continued else since.messages,
    )


def _since(history: Sequence[MessageWithParts]) -> Sequence[MessageWithParts]:
    """The messages after the request for the last completed compaction; its kept tail comes before."""
    shown = model_view.project(history)
    return history[history.index(shown[0]) + 1 :]


def _found(history: Sequence[MessageWithParts]) -> _Found:
    """The requests at the end of a history, back to where work ended before them."""
    automatic: set[str] = {each.info.id for each in history if _is_automatic(each)}
    found: list[MessageWithParts] = []
    owed = True
    for message in reversed(history):
        if _asks(message):
            found.append(message)
        elif found and (_ends(message) or _gave_up(message, automatic)):
            return _Found(found[::-1], owed, to_the_start=False)
        elif _ends(message):
            owed = False
    return _Found(found[::-1], owed, to_the_start=True)


def _asks(message: MessageWithParts) -> bool:
    """Whether the message is a prompt that wants a reply."""
    info = message.info
    return isinstance(info, UserMessage) and not info.no_reply and bool(work.prompt_text(message))


def _ends(message: MessageWithParts) -> bool:
    """Whether an answer ended the work: one that calls tools, or broke off, does not."""
    info = message.info
    return isinstance(info, AssistantMessage) and not info.summary and not work.owes_answer([message])


def _is_automatic(message: MessageWithParts) -> bool:
    part = model_view.compaction_of(message)
    return part is not None and part.auto


def _gave_up(message: MessageWithParts, automatic: set[str]) -> bool:
    """Whether the work stopped because an automatic compaction could not make the request fit.

    One after which the work continued, with the request unchanged, has another finish.
    """
    info = message.info
    return (
        isinstance(info, AssistantMessage)
        and bool(info.summary)
        and info.finish != work.BROKEN_OFF
        and isinstance(info.error, ContextOverflowFault)
        and info.parent_id in automatic
    )
