"""Where a request is marked for the provider's prompt cache, and under which key. Pure.

Two kinds of provider: those that cache what is marked (Anthropic and what speaks like it, Bedrock), and those
that cache by themselves and route by a key (OpenAI). How a mark looks on the wire is the adapter's business.

The first kind writes an entry at each mark, and finds an entry at a mark or at most twenty blocks before it.
One turn of tools adds more blocks than that, so nothing is left to the looking back: a request is marked at
its end, and where the requests before it ended, so that each finds the entry of the one before it exactly.
What must stay true: where a request ended follows from the messages alone (there the model's answer begins),
so a fork and a restart mark the same places. A mark below the provider's least size does nothing, and costs
nothing. One that is never read again costs: what is written is dearer than what is only read, so a request
beside a conversation (a title, a summary), which has no key, is not marked.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.request.request import Assistant, CacheMarks, ProviderMessage, Request
from holdfast.schema.session import FORK, Session

MARKS_MAX: Final = 4
"""As many as a provider takes in one request."""

_MARKING_PACKAGES = ("@ai-sdk/anthropic", "@ai-sdk/google-vertex/anthropic", "@ai-sdk/alibaba")


def marked(request: Request) -> Request:
    """The request with its cache marks, where its provider wants any and another will extend it."""
    if request.cache_key is None or not takes_marks(request.model):
        return request
    return replace(request, marks=marks(request))


def takes_marks(model: Model) -> bool:
    """Whether the provider caches what is marked. A gateway that marks by itself is left alone."""
    if model.npm == "@ai-sdk/gateway" or "cache_control" in model.settings.options:
        return False
    if model.wire in (WireKind.ANTHROPIC, WireKind.BEDROCK) or model.npm in _MARKING_PACKAGES:
        return model.wire is not WireKind.BEDROCK or _is_claude(model)
    return model.wire is WireKind.OPENAI_CHAT and _is_claude(model)


def _is_claude(model: Model) -> bool:
    named = f"{model.id} {model.api_id}".lower()
    return "claude" in named or "anthropic" in named


def marks(request: Request) -> CacheMarks:
    """The last system block, which covers the tools and all texts before it, and the last ends of requests.

    This request's end and the one before it would do. Those before them serve when a request in between left
    no entry that this one can use: it failed, or it asked under another choice of tools.
    """
    system = tuple(index for index, text in enumerate(request.system) if text)[-1:]
    return CacheMarks(system=system, messages=_ends(request.messages)[len(system) - MARKS_MAX :])


def _ends(messages: Sequence[ProviderMessage]) -> tuple[int, ...]:
    """Where this request ends, and where those before it did: right before each answer of the model."""
    answers = [isinstance(message, Assistant) for message in messages]
    return tuple(
        index
        for index, is_answer in enumerate(answers)
        if index == len(messages) - 1 or (answers[index + 1] and not is_answer)
    )


def cache_key(session: Session, *, compacted: bool) -> str:
    """The name of the session's prefix. A fork begins with its source's, until a compaction parts them."""
    origin = (session.metadata or {}).get(FORK)
    if compacted or not isinstance(origin, dict):
        return session.id
    key = origin.get("cacheKey") or origin.get("sessionID")
    return key if isinstance(key, str) else session.id
