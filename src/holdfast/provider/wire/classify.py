"""What a provider's failure means: its kind, whether to try again, and when. Pure.

Two ways in: a response that is no stream (`of_response`), and an error inside a stream (`of_object`). Both
read the shapes that providers use: `{"error": {"type", "code", "message"}}`, flat ones, plain text.
Secrets are taken out by the caller (`redact.py`), since only it knows them; therefore nothing is cut to a
length here: half of a secret would no longer be known for one.

The rules, first match wins: a stated code; context overflow by its wording (unless the text speaks of rate
limits); the HTTP status; the wording. An overflow is never retried; a status of 500 or more always is. Words
do not make a refusal (4xx) retryable: they may be quoted from the request, a tool's name for one.
"""

import re
from typing import Any

import msgspec

from holdfast.errors import ProviderError, ProviderFailure
from holdfast.provider.wire.retry_after import retry_after_ms

BODY_CHARACTERS_MAX = 65_536

# What providers' own codes and types mean. They go first: a 429 may stand for an empty purse.
_CODES: dict[str, ProviderFailure] = {
    "context_length_exceeded": "context-overflow",
    "model_context_window_exceeded": "context-overflow",
    "request_too_large": "context-overflow",
    "insufficient_quota": "quota",
    "usage_not_included": "quota",
    "usage_limit_reached": "quota",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "credits_exhausted": "quota",
    "insufficient_credits": "quota",
    "invalid_prompt": "content-filter",
    "content_filter": "content-filter",
    "content_policy_violation": "content-filter",
    "moderation_blocked": "content-filter",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "permission_denied": "auth",
    "unauthenticated": "auth",
    "rate_limit_error": "rate-limit",
    "rate_limit_exceeded": "rate-limit",
    "too_many_requests": "rate-limit",
    "resource_exhausted": "rate-limit",
    "overloaded_error": "overloaded",
    "server_is_overloaded": "overloaded",
    "overloaded": "overloaded",
    "slow_down": "overloaded",
    "unavailable": "overloaded",
    "engine_overloaded": "overloaded",
    "timeout_error": "timeout",
    "deadline_exceeded": "timeout",
}
_TAG = re.compile(r"/?\w*")
_SILENT = ("script", "style")
"""Elements of a page whose text is none."""
_TRANSIENT_CODES = {"server_error", "api_error", "internal_server_error", "internal", "internal_error"}

# How providers report that a request is too long.
_OVERFLOW = re.compile(
    r"""(?ix)
      prompt\s(?:is\s)?too\slong | input\sis\stoo\slong | context\s(?:is\s)?too\slong
    | too\s(?:large|long)\sfor\s(?:the\s)?model | request\s(?:entity\s)?too\slarge | request_too_large
    | maximum\s(?:context|prompt|model)\s?length | max(?:imum)?\scontext\s(?:size|window)
    | context[\s_](?:length|window|size)(?:\s\w+){0,2}\s(?:exceed|limit|too\ssmall)
    | context[\s_]length[\s_]exceeded
    | exceed(?:s|ed|ing)?\s(?:the\s|this\smodel'?s?\s|its\s|your\s)?(?:\w+\s){0,3}(?:context|token\slimit)
    | exceed(?:s|ed)?\sthe\s(?:maximum|available|model'?s)\s(?:\w+\s){0,3}(?:tokens?|context|length|size)
    | input\stoken\scount.{0,40}exceeds | token\slimit\sexceeded | too\smany\s(?:input\s)?tokens
    | reduce\sthe\slength\sof\sthe\s(?:messages|prompt|input) | number\sof\s(?:input\s)?tokens.{0,40}exceed
    | prompt\shas\s[\d,]+\stokens.{0,60}(?:only|limit|maximum) | larger\sthan\sthe\smaximum.{0,20}context
    | greater\sthan\sthe\scontext\slength | input\slength.{0,40}exceed.{0,40}(?:context|maximum|limit)
    | tokens\sto\skeep.{0,40}context | longer\sthan\sthe\smodel'?s\scontext
    | model_max_prompt_tokens_exceeded
    # A field that holds words, not one that holds an id or a name.
    | \b(?:content|output|text|input|instructions|prompt)(?:\[\d+\])?'?:\sstring\stoo\slong"""
)
_NOT_OVERFLOW = re.compile(
    r"(?i)rate[\s_-]?limit|too\s?many\s?requests|throttl|tokens?\sper\s(?:min|day|hour|sec)|per[\s-]minute"
)
_WORDS: tuple[tuple[ProviderFailure, re.Pattern[str]], ...] = (
    ("auth", re.compile(r"(?i)api[\s_]key (?:is )?(?:not valid|invalid|not found)|invalid api[\s_]key")),
    (
        "quota",
        re.compile(r"(?i)insufficient.{0,12}(?:quota|credit|balance|funds)|credit balance is too low"),
    ),
    ("content-filter", re.compile(r"(?i)content[\s_](?:filter|policy)|usage polic(?:y|ies)|safety system")),
    ("rate-limit", re.compile(r"(?i)rate[\s_-]?limit|too[\s_]?many[\s_]?requests|throttl|exhausted")),
    ("overloaded", re.compile(r"(?i)overload|unavailable|at capacity|high demand|no instances")),
    ("timeout", re.compile(r"(?i)timed?[\s-]?out|deadline exceeded")),
    (
        "connection",
        re.compile(r"(?i)econnre|connection (?:reset|error|refused)|socket hang up|enotfound|\bdns\b"),
    ),
)
# What a refusal may say of itself to be one that passes; single words are not enough.
_LIMITED = re.compile(
    r"(?i)rate[\s_-]?limit(?:s|ed)?\s(?:\w+\s){0,3}(?:reached|exceeded)|too many requests|throttl"
)
_TRANSIENT_WORDS = re.compile(
    r"(?i)\b(?:500|502|503|504|524|529)\b|internal (?:server )?error|server error|bad gateway|try again"
)
_RETRYABLE: frozenset[ProviderFailure] = frozenset(
    {"rate-limit", "overloaded", "timeout", "connection", "stall", "no-finish"}
)
_NEXT: dict[ProviderFailure, str] = {
    "auth": "log in again (`holdfast providers login`) or choose another model",
    "quota": "look at the account's plan and balance, or choose another model",
    "context-overflow": "the conversation must be compacted",
    "content-filter": "change what was asked",
}


