"""Structured output: whether it is still missing, and when to stop asking for it. Pure."""

from typing import Final

from holdfast.runtime.answer.provider_call import Answer
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.schema.fault import Fault, StructuredOutputData, StructuredOutputFault
from holdfast.schema.message import MessageWithParts, SystemMessage
from holdfast.schema.output_format import RETRY_COUNT_DEFAULT, JsonSchemaFormat
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.schema.wire import JsonMap
from holdfast.tools import structured

REMINDER: Final = (
    f"The answer must be given by calling {structured.NAME}, with arguments that fit its schema. Call it now."
)


def output_in(message: MessageWithParts) -> JsonMap | None:
    """The structured output, if a call in the message returned it."""
    given = [
        part.state.input
        for part in message.parts
        if isinstance(part, ToolPart)
        and part.tool == structured.NAME
        and isinstance(part.state, ToolCompleted)
    ]
    return given[-1] if given else None


def is_missing(turn: PreparedTurn, answer: Answer) -> bool:
    """Whether structured output was requested and the model ended without calling any tool."""
    return (
        isinstance(turn.user.format, JsonSchemaFormat)
        and answer.calls.structured_output is None
        and answer.calls.count == 0
    )


def fault(turn: PreparedTurn, answer: Answer) -> Fault | None:
    """Why the work ends without structured output: too many tries, or no step left."""
    form = turn.user.format
    if not isinstance(form, JsonSchemaFormat) or answer.calls.structured_output is not None:
        return None
    tries = _tries_before(turn) + _tried_now(answer)
    most = RETRY_COUNT_DEFAULT if form.retry_count is None else form.retry_count
    if tries <= most and not turn.last_step:
        return None
    message = f"the model did not give an answer of the form that was asked for, in {tries} tries"
    return StructuredOutputFault(data=StructuredOutputData(message=message, retries=max(0, tries - 1)))


def _tried_now(answer: Answer) -> int:
    return answer.calls.structured_tries or (1 if answer.calls.count == 0 else 0)


def _tries_before(turn: PreparedTurn) -> int:
    """Earlier tries for the same prompt: invalid calls, and answers without a call."""
    count = 0
    begun = False
    for each in turn.history:
        begun = begun or each.info.id == turn.user.id
        if not begun:
            continue
        if isinstance(each.info, SystemMessage) and each.info.text == REMINDER:
            count += 1
        count += sum(isinstance(part, ToolPart) and part.tool == structured.NAME for part in each.parts)
    return count
