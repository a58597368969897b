"""Provider messages as Gemini's contents. Pure.

The wire's rules: roles alternate, so neighbours of one role are merged; an empty part is refused; the
responses to one message's calls stand together, in the order of the calls. A signature goes back in the part
that it came with. From the third generation on the first call of a message must have one; a call that was
made elsewhere gets the word with which the wire lets such a call pass.

What must stay true: a longer history encodes to an extension of the shorter one, part by part. So each
message leaves a part behind (`pieces.py`): a message left out would join its neighbours.
"""

from typing import assert_never

from holdfast.errors import InvariantBroken
from holdfast.provider.request import media as media_of
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
from holdfast.provider.wire.gemini import generation
from holdfast.schema.wire import JsonMap

OWN = "google"
"""Under this name a part's metadata keeps what must come back to this wire: signatures, kinds of parts."""

DERIVED = "call_gemini_"
"""How an id begins that the decoder made because the wire had none; it is never sent."""

UNSIGNED = "skip_thought_signature_validator"
"""In the place of a signature: this call was not made by this model."""

CODE = "code_execution"

# What a function's response may hold besides text.
_INSIDE = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"})


def build(request: Request) -> list[JsonMap]:
    """The contents, roles alternating."""
    built: list[JsonMap] = []
    for index, message in enumerate(request.messages):
        after = request.messages[index + 1] if index + 1 < len(request.messages) else None
        if isinstance(message, SystemUpdate) and isinstance(after, Results):
            raise InvariantBroken("a system update stands between tool calls and their results")
        role, parts = _message(message, request)
        if not parts:
            continue
        if built and built[-1]["role"] == role:
            built[-1]["parts"] += parts
        else:
            built.append({"role": role, "parts": parts})
    return built


def _message(message: ProviderMessage, request: Request) -> tuple[str, list[JsonMap]]:
    match message:
        case User(content=content):
            sent = [part for item in content if (part := _item(item)) is not None]
            return "user", sent or [{"text": NO_WORDS}]
        case Assistant(content=content):
            parts = [part for item in content if (part := _spoken(item)) is not None]
            if generation.wants_signatures(request.model):
                _sign(parts)
            return "model", parts or [{"text": NO_ANSWER}]
        case Results(content=results):
            inside = _INSIDE if generation.takes_media_in_results(request.model) else frozenset()
            responses = [_response(result, inside) for result in results]
            return "user", [*responses, *_behind(results, inside)]
        case SystemUpdate(text=text):
            return "user", [{"text": wrapped(text)}] if text else []
        case _:
            assert_never(message)


def _sign(parts: list[JsonMap]) -> None:
    """Only the first call of a message is checked."""
    first = next((part for part in parts if "functionCall" in part), None)
    if first is not None:
        first.setdefault("thoughtSignature", UNSIGNED)


def _item(item: Text | Media) -> JsonMap | None:
    match item:
        case Text(text=text):
            return {"text": text} if text else None
        case Media():
            return _media(item)
        case _:
            assert_never(item)


def _spoken(item: Text | Reasoning | ToolCall | HostedResult) -> JsonMap | None:
    own = (item.metadata or {}).get(OWN)
    own = own if isinstance(own, dict) else {}
    signature = {"thoughtSignature": own["thoughtSignature"]} if own.get("thoughtSignature") else {}
    match item:
        case Text(text=text):
            return {"text": text, **signature} if text else None
        case Reasoning(text=text):
            return {"text": text, "thought": True, **signature} if text or signature else None
        case ToolCall(hosted=True):
            return {own.get("call") or _hosted(item.name)[0]: item.input, **signature}
        case ToolCall():
            return {"functionCall": {**_id(item.id), "name": item.name, "args": item.input}, **signature}
        case HostedResult():
            return {own.get("response") or _hosted(item.name)[1]: item.output}
        case _:
            assert_never(item)


def _hosted(name: str) -> tuple[str, str]:
    """The kinds of part in which a tool at the provider is called, and answers."""
    return ("executableCode", "codeExecutionResult") if name == CODE else ("toolCall", "toolResponse")


def _id(id: str) -> JsonMap:
    return {} if id.startswith(DERIVED) else {"id": id}


def _response(result: ToolResult, inside: frozenset[str]) -> JsonMap:
    text = "\n".join(item.text for item in result.content if isinstance(item, Text))
    held, behind = _media_of(result, inside)
    if not text and (held or behind):
        text = "The result is attached." if held else "The result is attached below."
    fields: JsonMap = {
        **_id(result.id),
        "name": result.name,
        "response": {"error" if result.failed else "output": text},
    }
    if held:
        fields["parts"] = held
    return {"functionResponse": fields}


def _behind(results: tuple[ToolResult, ...], inside: frozenset[str]) -> list[JsonMap]:
    """Media that no response may hold: behind all of them, introduced by a line."""
    fields: list[JsonMap] = []
    for result in results:
        if parts := _media_of(result, inside)[1]:
            fields += [{"text": f"Attached by the result of {result.name}:"}, *parts]
    return fields


def _media_of(result: ToolResult, inside: frozenset[str]) -> tuple[list[JsonMap], list[JsonMap]]:
    """The media of a result: those that stand inside its response, and the others."""
    made = [(item.mime, _media(item)) for item in result.content if isinstance(item, Media)]
    held = [part for mime, part in made if mime in inside and "text" not in part]
    return held, [part for mime, part in made if mime not in inside or "text" in part]


def _media(item: Media) -> JsonMap:
    content = media_of.inline(item)
    if content is not None and item.mime.startswith("text/"):
        return {"text": f"{item.filename or 'Attachment'}:\n{content.text()}"}
    readable = item.mime == "application/pdf" or item.mime.startswith(("image/", "audio/", "video/"))
    if content is not None and readable:
        return {"inlineData": {"mimeType": item.mime, "data": content.base64}}
    if content is None and readable and item.url.startswith(("https://", "http://", "gs://")):
        return {"fileData": {"mimeType": item.mime, "fileUri": item.url}}
    return {"text": media_of.absent(item)}
