"""Provider messages as chat messages. Pure.

One system message stands first: templates of open models refuse a second, so later ones are wrapped but for
OpenAI's own service. A tool's answer is text here, so
media go into a user message behind the answers, introduced by a line. The user's content is a list of items
where the server is known to read one. Elsewhere text alone is a string: DeepSeek and others refuse a list.

What must stay true: without marks, a longer history encodes to an extension of the shorter one, item by item.
So a string never grows and never becomes a list: an update joins a list as an item, and stands behind a
string as a message of its own; and each message leaves one behind (`pieces.py`).
"""

import hashlib
import re
from typing import Any, assert_never

from holdfast.errors import InvariantBroken
from holdfast.provider.request import media as media_of
from holdfast.provider.request import pieces
from holdfast.provider.request.pieces import NO_ANSWER, NO_WORDS, wrapped
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
    User,
)
from holdfast.provider.wire import http_request
from holdfast.provider.wire.openai_chat.dialect import Dialect
from holdfast.provider.wire.openai_role import Role
from holdfast.schema.wire import JsonMap

_MARK = {"type": "ephemeral"}
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_FILLER = "Done."
_ID_LENGTH_MAX = 40
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"

OWN = "openaiCompatible"
"""Under this name a part's metadata keeps what must come back to this wire."""


def build(request: Request, server: Dialect, role: Role | None = None) -> list[JsonMap]:
    """All messages, the system's first. `role`: that of system updates, where the server has one."""
    built = _system(request, server)
    for index, message in enumerate(request.messages):
        marked = index in request.marks.messages
        match message:
            case User(content=content):
                items = [item for part in content if (item := _item(part)) is not None]
                _add_user(built, items or [{"type": "text", "text": NO_WORDS}], server, marked=marked)
            case Assistant(content=content):
                fields = _assistant(content, server)
                _mark(fields, marked=marked)
                built.append(fields)
            case Results():
                _add_results(built, message, server, marked=marked)
            case SystemUpdate(text=text, native=native):
                if index + 1 < len(request.messages) and isinstance(request.messages[index + 1], Results):
                    raise InvariantBroken("a system update stands between tool calls and their results")
                if native and role is not None:
                    built.append({"role": role, "content": text})
                else:
                    _add_update(built, {"type": "text", "text": wrapped(text)}, server)
                _mark(built[-1], marked=marked)
            case _:
                assert_never(message)
    return built


def _system(request: Request, server: Dialect) -> list[JsonMap]:
    texts = [(index, text) for index, text in enumerate(request.system) if text]
    if not texts:
        return []
    if not (server.marks or request.marks.system):
        return [{"role": "system", "content": "\n\n".join(text for _, text in texts)}]
    items: list[JsonMap] = []
    for index, text in texts:
        items.append({"type": "text", "text": text})
        if index in request.marks.system:
            items[-1]["cache_control"] = _MARK
    return [{"role": "system", "content": items}]


def _add_user(built: list[JsonMap], items: list[JsonMap], server: Dialect, *, marked: bool = False) -> None:
    if server.short_ids and built and built[-1]["role"] == "tool":
        built.append({"role": "assistant", "content": _FILLER})
    fields: JsonMap = {"role": "user", "content": items if server.lists else _compact(items)}
    _mark(fields, marked=marked)
    built.append(fields)


def _add_update(built: list[JsonMap], item: JsonMap, server: Dialect) -> None:
    """Append to the items of the user's message before it, else a message of its own."""
    content = built[-1]["content"] if built and built[-1]["role"] == "user" else None
    if isinstance(content, list):
        built[-1] = {"role": "user", "content": [*content, item]}
    else:
        _add_user(built, [item], server)


def _add_results(built: list[JsonMap], message: Results, server: Dialect, *, marked: bool) -> None:
    media: list[JsonMap] = []
    for result in message.content:
        text = "\n".join(part.text for part in result.content if isinstance(part, Text))
        shown = [item for part in result.content if isinstance(part, Media) and (item := _item(part))]
        if shown:
            media += [{"type": "text", "text": f"Attached by the result of {result.name}:"}, *shown]
            text = text or "The result is attached below."
        fields = {"role": "tool", "tool_call_id": _id(result.id, server), "content": _words(text, server)}
        built.append(fields)
    if media:
        _add_user(built, media, server)
    if message.content:
        _mark(built[-1], marked=marked)


