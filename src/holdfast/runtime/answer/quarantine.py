"""Quarantine: takes content that a provider refuses out of the model view, so that a broken picture does not
end the session.

The provider names no record of ours. Suspected is the kind of content that the refusal is about
(`provider/wire/refusal.py`), if it came after the last request that was answered; of a refusal that names
nothing, every file that no model has answered a request with. What must stay true: the
store keeps everything, and every other model is shown it; the model sees a line in its place; each content is
taken out once, so that refusals come to an end; what was taken out in vain is shown again when the work ends;
the prefix moves for this named reason, in the commit that makes it move.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.errors import ProviderError
from holdfast.provider.catalog.model import Model
from holdfast.provider.fault import data_of
from holdfast.provider.request import marks
from holdfast.provider.request.attachment import attached, modality
from holdfast.provider.request.marks import Change, Content, Marks
from holdfast.provider.request.request import Media
from holdfast.provider.wire import refusal
from holdfast.provider.wire.refusal import Topic
from holdfast.runtime.answer import ending
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.recorder import Ids
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch import epochs, prefix_change
from holdfast.schema.fault import APIFault
from holdfast.schema.file_part import FilePart
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.part import Part, RetryPart, StepFinishPart, ToolPart
from holdfast.schema.times import Created
from holdfast.schema.tool_state import ToolCompleted
from holdfast.store.batch import Put
from holdfast.store.put import put

MESSAGE_MAX: Final = 200


def suspects(error: ProviderError, history: Sequence[MessageWithParts], model: Model) -> list[Part]:
    """The parts without which a refused request has to be sent, each marked; none if the refusal is about
    something else. Pure.
    """
    if refusal.is_vague(error):
        return _marked(_unanswered(history, None), frozenset({"file"}), model, error)
    topics = refusal.topics(error)
    # For a model that has answered nothing yet, every file is new. Results are text, which any model reads.
    span = _unanswered(history, None if "result" in topics else model)
    if "address" in topics:
        loaded = _marked(span, frozenset({"address"}), model, error)
        return loaded or _marked(span, topics - {"address"}, model, error)
    return _marked(span, topics, model, error)


def _marked(
    history: Sequence[MessageWithParts], topics: frozenset[Topic], model: Model, error: ProviderError
) -> list[Part]:
    name, why = marks.name_of(model), _message_of(error)

    def changed(content: Content) -> Marks | None:
        fits = not marks.is_refused(content, model) and _fits(content, topics, model)
        return {**(content.refused or {}), name: why} if fits else content.refused

    return [part for part in _changed(history, changed) if not _is_pruned(part)]


def _is_pruned(part: Part) -> bool:
    """Whether the result is not sent anyway."""
    return (
        isinstance(part, ToolPart)
        and isinstance(part.state, ToolCompleted)
        and part.state.time.compacted is not None
    )


def _fits(content: Content, topics: frozenset[Topic], model: Model) -> bool:
    if isinstance(content, ToolCompleted):
        return "result" in topics
    if not isinstance(attached(content, model), Media):
        return False
    is_loaded = not content.url.startswith("data:")
    return "file" in topics or modality(content.mime) in topics or ("address" in topics and is_loaded)


def cleared(error: ProviderError, history: Sequence[MessageWithParts], model: Model) -> list[Part]:
    """The parts that were taken out for a refusal with the same text, in vain: without the mark. Pure."""
    mark = (marks.name_of(model), _words_of(_message_of(error)))

    def changed(content: Content) -> Marks | None:
        kept = {name: why for name, why in (content.refused or {}).items() if (name, _words_of(why)) != mark}
        return kept or None

    return _changed(_unanswered(history, model), changed)


def _message_of(error: ProviderError) -> str:
    return " ".join(str(error).split())[:MESSAGE_MAX]


def _words_of(message: str) -> list[str]:
    """A text without numbers and ids: some servers name the request in each refusal."""
    return [word for word in message.split() if not any(map(str.isdigit, word))]


def _unanswered(history: Sequence[MessageWithParts], model: Model | None) -> Sequence[MessageWithParts]:
    """The messages after the last request that this model, or any, has answered, with the calls of that
    answer.

    A summary does not count as an answer.
    """
    for index in range(len(history) - 1, -1, -1):
        info = history[index].info
        if (
            isinstance(info, AssistantMessage)
            and not info.summary
            and (model is None or (info.provider_id, info.model_id) == (model.provider_id, model.id))
            and any(isinstance(part, StepFinishPart) for part in history[index].parts)
        ):
            return history[index:]
    return history


def _changed(history: Sequence[MessageWithParts], change: Change) -> list[Part]:
    parts = ((part, marks.remarked(part, change)) for message in history for part in message.parts)
    return [now for was, now in parts if now is not was]


async def take_out(run: Run, turn: PreparedTurn, message: AssistantMessage, error: ProviderError) -> bool:
    """In one commit: mark the suspected parts, end the refused answer, and inform the user.

    False if nothing is suspected. The answer is still owed.
    """
    found = suspects(error, turn.shown, turn.model)
    epoch = await epochs.current(run)
    if not found or epoch is None:
        return False
    now_ms = run.engine.clock.now_ms()
    line = f"the provider refused {', '.join(_names(found, turn.model))}; the work goes on without it"
    data = replace(data_of(error), message=f"{line} ({error})", is_retryable=True)

    def notice(ids: Ids) -> list[Put]:
        part = RetryPart(
            id=ids.part(),
            session_id=message.session_id,
            message_id=message.id,
            attempt=1,
            error=APIFault(data=data),
            time=Created(created=now_ms),
        )
        return [put(part), *map(put, found), put(because)]

    because = epochs.because(epoch.value, prefix_change.QUARANTINE)
    await ending.end(run, MessageWithParts(message, ()), ending.broken_off(), before=notice)
    run.epoch = None  # Read again at the next boundary.
    status_events.retry(run.engine.feed, run.recorder.session, attempt=1, message=line, next_ms=now_ms)
    run.engine.warn(f"session {turn.session.id}: {line}")
    return True


async def take_back(run: Run, turn: PreparedTurn, error: ProviderError) -> list[Put]:
    """The changes by which content taken out in vain is shown again from the next request on."""
    found = cleared(error, turn.shown, turn.model)
    epoch = await epochs.current(run)
    if not found or epoch is None:
        return []
    because = epochs.because(epoch.value, prefix_change.QUARANTINE)
    run.epoch = None  # Read again at the next boundary.
    return [*map(put, found), put(because)]


def _names(parts: Sequence[Part], model: Model) -> Iterator[str]:
    """How the user knows the content that was taken out."""
    for part in parts:
        if isinstance(part, FilePart):
            yield part.filename or part.mime
        elif isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
            if marks.is_refused(part.state, model):
                yield f"the result of {part.tool}"
                continue
            files = [file for file in part.state.attachments or () if marks.is_refused(file, model)]
            yield from (file.filename or f"{file.mime} from {part.tool}" for file in files)
