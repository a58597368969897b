"""The events of one output item while it comes, by its kind: a message, thinking, a call, a hosted tool.

An item grows by deltas and ends with itself, complete; servers that send no deltas are read from that end.
Thinking comes in blocks (the parts of its summary) and is encrypted as a whole, so what must go back hangs on
the last block.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from holdfast.provider.request import pieces
from holdfast.provider.request.events import (
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCalled,
    ToolFailed,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResulted,
)
from holdfast.provider.wire import http_request
from holdfast.provider.wire.openai_responses.items import OWN
from holdfast.schema.wire import JsonMap

# Tools that run at the provider. Others ending in `_call` would be ours to run, and we offer none of them.
HOSTED = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}
)
_INPUTS = ("action", "queries", "code", "container_id", "server_label", "arguments")


class OutputItem(Protocol):
    """An item that is still coming."""

    def end(self, item: JsonMap) -> list[ProviderEvent]:
        """What its end brings; `item` is the item complete, or empty where the stream broke off."""


class Message:
    """Text of the model's, or its refusal, in one block for each content part."""

    def __init__(self, key: int | str, start: JsonMap, *, ids: bool) -> None:
        self.texts: dict[int, str] = {}
        """The ids of the blocks, by content index."""
        self._key = key
        self._start = start
        self._ids = ids
        self._refused: set[int] = set()
        self._annotations: dict[int, list[Any]] = {}

    def grow(self, index: int, text: str, *, refusal: bool = False) -> Sequence[ProviderEvent]:
        id = self.texts.get(index)
        if id is not None:
            return (TextDelta(id=id, text=text),)
        id = self.texts[index] = f"{self._key}.{index}"
        if refusal:
            self._refused.add(index)
        return (TextStart(id=id), TextDelta(id=id, text=text))

    def annotate(self, index: int, annotation: Any) -> None:
        self._annotations.setdefault(index, []).append(annotation)

    def end(self, item: JsonMap) -> list[ProviderEvent]:
        made: list[ProviderEvent] = []
        for index, part in enumerate(_maps(item.get("content"))):
            text = part.get("text") or part.get("refusal")
            if index not in self.texts and isinstance(text, str) and text:
                made += self.grow(index, text, refusal="refusal" in part)
            if part.get("annotations"):
                self._annotations[index] = part["annotations"]
        for index, id in self.texts.items():
            made.append(TextEnd(id=id, metadata=self._metadata(index, {**self._start, **item})))
        return made

    def _metadata(self, index: int, item: JsonMap) -> JsonMap | None:
        own: JsonMap = {"itemId": item["id"]} if self._ids and item.get("id") else {}
        if item.get("phase"):
            own["phase"] = item["phase"]
        if index in self._refused:
            own["refusal"] = True
        if self._annotations.get(index):
            own["annotations"] = self._annotations[index]
        return {OWN: own} if own else None


class Thought:
    """Thinking: the parts of a summary, or the thinking itself where a server shows it (`open`)."""

    def __init__(self, key: int | str, start: JsonMap) -> None:
        self._key = key
        self._name = str(start.get("id") or f"rs_{key}")
        self._blocks = 0
        self._part: tuple[int, bool] | None = None
        self._id = ""

    def grow(self, index: int, text: str, *, shown: bool = False) -> Sequence[ProviderEvent]:
        if self._part == (index, shown):
            return (ReasoningDelta(id=self._id, text=text),)
        made: list[ProviderEvent] = []
        if self._part is not None:
            made.append(ReasoningEnd(id=self._id, metadata=self._metadata()))
        self._part = (index, shown)
        self._id = f"{self._key}.{self._blocks}"
        self._blocks += 1
        made.append(ReasoningStart(id=self._id, metadata=self._metadata()))
        if text:
            made.append(ReasoningDelta(id=self._id, text=text))
        return made

    def end(self, item: JsonMap) -> list[ProviderEvent]:
        made: list[ProviderEvent] = []
        encrypted = item.get("encrypted_content")
        if self._part is None:
            for shown, name in ((False, "summary"), (True, "content")):
                for index, part in enumerate(_maps(item.get(name))):
                    if isinstance(part.get("text"), str):
                        made += self.grow(index, part["text"], shown=shown)
        if self._part is None and encrypted:
            made += self.grow(0, "")
        if self._part is not None:
            made.append(ReasoningEnd(id=self._id, metadata=self._metadata(encrypted)))
        return made

    def _metadata(self, encrypted: Any = None) -> JsonMap:
        own: JsonMap = {"itemId": self._name}
        if self._part is not None and self._part[1]:
            own["open"] = True
        if encrypted:
            own["reasoningEncryptedContent"] = encrypted
        return {OWN: own}


class Call:
    """A call of one of our tools."""

    def __init__(self, key: int | str, start: JsonMap, *, ids: bool) -> None:
        self.id = str(start.get("call_id") or start.get("id") or f"call_{key}")
        self.final: Any = None
        self._name = str(start.get("name") or "")
        self._ids = ids
        self._item_id = start.get("id")
        self._pieces: list[str] = []

    def begin(self) -> ProviderEvent:
        return ToolInputStart(id=self.id, name=pieces.read_name(self._name))

    def grow(self, text: str) -> Sequence[ProviderEvent]:
        self._pieces.append(text)
        return (ToolInputDelta(id=self.id, text=text),)

    def end(self, item: JsonMap) -> list[ProviderEvent]:
        made: list[ProviderEvent] = []
        text = _text(item.get("arguments") or self.final) or "".join(self._pieces)
        if text and not self._pieces:
            made += self.grow(text)
        input, invalid = pieces.read_input(text)
        return [
            *made,
            ToolInputEnd(id=self.id),
            ToolCalled(
                id=self.id,
                name=pieces.read_name(self._name or item.get("name")),
                input=input,
                invalid=invalid,
                metadata={OWN: {"itemId": self._item_id}} if self._ids and self._item_id else None,
            ),
        ]


class Hosted:
    """A tool that ran at the provider: a call and, in the same item, its answer, kept as it came."""

    def __init__(self, key: int | str, start: JsonMap) -> None:
        self._id = str(start.get("id") or f"hosted_{key}")
        self._name = str(start["type"]).removesuffix("_call")

    def begin(self) -> ProviderEvent:
        return ToolInputStart(id=self._id, name=self._name, hosted=True)

    def end(self, item: JsonMap) -> list[ProviderEvent]:
        input = {name: item[name] for name in _INPUTS if item.get(name) is not None}
        made: list[ProviderEvent] = [
            ToolInputEnd(id=self._id),
            ToolCalled(id=self._id, name=self._name, input=input, hosted=True),
        ]
        if item.get("error") or item.get("status") == "failed":
            error = str(item.get("error") or "the tool failed at the provider")
            made.append(ToolFailed(id=self._id, name=self._name, error=error, output=item))
        elif item:
            made.append(ToolResulted(id=self._id, name=self._name, output=item))
        return made


def _text(arguments: Any) -> str:
    """The arguments as JSON text, as the wire has them; some servers write the object itself."""
    if isinstance(arguments, str):
        return arguments
    return http_request.encode(arguments).decode() if arguments else ""


def _maps(value: Any) -> list[JsonMap]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
