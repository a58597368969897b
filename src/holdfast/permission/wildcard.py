"""Wildcards of permission rules: `*` is any run of characters, `?` one; the whole text must match.

Nothing is aware of path segments: `*.env` matches `a/b/.env`. A pattern that ends in ` *` also matches
without arguments: `git status *` matches `git status`. What must stay true: matching is linear in practice
and never exponential, since patterns come from untrusted files.
"""

from functools import lru_cache

_SHORT = 200


def match(text: str, pattern: str) -> bool:
    """Whether the pattern matches the whole text. Backslashes count as slashes."""
    # The same few rules are asked about the same few names at every turn; long texts are not kept.
    return (_known if len(text) + len(pattern) < _SHORT else _match)(text, pattern)


def _match(text: str, pattern: str) -> bool:
    text, pattern = text.replace("\\", "/"), pattern.replace("\\", "/")
    if pattern == "*":
        return True
    if pattern.endswith(" *") and _matches(text, pattern[:-2]):
        return True
    return _matches(text, pattern)


_known = lru_cache(maxsize=4096)(_match)


def _matches(text: str, pattern: str) -> bool:
    """Greedy, with one place to go back to: at worst the product of both lengths."""
    at = here = 0
    star, resume = -1, 0
    while at < len(text):
        if here < len(pattern) and pattern[here] == "*":
            star, resume = here, at
            here += 1
        elif here < len(pattern) and pattern[here] in ("?", text[at]):
            at, here = at + 1, here + 1
        elif star >= 0:
            resume += 1
            at, here = resume, star + 1
        else:
            return False
    return all(sign == "*" for sign in pattern[here:])
