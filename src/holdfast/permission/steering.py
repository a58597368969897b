"""Paths that steer the next run: settings, plugins, instructions, skills, and what git obeys.

To write there is to decide what a later agent is told or loads, so a rule about edits in general (`"*":
"allow"`, `edit: allow`, `*.md`) does not suffice: one must name the path. Pure. A path is judged by its name
as every file system might read it (case, signs that are not shown, trailing dots, short names): to ask once
too often costs a question, to ask once too seldom the next run.
"""

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from holdfast.permission import wildcard
from holdfast.schema.permission import Action, Rule

PERMISSION: Final = "edit"
FOLDERS: Final = (".git", ".holdfast", ".opencode", ".claude", ".agents")
FILES: Final = (
    "agents.md",
    "claude.md",
    "context.md",
    "opencode.json",
    "opencode.jsonc",
    "holdfast.json",
    "holdfast.jsonc",
)

_PLANS = "plans"
_WITH_PLANS = (".holdfast", ".opencode")
_SHORT = {"git~1": ".git"}


def steered(path: str) -> frozenset[str]:
    """The names in a path, relative or absolute, that make it one that steers; empty where none does."""
    segments = [_plain(each) for each in posixpath.normpath(path.replace("\\", "/")).split("/")]
    found = {
        each
        for each, below in zip(segments, (*segments[1:], ""), strict=True)
        if each in FOLDERS and not (each in _WITH_PLANS and below == _PLANS)
    }
    return frozenset(found | ({segments[-1]} & set(FILES)))


def names(pattern: str, path: str) -> bool:
    """Whether a pattern of a rule names what makes the path one that steers, and not only happens to match.
    Who names a folder names the files in it.
    """
    found = steered(path)
    return all(_is_named(each, pattern) for each in found & set(FOLDERS) or found)


def verdict(permission: str, path: str, found: Action, rules: Sequence[Rule]) -> Action:
    """The verdict of the rules, where they allow it in general: ask, unless a rule that names the path allows
    it. Later rules that name it win over earlier ones.
    """
    if permission != PERMISSION or found != "allow" or not steered(path):
        return found
    for rule in reversed(rules):
        if (
            wildcard.match(permission, rule.permission)
            and wildcard.match(path, rule.pattern)
            and names(rule.pattern, path)
        ):
            return "allow" if rule.action == "allow" else "ask"
    return "ask"


def savable(permission: str, paths: Sequence[str], always: Sequence[str]) -> list[str]:
    """What "always" stands for: for paths that steer these alone, not what the tool offers for any path."""
    if permission != PERMISSION or not any(map(steered, paths)):
        return list(always)
    # A name with a wildcard in it would stand for others too.
    return [] if any(set("*?") & set(path) for path in paths) else list(paths)


def _is_named(name: str, pattern: str) -> bool:
    """Whether a whole segment of the pattern is the name. Behind a file's name a wildcard may stand."""
    text = "/".join(map(_plain, pattern.replace("\\", "/").split("/")))
    end = r"(?:$|/)" if name in FOLDERS else r"(?:$|\*)"
    return re.search(rf"(?:^|[/*]){re.escape(name)}{end}", text) is not None


def _plain(segment: str) -> str:
    """A name as the most lenient file system reads it."""
    shown = "".join(each for each in segment if unicodedata.category(each) != "Cf")
    folded = unicodedata.normalize("NFKC", shown).casefold()
    bare = folded.split(":")[0].rstrip(" .") if folded.strip(".") else folded
    return _SHORT.get(bare, bare)
