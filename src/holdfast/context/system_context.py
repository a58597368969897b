"""The System Context: what the model is given besides the conversation, and how that changes.

A context is composed of sources (`make`, `combine`), observed once (`observe`), and then judged by plain
functions: `initialize` renders the first baseline, `reconcile` says what changed since a snapshot, `replace`
renders a fresh baseline. Instruction files, dates, skills are known to the makers of sources, never here.

What must stay true:
- the text depends on the values and on the order of the context, not on which loader came first;
- what could not be observed is never announced as removed, and never missing from a first baseline;
- an update begins with the removals whose source is no longer in the context, by key, because a later "no
  longer applies" could be read as taking back what stands in the same message; then every source that
  changed, appeared or became absent speaks in the order of the context;
- texts are joined by a blank line, and blank ones are left out.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from holdfast.context import keys
from holdfast.context.attempt import FailedAttempt, attempts, done
from holdfast.context.observation import Observation, Observed
from holdfast.context.results import (
    Blocked,
    Initialization,
    Initialized,
    Reconciliation,
    Replacement,
    ReplacementBlocked,
    ReplacementReady,
    Unchanged,
    Updated,
)
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import UNAVAILABLE, ContextSource, Missing, T
from holdfast.errors import Conflict, ContextError

LIMIT_S = 5.0
"""How long a source or a producer may look before it counts as unavailable."""


class _Unseen(msgspec.Struct, frozen=True):
    """A namespace of which it is not known what sources it has."""

    key: str
    reason: str


class SystemContext:
    """Sources in order. What they are is hidden, so that sources of every type compose."""

    __slots__ = ("_kept", "_members")

    def __init__(
        self, members: tuple[ContextSource[Any] | _Unseen, ...] = (), kept: frozenset[str] = frozenset()
    ) -> None:
        """For `make`, `combine`, `empty` and `unavailable`; callers use those."""
        self._members = members
        self._kept = kept

    @classmethod
    def empty(cls) -> "SystemContext":
        """No sources."""
        return cls()

    @classmethod
    def make(cls, source: ContextSource[T]) -> "SystemContext":
        """A context of one source."""
        return cls((source,))

    @classmethod
    def unavailable(cls, namespace: str, reason: str) -> "SystemContext":
        """A context that cannot be observed now: everything admitted beneath the namespace stays as it is."""
        return cls((_Unseen(keys.check(namespace), reason),))

    @classmethod
    def combine(
        cls, *contexts: "SystemContext", twice: Callable[[str], None] | None = None
    ) -> "SystemContext":
        """All of them, in this order. A key that comes twice is refused; or, where contexts meet whose
        authors do not know one another, its first source counts, and `twice` is called for the other.
        """
        members: dict[str, ContextSource[Any] | _Unseen] = {}
        for member in (member for context in contexts for member in context._members):  # noqa: SLF001 - its own class
            if member.key not in members:
                members[member.key] = member
            elif twice is None:
                raise Conflict(f"two context sources have the key {member.key}; keep one of them")
            else:
                twice(member.key)
        kept = frozenset[str]().union(*(context._kept for context in contexts))  # noqa: SLF001 - its own class
        return cls(tuple(members.values()), kept)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the sources and unavailable namespaces, in order."""
        return tuple(member.key for member in self._members)

    def keeping_texts(self) -> "SystemContext":
        """The same, but the snapshot keeps the text of each source.

        For sources that others bring: they may be out of reach when a baseline is rendered again. Ours are
        always there, so their texts, which may be long, need not be stored twice.
        """
        return SystemContext(self._members, frozenset(self.keys))

    @property
    def sources(self) -> tuple[ContextSource[Any], ...]:
        """The sources, for `observe`."""
        return tuple(member for member in self._members if isinstance(member, ContextSource))

    def keeps_text(self, key: str) -> bool:
        """Whether the snapshot keeps the text of a source, for `observe`."""
        return key in self._kept

    @property
    def unseen(self) -> dict[str, str]:
        """The unavailable namespaces, each with its reason, for `observe`."""
        return {member.key: member.reason for member in self._members if isinstance(member, _Unseen)}

    async def initialize(self, *, limit_s: float = LIMIT_S) -> Initialization:
        """Observe once, and render the first baseline."""
        return initialize(await observe(self, limit_s=limit_s))

    async def reconcile(self, snapshot: Snapshot, *, limit_s: float = LIMIT_S) -> Reconciliation:
        """Observe once, and decide what to do about what changed."""
        return reconcile(await observe(self, limit_s=limit_s), snapshot)

    async def replace(self, snapshot: Snapshot, *, limit_s: float = LIMIT_S) -> Replacement:
        """Observe once, and render a fresh baseline."""
        return replace(await observe(self, limit_s=limit_s), snapshot)


