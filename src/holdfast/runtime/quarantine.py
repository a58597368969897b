"""Takes content out of the model's view that its provider refuses: one broken picture must not end a session.

The provider names no record of ours, so what is suspected is what no request was answered with yet: the files
that came since, of the kind that the refusal speaks of; where there are none, the results of tools.

What must stay true: the store keeps everything; the model sees a line in its place; each part is taken out
once, so that refusals come to an end; the prefix moves for this reason, by name.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.errors import ProviderError
from holdfast.provider.attachment import attached, modality
from holdfast.provider.catalog.model import Model
from holdfast.provider.lowering import REFUSED
from holdfast.provider.request import Media
from holdfast.runtime import announcing, epochs, moving
from holdfast.runtime.boundary import Ready
from holdfast.runtime.faults import fault_of
from holdfast.runtime.recorder import message_put, part_put
from holdfast.runtime.run import Run
from holdfast.schema.fault import APIFault
from holdfast.schema.file_part import FilePart
from holdfast.schema.ids import PartID
from holdfast.schema.message import AssistantMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.part import Part, RetryPart, StepFinishPart, ToolPart
from holdfast.schema.times import Created
from holdfast.schema.tool_state import ToolCompleted

WORDS_MAX: Final = 200
_STATUS: Final = frozenset({400, 413, 415, 422})
_KINDS: Final = {
    "image": re.compile(r"image|picture|photo", re.IGNORECASE),
    "pdf": re.compile(r"\bpdf\b|document", re.IGNORECASE),
    "audio": re.compile(r"audio", re.IGNORECASE),
    "video": re.compile(r"video", re.IGNORECASE),
}
_ANY_FILE: Final = re.compile(r"base64|media|mime|attachment|inline_?data", re.IGNORECASE)
_PLACE: Final = re.compile(r"\b(?:messages|input|contents)[.\[]\d+", re.IGNORECASE)
"""How the wires name a place in a request."""


def suspects(error: ProviderError, history: Sequence[MessageWithParts], model: Model) -> list[Part]:
    """What a refused request has to be sent without, each part marked; nothing where the refusal speaks of
    something else. Pure.
    """
    if error.retryable or error.kind not in ("other", "unsupported") or error.status not in _STATUS:
        return []
    said = f"{error} {error.body or ''}"
    why = " ".join(str(error).split())[:WORDS_MAX]
    kinds = {kind for kind, words in _KINDS.items() if words.search(said)}
    unproved = _unproved(history, model)

    def is_suspected(file: FilePart) -> bool:
        is_sent = file.refused is None and isinstance(attached(file, model), Media)
        return is_sent and (not kinds or modality(file.mime) in kinds)

    if kinds or _ANY_FILE.search(said):
        return _without_files(unproved, is_suspected, why) or _without_files(history, is_suspected, why)
    return _without_results(unproved, why) if _PLACE.search(said) else []


def _unproved(history: Sequence[MessageWithParts], model: Model) -> Sequence[MessageWithParts]:
    """What came after the last request that this model has answered; that answer's own calls included."""
    for index in range(len(history) - 1, -1, -1):
        info = history[index].info
        if (
            isinstance(info, AssistantMessage)
            and (info.provider_id, info.model_id) == (model.provider_id, model.id)
            and any(isinstance(part, StepFinishPart) for part in history[index].parts)
        ):
            return history[index:]
    return history


def _without_files(
    history: Sequence[MessageWithParts], is_suspected: Callable[[FilePart], bool], why: str
) -> list[Part]:
    return [marked for part in _parts(history) if (marked := _marked(part, is_suspected, why)) is not part]


def _marked(part: Part, is_suspected: Callable[[FilePart], bool], why: str) -> Part:
    """The part with its suspected files marked; the part itself where it has none."""
    if isinstance(part, FilePart):
        return replace(part, refused=why) if is_suspected(part) else part
    if not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted):
        return part
    files = part.state.attachments or []
    if not any(map(is_suspected, files)):
        return part
    marked = [replace(file, refused=why) if is_suspected(file) else file for file in files]
    return replace(part, state=replace(part.state, attachments=marked))


def _without_results(history: Sequence[MessageWithParts], why: str) -> list[Part]:
    return [
        replace(part, state=replace(part.state, metadata={**part.state.metadata, REFUSED: why}))
        for part in _parts(history)
        if isinstance(part, ToolPart)
        and isinstance(part.state, ToolCompleted)
        and part.state.time.compacted is None
        and REFUSED not in part.state.metadata
    ]


def _parts(history: Sequence[MessageWithParts]) -> Iterator[Part]:
    return (part for message in history for part in message.parts)


async def take_out(run: Run, ready: Ready, message: AssistantMessage, error: ProviderError) -> bool:
    """Mark what the provider may have refused, close the answer that never came, and tell the user; False
    where nothing is suspected. The answer is still owed.
    """
    found = suspects(error, ready.shown, ready.model)
    epoch = await epochs.current(run)
    if not found or epoch is None:
        return False
    now_ms = run.engine.clock.now_ms()
    fault = fault_of(error, ready.model.provider_id)
    assert isinstance(fault, APIFault), "it has a status"
    line = f"the provider refused {', '.join(_names(found))}; the work goes on without it"
    data = replace(fault.data, message=f"{line} ({fault.data.message})", is_retryable=True)

    def make(id: PartID) -> RetryPart:
        return RetryPart(
            id=id,
            session_id=message.session_id,
            message_id=message.id,
            attempt=1,
            error=replace(fault, data=data),
            time=Created(created=now_ms),
        )

    await run.recorder.add_parts(make)
    await epochs.keep_reason(run, epoch, moving.QUARANTINE, *map(part_put, found), message_put(message))
    announcing.retry(run.engine.feed, run.recorder.session, attempt=1, message=line, next_ms=now_ms)
    run.engine.warn(f"session {ready.session.id}: {line}")
    return True


def _names(parts: Sequence[Part]) -> list[str]:
    """What people call the content that was taken out."""
    names = []
    for part in parts:
        if isinstance(part, FilePart):
            names.append(part.filename or part.mime)
        elif isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
            files = [file for file in part.state.attachments or () if file.refused is not None]
            names += [file.filename or f"{file.mime} from {part.tool}" for file in files]
            names += [] if files else [f"the result of {part.tool}"]
    return names
