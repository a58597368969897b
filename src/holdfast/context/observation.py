"""What one look at every source of a System Context found: a value, from which all else is decided purely.

What must stay true: an observed value is the one that its snapshot entry will give back, so what is rendered
now and what is compared at the next boundary are the same thing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from holdfast.context import keys
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import ABSENT, UNAVAILABLE, ContextSource, Missing
from holdfast.errors import ContextError


class NotRendered(ContextError):
    """A source cannot render a text. `name` is which one."""

    def __init__(self, key: str, name: str, why: str) -> None:
        super().__init__(f"context source {key}: its {name} text {why}")
        self.key = key
        self.name = name


class Observed(msgspec.Struct, frozen=True):
    """One source and its value. `canonical` is the JSON by which values are compared; `keeps_text` says that
    the snapshot keeps the text that the model was given.
    """

    source: ContextSource[Any]
    value: Any
    canonical: bytes = b""
    keeps_text: bool = False
    renders_again: bool = False
    """Whether a change is rendered as if nothing had been admitted before."""

    @property
    def key(self) -> str:
        """The key of the source."""
        return self.source.key

    @property
    def has_value(self) -> bool:
        """Whether the source was seen and is there."""
        return not isinstance(self.value, Missing)

    def baseline(self) -> str:
        """The text for a model that knows nothing of the source."""
        return self._rendered("baseline", partial(self.source.baseline, self.value))

    def update(self, previous: Any) -> str:
        """The text for a model that was given the previous value."""
        if self.renders_again:
            return self.baseline()
        return self._rendered("update", partial(self.source.update, previous, self.value))

    def entry(self, text: str | None = None) -> SnapshotEntry:
        """What the snapshot keeps once this value is admitted; `text` is what the model is given."""
        value = msgspec.json.decode(self.canonical)
        kept = text if self.keeps_text else None
        if self.source.removal is None:
            return SnapshotEntry(value, text=kept)
        removal = self._rendered("removal", partial(self.source.removal, self.value))
        return SnapshotEntry(value, removal, kept)

    def _rendered(self, name: str, render: Callable[[], str]) -> str:
        try:
            text = render()
        except Exception as error:
            why = f"cannot be rendered: {type(error).__name__}"
            raise NotRendered(self.key, name, why) from error
        if not isinstance(text, str):
            raise NotRendered(self.key, name, "is no text")
        return text

    def without(self, name: str) -> "Observed":
        """The same without a text: the baseline speaks for an update; without another there is no value."""
        if name == "update":
            return structs.replace(self, renders_again=True)
        return Observed(self.source, UNAVAILABLE)


class Observation(msgspec.Struct, frozen=True):
    """Every source in the order of the context, with why some could not be seen, in one line by key.

    `namespaces` are keys beneath which nothing could be seen, not even which sources there are.
    """

    sources: tuple[Observed, ...]
    namespaces: tuple[str, ...] = ()
    notes: dict[str, str] = {}

    def without(self, fault: NotRendered) -> "Observation":
        """The same without a text that cannot be rendered, and a note of it."""
        sources = (seen.without(fault.name) if seen.key == fault.key else seen for seen in self.sources)
        notes = dict(sorted({**self.notes, fault.key: str(fault)}.items()))
        return structs.replace(self, sources=tuple(sources), notes=notes)

    @property
    def present(self) -> tuple[Observed, ...]:
        """The sources that have a value."""
        return tuple(seen for seen in self.sources if seen.has_value)

    @property
    def unavailable(self) -> tuple[str, ...]:
        """The keys of sources and namespaces that could not be seen, in order."""
        unseen = {seen.key for seen in self.sources if seen.value is UNAVAILABLE}
        return tuple(sorted(unseen | set(self.namespaces)))

    def unavailable_of(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The admitted keys that could not be seen."""
        found = {seen.key: seen.value for seen in self.sources}
        return tuple(
            key for key in snapshot if (found[key] is UNAVAILABLE if key in found else self._is_hidden(key))
        )

    def gone_of(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The admitted keys whose source was seen to be absent, or is no longer part of the context."""
        found = {seen.key: seen.value for seen in self.sources}
        return tuple(
            key for key in snapshot if (found[key] is ABSENT if key in found else not self._is_hidden(key))
        )

    def _is_hidden(self, key: str) -> bool:
        """Whether a key without a source may still have one, where nothing could be seen."""
        return any(keys.is_within(key, namespace) for namespace in self.namespaces)
