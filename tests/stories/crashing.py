"""Ends a runtime in the middle, as kill -9 would: from one write on, nothing of it reaches the disk."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.from_thread

from holdfast.app import Holdfast
from holdfast.clock import Clock, SystemClock
from holdfast.store.base import Store
from holdfast.store.host import ThisHost
from holdfast.store.open import open_store
from holdfast.store.owner import Owner
from holdfast.testing.mock_provider.script import Call
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from tests.stories import inside
from tests.stories.tools import Deed
from tests.stories.world import World

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
        """Die now; also from a thread of the process."""
        try:
            anyio.from_thread.run_sync(self.dead.set)
        except RuntimeError:  # It is the loop's own thread.
            self.dead.set()

    def kill_at(self, n: int, *, after: bool) -> None:
        """Die at the n-th write from now on."""
        self._left, self._after = self.writes + n, after

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Let a function that writes something else than the store count as a write."""

        def call(*arguments: Any, **named: Any) -> Any:
            is_last = self._count()
            found = work(*arguments, **named)
            if is_last:
                self.kill()
                raise Dead
            return found

        return call

    def _count(self) -> bool:
        """Whether this write is the last one, after which the process dies."""
        if self.dead.is_set():
            raise Dead
        self.writes += 1
        is_due = self._left is not None and self.writes >= self._left
        if is_due and not self._after:
            self.kill()
            raise Dead
        return is_due

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in _WRITES:
            return method

        async def call(*arguments: Any, **named: Any) -> Any:
            is_last = self._count()
            found = await method(*arguments, **named)
            if is_last:
                self.kill()
                raise Dead
            return found

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


async def killed_in_a_call(world: World, machine: Machine, deed: Deed) -> str:
    """A session whose process was killed while a call ran: its outcome is not known."""
    deed.gate = anyio.Event()
    with ScriptedProvider(Step(Call(deed.tool.name, {"what": "x"}))) as script:
        async with life(world.store, machine, provider=script) as (hf, mortal):
            hf.tools.register(deed.tool)
            session = await world.session(hf)
            await hf.sessions.prompt(session, "go")
            with anyio.fail_after(60):
                await deed.begun.wait()
            mortal.kill()
    return session
