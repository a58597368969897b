"""What a salvage brought, and what it did not, by name."""

import msgspec


class Incomplete(msgspec.Struct, frozen=True):
    """A session of which something is gone."""

    id: str
    title: str
    lost: tuple[str, ...]


class SalvageReport(msgspec.Struct, frozen=True):
    """The sessions that came whole, those that did not, and those of which only the name is left."""

    whole: tuple[str, ...]
    incomplete: tuple[Incomplete, ...]
    lost: tuple[str, ...]
    """Sessions, and records of projects and machines, that are gone altogether."""
    doubtful: tuple[str, ...]
    """Sessions that look whole, but the pages that would prove it are gone."""
    records: int
    pages: int
    pages_lost: int
    """Pages of tables and indexes that cannot be read."""
    gaps: tuple[str, ...] = ()
    """Why there may have been more than is named here: pages are missing, and nothing says what they held."""
    unproved: bool = False
    """Whether pages of sessions and records are among them, and no index says what they held."""
    log: str = ""
    """What is wrong with the log, though commits stand behind it; empty when nothing is."""

    @property
    def complete(self) -> bool:
        """Whether nothing is known to be lost."""
        return not (self.incomplete or self.lost or self.doubtful or self.gaps or self.log)

    @property
    def count(self) -> str:
        """How many sessions came, in words."""
        doubt = f" ({len(self.doubtful)} of them not for certain)" if self.doubtful else ""
        return f"{len(self.whole)} sessions whole{doubt}, {len(self.incomplete)} in part"
