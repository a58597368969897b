"""Builds stored history for lowering tests."""

from typing import Any

from holdfast.provider.catalog.model import Model, WireKind
from holdfast.schema import ids, usage
from holdfast.schema.fault import Fault
from holdfast.schema.file_part import FilePart
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import (
    AssistantMessage,
    AssistantPath,
    AssistantTime,
    MessageWithParts,
    SystemMessage,
    UserMessage,
)
from holdfast.schema.model import ModelRef
from holdfast.schema.part import Part, ReasoningPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from holdfast.schema.times import Created, Span
from holdfast.schema.tool_state import Completed, Ended, Started, ToolCompleted, ToolError, ToolRunning
from holdfast.testing.clock import FakeClock

CLAUDE = Model(
    provider_id="anthropic",
    id="claude",
    api_id="claude-1",
    name="Claude",
    wire=WireKind.ANTHROPIC,
    npm="@ai-sdk/anthropic",
    input=frozenset({"text", "image", "pdf"}),
)
GPT = Model(provider_id="openai", id="gpt", api_id="gpt-1", name="GPT", wire=WireKind.OPENAI_CHAT)

SESSION = SessionID("ses_000000000001AAAAAAAAAAAAAA")
MESSAGE = MessageID("msg_000000000001AAAAAAAAAAAAAA")
_MINT = ids.Mint(FakeClock())


def head() -> dict[str, Any]:
    """The head fields of a fresh part."""
    return {"id": PartID(_MINT.ascending("prt")), "session_id": SESSION, "message_id": MESSAGE}


def user(*parts: Part | str, system: str | None = None) -> MessageWithParts:
    """A person's message; a string is a text part."""
    info = UserMessage(
        id=MessageID(_MINT.ascending("msg")),
        session_id=SESSION,
        time=Created(created=1),
        agent="build",
        model=ModelRef(provider_id="anthropic", model_id="claude"),
        system=system,
    )
    return MessageWithParts(info, tuple(text(part) if isinstance(part, str) else part for part in parts))


def assistant(
    *parts: Part | str, error: Fault | None = None, by: tuple[str, str] = ("anthropic", "claude")
) -> MessageWithParts:
    """An answer, by default of `CLAUDE`."""
    info = AssistantMessage(
        id=MessageID(_MINT.ascending("msg")),
        session_id=SESSION,
        time=AssistantTime(created=1, completed=2),
        parent_id=MESSAGE,
        provider_id=by[0],
        model_id=by[1],
        mode="build",
        agent="build",
        path=AssistantPath(cwd="/w", root="/w"),
        cost=0,
        tokens=usage.ZERO,
        error=error,
    )
    return MessageWithParts(info, tuple(text(part) if isinstance(part, str) else part for part in parts))


def system(words: str) -> MessageWithParts:
    """A Mid-Conversation System Message."""
    info = SystemMessage(
        id=MessageID(_MINT.ascending("msg")), session_id=SESSION, time=Created(created=1), text=words
    )
    return MessageWithParts(info, ())


def text(words: str, **fields: Any) -> TextPart:
    """A text part."""
    return TextPart(**head(), text=words, **fields)


def thought(words: str, metadata: dict[str, Any] | None = None) -> ReasoningPart:
    """A reasoning part."""
    return ReasoningPart(**head(), text=words, time=Span(start=1, end=2), metadata=metadata)


def file(mime: str, url: str, filename: str | None = None) -> FilePart:
    """A file part."""
    return FilePart(**head(), mime=mime, url=url, filename=filename)


def step() -> StepStartPart:
    """The beginning of a step."""
    return StepStartPart(**head())


def step_end() -> StepFinishPart:
    """The end of a step."""
    return StepFinishPart(**head(), reason="stop", cost=0, tokens=usage.ZERO)


def done(call: str, output: str, **fields: Any) -> ToolPart:
    """A completed call of the tool `read`."""
    part: dict[str, Any] = {"metadata": fields.pop("part_metadata", None)}
    compacted = fields.pop("compacted", None)
    state = ToolCompleted(
        input={"path": "a"},
        output=output,
        title="a",
        metadata=fields.pop("metadata", {}),
        time=Completed(start=1, end=2, compacted=compacted),
        **fields,
    )
    return ToolPart(**head(), call_id=call, tool="read", state=state, **part)


def failed(call: str, error: str, metadata: dict[str, Any] | None = None) -> ToolPart:
    """A call of `read` that did not succeed."""
    state = ToolError(input={"path": "a"}, error=error, metadata=metadata, time=Ended(start=1, end=2))
    return ToolPart(**head(), call_id=call, tool="read", state=state)


def running(call: str) -> ToolPart:
    """A call of `read` that was never settled."""
    return ToolPart(
        **head(), call_id=call, tool="read", state=ToolRunning(input={"path": "a"}, time=Started(start=1))
    )