def _assistant(content: tuple[Any, ...], server: Dialect) -> JsonMap:
    texts: list[str] = []
    thoughts: list[str] = []
    details: list[Any] = []
    calls: list[JsonMap] = []
    for part in content:
        match part:
            case Text(text=text):
                texts.append(text)
            case Reasoning(text=text):
                thoughts.append(text)
                details += _own(part).get("reasoning_details") or ()
            case ToolCall() if not part.hosted:
                calls.append(_call(part, server))
            case ToolCall() | HostedResult():
                pass  # The wire has no words for what another one's provider did itself.
            case _:
                raise InvariantBroken(f"an assistant message holds {type(part).__name__}")
    carried = bool(server.reasoning_field and any(thoughts)) or bool(server.details and details)
    words = "".join(texts) or (None if calls else "" if carried else NO_ANSWER)
    fields: JsonMap = {"role": "assistant", "content": words and _words(words, server)}
    if calls:
        fields["tool_calls"] = calls
    if server.reasoning_field and (server.always_reasons or any(thoughts)):
        fields[server.reasoning_field] = "".join(thoughts)
    if server.details and details:
        fields["reasoning_details"] = details
    return fields


def _call(part: ToolCall, server: Dialect) -> JsonMap:
    fields: JsonMap = {
        "id": _id(part.id, server),
        "type": "function",
        "function": {"name": part.name, "arguments": http_request.encode(part.input).decode()},
    }
    if (extra := _own(part).get("extra_content")) is not None:
        fields["extra_content"] = extra
    return fields


def _own(part: Reasoning | ToolCall) -> JsonMap:
    own = (part.metadata or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def _item(part: Text | Media) -> JsonMap | None:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text} if text else None
        case Media():
            return _media(part)
        case _:
            assert_never(part)


def _media(part: Media) -> JsonMap:
    content = media_of.inline(part)
    readable = content is not None or part.url.startswith(("https://", "http://"))
    url = part.url if content is None else content.url
    if part.mime.startswith("image/") and readable:
        return {"type": "image_url", "image_url": {"url": url}}
    if part.mime == "application/pdf" and readable:
        return {"type": "file", "file": {"filename": part.filename or "document.pdf", "file_data": url}}
    if part.mime in _AUDIO and content is not None:
        sound = {"data": content.base64, "format": _AUDIO[part.mime]}
        return {"type": "input_audio", "input_audio": sound}
    if part.mime.startswith("text/") and content is not None:
        return {"type": "text", "text": f"{part.filename or 'Attachment'}:\n{content.text()}"}
    return {"type": "text", "text": media_of.absent(part)}


def _compact(items: list[JsonMap]) -> str | list[JsonMap]:
    texts = [item["text"] for item in items if item["type"] == "text"]
    return "\n".join(texts) if len(texts) == len(items) else items


def _words(text: str, server: Dialect) -> str | list[JsonMap]:
    return [{"type": "text", "text": text}] if server.marks and text else text


def _mark(fields: JsonMap, *, marked: bool) -> None:
    if not marked or not fields.get("content"):
        return
    content = fields["content"]
    items = [{"type": "text", "text": content}] if isinstance(content, str) else content
    fields["content"] = [*items[:-1], {**items[-1], "cache_control": _MARK}]


def _id(id: str, server: Dialect) -> str:
    """A call's id as the server takes it. A short one is made from the whole, so that two stay two."""
    if server.short_ids and not re.fullmatch(r"[A-Za-z0-9]{9}", id):
        number = int.from_bytes(hashlib.sha256(id.encode("utf-8", "replace")).digest())
        letters = []
        for _ in range(9):
            number, rest = divmod(number, 36)
            letters.append(_ALPHABET[rest])
        return "".join(letters)
    return pieces.fitted_id(id, length_max=_ID_LENGTH_MAX, plain=server.plain_ids)
