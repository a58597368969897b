"""Provider messages as Messages' blocks. Pure.

The wire's rules: roles alternate, so neighbours of one role are merged; tool results come first in their
message; blank text is refused, except between blocks of signed thinking; thinking may not end a message; a
tool's id has letters, digits, `_` and `-` only. A cache mark sits on the last block of its message that can
carry one.

What must stay true: without marks, a longer history encodes to an extension of the shorter one, block by
block. So each message leaves a block behind (`pieces.py`), and what a message becomes is decided from what
stands before it alone. A native system message must have the model's turn behind it: where the user speaks
instead, because the turn failed, the model's silence is sent as a text.
"""

import re
from typing import assert_never

from holdfast.errors import InvariantBroken
from holdfast.provider.request import media as media_of
from holdfast.provider.request import pieces
from holdfast.provider.request.pieces import NO_ANSWER, NO_WORDS, wrapped
from holdfast.provider.request.request import (
    Assistant,
    HostedResult,
    Media,
    ProviderMessage,
    Reasoning,
    Request,
    Results,
    SystemUpdate,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from holdfast.schema.wire import JsonMap

_MARK = {"type": "ephemeral"}
_THINKING = frozenset({"thinking", "redacted_thinking"})
_ID_LENGTH_MAX = 64
_NATIVE_SYSTEM = re.compile(r"(?:^|[/.])claude-opus-4-8(?:-\d{8})?$")
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

OWN = "anthropic"
"""Under this name a part's metadata keeps what must come back to this wire: signatures, block types."""


def system(request: Request) -> list[JsonMap]:
    """The system blocks."""
    blocks: list[JsonMap] = []
    for index, text in enumerate(request.system):
        if text:
            blocks.append({"type": "text", "text": text})
            if index in request.marks.system:
                blocks[-1]["cache_control"] = _MARK
    return blocks


def build(request: Request) -> list[JsonMap]:
    """The messages, roles alternating."""
    native = _NATIVE_SYSTEM.search(request.model.api_id) is not None
    built: list[JsonMap] = []
    for index, message in enumerate(request.messages):
        role, blocks = _message(message)
        if not blocks:
            continue
        if isinstance(message, SystemUpdate):
            _check_pairing(request.messages, index)
            before = request.messages[index - 1] if index else None
            if native and _native_after(before, built):
                role, blocks = "system", [{"type": "text", "text": message.text}]
        if index in request.marks.messages:
            _mark(blocks)
        _add(built, role, blocks)
    return built


def _add(built: list[JsonMap], role: str, blocks: list[JsonMap]) -> None:
    last = built[-1]["role"] if built else ""
    if last == role:
        built[-1]["content"] += blocks
        return
    if last == "system" and role == "user":
        built.append({"role": "assistant", "content": [{"type": "text", "text": NO_ANSWER}]})
    built.append({"role": role, "content": blocks})


def _message(message: ProviderMessage) -> tuple[str, list[JsonMap]]:
    match message:
        case User(content=content):
            made_blocks = [block for item in content if (block := _user_item(item)) is not None]
            return "user", made_blocks or [{"type": "text", "text": NO_WORDS}]
        case Assistant(content=content):
            signed = any(isinstance(item, Reasoning) and _own(item) for item in content)
            made = (_assistant_item(item, blank=signed) for item in content)
            made_blocks = [block for block in made if block is not None]
            if not made_blocks or made_blocks[-1]["type"] in _THINKING:
                made_blocks.append({"type": "text", "text": NO_ANSWER})
            return "assistant", made_blocks
        case Results(content=results):
            return "user", [_result(result) for result in results]
        case SystemUpdate(text=text):
            return "user", [{"type": "text", "text": wrapped(text)}] if text else []
        case _:
            assert_never(message)


def _user_item(item: Text | Media) -> JsonMap | None:
    match item:
        case Text(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Media():
            return _media(item)
        case _:
            assert_never(item)


def _own(item: Text | Reasoning | ToolCall | HostedResult) -> JsonMap:
    own = (item.metadata or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def _assistant_item(item: Text | Reasoning | ToolCall | HostedResult, *, blank: bool) -> JsonMap | None:
    own = _own(item)
    match item:
        case Text(text=text):
            if not text or not (blank or text.strip()):
                return None
            cited = {"citations": own["citations"]} if own.get("citations") else {}
            return {"type": "text", "text": text, **cited}
        case Reasoning(text=text):
            if data := own.get("redactedData"):
                return {"type": "redacted_thinking", "data": data}
            if signature := own.get("signature"):
                return {"type": "thinking", "thinking": text, "signature": signature}
            return None  # The wire refuses thinking that it did not sign.
        case ToolCall():
            kind = "server_tool_use" if item.hosted else "tool_use"
            caller = {"caller": own["caller"]} if own.get("caller") else {}
            return {"type": kind, "id": tool_id(item.id), "name": item.name, "input": item.input, **caller}
        case HostedResult():
            kind = own.get("type") or f"{item.name}_tool_result"
            caller = {"caller": own["caller"]} if own.get("caller") else {}
            return {"type": kind, "tool_use_id": tool_id(item.id), "content": item.output, **caller}
        case _:
            assert_never(item)


def _result(result: ToolResult) -> JsonMap:
    content = [made for item in result.content if (made := _user_item(item)) is not None]
    block: JsonMap = {"type": "tool_result", "tool_use_id": tool_id(result.id)}
    if content:
        block["content"] = content
    if result.failed:
        block["is_error"] = True
    return block


def _media(item: Media) -> JsonMap:
    content = media_of.inline(item)
    linked = content is None and item.url.startswith(("https://", "http://"))
    if item.mime in _IMAGES or item.mime == "application/pdf":
        kind = "document" if item.mime == "application/pdf" else "image"
        if content is not None:
            source = {"type": "base64", "media_type": item.mime, "data": content.base64}
        elif linked:
            source = {"type": "url", "url": item.url}
        else:
            return {"type": "text", "text": media_of.absent(item)}
        titled = {"title": item.filename} if kind == "document" and item.filename else {}
        return {"type": kind, "source": source, **titled}
    if item.mime.startswith("text/") and content is not None and (text := content.text()).strip():
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return {"type": "document", "source": source, **({"title": item.filename} if item.filename else {})}
    return {"type": "text", "text": media_of.absent(item)}


def tool_id(id: str) -> str:
    """A call's id in the letters that the wire allows."""
    return pieces.fitted_id(id, length_max=_ID_LENGTH_MAX, plain=True)


def _mark(blocks: list[JsonMap]) -> None:
    for block in reversed(blocks):
        if block["type"] not in _THINKING:
            block["cache_control"] = _MARK
            return


def _native_after(before: ProviderMessage | None, built: list[JsonMap]) -> bool:
    """Whether the native role may follow: the user's turn, hosted results, or itself, in one message."""
    if isinstance(before, SystemUpdate):
        return bool(built) and built[-1]["role"] == "system"
    if isinstance(before, Assistant):
        last = before.content[-1] if before.content else None
        return isinstance(last, HostedResult) or (isinstance(last, ToolCall) and last.hosted)
    return isinstance(before, User | Results)


def _check_pairing(history: tuple[ProviderMessage, ...], index: int) -> None:
    after = history[index + 1] if index + 1 < len(history) else None
    if isinstance(after, Results):
        raise InvariantBroken("a system update stands between tool calls and their results; report this")
