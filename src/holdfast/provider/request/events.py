"""What a provider sends while it streams: the events of the seeds, the same for every wire.

    start  start-step  { reasoning-start reasoning-delta* reasoning-end
                       | text-start text-delta* text-end
                       | tool-input-start tool-input-delta* tool-input-end tool-call
                       | tool-result | tool-error }*          (the last two: tools at the provider)
    finish-step  finish

or, instead of the last line, `error`. Every begun text, reasoning and tool input is ended before
`finish-step`, except when the stream breaks. `id` distinguishes the blocks of one step; for a tool it is the
call's id. Deltas are by far the most frequent, so events are plain untracked structs.
"""

from typing import Any, Literal

import msgspec

from holdfast.errors import ProviderError
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import JsonMap

FinishReason = Literal["stop", "length", "content-filter", "tool-calls", "error", "other", "unknown"]


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that the provider sent."""


class Start(Event, frozen=True, kw_only=True, tag="start"):
    """The provider accepted the request."""


class StepStart(Event, frozen=True, kw_only=True, tag="start-step"):
    """The model begins to answer."""


class ReasoningStart(Event, frozen=True, kw_only=True, tag="reasoning-start"):
    id: str
    metadata: JsonMap | None = None


class ReasoningDelta(Event, frozen=True, kw_only=True, tag="reasoning-delta"):
    id: str
    text: str


class ReasoningEnd(Event, frozen=True, kw_only=True, tag="reasoning-end"):
    """`metadata` replaces what the start brought: it holds what must go back to the model (signatures)."""

    id: str
    metadata: JsonMap | None = None


class TextStart(Event, frozen=True, kw_only=True, tag="text-start"):
    id: str
    metadata: JsonMap | None = None


class TextDelta(Event, frozen=True, kw_only=True, tag="text-delta"):
    id: str
    text: str


class TextEnd(Event, frozen=True, kw_only=True, tag="text-end"):
    id: str
    metadata: JsonMap | None = None


class ToolInputStart(Event, frozen=True, kw_only=True, tag="tool-input-start"):
    id: str
    name: str
    hosted: bool = False


class ToolInputDelta(Event, frozen=True, kw_only=True, tag="tool-input-delta"):
    id: str
    text: str


class ToolInputEnd(Event, frozen=True, kw_only=True, tag="tool-input-end"):
    id: str


class ToolCalled(Event, frozen=True, kw_only=True, tag="tool-call"):
    """A complete call. Input that is no JSON object arrives as `{}` with the text in `invalid`."""

    id: str
    name: str
    input: JsonMap
    invalid: str | None = None
    hosted: bool = False
    metadata: JsonMap | None = None


class ToolResulted(Event, frozen=True, kw_only=True, tag="tool-result"):
    """A tool that ran at the provider answered; `output` is the provider's own value, kept exactly."""

    id: str
    name: str
    output: Any
    metadata: JsonMap | None = None


class ToolFailed(Event, frozen=True, kw_only=True, tag="tool-error"):
    """A tool that ran at the provider failed; `output` is the provider's own value."""

    id: str
    name: str
    error: str
    output: Any = None
    metadata: JsonMap | None = None


class StepFinish(Event, frozen=True, kw_only=True, tag="finish-step"):
    """The model ended its answer. `tokens` are disjoint: input excludes cache, output excludes reasoning.

    `raw_reason` is the provider's own word. `metadata` is the provider's (a response id, a service tier).
    """

    reason: FinishReason
    tokens: Tokens
    raw_reason: str | None = None
    metadata: JsonMap | None = None


class Failed(Event, frozen=True, kw_only=True, tag="error"):
    """The stream failed; nothing follows. What came before it stands."""

    error: ProviderError


class Finish(Event, frozen=True, kw_only=True, tag="finish"):
    """The stream is over."""


ProviderEvent = (
    Start
    | StepStart
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | TextStart
    | TextDelta
    | TextEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolInputEnd
    | ToolCalled
    | ToolResulted
    | ToolFailed
    | StepFinish
    | Failed
    | Finish
)
