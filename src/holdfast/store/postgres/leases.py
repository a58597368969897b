"""Owners and claims. Time is the database's, unless a clock was given; what is gone is seen from here."""

import contextlib
from collections.abc import Sequence

import msgspec

from holdfast.clock import Clock, SystemClock
from holdfast.errors import InvalidInput, LeaseLost, StoreError
from holdfast.schema import typed
from holdfast.store.batch import Fence, Held
from holdfast.store.host import Host
from holdfast.store.owner import LEASE_MS, Owner, Renewals, Sightings
from holdfast.store.postgres.connections import Connections
from holdfast.store.postgres.sql import statements
from holdfast.store.postgres.wakes import Wakes

_owner = typed.decoder(Owner)


class Leases:
    """The owner table seen from one process."""

    def __init__(
        self, connections: Connections, wakes: Wakes, schema: str, clock: Clock | None, host: Host
    ) -> None:
        self._connections = connections
        self._wakes = wakes
        self._sql = statements(schema)
        self._clock = clock
        self._own_clock = clock or SystemClock()
        self._host = host
        self._renewals = Renewals()
        self._sightings = Sightings()

    def now_ms(self) -> int | None:
        """The moment to judge by; None where the database's clock does."""
        return None if self._clock is None else self._clock.now_ms()

    def living(self, id: str | None, data: str | None) -> str | None:
        """The owner of a row that the database found alive, unless we can see that it is gone."""
        return None if id is None or data is None or self._is_gone(data) else id

    def _is_gone(self, data: str) -> bool:
        """Whether an owner is known to be gone; that is not known of one whose row cannot be read."""
        owner = read_owner(data)
        return owner is not None and self._host.is_gone(owner)

    async def gone(self) -> list[str]:
        """Who of the owners is known here to be gone. None comes back from there."""
        async with self._connections.use() as connection:
            rows = await connection.fetch(self._sql["owners"])
        return [id for id, data in rows if self._is_gone(data)]

    async def register(self, owner: Owner) -> None:
        sent_ms = self._own_clock.boot_ms()
        await self._connections.call(
            self._sql["register"],
            _plain(owner.id),
            msgspec.json.encode(owner).decode(),
            list(owner.placements),
            LEASE_MS,
            self.now_ms(),
        )
        self._renewals.note(owner.id, sent_ms)
        with contextlib.suppress(StoreError):  # A look that fails now only puts off the first burial.
            await self._look(owner.id)

    async def _look(self, me: str) -> tuple[list[str], dict[str, int]]:
        """Who of the others is known to be gone, and who has been silent for long enough."""
        async with self._connections.use() as connection:
            rows = await connection.fetch(self._sql["deadlines"], self.now_ms())
        boot_ms = self._own_clock.boot_ms()
        others = [row for row in rows if row["id"] != me]
        if rows:
            store_ms = rows[0]["moment"]
            deadlines = {row["id"]: row["deadline"] for row in others}
            self._sightings.note(deadlines, store_ms=store_ms, boot_ms=boot_ms)
            silent = self._sightings.silent(store_ms=store_ms, boot_ms=boot_ms)
        else:
            silent = {}
        return [row["id"] for row in others if self._is_gone(row["data"])], silent

    async def renew(self, owner: str) -> None:
        """On the direct connection, which nothing that may wait for a session's lock ever uses."""
        sent_ms = self._own_clock.boot_ms()
        if not await self._wakes.call(self._sql["renew"], _plain(owner), LEASE_MS, self.now_ms()):
            raise LeaseLost(f"owner {owner} was declared dead; stop its sessions and register again")
        self._renewals.note(owner, sent_ms)

    async def retire(self, owner: str) -> None:
        await self._connections.call(self._sql["retire"], _plain(owner))
        self._renewals.forget(owner)

    async def bury(self, owner: str) -> Sequence[str]:
        gone, silent = await self._look(owner)
        patient = self._renewals.may_bury(owner, self._own_clock.boot_ms())
        return await self._bury(owner, gone, silent if patient else {})

    async def _bury(self, owner: str, gone: list[str], silent: dict[str, int]) -> list[str]:
        if not gone and not silent:
            return []
        values = (_plain(owner), gone, list(silent), list(silent.values()))
        buried = await self._connections.call(self._sql["bury"], *values)
        assert isinstance(buried, list)
        return buried

    async def claim(self, session: str, owner: str) -> Fence | Held:
        holder = ""
        for _ in range(3):
            async with self._connections.use() as connection:
                row = await connection.fetchrow(self._sql["claim"], session, _plain(owner))
            if row["number"] is not None:
                return Fence(session, owner, row["number"])
            holder = row["holder"]
            if self.living(holder, row["holder_data"]) is not None:
                break
            # A dead process of this machine is buried at once; then the session is free, also for others.
            await self._bury(owner, [holder], {})
        return Held(session, holder)

    async def renumber(self, fence: Fence) -> Fence:
        number = await self._connections.call(
            self._sql["renumber"], fence.session, _plain(fence.owner), fence.number
        )
        assert isinstance(number, int)
        return Fence(fence.session, fence.owner, number)


def read_owner(data: str) -> Owner | None:
    """The owner of a row; None when it cannot be read (damage, or a later version's words)."""
    try:
        return _owner.decode(data)
    except msgspec.DecodeError:
        return None


def _plain(id: str) -> str:
    if "\0" in id or not id.isascii():
        raise InvalidInput("an owner's id is plain text")
    return id