async def observe(context: SystemContext, *, limit_s: float = LIMIT_S) -> Observation:
    """Load every source once, all at the same time.

    A source that raises, takes too long, or has a value that its codec does not bring back counts as
    unavailable, with a note. One that answers so itself has none.
    """
    notes = context.unseen

    async def look(source: ContextSource[Any]) -> Observed:
        seen = _observed(source, await source.load())
        return structs.replace(seen, keeps_text=True) if context.keeps_text(source.key) else seen

    sources = context.sources
    works = {source.key: partial(look, source) for source in sources}
    slow = [source.key for source in sources if source.waits]
    tried = dict(zip(slow, await attempts([works[key] for key in slow], limit_s=limit_s), strict=True))
    found: dict[str, Observed] = {}
    for source in sources:
        seen = tried[source.key] if source.waits else await done(works[source.key])
        if isinstance(seen, FailedAttempt):
            notes[source.key] = seen.reason
        found[source.key] = Observed(source, UNAVAILABLE) if isinstance(seen, FailedAttempt) else seen
    return Observation(
        tuple(found[source.key] for source in sources),
        tuple(context.unseen),
        dict(sorted(notes.items())),
    )


def _observed(source: ContextSource[Any], value: Any) -> Observed:
    if isinstance(value, Missing):
        return Observed(source, value)
    canonical = source.codec.canonical(value)
    # A value that comes back as another one would look changed, or unreadable, at every later boundary.
    read = source.codec.decode(msgspec.json.decode(canonical))
    if source.codec.canonical(read) != canonical:
        raise ContextError("its codec does not bring its value back")
    return Observed(source, read, canonical)


def initialize(observation: Observation) -> Initialization:
    """The first baseline, from every source that has a value. It is complete, or blocked."""
    if observation.unavailable:
        return Blocked(observation.unavailable)
    return Initialized(*_generation(observation))


def replace(observation: Observation, snapshot: Snapshot) -> Replacement:
    """A fresh baseline, unless it would lose the text of an admitted source that is unavailable now.

    A source that was never admitted and is unavailable is left out, until it is first seen.
    """
    if lost := observation.unavailable_of(snapshot):
        return ReplacementBlocked(lost)
    return ReplacementReady(*_generation(observation))


def reconcile(observation: Observation, snapshot: Snapshot) -> Reconciliation:
    """What to do so that the model knows what was observed, given what it has."""
    gone = observation.gone_of(snapshot)
    before = _before(observation, snapshot)
    removals = {key: removal for key in gone if (removal := snapshot[key].removal) is not None}
    if before is None or len(removals) < len(gone):
        return replace(observation, snapshot)
    entries: dict[str, SnapshotEntry] = {key: snapshot[key] for key in snapshot if key not in removals}
    in_context = {seen.key for seen in observation.sources}
    texts = [removal for key, removal in removals.items() if key not in in_context]
    for seen in observation.sources:
        if seen.key in removals:
            texts.append(removals[seen.key])
        elif seen.has_value and (seen.key not in before or before[seen.key].canonical != seen.canonical):
            known = before.get(seen.key)
            text = seen.baseline() if known is None else seen.update(known.value)
            texts.append(text)
            # A change without a text leaves the one before.
            entries[seen.key] = seen.entry(text or (known and snapshot[seen.key].text) or "")
    return Updated(joined(texts), Snapshot(entries)) if texts else Unchanged()


def _before(observation: Observation, snapshot: Snapshot) -> dict[str, Observed] | None:
    """The admitted values of the sources that have one now; None when one is of another version."""
    before = {}
    for seen in observation.present:
        if seen.key not in snapshot:
            continue
        codec = seen.source.codec
        try:
            value = codec.decode(snapshot[seen.key].value)
            before[seen.key] = Observed(seen.source, value, codec.canonical(value))
        except Exception:  # noqa: BLE001 - whatever a codec raises: it cannot read the value
            return None
    return before


def _generation(observation: Observation) -> tuple[str, Snapshot]:
    """Baseline and snapshot of all that was seen."""
    rendered = [(seen, seen.baseline()) for seen in observation.present]
    return (
        joined(text for _, text in rendered),
        Snapshot({seen.key: seen.entry(text) for seen, text in rendered}),
    )


def joined(texts: Iterable[str]) -> str:
    """One text of several."""
    return "\n\n".join(text for text in texts if text.strip())
