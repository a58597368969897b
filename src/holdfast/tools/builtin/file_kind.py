"""Tells from the first bytes of a file what it is: something for the model to look at, text, or neither."""

import re

SNIFF_BYTES = 4096

# Formats whose files may begin like text.
_BINARY = re.compile(
    r".*\.(7z|a|bin|bz2|class|dat|db|dll|docx?|dylib|exe|gz|jar|lib|o|obj|od[pst]|pptx?|py[co]|rar|so|sqlite|tar"
    r"|tgz|war|wasm|xlsx?|xz|zip|zst)",
    re.IGNORECASE | re.DOTALL,
)
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1b") | {127}
_CONTROL_SHARE_MAX = 0.3


def media(start: bytes) -> str | None:
    """The media type of what a model can look at."""
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    if start.startswith(b"%PDF-"):
        return "application/pdf"
    return None


def is_binary(name: str, start: bytes) -> bool:
    """Whether there is no sense in showing a file as text."""
    if start and _BINARY.fullmatch(name):
        return True
    return b"\0" in start or sum(byte in _CONTROL for byte in start) > len(start) * _CONTROL_SHARE_MAX
