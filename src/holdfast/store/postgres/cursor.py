"""The cursor of the feed: what one moment's transactions could see, and how far a batch has come.

`incarnation-after`, and inside a batch `incarnation-after-until-stage-session-position`, with snapshots as
`xmin.xmax.xip,xip` and every number in hexadecimal.
"""

import re

import msgspec

_SNAPSHOT = r"[0-9a-f]{1,15}\.[0-9a-f]{1,15}\.(?:[0-9a-f]{1,15}(?:,[0-9a-f]{1,15}){0,9999})?"
_CURSOR = re.compile(
    rf"([0-9a-f]{{16}})-({_SNAPSHOT})(?:-({_SNAPSHOT})-([01])-([0-9a-f]{{1,15}})-([0-9a-f]{{1,15}}))?"
)


class Snapshot(msgspec.Struct, frozen=True):
    """What was committed at a moment: all below `xmin`, none from `xmax` on, between them all but `xip`."""

    xmin: int
    xmax: int
    xip: tuple[int, ...] = ()

    def sql(self) -> str:
        """As the server writes it."""
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, self.xip))}"

    def text(self) -> str:
        """As a cursor holds it."""
        return f"{self.xmin:x}.{self.xmax:x}.{','.join(f'{each:x}' for each in self.xip)}"

    def upto(self, newest: int) -> "Snapshot":
        """The same moment, told without any transaction behind the `newest`."""
        xmax = min(self.xmax, newest + 1)
        return Snapshot(min(self.xmin, xmax), xmax, tuple(each for each in self.xip if each < xmax))

    def possible(self) -> bool:
        """Whether the server would take it for a snapshot."""
        between = all(self.xmin <= each < self.xmax for each in self.xip)
        return 0 < self.xmin <= self.xmax and between and list(self.xip) == sorted(set(self.xip))


NOTHING = Snapshot(1, 1)
"""The moment before the first commit."""


class FeedCursor(msgspec.Struct, frozen=True):
    """A point in the feed."""

    incarnation: str
    after: Snapshot
    until: Snapshot | None = None
    stage: int = 0
    """0 tombstones, 1 what lives."""
    session: int = 0
    position: int = 0

    def text(self) -> str:
        """The opaque form."""
        base = f"{self.incarnation}-{self.after.text()}"
        if self.until is None:
            return base
        return f"{base}-{self.until.text()}-{self.stage}-{self.session:x}-{self.position:x}"


def from_sql(text: str) -> Snapshot:
    """A snapshot as the server wrote it."""
    xmin, xmax, xip = text.split(":")
    return Snapshot(int(xmin), int(xmax), tuple(int(each) for each in xip.split(",") if each))


def parse_feed(text: str) -> FeedCursor | None:
    """The cursor that the text stands for; None when it is none of this kind of store."""
    match = _CURSOR.fullmatch(text)
    if match is None:
        return None
    incarnation, after, until, stage, session, position = match.groups()
    snapshots = [_snapshot(each) for each in (after, until) if each is not None]
    if not all(each.possible() for each in snapshots):
        return None
    if until is None:
        return FeedCursor(incarnation, snapshots[0])
    return FeedCursor(
        incarnation, snapshots[0], snapshots[1], int(stage), int(session, 16), int(position, 16)
    )


def _snapshot(text: str) -> Snapshot:
    xmin, xmax, xip = text.split(".")
    return Snapshot(int(xmin, 16), int(xmax, 16), tuple(int(each, 16) for each in xip.split(",") if each))
