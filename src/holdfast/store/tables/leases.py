"""Owners and claims in the tables, inside a transaction that the caller begins and commits."""

import msgspec

from holdfast.clock import Clock
from holdfast.errors import Conflict, LeaseLost, NotFound, Refused
from holdfast.schema import typed
from holdfast.store.batch import Fence, Held
from holdfast.store.host import Host
from holdfast.store.owner import LEASE_MS, Lease, Owner, expired
from holdfast.store.tables.connection import Connection


class Leases:
    """The owner table seen from one process."""

    def __init__(self, db: Connection, clock: Clock, host: Host) -> None:
        self._db = db
        self._clock = clock
        self._host = host

    def lease(self, owner: str) -> Lease | None:
        """The owner's lease, dead or alive."""
        row = self._db.execute(
            "SELECT id, data, deadline_boot, deadline_wall, dead FROM owner WHERE id=?", (owner,)
        ).get
        return None if row is None else _lease(row)

    def living(self, owner: str) -> bool:
        """Whether an owner runs what it claimed: not buried, not gone, its deadline not passed."""
        lease = self.lease(owner)
        return lease is not None and not self._is_over(lease)

    def _is_over(self, lease: Lease) -> bool:
        return lease.dead or self._host.is_gone(lease.owner) or self._expired(lease)

    def _expired(self, lease: Lease) -> bool:
        return expired(
            lease, boot=self._host.boot, boot_ms=self._clock.boot_ms(), wall_ms=self._clock.now_ms()
        )

    def register(self, owner: Owner) -> None:
        """Enter the owner with a fresh deadline."""
        if self.lease(owner.id) is not None:
            raise Conflict(f"owner {owner.id} is registered already; each process takes an id of its own")
        self._db.execute(
            "INSERT INTO owner(id, data, deadline_boot, deadline_wall) VALUES (?,?,?,?)",
            (owner.id, msgspec.json.encode(owner).decode(), *self._deadlines()),
        )

    def renew(self, owner: str) -> None:
        """Move the deadline of an owner that was not buried, however late it comes."""
        self._db.execute(
            "UPDATE owner SET deadline_boot=?, deadline_wall=? WHERE id=? AND dead=0",
            (*self._deadlines(), owner),
        )
        if self._db.changes() == 0:
            raise LeaseLost(f"owner {owner} was declared dead; stop its sessions and register again")

    def _deadlines(self) -> tuple[int, int]:
        return self._clock.boot_ms() + LEASE_MS, self._clock.now_ms() + LEASE_MS

    def retire(self, owner: str) -> None:
        """Free the owner's claims and forget it."""
        self._free(owner)
        self._db.execute("DELETE FROM owner WHERE id=?", (owner,))

    def bury(self, owner: str, *, patient: bool) -> list[str]:
        """Declare dead who is gone and, if the asker has been patient, who missed its deadline."""
        rows = self._db.execute(
            "SELECT id, data, deadline_boot, deadline_wall, dead FROM owner WHERE dead=0 AND id<>?", (owner,)
        ).fetchall()
        over = [
            lease.owner.id
            for lease in map(_lease, rows)
            if self._host.is_gone(lease.owner) or (patient and self._expired(lease))
        ]
        for id in over:
            self._bury(id)
        return over

    def claim(self, session: str, owner: str) -> Fence | Held:
        """See the port."""
        lease = self.lease(owner)
        if lease is None or lease.dead:
            raise LeaseLost(f"owner {owner} is not registered or was declared dead; register again")
        row = self._db.execute(
            "SELECT owner, fence, placement FROM session WHERE id=? AND scope=0 AND data IS NOT NULL",
            (session,),
        ).get
        if row is None:
            raise NotFound(f"session {session} does not exist")
        holder, number, placement = row
        if placement is not None and placement not in lease.owner.placements:
            raise Refused(
                f"session {session} runs at placement {placement}, which this process does not offer"
            )
        if holder is not None and not self._clear(holder):
            return Held(session, holder)
        self._db.execute("UPDATE session SET owner=?, fence=? WHERE id=?", (owner, number + 1, session))
        return Fence(session, owner, number + 1)

    def renumber(self, fence: Fence) -> Fence:
        """See the port. A number above the known one is an earlier answer, which was lost."""
        self._db.execute(
            "UPDATE session SET fence=fence+1 WHERE id=? AND owner=? AND fence>=?",
            (fence.session, fence.owner, fence.number),
        )
        if self._db.changes() == 0:
            raise LeaseLost(f"session {fence.session} was taken over or given back; stop running it")
        number = self._db.execute("SELECT fence FROM session WHERE id=?", (fence.session,)).get
        return Fence(fence.session, fence.owner, number)

    def _clear(self, holder: str) -> bool:
        """Whether a holder is out of the way: never by its deadline, which only a timer may judge."""
        lease = self.lease(holder)
        if lease is None or lease.dead:
            return True
        if self._host.is_gone(lease.owner):
            self._bury(holder)
            return True
        return False

    def _bury(self, owner: str) -> None:
        self._free(owner)
        self._db.execute("UPDATE owner SET dead=1 WHERE id=?", (owner,))

    def _free(self, owner: str) -> None:
        self._db.execute("UPDATE session SET owner=NULL WHERE owner=?", (owner,))


def _lease(row: tuple[str, str, int, int, int]) -> Lease:
    return Lease(read_owner(*row[:2]), row[2], row[3], dead=bool(row[4]))


def unreadable(db: Connection) -> list[str]:
    """The owners that are not dead, and whose rows cannot be read."""
    rows = db.execute("SELECT id, data FROM owner WHERE dead=0 ORDER BY id").fetchall()
    return [id for id, data in rows if not read_owner(id, data).host]


def read_owner(id: str, data: str) -> Owner:
    """The owner of a row. One whose row cannot be read may run anywhere: its deadline alone counts."""
    try:
        return typed.decode(data, Owner)
    except msgspec.DecodeError:
        return Owner(id, "", "", 0, "", "", ())
