"""What the user answered when a server was offered: asked once, remembered.

A yes holds until the user takes it back by settings of their own; a damaged file means that nothing was
answered yet, so the worst is one question more.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.errors import ContextError
from holdfast.person import directories, small_file
from holdfast.provider.local import discover
from holdfast.provider.local.discover import Found
from holdfast.schema.provider_entry import ProviderEntry

BYTES_MAX = 64 * 1024


def file() -> Path:
    """Where the answers are."""
    return directories.data() / "local-servers.json"


def read() -> dict[str, bool]:
    """The answers by the server's name (`discover.name_of`)."""
    try:
        return _decoded(small_file.read(file(), bytes_max=BYTES_MAX))
    except ContextError:
        return {}


def remember(found: Found, *, accepted: bool) -> None:
    """Keep an answer."""

    def add(before: bytes | None) -> bytes:
        return msgspec.json.encode(_decoded(before) | {discover.name_of(found): accepted})

    small_file.edit(file(), add, mode=0o600)


def accepted(found: Sequence[Found], answers: dict[str, bool]) -> dict[str, ProviderEntry]:
    """Entries for the servers that run now and were accepted, to use beside the settings' own."""
    return {
        one.kind: discover.entry(one)
        for one in found
        if one.problem is None and answers.get(discover.name_of(one))
    }


def _decoded(data: bytes | None) -> dict[str, bool]:
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, bool])
    except (msgspec.MsgspecError, UnicodeError):
        return {}
