"""Takes secrets out of everything in a provider's failure: messages, headers, bodies.

A `Redactor` knows the secrets of one request: the key, and every header or query value whose name speaks of
one. It removes them in each form in which a server may echo them (plain, JSON-escaped, percent-encoded), and
also what only looks like a credential. What must stay true: it runs over every `ProviderError` that leaves
`stream.py`, wherever the error was made, and a message is shortened here, after its secrets are out.
"""

import base64
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import msgspec

from holdfast.errors import ProviderError

MARK = "[redacted]"

# Of a long message its beginning is shown, and the end that `classify.py` wrote: the status and what to do.
# Between them may stand what was cut when the body was read, and so the beginning of a secret.
_SHOWN_MAX = 400
_OUR_END = re.compile(r" \((?:HTTP \d{3}|inside its stream)\)(?:; [^;]{1,120})?$")

# A name that speaks of a secret, among headers and query parameters.
_SECRET_NAME = re.compile(r"(?i)auth|cookie|secret|token|password|signature|credential|(?:^|[-_])key$|apikey")
# Answers carry these beside harmless names: they are worth keeping when a user looks into a failure.
_KEPT = re.compile(r"(?i)ratelimit|rate-limit")
_CREDENTIAL = re.compile(
    r"""(?ix)
      (?P<bearer>\b(?:Bearer|Basic(?=\s+\S*[\d=]))\s+)[\w.~+/=-]{6,}
    | (?P<query>[?&;](?:key|api[-_]?key|access_token|token)=)[^\s&\#"'<>]+
    | (?P<header>\b(?:authorization|(?:x-|x-goog-)?api-key)"?\s*[:=]\s*"?)(?!\[|Bearer|Basic)[^\s",}&]+
    | \b(?:sk|pk|rk|gsk|xai|AIza)(?:-|_|(?<=AIza))[A-Za-z0-9_-]{16,}"""
)
_LENGTH_MIN = 4  # shorter ones are no secrets, and their letters are everywhere


class Redactor:
    """Knows the secrets of one request."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= _LENGTH_MIN:
                escaped = msgspec.json.encode(secret).decode()[1:-1]
                forms |= {secret, escaped, quote(secret, safe=""), quote_plus(secret), quote(secret)}
        self._forms = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, self._forms))) if forms else None

    def text(self, text: str, *, cut: bool = False) -> str:
        """`text` without secrets. `cut`: its end was cut off, perhaps in the middle of one."""
        if self._known is not None:
            text = self._known.sub(MARK, text)
        if cut:
            text = self._without_beginning(text)
        return _CREDENTIAL.sub(_replaced, text)

    def headers(self, headers: dict[str, str]) -> dict[str, str]:
        """Headers without the values of those whose names speak of a secret."""
        return {
            name: MARK if _SECRET_NAME.search(name) and not _KEPT.search(name) else self.text(value)
            for name, value in headers.items()
        }

    def error(self, error: ProviderError) -> ProviderError:
        """The same error without secrets, in one line."""
        return ProviderError(
            _shortened(self.text(" ".join(str(error).split()))),
            kind=error.kind,
            retryable=error.retryable,
            retry_after_ms=error.retry_after_ms,
            status=error.status,
            headers=None if error.headers is None else self.headers(error.headers),
            body=None if error.body is None else self.text(error.body, cut=True),
        )

    def _without_beginning(self, text: str) -> str:
        """`text` without the beginning of a secret at its end."""
        for form in self._forms:
            for length in range(min(len(form) - 1, len(text)), _LENGTH_MIN - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + MARK
        return text


def of_request(key: str | None, url: str, headers: dict[str, str]) -> Redactor:
    """A redactor for one HTTP request."""
    secrets = [] if key is None else [key]
    secrets += _in_address(url)
    secrets += [value for name, value in parse_qsl(urlsplit(url).query) if _SECRET_NAME.search(name)]
    for name, value in headers.items():
        if _SECRET_NAME.search(name):
            secrets += [value, *value.split()[1:]]  # `Bearer xyz`: the last word alone is the secret
    return Redactor(secrets)


def _in_address(url: str) -> list[str]:
    """The password before a host's name, also as it stands in the header that is made of it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    if not parts.password:
        return []
    name, password = unquote(parts.username or ""), unquote(parts.password)
    basic = base64.b64encode(f"{name}:{password}".encode("utf-8", "replace")).decode()
    return [parts.password, password, basic]


def _shortened(text: str) -> str:
    ours = _OUR_END.search(text)
    end = ours[0] if ours else ""
    words = text.removesuffix(end)
    return text if len(words) <= _SHOWN_MAX else f"{words[:_SHOWN_MAX]}…{end}"


def _replaced(found: re.Match[str]) -> str:
    kept = found["bearer"] or found["query"] or found["header"] or ""
    return kept + MARK
