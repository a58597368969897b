"""Where a request is marked for the provider's prompt cache, and under which key. Pure.

Two kinds of provider: those that cache what is marked (Anthropic and what speaks like it, Bedrock), and those
that cache by themselves and route by a key (OpenAI). The marks are seed 002's: the first two system blocks,
which stay, and the last two messages, which move on. How a mark looks on the wire is the adapter's business.
"""

from msgspec.structs import replace

from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.request import CacheMarks, Request, SystemUpdate
from holdfast.schema.session import Session

_MARKING_PACKAGES = ("@ai-sdk/anthropic", "@ai-sdk/google-vertex/anthropic", "@ai-sdk/alibaba")


def marked(request: Request) -> Request:
    """The request with its cache marks, where its provider wants any."""
    return replace(request, marks=marks(request)) if takes_marks(request.model) else request


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
    """The first two system blocks and the last two messages that are none."""
    said = [index for index, message in enumerate(request.messages) if not isinstance(message, SystemUpdate)]
    system = tuple(range(len(request.system)))[:2]
    return CacheMarks(system=system, messages=tuple(said[-2:]))


def cache_key(session: Session, *, compacted: bool) -> str:
    """The name of the session's prefix. A fork begins with its source's, until a compaction parts them."""
    origin = (session.metadata or {}).get("fork")
    if compacted or not isinstance(origin, dict):
        return session.id
    key = origin.get("cacheKey") or origin.get("sessionID")
    return key if isinstance(key, str) else session.id
