"""Keys that a look for changes found, kept while the pages of its batch are asked for.

Only a cache: a store that has forgotten them looks again. A few at a time, and no more than a window of each.
"""

from array import array
from bisect import bisect_right
from collections.abc import Hashable

Key = tuple[int, int]
"""A session's number and a position in it; 0 is the session itself."""

START: Key = (0, 0)
WINDOW = 100_000
WALKS = 8


class Keys:
    """Every key after `begin`, in order; if `cut`, only the first of them."""

    def __init__(self, begin: Key, sessions: list[int] | None, positions: list[int] | None) -> None:
        self.begin = begin
        self._sessions = array("q", sessions or ())
        self._positions = array("q", positions or ())
        self.cut = len(self._sessions) >= WINDOW

    def left(self, key: Key) -> int:
        """How many come after the key."""
        return len(self._sessions) - self._place(key)

    def after(self, key: Key, room: int) -> tuple[list[int], list[int], bool]:
        """The next of them, and whether there are more."""
        place = self._place(key)
        end = place + room
        more = self.cut or end < len(self._sessions)
        return self._sessions[place:end].tolist(), self._positions[place:end].tolist(), more

    def _place(self, key: Key) -> int:
        return bisect_right(
            range(len(self._sessions)), key, key=lambda at: (self._sessions[at], self._positions[at])
        )


class Walks:
    """The keys of the batches that are under way."""

    def __init__(self) -> None:
        self._keys: dict[Hashable, Keys] = {}

    def get(self, name: Hashable, key: Key, room: int) -> Keys | None:
        """The keys of a batch, if they are remembered from this key on."""
        keys = self._keys.get(name)
        if keys is None or key < keys.begin or (keys.cut and keys.left(key) <= room):
            return None
        return keys

    def remember(
        self, name: Hashable, begin: Key, sessions: list[int] | None, positions: list[int] | None
    ) -> Keys:
        """Keep what was found, and of the others only the latest few."""
        self._keys.pop(name, None)
        keys = self._keys[name] = Keys(begin, sessions, positions)
        while len(self._keys) > WALKS:
            del self._keys[next(iter(self._keys))]
        return keys

    def forget(self, name: Hashable) -> None:
        """The batch is through."""
        self._keys.pop(name, None)
