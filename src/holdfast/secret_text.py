"""Hides what has the shape of a secret in a text. Pure."""

import re
from typing import Final

HIDDEN: Final = "…hidden…"
"""What is shown in the place of a secret."""
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abpr]|AKIA|AIza|hf|gsk)[-_]?[A-Za-z0-9_\-]{12,}"
    r"|(?i:bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}"
)
_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")
_IN_QUERY = re.compile(
    r"(?<=[?&])([^=&\s]*(?:key|token|secret|sig|password)[^=&\s]*)=[^&\s#]+", re.IGNORECASE
)


def without_secrets(text: str) -> str:
    """The text without keys that are known by their shape, and without passwords in URLs."""
    text = _IN_URL.sub(f"{HIDDEN}@", _SECRET.sub(HIDDEN, text))
    return _IN_QUERY.sub(lambda found: f"{found[1]}={HIDDEN}", text)