def of_response(
    status: int, headers: dict[str, str], body: bytes, *, provider: str, now_ms: int
) -> ProviderError:
    """A response that is no event stream. Header names are in lower case."""
    text = body.decode("utf-8", "replace")[:BODY_CHARACTERS_MAX]
    codes, reported = _read(_parsed(text))
    message = reported or _plain(text)
    kind, retryable = _judge(status, codes, message, empty=not text.strip())
    if status == 404 and provider.startswith("openai"):
        retryable = True  # It answers so for models that are there, now and then.
    return ProviderError(
        _sentence(provider, kind, message or "no reason was given", f"HTTP {status}"),
        kind=kind,
        retryable=retryable,
        retry_after_ms=retry_after_ms(headers, now_ms, body_text=text),
        status=status,
        headers=headers,
        body=text or None,
    )


def of_object(error: Any, *, provider: str) -> ProviderError:
    """An error that came inside a stream, as decoded JSON: the error itself or what encloses it."""
    codes, reported = _read(error)
    body = msgspec.json.encode(error).decode("utf-8", "replace")[:BODY_CHARACTERS_MAX]
    status = next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), None)
    message = reported or _plain(body)
    kind, retryable = _judge(status, codes, message)
    return ProviderError(
        _sentence(provider, kind, message, "inside its stream"), kind=kind, retryable=retryable, body=body
    )


def is_error(value: Any) -> bool:
    """Whether decoded JSON is a provider's error rather than an answer."""
    return isinstance(value, dict) and (bool(value.get("error")) or value.get("type") == "error")


def _judge(
    status: int | None, codes: tuple[str, ...], message: str, *, empty: bool = False
) -> tuple[ProviderFailure, bool]:
    known = next((_CODES[code] for code in codes if code in _CODES), None)
    limits = _NOT_OVERFLOW.search(message) is not None
    if not limits and (status == 413 or (status == 400 and empty) or _OVERFLOW.search(message)):
        # Wording beats a code as general as `invalid_request_error`, which is none of ours.
        known = known if known in {"quota", "auth"} else "context-overflow"
    if known is None:
        known = next((kind for kind, words in _WORDS if words.search(message)), None)
        known = _of_status(status, known, message)
    retryable = (
        known in _RETRYABLE
        or (status is not None and (status >= 500 or status in {408, 409, 425}))
        or bool(_TRANSIENT_CODES.intersection(codes))
        or (known == "other" and status is None and _TRANSIENT_WORDS.search(message) is not None)
    )
    return known, retryable and known not in {"context-overflow", "quota", "auth", "content-filter"}


def _of_status(status: int | None, worded: ProviderFailure | None, message: str) -> ProviderFailure:
    """The kind by status, where a status says more than the words."""
    match status:
        case 401 | 403:
            return worded if worded in {"quota", "content-filter"} else "auth"
        case 402:
            return "quota"
        case 429:
            return worded if worded in {"quota", "overloaded"} else "rate-limit"
        case 503 | 529:
            return worded if worded in {"rate-limit", "quota"} else "overloaded"
        case 408 | 504 | 524:
            return "timeout"
        case int() if 400 <= status < 500:
            if worded in {"auth", "quota", "content-filter"}:
                return worded
            return "rate-limit" if _LIMITED.search(message) else "other"
        case _:
            return worded or "other"


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _read(value: Any) -> tuple[tuple[str, ...], str]:
    """The codes (lower case) and the message of an error, whatever its shape."""
    codes: list[str] = []
    messages: list[str] = []
    todo = [value]
    while todo and len(codes) < 20:
        match todo.pop(0):
            case str(text):
                messages.append(text)
            case list(items):
                todo.extend(items[:3])
            case dict(fields):
                codes += [
                    str(fields[name]).lower()
                    for name in ("code", "type", "status")
                    if isinstance(fields.get(name), str | int)
                ]
                todo.extend(
                    fields[name]
                    for name in ("error", "message", "msg", "detail", "errors")
                    if fields.get(name)
                )
            case _:
                pass
    return tuple(codes), " ".join(next((text for text in messages if text.strip()), "").split())


def _plain(text: str) -> str:
    """Plain text for users: without markup, in one line. Each character is looked at once."""
    first, *rest = text.split("<")
    words, inside = [first], ""
    for piece in rest:
        tag, closed, after = piece.partition(">")
        name = _TAG.match(tag.lower())
        assert name is not None, "the pattern fits every text"
        if inside:
            if name[0] == f"/{inside}":
                inside = ""
                words.append(after)
        elif not closed:
            words.append(f"<{piece}")
        elif name[0] in _SILENT:
            inside = name[0]
        else:
            words.append(after)
    return " ".join(" ".join(words).split())


def _sentence(provider: str, kind: ProviderFailure, message: str, where: str) -> str:
    after = f"; {_NEXT[kind]}" if kind in _NEXT else ""
    return f"{provider}: {message} ({where}){after}"
