"""The parts that are still being written, with their text so far.

A checkpoint in the store is up to a second behind the live text. Whoever joins now gets the record with the
text so far, and whoever already listens must never be thrown back to a checkpoint, so announced records are
shown with the live text too.
"""

from collections.abc import Iterator

import msgspec

from holdfast.feed.frame import Delta
from holdfast.schema.stored import Mark
from holdfast.store.record import StoredRecord

_PIECES_MAX = 256


class LiveText:
    """What was written live to one field, after the `base` characters that the record had before."""

    __slots__ = ("base", "pieces")

    def __init__(self, base: int) -> None:
        self.base = base
        self.pieces: list[str] = []

    def add(self, text: str) -> None:
        """Append; a long list of pieces is joined now and then, so that showing it stays cheap."""
        self.pieces.append(text)
        if len(self.pieces) > _PIECES_MAX:
            self.pieces[:] = ["".join(self.pieces)]


class OpenPart:
    """An open part: its latest announced record, and what was written live, by field."""

    __slots__ = ("record", "texts")

    def __init__(self) -> None:
        self.record: StoredRecord | None = None
        self.texts: dict[str, LiveText] = {}

    def shown(self) -> StoredRecord | None:
        """The record with the text so far; None before its record was announced."""
        if self.record is None or not self.texts:
            return self.record
        tree = msgspec.json.decode(self.record.data)
        for field, live in self.texts.items():
            _splice(tree, field.split("."), live)
        return msgspec.structs.replace(self.record, data=msgspec.json.encode(tree))


class OpenParts:
    """Every open part that this process has heard of, its own and those of others."""

    def __init__(self) -> None:
        self._parts: dict[str, OpenPart] = {}

    def announce(self, record: StoredRecord) -> StoredRecord:
        """A part's record was read from the store; answers what to show of it."""
        if record.mark is not Mark.OPEN:
            self._parts.pop(record.id, None)
            return record
        part = self._parts.setdefault(record.id, OpenPart())
        part.record = record
        return part.shown() or record

    def forget(self, *, session: str, message: str | None = None, part: str | None = None) -> None:
        """A part, a message's parts or a session's parts were removed."""
        for id, known in tuple(self._parts.items()):
            record = known.record
            if id == part or (
                record is not None
                and (record.parent == message or (message is part is None and record.session == session))
            ):
                del self._parts[id]

    def add(self, delta: Delta) -> bool:
        """Note live text; answers whether the part's record was announced already."""
        part = self._parts.setdefault(delta.part, OpenPart())
        live = part.texts.get(delta.field)
        if live is None:
            live = part.texts[delta.field] = LiveText(delta.offset)
        live.add(delta.text)
        return part.record is not None

    def close(self, part: str) -> None:
        """The part is written; nobody will ask for its text so far."""
        self._parts.pop(part, None)

    def known(self) -> set[str]:
        """The ids of the parts that stand here."""
        return set(self._parts)

    def showing(self, session: str | None) -> Iterator[StoredRecord]:
        """Each announced open part with its text so far."""
        for part in self._parts.values():
            shown = part.shown()
            if shown is not None and session in (None, shown.session):
                yield shown


def _splice(tree: dict[str, object], path: list[str], live: LiveText) -> None:
    for name in path[:-1]:
        below = tree.setdefault(name, {})
        if not isinstance(below, dict):
            return
        tree = below
    before = tree.get(path[-1])
    kept = before[: live.base] if isinstance(before, str) else ""
    tree[path[-1]] = kept + "".join(live.pieces)
