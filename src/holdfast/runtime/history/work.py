"""Questions about the state of the work, as plain functions: is an answer owed, does the work rest. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.runtime.history import model_view
from holdfast.runtime.history.carried import carried_in
from holdfast.schema.file_part import FilePart
from holdfast.schema.message import AssistantMessage, Message, MessageWithParts, SystemMessage, UserMessage
from holdfast.schema.part import Part, ReasoningPart, TextPart, ToolPart
from holdfast.schema.request import PermissionRequest, QuestionRequest, Request
from holdfast.schema.tool_state import ToolError, ToolPending, ToolRunning
from holdfast.tools.execute import STOPPED

BROKEN_OFF: Final = "unknown"
"""The finish of an answer that does not end the work: its stream broke off, or a required part is missing."""


COMMAND: Final = "command"
"""The finish of a message that holds a command of the user's own: the model has no part in it."""


def last_answer(history: Sequence[MessageWithParts]) -> MessageWithParts | None:
    """The latest message of the model."""
    return next((each for each in reversed(history) if isinstance(each.info, AssistantMessage)), None)


def newest_user(history: Sequence[MessageWithParts]) -> MessageWithParts | None:
    """The latest prompt in the model's history that wants a reply."""
    return next(
        (each for each in reversed(history) if isinstance(each.info, UserMessage) and not each.info.no_reply),
        None,
    )


def owes_answer(history: Sequence[MessageWithParts]) -> bool:
    """Whether the model owes an answer: to the user, or to the results of its calls."""
    last = _last_message(history)
    if last is None:
        return False
    if isinstance(last.info, UserMessage):
        return True
    assert isinstance(last.info, AssistantMessage)
    if last.info.error is not None or last.info.structured is not None or _was_stopped(last):
        return False
    # A provider may report `tool-calls` without any call: then nothing is owed.
    return last.info.finish in (None, BROKEN_OFF) or has_calls(last)


def is_unfinished(history: Sequence[MessageWithParts]) -> bool:
    """Whether the work was cut off and no process continues it: its answer is open, or owes more and has no
    call that waits for the user.
    """
    last = _last_message(history)
    if last is None or not isinstance(last.info, AssistantMessage):
        return last is not None
    return last.info.time.completed is None or (not unsettled(last) and owes_answer([last]))


def _is_aside(info: Message) -> bool:
    """Whether a message asks for nothing: a system message, a prompt without reply, a command of the user."""
    match info:
        case UserMessage():
            return bool(info.no_reply)
        case AssistantMessage():
            return info.finish == COMMAND
        case SystemMessage():
            return True


def _was_stopped(message: MessageWithParts) -> bool:
    """Whether the user ended the work with this message, by rejecting a call without a message."""
    return any(
        isinstance(part, ToolPart)
        and isinstance(part.state, ToolError)
        and bool((part.state.metadata or {}).get(STOPPED))
        for part in message.parts
    )


def answer(since: Sequence[MessageWithParts]) -> MessageWithParts | None:
    """The last answer to the prompt that `since` begins with.

    Where several prompts were answered together, the answer's parent is the last of them; answers after an
    automatic compaction still belong to the same work.
    """
    first = since[0].info.id
    if model_view.compaction_of(since[0]) is not None:
        return next((each for each in reversed(since) if _parent(each) == first), None)
    begun: list[str] = []
    works: dict[str, str] = {}
    last: dict[str, MessageWithParts] = {}
    for message in since:
        id = message.info.id
        if begins(message):
            begun.append(id)
        if isinstance(message.info, UserMessage) and begun:
            works[id] = id if begins(message) else begun[-1]
        # An answer to an earlier prompt does not count, and a summary ends no work. A summary that failed
        # does, unless the work continued without it.
        elif _is_aside(message.info):
            continue
        elif (work := works.get(_parent(message) or "")) is not None and not _goes_on(message):
            last[work] = message
    return next((last[id] for id in begun if id in last), None)


def _goes_on(message: MessageWithParts) -> bool:
    info = message.info
    refused = isinstance(info, AssistantMessage) and info.error is not None and info.finish != BROKEN_OFF
    return model_view.is_summary(message) and not refused


