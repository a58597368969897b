"""The parts that are still being written, with their text so far.

A checkpoint in the store is up to a second behind the live text. A listener that joins now gets the record
with the text so far, and one that already listens must never be thrown back to a checkpoint, so announced
records are shown with the live text too. The record wins as soon as it knows more, or something else.
"""

from collections.abc import Iterator

import msgspec

from holdfast.feed.frame import Delta, PartKey
from holdfast.schema.stored import Mark
from holdfast.store.record import StoredRecord

_PIECES_MAX = 256


class LiveText:
    """What was written live to one field, after the `base` characters that the record had before."""

    __slots__ = ("base", "length", "pieces")

    def __init__(self, base: int) -> None:
        self.base = base
        self.length = base
        self.pieces: list[str] = []

    def add(self, text: str) -> None:
        """Append; a long list of pieces is joined now and then, so that showing it stays cheap."""
        self.length += len(text)
        self.pieces.append(text)
        if len(self.pieces) > _PIECES_MAX:
            self.pieces[:] = ["".join(self.pieces)]

    def after(self, stored: str) -> str | None:
        """The whole text, if it continues what is stored; None when the record knows more or else."""
        whole = stored[: self.base] + "".join(self.pieces)
        return whole if len(whole) == self.length and whole.startswith(stored) else None


class OpenPart:
    """An open part: its latest announced record, and what was written live, by field."""

    __slots__ = ("record", "texts")

    def __init__(self) -> None:
        self.record: StoredRecord | None = None
        self.texts: dict[str, LiveText] = {}

    def announce(self, record: StoredRecord) -> None:
        """Take a newer record, and drop live text that it has overtaken."""
        self.record = record
        for field, live in tuple(self.texts.items()):
            if live.after(text_of(record, field)) is None:
                del self.texts[field]

    def add(self, delta: Delta) -> Delta | None:
        """Note live text; answers what of it is new, None for a repeat or behind a gap.

        After a gap nothing can be joined until the next checkpoint has covered it.
        """
        live = self.texts.get(delta.field)
        if live is None:
            base = delta.offset if self.record is None else len(text_of(self.record, delta.field))
            live = self.texts[delta.field] = LiveText(base)
        if delta.offset > live.length:
            return None
        known = live.length - delta.offset
        text = delta.text[known:]
        if not text:
            return None
        fresh = delta if known == 0 else msgspec.structs.replace(delta, offset=live.length, text=text)
        live.add(text)
        return fresh

    def shown(self) -> StoredRecord | None:
        """The record with the text so far; None before its record was announced."""
        if self.record is None or not self.texts:
            return self.record
        tree = msgspec.json.decode(self.record.data)
        for field, live in self.texts.items():
            whole = live.after(text_of(self.record, field))
            if whole is not None:
                _place(tree, field.split("."), whole)
        return msgspec.structs.replace(self.record, data=msgspec.json.encode(tree))


class OpenParts:
    """Every open part that this process knows of, its own and those of others."""

    def __init__(self) -> None:
        self._parts: dict[PartKey, OpenPart] = {}

    def announce(self, record: StoredRecord) -> StoredRecord:
        """A part's record was read from the store; answers what to show of it."""
        key = record.session, record.id
        if record.mark is not Mark.OPEN:
            self._parts.pop(key, None)
            return record
        part = self._parts.setdefault(key, OpenPart())
        part.announce(record)
        return part.shown() or record

    def forget(self, *, session: str, message: str | None = None, part: str | None = None) -> None:
        """A part, a message's parts or a session's parts were removed."""
        for key, known in tuple(self._parts.items()):
            if key[0] != session:
                continue
            parent = None if known.record is None else known.record.parent
            if key[1] == part or (message is not None and parent == message) or message is part is None:
                del self._parts[key]

    def add(self, delta: Delta) -> Delta | None:
        """Note live text; answers what is to be published, None for nothing new or an unannounced part."""
        part = self._parts.setdefault((delta.session, delta.part), OpenPart())
        fresh = part.add(delta)
        return None if part.record is None else fresh

    def close(self, key: PartKey) -> None:
        """The part is written; its text so far is needed no more."""
        self._parts.pop(key, None)

    def known(self) -> set[PartKey]:
        """The parts that stand here."""
        return set(self._parts)

    def showing(self, session: str | None) -> Iterator[StoredRecord]:
        """Each announced open part with its text so far."""
        for (home, _), part in self._parts.items():
            shown = part.shown() if session in (None, home) else None
            if shown is not None:
                yield shown


def text_of(record: StoredRecord, field: str) -> str:
    """The text that a record has in a field, named by its path; empty when there is none."""
    value: object = msgspec.json.decode(record.data)
    for name in field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _place(tree: dict[str, object], path: list[str], text: str) -> None:
    for name in path[:-1]:
        below = tree.setdefault(name, {})
        if not isinstance(below, dict):
            return
        tree = below
    tree[path[-1]] = text
