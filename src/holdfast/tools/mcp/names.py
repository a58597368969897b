"""The names under which the model calls the tools of servers. Pure.

`<server>_<tool>`, with `_` for every sign that providers do not take. What must stay true: the same tools
have the same names, in whatever order their server lists them; no two tools share one.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

NAME_CHARS_MAX: Final = 64
_DIGEST_CHARS: Final = 8
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")


def plain(server: str, tool: str) -> str:
    """The name of a tool, if no other tool has it."""
    name = _OTHER.sub("_", f"{server}_{tool}")
    return name if len(name) <= NAME_CHARS_MAX else distinct(server, tool)


def distinct(server: str, tool: str) -> str:
    """A name that no other tool has: it ends with a digest of what the server calls it."""
    digest = hashlib.sha256(f"{server}\0{tool}".encode(errors="replace")).hexdigest()[:_DIGEST_CHARS]
    head = _OTHER.sub("_", f"{server}_{tool}")[: NAME_CHARS_MAX - _DIGEST_CHARS - 1]
    return f"{head}_{digest}"


def is_of_another(server: str, tool: str, others: Iterable[str]) -> bool:
    """Whether a tool is named as those of another server: `git` with `hub_drop` beside `git_hub`.

    A rule for `git_hub_*` would let it run.
    """
    own, name = plain(server, ""), _OTHER.sub("_", f"{server}_{tool}")
    return any(
        len(head) > len(own) and name.startswith(head) for head in (plain(each, "") for each in others)
    )


def named(
    server: str, tools: Iterable[str], taken: Collection[str], others: Iterable[str] = ()
) -> dict[str, str]:
    """By the server's own name of each tool, the name that the model calls.

    `taken` are names of other tools; `others` are the servers beside it, whether they are connected or not.
    """
    tools = list(tools)
    shared = Counter(plain(server, tool) for tool in tools)
    is_twin = any(plain(each, "") == plain(server, "") for each in others)
    return {
        tool: distinct(server, tool) if is_twin or shared[name] > 1 or name in taken else name
        for tool in tools
        for name in (plain(server, tool),)
    }
