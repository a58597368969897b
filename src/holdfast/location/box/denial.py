"""Finds in a command's output what the box stopped.

A line that speaks of a refusal counts only with a path that the policy refuses and that the user could have
used: then it would work outside. Of the network the kernel's counter tells. A program that says nothing is
missed, and a file that quotes such a line is taken for it; nothing follows from a finding but words and a
question.
"""

import os
import re
import stat
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from holdfast.location.box.policy import BoxPolicy

Kind = Literal["write", "read", "socket", "network"]
STOPS_MAX: Final = 5
TEXT_MAX: Final = 128 * 1024
"""How much is looked at from the beginning, and from the end."""
_LINE_MAX: Final = 4096

_REFUSAL = re.compile(
    r"read-only file system|permission denied|operation not permitted|device or resource busy|"
    r"\bE(?:ROFS|ACCES|PERM|BUSY)\b|os error (?:1|13|16|30)\b",
    re.IGNORECASE,
)
_READ_ONLY = re.compile(r"read-only file system|\bEROFS\b|os error 30\b", re.IGNORECASE)
# Ordinary work never meets a read-only file system, so its path may stand on a line beside.
_BESIDE = 2
_KERNELS = ("/proc/", "/sys/")
"""Whether the user could write there says nothing about what a program wanted."""
_QUOTED = re.compile(r"'([^'\n]{1,1000})'|\"([^\"\n]{1,1000})\"|`([^`\n]{1,1000})`|‘([^’\n]{1,1000})’")
_WORD = re.compile(r"[^\s:,;()<>\[\]='\"`‘’]{1,1000}")


class Stop(msgspec.Struct, frozen=True):
    """Something that the box stopped."""

    kind: Kind
    path: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "network":
                return "the network"
            case "socket":
                return f"a connection to {self.path}"
            case "read":
                return f"a read of {self.path}"
            case "write":
                return f"a write to {self.path}"


def stops(output: str, policy: BoxPolicy, *, cwd: str, home: str, unreachable: int = 0) -> list[Stop]:
    """What was stopped, each thing once, in the order of the output; the network first."""
    found: dict[Stop, None] = {Stop("network"): None} if unreachable else {}
    text = output if len(output) <= 2 * TEXT_MAX else f"{output[:TEXT_MAX]}\n{output[-TEXT_MAX:]}"
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if len(found) >= STOPS_MAX:
            break
        if not _REFUSAL.search(line[:_LINE_MAX]):
            continue
        own = _first(line, policy, cwd, home)
        if own is None and _READ_ONLY.search(line[:_LINE_MAX]):
            beside = [*lines[max(0, at - _BESIDE) : at], *lines[at + 1 : at + 1 + _BESIDE]]
            own = next((stop for each in beside if (stop := _first(each, policy, cwd, home))), None)
        if own is not None:
            found[own] = None
    return list(found)[:STOPS_MAX]


def _first(line: str, policy: BoxPolicy, cwd: str, home: str) -> Stop | None:
    for text in _candidates(line[:_LINE_MAX]):
        path = f"{home}{text[1:]}" if text.startswith("~/") else text
        stop = _judged(os.path.normpath(os.path.join(cwd, path)), policy)  # noqa: PTH118 - texts of any kind
        if stop is not None:
            return stop
    return None


def _candidates(line: str) -> Iterator[str]:
    """Texts that may be paths: quoted ones, then words, with and without the punctuation at their end. The
    first word comes last: most often it is the name of the program that speaks.
    """
    for groups in _QUOTED.findall(line):
        yield from filter(None, groups)
    first, *others = _WORD.findall(line) or [""]
    for word in (*others, first):
        yield word
        if word != word.rstrip(".!?"):
            yield word.rstrip(".!?")


def _judged(path: str, policy: BoxPolicy) -> Stop | None:
    """What the box refused there, if the user could do it outside."""
    if "\0" in path:
        return None
    real = os.path.realpath(path)
    if real.startswith(_KERNELS):
        return None
    try:
        mode = os.stat(real).st_mode  # noqa: PTH116 - texts of any kind
    except (OSError, ValueError):
        mode = None
    access = policy.access(real)
    if mode is not None and stat.S_ISSOCK(mode):
        named = any(real == each or real.startswith(f"{each}/") for each in policy.sockets)
        return Stop("socket", real) if not named and access != "write" and os.access(real, os.W_OK) else None
    if access == "write":
        return None
    if access == "none":
        return Stop("read", real) if os.access(real, os.R_OK) else None
    above = real if mode is not None else os.path.dirname(real)  # noqa: PTH120 - texts of any kind
    return Stop("write", real) if os.access(above, os.W_OK) else None