def _parent(message: MessageWithParts) -> str | None:
    return message.info.parent_id if isinstance(message.info, AssistantMessage) else None


def rests(history: Sequence[MessageWithParts]) -> bool:
    """Whether the work rests: an answer is owed, and only a prompt or `resume` continues it. The outcome of a
    call is unknown, or a failed compaction ended the work.
    """
    last = _last_message(history)
    gave_up = last is not None and model_view.is_summary(last) and not _goes_on(last)
    return gave_up or is_recoverable(history)


def is_recoverable(history: Sequence[MessageWithParts]) -> bool:
    """Whether the last answer has a call with an unknown outcome, also if a compaction came since."""
    last = _last_message(model_view.conversation(history))
    if last is None or not isinstance(last.info, AssistantMessage):
        return last is not None and model_view.is_continuing(last, model_view.RESTS)
    return any(
        isinstance(part, ToolPart)
        and ((getattr(part.state, "metadata", None) or {}).get("outcome") == "unknown")
        for part in last.parts
    )


def _last_message(history: Sequence[MessageWithParts]) -> MessageWithParts | None:
    return next((each for each in reversed(history) if not _is_aside(each.info)), None)


def has_notice(history: Sequence[MessageWithParts], text: str) -> bool:
    """Whether a system message with this text was written since the latest prompt."""
    for each in reversed(history):
        if isinstance(each.info, SystemMessage) and each.info.text == text:
            return True
        if begins(each):
            return False
    return False


def has_calls(message: MessageWithParts) -> bool:
    """Whether the message has calls of our tools, whatever finish reason the provider gave."""
    return any(
        isinstance(part, ToolPart) and not (part.metadata or {}).get("providerExecuted")
        for part in message.parts
    )


def model_texts(message: MessageWithParts) -> list[str]:
    """The model's texts and reasoning in a message."""
    return [part.text for part in message.parts if isinstance(part, TextPart | ReasoningPart)]


def is_settled(part: object) -> bool:
    """Whether a part is a call that has its result."""
    return isinstance(part, ToolPart) and not isinstance(part.state, ToolPending | ToolRunning)


def unsettled(message: MessageWithParts) -> list[ToolPart]:
    """Calls that are recorded and not settled."""
    return [
        part
        for part in message.parts
        if isinstance(part, ToolPart) and isinstance(part.state, ToolPending | ToolRunning)
    ]


def waiting(message: MessageWithParts, requests: Iterable[Request]) -> dict[str, bool]:
    """The calls of a message that asked the user and have not heard a reply; whether by a question."""
    return {
        request.tool.call_id: isinstance(request, QuestionRequest)
        for request in requests
        if isinstance(request, PermissionRequest | QuestionRequest)
        and request.time.heard is None
        and request.tool is not None
        and request.tool.message_id == message.info.id
    }


def steps_since_prompt(history: Sequence[MessageWithParts]) -> int:
    """How many turns have answered the latest prompt."""
    count = 0
    for each in reversed(history):
        if (carried := carried_in(each)) is not None:
            return count + carried.steps
        if begins(each):
            break
        if isinstance(each.info, AssistantMessage) and not each.info.summary:
            count += 1
    return count


def begins(message: MessageWithParts) -> bool:
    """Whether the message is a prompt that begins work: wants a reply, and neither is a compaction nor
    continues after one.
    """
    return (
        isinstance(message.info, UserMessage)
        and not message.info.no_reply
        and model_view.compaction_of(message) is None
        and not model_view.is_continuing(message)
    )


def prompt_text(message: MessageWithParts) -> str:
    """The user's text in a message, word for word; attachments by name."""
    return "\n".join(text for text in map(user_text, message.parts) if text is not None)


def user_text(part: Part) -> str | None:
    """The user's text in a part; None for a part that only came with it."""
    if isinstance(part, TextPart) and not part.synthetic and not part.ignored and part.text.strip():
        return part.text
    return f"[attached: {part.filename or part.mime}]" if isinstance(part, FilePart) else None
