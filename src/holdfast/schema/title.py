"""Titles that the host gives. Other programs match on the default ones: the session has no name yet."""

import re
from datetime import UTC, datetime, timedelta

_ROOT = "New session - "
_CHILD = "Child session - "
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
_DEFAULT = re.compile(f"(?:{_ROOT}|{_CHILD}){_ISO}")
# The number is bounded so that a hostile title is only text, not a huge integer.
_FORK = re.compile(r"(.+) \(fork #([0-9]{1,9})\)", re.DOTALL)


def default(created_ms: int, *, child: bool = False) -> str:
    """The title of a session without a name, at the time of its creation."""
    created = _EPOCH + timedelta(milliseconds=created_ms)  # exact, which a division to seconds is not
    when = created.isoformat(timespec="milliseconds").removesuffix("+00:00")
    return f"{_CHILD if child else _ROOT}{when}Z"


def is_default(title: str) -> bool:
    """Whether the session has no name, so that a title may be made for it."""
    return _DEFAULT.fullmatch(title) is not None


def fork(title: str) -> str:
    """The title of a fork: numbered, and counted on when the source is a fork itself."""
    numbered = _FORK.fullmatch(title)
    if numbered is None:
        return f"{title} (fork #1)"
    return f"{numbered[1]} (fork #{int(numbered[2]) + 1})"


def subagent(description: str, agent: str) -> str:
    """The title of a session that a subagent works in."""
    return f"{description} (@{agent} subagent)"
