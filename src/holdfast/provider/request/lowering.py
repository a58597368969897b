"""Lowers stored history to provider messages: what the model is shown of what happened. Pure.

What must stay true: the result is valid for every wire. Each call of a tool is answered once, right after the
message that made it; no two calls share an id; the first message is the user's; no text is empty. The same
history gives the same messages, and a longer history extends them: nothing here looks ahead.

Which messages belong to the history (compaction, epochs) is decided above; here each is taken in order.

Rules have a number, which an epoch keeps, so that a later version of this file shows what is already sent as
it was. 1: an answer that ended with an error is left out, unless the user stopped it when it had some
content. 2: it is also sent when there is a call of ours in it, since the call may have had its effect.
3: OpenAI's wires may send a Mid-Conversation System Message in a role of its own.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.request import marks, pieces, prefix
from holdfast.provider.request.attachment import attached
from holdfast.provider.request.request import (
    Assistant,
    HostedResult,
    Media,
    ProviderMessage,
    Reasoning,
    Results,
    SystemUpdate,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from holdfast.schema.fault import AbortedFault
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
from holdfast.schema.tool_state import ToolCompleted, ToolError, ToolPending, ToolRunning
from holdfast.schema.wire import JsonMap

RULES: Final = 3
"""The rules of an epoch that begins now."""
FIRST_RULES: Final = 1
"""Those of an epoch that was stored before rules had a number."""
_NATIVE_RULES: Final = 3
_NATIVE_WIRES: Final = frozenset({WireKind.OPENAI_CHAT, WireKind.OPENAI_RESPONSES})

COMPACTION = "What did we do so far?"
SUBTASK = "The following tool was executed by the user"
PRUNED = "[Old tool result content cleared]"
INTERRUPTED = "[Tool execution was interrupted]"
QUARANTINED = "[This result was left out: the provider refused a request with it]"
RESUMED = "[The conversation goes on from here]"

# Kept as files by the client that attached them; their text stands in synthetic parts beside them.
SHOWN_AS_TEXT = ("text/plain", "application/x-directory")


class Lowered:
    """What was made of a history before: one that begins with the same objects is gone on with."""

    def __init__(self) -> None:
        self.made_for: tuple[Model, int] | None = None
        self.lowering: _Lowering | None = None


class _Made(NamedTuple):
    """How far the result went after a message, and the names of calls that the message has used up."""

    end: int
    calls: tuple[str, ...]


def lower(
    history: Sequence[MessageWithParts],
    model: Model,
    *,
    rules: int = RULES,
    known: Lowered | None = None,
) -> tuple[ProviderMessage, ...]:
    """The messages for `model`, by the `rules` of the epoch.

    `known` remembers what was made, for a history that is lowered again and again while it grows.
    """
    if known is None:
        return _Lowering(model, rules).run(history)
    lowering, known.lowering = known.lowering, None
    if lowering is None or known.made_for != (model, rules):
        known.made_for, lowering = (model, rules), _Lowering(model, rules)
    messages = lowering.run(history)
    known.lowering = lowering  # Not where it failed half-way: then it begins again.
    return messages


class _Lowering:
    def __init__(self, model: Model, rules: int) -> None:
        self._model = model
        self._rules = rules
        self._native = rules >= _NATIVE_RULES and model.wire in _NATIVE_WIRES
        self._taken: list[MessageWithParts] = []
        self._made: list[_Made] = []
        self._calls: dict[str, int] = {}
        self._fresh: list[str] = []
        self._messages: list[ProviderMessage] = []

    def run(self, history: Sequence[MessageWithParts]) -> tuple[ProviderMessage, ...]:
        same = prefix.common(self._taken, history)
        self._back_to(same)
        for message in history[same:]:
            self._one(message)
            self._taken.append(message)
            self._made.append(_Made(len(self._messages), tuple(self._fresh)))
            self._fresh = []
        return tuple(self._messages)

    def _back_to(self, count: int) -> None:
        """Undo everything after the first so many messages."""
        for made in self._made[count:]:
            for id in made.calls:
                self._calls[id] -= 1
        del self._messages[self._made[count - 1].end if count else 0 :]
        del self._made[count:], self._taken[count:]

    def _one(self, message: MessageWithParts) -> None:
        match message.info:
            case UserMessage():
                self._user(message.info, message.parts)
            case AssistantMessage():
                if _is_sent(message.info, message.parts, self._rules):
                    self._assistant(message.info, message.parts)
            case SystemMessage():
                self._update(message.info.text)

    def _user(self, info: UserMessage, parts: Sequence[Part]) -> None:
        content = tuple(block for part in parts for block in self._content(part))
        if content:
            self._messages.append(User(content=content))
        if info.system is not None:
            self._update(info.system)

    def _content(self, part: Part) -> Iterable[Text | Media]:
        match part:
            case TextPart():
                if part.text and not part.ignored:
                    yield Text(text=part.text)
            case FilePart():
                if part.mime not in SHOWN_AS_TEXT:
                    yield attached(part, self._model)
            case CompactionPart():
                yield Text(text=COMPACTION)
            case SubtaskPart():
                yield Text(text=SUBTASK)
            case _:
                # An agent that is mentioned comes with a synthetic text; the others are no words of the user.
                return

    def _update(self, text: str) -> None:
        if text.strip():
            self._messages.append(SystemUpdate(text=text, native=self._native))

    def _assistant(self, info: AssistantMessage, parts: Sequence[Part]) -> None:
        same = (info.provider_id, info.model_id) == (self._model.provider_id, self._model.id)
        signed = any(isinstance(part, ReasoningPart) and part.metadata for part in parts) and same
        content: list[Text | Reasoning | ToolCall | HostedResult] = []
        results: list[ToolResult] = []
        for part in parts:
            match part:
                case StepStartPart():
                    self._step(content, results)
                    content, results = [], []
                case TextPart():
                    content.extend(self._spoken(part, same=same, signed=signed))
                case ReasoningPart():
                    content.extend(self._thought(part, same=same))
                case ToolPart():
                    call, answer = self._called(part, same=same)
                    content.append(call)
                    if isinstance(answer, ToolResult):
                        results.append(answer)
                    else:
                        content.append(answer)
                case FilePart():
                    content.append(Text(text=f"[File: {part.filename or part.mime}]"))
                case (
                    AgentPart()
                    | CompactionPart()
                    | PatchPart()
                    | RetryPart()
                    | SnapshotPart()
                    | StepFinishPart()
                    | SubtaskPart()
                ):
                    pass  # Bookkeeping: not of the model.
        self._step(content, results)

    def _step(
        self, content: Sequence[Text | Reasoning | ToolCall | HostedResult], results: Sequence[ToolResult]
    ) -> None:
        """One step of the model, then what our tools answered to it."""
        if not content:
            return
        if not any(isinstance(each, (User, Assistant)) for each in self._messages):
            # A history that was cut may begin with the model, and no provider takes that.
            self._messages.append(User(content=(Text(text=RESUMED),)))
        self._messages.append(Assistant(content=tuple(content)))
        if results:
            self._messages.append(Results(content=tuple(results)))

    def _spoken(self, part: TextPart, *, same: bool, signed: bool) -> Iterable[Text]:
        if part.text and not part.ignored:
            yield Text(text=part.text, metadata=part.metadata if same else None)
        elif signed and not part.ignored:
            # Signed thinking is checked together with what followed it: the block must not vanish.
            yield Text(text=" ", metadata=part.metadata)

    def _thought(self, part: ReasoningPart, *, same: bool) -> Iterable[Text | Reasoning]:
        """Thinking goes back to the model that did it; to another it is plain text."""
        if same:
            if part.text or part.metadata:
                yield Reasoning(text=part.text, metadata=part.metadata)
        elif part.text.strip():
            yield Text(text=part.text)

    def _called(self, part: ToolPart, *, same: bool) -> tuple[ToolCall, ToolResult | HostedResult]:
        hosted = _is_hosted(part)
        id = self._unique(part.call_id)
        # A name that the model made up is kept as it came, and no wire takes it back like that.
        name = pieces.fitted_name(part.tool)
        call = ToolCall(
            id=id,
            name=part.tool if hosted and same else name,
            input=part.state.input,
            hosted=hosted and same,
            metadata=part.metadata if same else None,
        )
        if hosted and same and (exact := _exact(part)) is not None:
            return call, HostedResult(id=id, name=part.tool, output=exact[0], metadata=part.metadata)
        if call.hosted:  # Its result never came: to pair it, it becomes an ordinary call.
            call = ToolCall(id=id, name=name, input=part.state.input)
        content, failed = self._answered(part)
        return call, ToolResult(id=id, name=name, content=content, failed=failed)

    def _answered(self, part: ToolPart) -> tuple[tuple[Text | Media, ...], bool]:
        match part.state:
            case ToolCompleted() as state:
                if marks.is_refused(state, self._model):
                    return (Text(text=QUARANTINED),), False
                if state.time.compacted is not None:
                    return (Text(text=PRUNED),), False
                files = (attached(file, self._model) for file in state.attachments or ())
                words = (Text(text=state.output),) if state.output else ()
                content: tuple[Text | Media, ...] = (*words, *files)
                return content or (Text(text="[No output]"),), False
            case ToolError(metadata=metadata, error=error):
                shown = (metadata or {}).get("output") if (metadata or {}).get("interrupted") else None
                if isinstance(shown, str):
                    return (Text(text=shown or INTERRUPTED),), False
                return (Text(text=error or "[The tool failed]"),), True
            case ToolPending() | ToolRunning():
                return (Text(text=INTERRUPTED),), True

    def _unique(self, id: str) -> str:
        """The call's id, made different when an earlier call has it: no provider takes two of one name."""
        count = self._calls[id] = self._calls.get(id, 0) + 1
        self._fresh.append(id)
        return id if count == 1 else self._unique(f"{id}-{count}")


def _is_sent(info: AssistantMessage, parts: Sequence[Part], rules: int) -> bool:
    """A message that failed is left out, unless the user stopped it when it had already some content, or it
    has a call of ours, which may have had its effect.
    """
    if info.error is None:
        return True
    if isinstance(info.error, AbortedFault):
        return any(not isinstance(part, (StepStartPart, ReasoningPart)) for part in parts)
    return rules > FIRST_RULES and any(isinstance(part, ToolPart) and not _is_hosted(part) for part in parts)


def _is_hosted(part: ToolPart) -> bool:
    return bool((part.metadata or {}).get("providerExecuted"))


def _exact(part: ToolPart) -> tuple[object] | None:
    """What a tool at the provider answered, in the provider's own form, where it was kept."""
    match part.state:
        case ToolCompleted(metadata=metadata) | ToolError(metadata=metadata):
            kept: JsonMap = metadata or {}
            return (kept["hosted"],) if "hosted" in kept else None
        case _:
            return None
