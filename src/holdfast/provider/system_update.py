"""A Mid-Conversation System Message for a wire, or a place in it, that has no role for one."""

from xml.sax.saxutils import escape


def wrapped(text: str) -> str:
    """The text between tags that no text inside can close."""
    return f"<system-update>\n{escape(text)}\n</system-update>"
