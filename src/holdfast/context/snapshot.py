"""The Context Snapshot: the value of each source when it was last admitted. The model never sees it.

What must stay true: the entries stand in the order of their keys, so one state has one JSON text; the text
that announces a removal was rendered when the value was admitted, so it is there even when the code of the
source is gone, and so was its last text, where that is kept. An entry is never changed in place.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.schema import typed
from holdfast.schema.wire import JsonMap


class SnapshotEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The JSON of one admitted value.

    `removal` is what the model is given when the source goes away. An empty text lets it go silently;
    None means that it cannot go without a new baseline. `text` is what the model was last given of it,
    kept where the code that renders it may be out of reach when it has to be sent again.
    """

    value: Any
    removal: str | None = None
    text: str | None = None


class Snapshot(Mapping[str, SnapshotEntry]):
    """Entries by the key of their source."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, SnapshotEntry] | None = None) -> None:
        self._entries = dict(sorted((entries or {}).items()))

    @classmethod
    def readable(cls, data: JsonMap) -> "Snapshot":
        """The entries that can be read: fewer than there are where some are harmed, or of another version."""
        entries = {}
        for key, entry in data.items():
            with suppress(msgspec.ValidationError, RecursionError):
                entries[key] = typed.convert(entry, SnapshotEntry)
        return cls(entries)

    def to_json(self) -> JsonMap:
        """As plain JSON data, to be stored."""
        return {key: msgspec.to_builtins(entry) for key, entry in self._entries.items()}

    def __getitem__(self, key: str) -> SnapshotEntry:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Snapshot({self._entries!r})"
