"""Reads what a provider's refusal speaks of: a kind of file, files at an address, results of tools. Pure.

Only the provider's own words count: a body may repeat the request, and with it everything that stands there.
What must stay true: a word inside a name (`generate_image`, a model, an address) speaks of nothing.
"""

import re
from typing import Final, Literal

from holdfast.errors import ProviderError
from holdfast.provider.catalog.model import Modality

Topic = Modality | Literal["file", "address", "result"]
"""A kind of file; any file; files that the provider loads itself; results of tools."""

_REFUSED: Final = frozenset({400, 413, 415, 422})
_NOT_FOUND: Final = 404
_SERVER: Final = 500


def _word(pattern: str) -> re.Pattern[str]:
    """A word that is no piece of a longer name."""
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE)


_KINDS: Final[dict[Modality, re.Pattern[str]]] = {
    "image": _word(r"(?:input_)?images?(?:_url|_data)?|pictures?|photos?"),
    "pdf": _word(r"pdfs?|documents?"),
    "audio": _word(r"(?:input_)?audio"),
    "video": _word(r"(?:input_)?videos?(?:_url)?"),
}
_FILE: Final = _word(r"media_type|mime(?:_?type)?|base64|attachments?|inline_?data")
_LOADED: Final = _word(r"download(?:ing|ed)?|fetch(?:ing|ed)?")
_RESULT: Final = re.compile(
    r"\b(?:messages|input|contents)[.\[]\d+[\w.\[\]]*"
    r"(?:tool_?result|function_?(?:call_output|response)|['\"`]?\W{1,3}(?:with |of )?role\W{1,4}tool\b)",
    re.IGNORECASE,
)
"""How the wires name the place of a result in a request."""
_TOOLS: Final = re.compile(r"\btools[.\[]\d", re.IGNORECASE)
"""How they name the definition of a tool."""
_NAMES: Final = re.compile(r"https?://\S+|\b(?:function|tool)s? (['\"`]).*?\1", re.IGNORECASE)
_CANNOT: Final = re.compile(
    r"\bnot support|n't support|\bunsupported\b|\bfound that support\b|\bunknown format\b", re.IGNORECASE
)


_VAGUE: Final = frozenset({400, 422})
_NAMED: Final = re.compile(
    r"[`'\"]|[a-z]_[a-z]|\w\[|[a-z]\.\w|^[\w.\[\]]+:|\bparameter\b|\bschema\b", re.IGNORECASE
)
"""How a refusal names a field, a place or a value."""


def topics(error: ProviderError) -> frozenset[Topic]:
    """What the refusal speaks of; nothing where it is none, or speaks of something else."""
    reported = _NAMES.sub(" ", str(error))
    if _TOOLS.search(reported):
        return frozenset()
    kinds: frozenset[Topic] = frozenset(kind for kind, word in _KINDS.items() if word.search(reported))
    if not _refuses(error):
        return kinds if _refuses_kinds(error, reported) else frozenset()
    if _LOADED.search(reported):
        return kinds | {"address"}
    if kinds:
        return kinds
    if _FILE.search(reported):
        return frozenset({"file"})
    return frozenset({"result"}) if _RESULT.search(reported) else frozenset()


def is_vague(error: ProviderError) -> bool:
    """Whether it is a refusal that names nothing at all, so that anything new may be what is refused."""
    if not _refuses(error) or error.status not in _VAGUE or topics(error):
        return False
    reported = str(error).partition(": ")[2]  # Without the provider's name.
    return not (_NAMES.search(reported) or _NAMED.search(reported))


def _refuses(error: ProviderError) -> bool:
    return not error.retryable and error.kind in ("other", "unsupported") and error.status in _REFUSED


def _refuses_kinds(error: ProviderError, reported: str) -> bool:
    """Answers that mostly mean something else: they are refusals where they name a kind of file, and a server
    that failed has to say, until the end, that it cannot read it.
    """
    if error.kind == "content-filter":
        return error.status in _REFUSED
    failed = error.status is not None and (error.status == _NOT_FOUND or error.status >= _SERVER)
    return failed and error.kind == "other" and _CANNOT.search(reported) is not None
