"""Ends a runtime in the middle, as kill -9 would: from one write on, nothing of it reaches the disk."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from holdfast.app import Holdfast
from holdfast.clock import Clock, SystemClock
from holdfast.store.base import Store
from holdfast.store.host import ThisHost
from holdfast.store.open import open_store
from holdfast.store.owner import Owner
from tests.stories import inside

_WRITES = {"commit", "claim", "release", "retire", "register", "renew", "bury", "erase"}


class Dead(Exception):
    """The process is gone: nothing that it does counts any more."""


class Mortal:
    """A store that dies at its n-th write: before it, or after it but before anybody hears."""

    def __init__(self, store: Store, dies_at: int | None, *, after: bool = False) -> None:
        self._store = store
        self._left = dies_at
        self._after = after
        self.dead = anyio.Event()
        self.writes = 0

    def kill(self) -> None:
        """Die now."""
        self.dead.set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in _WRITES:
            return method

        async def call(*arguments: Any, **named: Any) -> Any:
            if self.dead.is_set():
                raise Dead
            self.writes += 1
            if self._left is not None and self.writes >= self._left:
                if self._after:
                    await method(*arguments, **named)
                self.dead.set()
                raise Dead
            return await method(*arguments, **named)

        return call


class Machine(ThisHost):
    """A host that knows which of its processes were killed."""

    def __init__(self) -> None:
        self.killed: set[str] = set()

    def is_gone(self, owner: Owner) -> bool:
        return owner.id in self.killed


@asynccontextmanager
async def life(
    url: str,
    machine: Machine,
    *,
    dies_at: int | None = None,
    after: bool = False,
    clock: Clock | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Holdfast, Mortal]]:
    """One process on the store; when it has died, its owner is known to be dead."""
    store = await open_store(url, host=machine)
    mortal = Mortal(store, dies_at, after=after)
    hf = Holdfast(mortal, clock or SystemClock(), machine, **options)
    try:
        yield hf, mortal
    finally:
        held = inside.coordinator_if_any(hf)
        owner = None if held is None else held.lease.id
        if mortal.dead.is_set() and owner is not None:
            machine.killed.add(owner)
        with anyio.CancelScope(shield=True):
            try:
                await hf.close()
            except Dead:
                await inside.end_tasks(hf)
                await hf.feed.close()
                await store.close()
