"""HTML without its tags, in one pass: crude, and never slow. Pure."""

import html
import re
from typing import Final

_UNSHOWN: Final = ("script", "style", "template", "noscript")
_BREAKING: Final = frozenset(("p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "td"))
_NAME: Final = re.compile(r"/?([a-zA-Z][a-zA-Z0-9]*)")


def strip(page: str) -> str:
    """The text between the tags; that of scripts and styles is left out."""
    first, *pieces = page.split("<")
    kept = [first]
    unshown: str | None = None
    for piece in pieces:
        named = _NAME.match(piece)
        name = "" if named is None else named[1].lower()
        if unshown is not None:
            if piece[:1] != "/" or name != unshown:
                continue
            unshown = None
        elif name in _UNSHOWN and piece[:1] != "/":
            unshown = name
            continue
        _, _, text = piece.partition(">")
        kept.append(("\n" if name in _BREAKING else "") + text)
    lines = (" ".join(line.split()) for line in html.unescape("".join(kept)).splitlines())
    return "\n".join(line for line in lines if line)
