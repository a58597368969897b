"""What a salvage reads in the JSON of a session, and the mark in the title of an incomplete one. Pure."""

import msgspec

from holdfast.schema import typed

INCOMPLETE = " (incomplete)"
"""What the title of a session ends with of which something is gone."""


class _Info(msgspec.Struct):
    title: str = ""
    parentID: str | None = None  # noqa: N815 - the wire's name


def above_of(data: bytes | None) -> str | None:
    """The session above this one."""
    return None if not data else typed.decode(data, _Info).parentID


def title_of(data: bytes | None) -> str:
    """The title of a session."""
    return "" if not data else typed.decode(data, _Info).title


def marked(data: bytes) -> bytes:
    """A session whose title says that something of it is gone."""
    info = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    title = title_of(data).removesuffix(INCOMPLETE) + INCOMPLETE
    info["title"] = msgspec.Raw(msgspec.json.encode(title))
    return msgspec.json.encode(info)
