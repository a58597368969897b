"""One request to a model, in words of no wire. Lowering makes it, an adapter encodes it.

What must stay true: everything here is a value, in send order. Cache marks stand beside the blocks (`marks`),
never inside them: law 7 compares the blocks, and a mark moves with every turn.
"""

from typing import Any, Literal

import msgspec

from holdfast.provider.catalog.model import Model
from holdfast.schema.wire import JsonMap


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a request."""


class Text(Value, frozen=True, kw_only=True, tag="text"):
    """`metadata` is the provider's own (a signature, an id), sent back only to the model that made it."""

    text: str
    metadata: JsonMap | None = None


class Media(Value, frozen=True, kw_only=True, tag="media"):
    """An image, a PDF or another file: a `data:` or `https:` address."""

    mime: str
    url: str
    filename: str | None = None


class Reasoning(Value, frozen=True, kw_only=True, tag="reasoning"):
    """Thinking that goes back to the model that did it, with the provider's signature in `metadata`."""

    text: str
    metadata: JsonMap | None = None


class ToolCall(Value, frozen=True, kw_only=True, tag="tool-call"):
    """A call that the model made. `hosted`: the provider ran it; its result stands in the same message."""

    id: str
    name: str
    input: JsonMap
    hosted: bool = False
    metadata: JsonMap | None = None


class HostedResult(Value, frozen=True, kw_only=True, tag="hosted-result"):
    """What a tool that ran at the provider answered, exactly as the provider gave it."""

    id: str
    name: str
    output: Any
    metadata: JsonMap | None = None


class ToolResult(Value, frozen=True, kw_only=True, tag="tool-result"):
    """What one of our tools answered to the call `id`."""

    id: str
    name: str
    content: tuple[Text | Media, ...]
    failed: bool = False


class User(Value, frozen=True, kw_only=True, tag="user"):
    """The user speaks."""

    content: tuple[Text | Media, ...]


class Assistant(Value, frozen=True, kw_only=True, tag="assistant"):
    """The model spoke."""

    content: tuple[Text | Reasoning | ToolCall | HostedResult, ...]


class Results(Value, frozen=True, kw_only=True, tag="results"):
    """Our tools answered the calls of the message before: each of them once, in the order of the calls."""

    content: tuple[ToolResult, ...]


class SystemUpdate(Value, frozen=True, kw_only=True, tag="system-update"):
    """A Mid-Conversation System Message: the native role where the wire has one, else wrapped.

    `native`: the epoch began when OpenAI's wires knew such a role (rules 3 of lowering); in an older one they
    go on wrapping it.
    """

    text: str
    native: bool = False


ProviderMessage = User | Assistant | Results | SystemUpdate


class ToolDefinition(Value, frozen=True, kw_only=True):
    """A tool that the model may call; `input` is a JSON schema."""

    name: str
    description: str
    input: JsonMap


class NamedTool(Value, frozen=True, kw_only=True):
    """The model must call this tool."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | NamedTool


class GenerationControls(Value, frozen=True, kw_only=True):
    """Provider-neutral sampling and output controls (seed 000)."""

    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


class CacheMarks(Value, frozen=True, kw_only=True):
    """Which system blocks and which messages end a prefix worth caching, by index. At most four in all."""

    system: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()


class Request(Value, frozen=True, kw_only=True):
    """A request: first the blocks (tools, system, messages), in send order, then the settings.

    `options` are Model Request Options (provider-semantic: effort, thinking, verbosity …), which the adapter
    translates; `body` and `headers` are compatibility fields that go onto the wire as they are. `cache_key`
    names the prefix for providers that route by it. `session` is sent to gateways for affinity.
    """

    model: Model
    tools: tuple[ToolDefinition, ...] = ()
    system: tuple[str, ...] = ()
    messages: tuple[ProviderMessage, ...]
    tool_choice: ToolChoice = "auto"
    controls: GenerationControls = GenerationControls()
    options: JsonMap = {}
    body: JsonMap = {}
    headers: dict[str, str] = {}
    marks: CacheMarks = CacheMarks()
    cache_key: str | None = None
    session: str | None = None
