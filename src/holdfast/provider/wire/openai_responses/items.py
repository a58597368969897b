"""Provider messages as input items. Pure.

The wire has no turns but a list of items: a message, a call, its output, a piece of thinking. Summaries of
one piece of thinking come as blocks and go back as one item. Thinking that led to nothing is refused by
the server, and so is thinking that it can neither find nor decrypt: both stay away.

What must stay true: a longer history encodes to an extension of the shorter one, down to the content of an
item. So nothing joins what stood before a message of the model's, not even where that message left nothing.
"""

from typing import assert_never

from holdfast.errors import InvariantBroken
from holdfast.provider.request import media as media_of
from holdfast.provider.request import pieces
from holdfast.provider.request.pieces import NO_WORDS, wrapped
from holdfast.provider.request.request import (
    Assistant,
    HostedResult,
    Media,
    Reasoning,
    Request,
    Results,
    SystemUpdate,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from holdfast.provider.wire import http_request
from holdfast.provider.wire.openai_responses import item_ids
from holdfast.provider.wire.openai_responses.item_ids import Policy
from holdfast.provider.wire.openai_role import Role
from holdfast.schema.wire import JsonMap

_ID_LENGTH_MAX = 64

OWN = "openai"
"""Under this name a part's metadata keeps what must come back to this wire: item ids, encrypted thinking."""


def build(request: Request, role: Role | None = None) -> list[JsonMap]:
    """All items, in order. `role`: that of system updates, where the server has one."""
    ids = item_ids.policy(request)
    built: list[JsonMap] = []
    for index, message in enumerate(request.messages):
        match message:
            case User(content=content):
                sent = [item for part in content if (item := _content(part)) is not None]
                built.append({"role": "user", "content": sent or [{"type": "input_text", "text": NO_WORDS}]})
            case Assistant():
                built += _Answer(ids, len(built)).items(message)
            case Results(content=results):
                built += [_output(result) for result in results]
            case SystemUpdate(text=text, native=native):
                if index + 1 < len(request.messages) and isinstance(request.messages[index + 1], Results):
                    raise InvariantBroken("a system update stands between tool calls and their results")
                if native and role is not None:
                    built.append({"role": role, "content": [{"type": "input_text", "text": text}]})
                    continue
                joined = index > 0 and not isinstance(request.messages[index - 1], Assistant)
                _add_update(built, {"type": "input_text", "text": wrapped(text)}, joined=joined)
            case _:
                assert_never(message)
    return built


def _add_update(built: list[JsonMap], item: JsonMap, *, joined: bool) -> None:
    """Append to the user's input before it, else an input of its own."""
    if joined and built and built[-1].get("role") == "user":
        built[-1] = {"role": "user", "content": [*built[-1]["content"], item]}
    else:
        built.append({"role": "user", "content": [item]})


class _Answer:
    """The items of one message of the model's."""

    def __init__(self, ids: Policy, before: int) -> None:
        self._ids = ids
        self._before = before
        self._items: list[JsonMap] = []
        self._thoughts: dict[str, JsonMap] = {}

    def items(self, message: Assistant) -> list[JsonMap]:
        for part in message.content:
            match part:
                case Text(text=text):
                    if text:
                        self._items.append(self._message(part))
                case Reasoning():
                    self._think(part)
                case ToolCall():
                    if not part.hosted:  # A hosted call and its answer are one item, that of the answer.
                        self._items.append(self._call(part))
                case HostedResult(output=output):
                    if isinstance(output, dict) and output.get("type"):
                        self._items.append(
                            {k: v for k, v in output.items() if k != "id" or self._ids != "never"}
                        )
                case _:
                    assert_never(part)
        kept = [item for item in self._items if item["type"] != "reasoning" or self._readable(item)]
        while kept and kept[-1]["type"] == "reasoning":
            kept.pop()
        return kept

    def _message(self, part: Text) -> JsonMap:
        own = _own(part)
        content: JsonMap
        if own.get("refusal"):
            content = {"type": "refusal", "refusal": part.text}
        else:
            content = {
                "type": "output_text",
                "text": part.text,
                "annotations": own.get("annotations") or [],
            }
        fields: JsonMap = {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [content],
            **self._named("msg", own),
        }
        if own.get("phase"):
            fields["phase"] = own["phase"]
        return fields

    def _think(self, part: Reasoning) -> None:
        own = _own(part)
        name = own.get("itemId")
        if not isinstance(name, str):
            return  # Not this wire's thinking.
        item = self._thoughts.get(name)
        if item is None:
            item = self._thoughts[name] = {"type": "reasoning", "summary": [], **self._named("rs", own)}
            self._items.append(item)
        if part.text and own.get("open"):
            item.setdefault("content", []).append({"type": "reasoning_text", "text": part.text})
        elif part.text:
            item["summary"].append({"type": "summary_text", "text": part.text})
        if encrypted := own.get("reasoningEncryptedContent"):
            item["encrypted_content"] = encrypted

    def _call(self, part: ToolCall) -> JsonMap:
        own = _own(part)
        known = {"id": own["itemId"]} if self._ids != "never" and own.get("itemId") else {}
        return {
            "type": "function_call",
            "call_id": _call_id(part.id),
            "name": part.name,
            "arguments": http_request.encode(part.input).decode(),
            **known,
        }

    def _named(self, kind: str, own: JsonMap) -> JsonMap:
        if self._ids == "never" or not (own.get("itemId") or self._ids == "always"):
            return {}
        return {"id": own.get("itemId") or f"{kind}_{self._before + len(self._items)}"}

    def _readable(self, item: JsonMap) -> bool:
        return bool(item.get("encrypted_content") or item.get("content") or item.get("id"))


def _own(part: Text | Reasoning | ToolCall) -> JsonMap:
    own = (part.metadata or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def _output(result: ToolResult) -> JsonMap:
    """What a tool of ours answered: text alone as text, which every server reads, else as items."""
    if all(isinstance(part, Text) for part in result.content):
        output: object = "\n".join(part.text for part in result.content if isinstance(part, Text))
    else:
        output = [item for part in result.content if (item := _content(part)) is not None]
    return {"type": "function_call_output", "call_id": _call_id(result.id), "output": output}


def _call_id(id: str) -> str:
    return pieces.fitted_id(id, length_max=_ID_LENGTH_MAX)


def _content(part: Text | Media) -> JsonMap | None:
    match part:
        case Text(text=text):
            return {"type": "input_text", "text": text} if text else None
        case Media():
            return _media(part)
        case _:
            assert_never(part)


def _media(part: Media) -> JsonMap:
    content = media_of.inline(part)
    linked = content is None and part.url.startswith(("https://", "http://"))
    url = part.url if content is None else content.url
    if part.mime.startswith("image/") and (content is not None or linked):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    if part.mime == "application/pdf" and linked:
        return {"type": "input_file", "file_url": url}
    if part.mime == "application/pdf" and content is not None:
        return {"type": "input_file", "filename": part.filename or "document.pdf", "file_data": url}
    if part.mime.startswith("text/") and content is not None:
        return {"type": "input_text", "text": f"{part.filename or 'Attachment'}:\n{content.text()}"}
    return {"type": "input_text", "text": media_of.absent(part)}
