"""Messages as plain text, for the model that summarises them. Pure.

What must stay true: it contains no media and nothing specific to a provider; no text of the user or a tool
can imitate the headings of the transcript.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.provider.request.lowering import PRUNED, QUARANTINED
from holdfast.schema.file_part import FilePart
from holdfast.schema.message import AssistantMessage, MessageWithParts, SystemMessage, UserMessage
from holdfast.schema.part import (
    AgentPart,
    CompactionPart,
    Part,
    PatchPart,
    ReasoningPart,
    RetryPart,
    SnapshotPart,
    StepFinishPart,
    StepStartPart,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from holdfast.schema.tool_state import ToolCompleted, ToolError

_FRAME: Final = re.compile(r"<(?=/?(?:message|conversation|earlier-summary)\b)")

RESULT_CHARS_MAX: Final = 2_000
REASONING_CHARS_MAX: Final = 1_000
INPUT_CHARS_MAX: Final = 4_000


def pieces(messages: Sequence[MessageWithParts]) -> list[str]:
    """One text for each message that has any."""
    written = (_message(message) for message in messages)
    return [piece for piece in written if piece]


def _message(message: MessageWithParts) -> str:
    if isinstance(message.info, SystemMessage):
        return framed("system", message.info.text)
    who = "person" if isinstance(message.info, UserMessage) else "agent"
    lines = [line for part in message.parts for line in _part(part)]
    if isinstance(message.info, AssistantMessage) and message.info.error is not None:
        lines.append(f"[ended with {message.info.error.__struct_config__.tag}]")
    return framed(who, "\n".join(lines)) if lines else ""


def framed(who: str, text: str) -> str:
    """Text under a heading with its author; lines in it that look like a heading are escaped."""
    inner = _FRAME.sub("<\N{ZERO WIDTH SPACE}", text)
    return f'<message from="{who}">\n{inner}\n</message>'


def _part(part: Part) -> Iterable[str]:
    match part:
        case TextPart():
            if part.text.strip() and not part.ignored:
                yield part.text
        case ReasoningPart():
            if part.text.strip():
                yield f"[thought] {shortened(part.text, REASONING_CHARS_MAX)}"
        case ToolPart():
            yield from _call(part)
        case FilePart():
            yield f"[attached: {part.mime} {part.filename or ''}]".replace(" ]", "]")
        case SubtaskPart():
            yield f"[task for {part.agent}] {part.prompt}"
        case AgentPart():
            yield f"[mentions the agent {part.name}]"
        case PatchPart():
            yield f"[changed files: {', '.join(part.files[:20])}]"
        case CompactionPart() | RetryPart() | SnapshotPart() | StepFinishPart() | StepStartPart():
            return


def _call(part: ToolPart) -> Iterable[str]:
    given = msgspec.json.encode(part.state.input).decode()
    yield f"[call] {part.tool} {shortened(given, INPUT_CHARS_MAX)}"
    match part.state:
        case ToolCompleted() as state:
            yield f"[result] {_result(state)}"
            for file in state.attachments or ():
                yield f"[result attached: {file.mime} {file.filename or ''}]".replace(" ]", "]")
        case ToolError() as state:
            yield f"[failed] {shortened(state.error, RESULT_CHARS_MAX)}"
        case _:
            yield "[no result]"


def _result(state: ToolCompleted) -> str:
    if state.refused is not None:
        return QUARANTINED  # Marked for any model: another one summarises, and another one reads the summary.
    return PRUNED if state.time.compacted is not None else shortened(state.output, RESULT_CHARS_MAX)


def shortened(text: str, chars_max: int) -> str:
    """Beginning and end of a text that is too long."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def chunks(texts: Sequence[str], chars_max: int) -> list[str]:
    """The texts in order, joined into chunks of at most so many characters; a longer one is cut."""
    found: list[str] = []
    current: list[str] = []
    length = 0
    for piece in (each for text in texts for each in _cut(text, chars_max)):
        if current and length + len(piece) + 2 > chars_max:
            found.append("\n\n".join(current))
            current, length = [], 0
        current.append(piece)
        length += len(piece) + 2
    return [*found, "\n\n".join(current)] if current else found


def _cut(text: str, chars_max: int) -> Iterable[str]:
    for begin in range(0, len(text), chars_max):
        yield text[begin : begin + chars_max]
