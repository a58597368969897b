"""What an import did: counts by kind, and what stayed behind and why."""

import msgspec

SKIPPED_MAX = 1_000
"""How many skipped things a report names; the rest are only counted."""


class Counts(msgspec.Struct, frozen=True):
    """How many things of one kind came, were there already, grew, or stayed behind. `different` were there
    already with other content, and stay as they are here.
    """

    new: int = 0
    unchanged: int = 0
    different: int = 0
    updated: int = 0
    skipped: int = 0


class Skipped(msgspec.Struct, frozen=True):
    """One thing that stayed behind: what it is, where it stands in the source, and why."""

    what: str
    where: str
    why: str


class ImportReport(msgspec.Struct, frozen=True):
    """The outcome of an import. `sessions` are the ids, in this store, of all that the source held."""

    source: str
    counts: dict[str, Counts]
    sessions: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    skipped_beyond: int = 0
    """How many more were skipped than are named."""
    notes: tuple[str, ...] = ()
    """What came in another form than it had in the source."""
    notes_beyond: int = 0
    """How many more notes there were than are given."""

    @property
    def changed(self) -> bool:
        """Whether the import wrote anything."""
        return any(count.new or count.updated for count in self.counts.values())


class Tally:
    """A report in the making."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._counts: dict[str, dict[str, int]] = {}
        self._sessions: list[str] = []
        self._skipped: list[Skipped] = []
        self._skipped_beyond = 0
        self._notes: list[str] = []
        self._notes_beyond = 0

    def new(self, kind: str, count: int = 1) -> None:
        self._add(kind, "new", count)

    def unchanged(self, kind: str, count: int = 1) -> None:
        self._add(kind, "unchanged", count)

    def different(self, kind: str, count: int = 1) -> None:
        self._add(kind, "different", count)

    def updated(self, kind: str, count: int = 1) -> None:
        self._add(kind, "updated", count)

    def skip(self, kind: str, what: str, where: str, why: str) -> None:
        """Count something that stays behind, and name it while there is room."""
        self._add(kind, "skipped", 1)
        if len(self._skipped) < SKIPPED_MAX:
            self._skipped.append(Skipped(_shown(what), _shown(where), _shown(why)))
        else:
            self._skipped_beyond += 1

    def note(self, text: str) -> None:
        """Note that something came in another form."""
        if len(self._notes) < SKIPPED_MAX:
            self._notes.append(text)
        else:
            self._notes_beyond += 1

    def session(self, id: str) -> None:
        """The source holds this session."""
        self._sessions.append(id)

    def report(self) -> ImportReport:
        """The report so far."""
        return ImportReport(
            source=self._source,
            counts={kind: Counts(**counts) for kind, counts in sorted(self._counts.items())},
            sessions=tuple(self._sessions),
            skipped=tuple(self._skipped),
            skipped_beyond=self._skipped_beyond,
            notes=tuple(self._notes),
            notes_beyond=self._notes_beyond,
        )

    def _add(self, kind: str, outcome: str, count: int) -> None:
        if count:
            counts = self._counts.setdefault(kind, {})
            counts[outcome] = counts.get(outcome, 0) + count


def _shown(text: str) -> str:
    """Text from outside as a report may carry it: a file's name need not be valid Unicode."""
    return text.encode("utf-8", "replace").decode()
