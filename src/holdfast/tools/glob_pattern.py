"""Globs over paths: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of folders.

A pattern without a slash matches names at any depth; one with a slash is seen from the top of the search.
What must stay true: matching takes no more than the product of both lengths, since a pattern and the names
may come from different authors; so each star takes the first place that fits and does not come back.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final

ALTERNATIVES_MAX: Final = 100

_SIGN = re.compile(r"\\(?P<escaped>.)|\[(?P<not>[!^]?)(?P<set>\]?[^\]/]*)\]|(?P<sign>.)", re.DOTALL)
_IN_SET = re.compile(r"([\[\\^&|~])")
_NAME: Final = r"[^/]+/"


class BadGlob(ValueError):
    """A text is no glob; the message says why in a few words."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path, seen from the top of the search, is meant."""
    wanted = [_translated(each) for each in expanded(pattern)]
    try:
        found = re.compile("|".join(f"(?:{each})" for each in wanted), re.DOTALL)
    except re.error as error:
        raise BadGlob(str(error)) from error
    return lambda path: found.fullmatch(path) is not None


def last_name(pattern: str) -> str | None:
    """A glob for the last name of every path that matches; None where that takes more than a cut."""
    name = pattern.rpartition("/")[2]
    is_whole = name.count("{") == name.count("}") and pattern.count("{") == pattern.count("}")
    # A colon means something to ripgrep where this goes: `include:py` would stand for every file of Python.
    is_plain = "**" not in name and ":" not in name and "\\" not in pattern
    return name if is_whole and name and is_plain else None


def expanded(pattern: str) -> list[str]:
    """The pattern without braces, as several."""
    done: list[str] = []
    left = [pattern]
    while left:
        one = left.pop()
        opened = _opened(one)
        if opened is None:
            done.append(one)
            continue
        head, inner, tail = opened
        left += [f"{head}{each}{tail}" for each in reversed(inner)]
        if len(done) + len(left) > ALTERNATIVES_MAX:
            raise BadGlob(f"its braces stand for more than {ALTERNATIVES_MAX} patterns")
    return done


def _opened(pattern: str) -> tuple[str, list[str], str] | None:
    """The first pair of braces: what is before it, its alternatives, and what is after it."""
    cuts: list[int] = []
    start = at = depth = 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
        elif sign == "{":
            start, depth = (at, 1) if depth == 0 else (start, depth + 1)
            cuts = [at] if depth == 1 else cuts
        elif sign == "," and depth == 1:
            cuts.append(at)
        elif sign == "}" and depth:
            depth -= 1
            if depth == 0:
                cuts.append(at)
                inner = [pattern[a + 1 : b] for a, b in pairwise(cuts)]
                return pattern[:start], inner, pattern[at + 1 :]
        at += 1
    if depth:
        raise BadGlob("a brace is not closed")
    return None


def _translated(pattern: str) -> str:
    """One pattern without braces as a regular expression."""
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if "/" not in pattern:
        names.insert(0, "**")
    runs: list[list[str]] = [[]]
    for name in names:
        if name == "**":
            runs.append([])
        else:
            runs[-1].append(_name(name))
    if len(runs) == 1:
        return "/".join(runs[0])
    first, *middle, last = ["".join(f"{name}/" for name in run) for run in runs]
    between = "".join(f"(?>(?:{_NAME})*?{run})" for run in middle if run)
    return f"{first}{between}(?:{_NAME})*?" + (last[:-1] if last else "[^/]+")


def _name(pattern: str) -> str:
    """The expression of one name in a path."""
    pieces: list[str] = [""]
    for sign in _SIGN.finditer(pattern):
        if sign["sign"] == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif sign["sign"] == "?":
            pieces[-1] += "[^/]"
        elif sign["set"] is not None:
            inner = _IN_SET.sub(r"\\\1", sign["set"])
            pieces[-1] += f"(?!/)[^{inner}]" if sign["not"] else f"(?!/)[{inner}]"
        else:
            pieces[-1] += re.escape(sign["escaped"] or sign["sign"])
    first, *rest = pieces
    if not rest:
        return first
    *between, last = rest
    # The last piece must stand at the end of the name, wherever it is found before.
    inner = "".join(f"(?>[^/]*?{each})" for each in between if each)
    return f"{first}{inner}[^/]*{last}(?=/|\\Z)"
