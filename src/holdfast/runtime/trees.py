"""Who in this process may change the root of a tree: one at a time, so that many children do not collide."""

from weakref import WeakValueDictionary

import anyio


class Trees:
    """A lock for each root that somebody wants to change."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    def of(self, root: str) -> anyio.Lock:
        """The lock of a root; it is forgotten when nobody holds it."""
        lock = self._locks.get(root)
        if lock is None:
            lock = self._locks[root] = anyio.Lock()
        return lock
