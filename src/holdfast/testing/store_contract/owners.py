"""Owners and claims under a fake clock: which are alive, which may run a session, which may be buried."""

import pytest

from holdfast.errors import Conflict, LeaseLost, NotFound, Refused
from holdfast.store.base import Store
from holdfast.store.batch import Fence, Held
from holdfast.store.owner import LEASE_MS, RENEW_MS
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import NONE, S1, S2, session, user
from holdfast.testing.store_contract.world import Contract, World, granted


async def owner_of(store: Store, id: str = S1) -> str | None:
    """The living owner that runs a session."""
    found = await store.session(id)
    assert found is not None
    return found.owner


class Claiming(Contract):
    """Register, claim, release, retire."""

    async def test_only_the_registered_claim(self, world: World) -> None:
        """An owner that was never registered, or has retired, gets `LeaseLost`."""
        await world.put(session())
        await world.owner("o1")
        await world.store.retire("o1")

        for id in ("o1", "nobody"):
            with pytest.raises(LeaseLost):
                await world.store.claim(S1, id)
            with pytest.raises(LeaseLost):
                await world.store.renew(id)
        assert await owner_of(world.store) is None

    async def test_an_owner_is_registered_once(self, world: World) -> None:
        """Two processes under one id would each renew for the other; the one that registered first stays."""
        await world.put(session())
        await world.owner("o1")
        with pytest.raises(Conflict):
            await world.owner("o1", placements=("there",))

        granted(await world.store.claim(S1, "o1"))

    async def test_a_missing_session_cannot_be_claimed(self, world: World) -> None:
        """It is not found, and neither is an erased one."""
        await world.owner("o1")
        await world.put(session())
        await world.store.erase(S1)

        for id in (NONE, S1):
            with pytest.raises(NotFound):
                await world.store.claim(id, "o1")

    async def test_only_an_owner_at_the_placement_claims(self, world: World) -> None:
        """An owner that cannot reach a session's directory is refused; one at its placement may run it."""
        await world.put(session(placement="there"), session(S2, placement="here"))
        await world.owner("o1", placements=("here",))
        await world.owner("o2", placements=("here", "there"))

        with pytest.raises(Refused):
            await world.store.claim(S1, "o1")
        assert await owner_of(world.store) is None
        granted(await world.store.claim(S1, "o2"))
        granted(await world.store.claim(S2, "o1"))

    async def test_a_claimed_session_is_held(self, world: World) -> None:
        """A second claim names the holder, from any process and any machine, and changes nothing."""
        await world.put(session())
        far = FakeHost("hostB")
        other = await world.another(host=far)
        await world.owner("o1")
        await other.register(far.owner("o2"))
        fence = granted(await world.store.claim(S1, "o1"))

        assert await other.claim(S1, "o2") == Held(S1, "o1")
        assert await owner_of(other) == "o1"
        assert (await world.put(user(1), fence=fence)).seq > 0

    async def test_its_own_claim_is_held_too(self, world: World) -> None:
        """An owner that already runs a session gets `Held`, and its fence stays good."""
        await world.put(session())
        await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))

        assert await world.store.claim(S1, "o1") == Held(S1, "o1")
        assert (await world.put(user(1), fence=fence)).seq > 0

    async def test_a_claim_may_be_given_another_number(self, world: World) -> None:
        """The holder asks for it, also twice when the first answer was lost: only the last number is good."""
        await world.put(session())
        await world.owner("o1")
        first = granted(await world.store.claim(S1, "o1"))
        await world.store.renumber(first)
        last = await world.store.renumber(first)
        record = await world.store.session(S1)

        assert record is not None
        assert (record.owner, record.claim) == ("o1", last.number)
        assert last == Fence(S1, "o1", first.number + 2)
        with pytest.raises(LeaseLost):
            await world.put(user(1), fence=first)
        assert (await world.put(user(1), fence=last)).seq > 0
        await world.store.release(last)
        with pytest.raises(LeaseLost):
            await world.store.renumber(last)

    async def test_of_two_claims_at_once_one_is_granted(self, world: World) -> None:
        """Two owners after one session: exactly one gets it."""
        import anyio

        await world.put(session())
        other = await world.another()
        await world.owner("o1")
        await world.owner("o2")
        answers: list[object] = []

        async def claim(store: Store, owner: str) -> None:
            answers.append(await store.claim(S1, owner))

        async with anyio.create_task_group() as group:
            group.start_soon(claim, world.store, "o1")
            group.start_soon(claim, other, "o2")

        holder = await owner_of(world.store)
        assert holder is not None
        held = [answer for answer in answers if isinstance(answer, Held)]
        assert (len(answers), held) == (2, [Held(S1, holder)])

    async def test_retiring_gives_every_claim_back(self, world: World) -> None:
        """What an owner ran is free at once, and its fences are stale."""
        await world.put(session(), session(S2))
        await world.owner("o1")
        await world.owner("o2")
        fence = granted(await world.store.claim(S1, "o1"))
        granted(await world.store.claim(S2, "o1"))
        await world.store.retire("o1")

        assert [await owner_of(world.store, each) for each in (S1, S2)] == [None, None]
        with pytest.raises(LeaseLost):
            await world.put(user(1), fence=fence)
        assert granted(await world.store.claim(S1, "o2")).number > fence.number

    async def test_claims_outlive_a_restart_of_the_store(self, world: World) -> None:
        """A claim is durable: after reopening the session is still held under the same number."""
        await world.put(session())
        await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))

        store = await world.reopen()

        assert await owner_of(store) == "o1"
        assert (await world.put(user(1), fence=fence)).seq > 0

    async def test_busy_is_derived(self, world: World) -> None:
        """A session is busy while a living owner runs it: not before, not after, not past its deadline."""
        await world.put(session())
        owner = await world.owner("o1")
        assert await owner_of(world.store) is None
        fence = granted(await world.store.claim(S1, "o1"))
        found = await world.store.session(S1)
        assert found is not None
        assert (found.owner, found.busy) == ("o1", True)

        world.clock.advance(LEASE_MS + 1)
        assert await owner_of(world.store) is None
        await world.store.renew("o1")
        assert await owner_of(world.store) == "o1"
        world.host.kill(owner)
        assert await owner_of(world.store) is None
        await world.store.release(fence)
        assert await owner_of(world.store) is None


class Burying(Contract):
    """When an owner counts as dead, and which process may decide it."""

    async def test_a_dead_neighbour_is_replaced_at_once(self, world: World) -> None:
        """A process of this host and boot that no longer exists loses its sessions to the next claim."""
        await world.put(session(), session(S2))
        dead = await world.owner("o1")
        await world.owner("o2")
        first = granted(await world.store.claim(S1, "o1"))
        granted(await world.store.claim(S2, "o1"))
        world.host.kill(dead)

        assert granted(await world.store.claim(S1, "o2")).number > first.number
        granted(await world.store.claim(S2, "o2"))
        with pytest.raises(LeaseLost):
            await world.store.renew("o1")

    @pytest.mark.parametrize(
        "far", [FakeHost("hostB"), FakeHost(boot="boot0"), FakeHost(pid_namespace="pid:[2]")]
    )
    async def test_a_process_elsewhere_is_judged_by_its_deadline_alone(
        self, world: World, far: FakeHost
    ) -> None:
        """No process can see that a process of another host, boot or namespace is gone."""
        await world.put(session())
        dead = await world.owner("o1", host=far)
        await world.owner("o2")
        granted(await world.store.claim(S1, "o1"))
        far.kill(dead)

        assert await world.store.claim(S1, "o2") == Held(S1, "o1")
        await world.live(world.store, "o2", LEASE_MS + 1)
        assert list(await world.store.bury("o2")) == ["o1"]
        granted(await world.store.claim(S1, "o2"))

    async def test_a_claim_never_judges_by_the_deadline(self, world: World) -> None:
        """A late owner that was not buried keeps its claims, its fence and its right to renew."""
        await world.put(session())
        await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))
        world.clock.advance(2 * LEASE_MS)
        await world.owner("o2")

        assert await world.store.claim(S1, "o2") == Held(S1, "o1")
        assert (await world.put(user(1), fence=fence)).seq > 0
        await world.store.renew("o1")
        assert await owner_of(world.store) == "o1"

    async def test_a_paused_owner_is_buried_and_comes_too_late(self, world: World) -> None:
        """Pause, burial, then the late renewal and the late commit: both are refused, the successor works."""
        await world.put(session())
        far = FakeHost("hostB")
        other = await world.another(host=far)
        await world.owner("o1")
        await other.register(far.owner("o2"))
        old = granted(await world.store.claim(S1, "o1"))
        await world.live(other, "o2", LEASE_MS)
        assert list(await other.bury("o2")) == [], "its deadline has not passed"
        await world.live(other, "o2", 1)

        assert list(await other.bury("o2")) == ["o1"]
        assert list(await other.bury("o2")) == [], "nobody dies twice"
        with pytest.raises(LeaseLost):
            await world.store.renew("o1")
        with pytest.raises(LeaseLost):
            await world.put(user(1), fence=old)
        with pytest.raises(LeaseLost):
            await world.store.claim(S1, "o1")
        assert await owner_of(other) is None
        new = granted(await other.claim(S1, "o2"))
        assert new.number > old.number
        assert (await world.put(user(1), fence=new)).seq > 0

    async def test_a_renewed_owner_is_not_buried(self, world: World) -> None:
        """An owner that renews in time lives, however long the others have been waiting for it."""
        await world.owner("o1")
        await world.owner("o2")
        for _ in range(10):
            world.clock.advance(RENEW_MS)
            await world.store.renew("o1")
            await world.store.renew("o2")
            assert list(await world.store.bury("o1")) == []

    async def test_a_newcomer_may_not_bury(self, world: World) -> None:
        """Only an owner whose own renewals have been unbroken for an interval may declare others dead."""
        await world.owner("o1")
        world.clock.advance(LEASE_MS + 1)
        await world.owner("o2")

        assert list(await world.store.bury("o2")) == []
        world.clock.advance(RENEW_MS - 1)
        await world.store.renew("o2")
        assert list(await world.store.bury("o2")) == []
        world.clock.advance(1)
        await world.store.renew("o2")
        assert list(await world.store.bury("o2")) == ["o1"]

    async def test_a_clock_that_is_set_buries_nobody_alive(self, world: World) -> None:
        """All deadlines are in the past at once, and every owner keeps renewing: none is ever buried."""
        far = FakeHost("hostB")
        other = await world.another(host=far)
        await world.owner("o1")
        await other.register(far.owner("o2"))
        for step in range(8):
            world.clock.advance(RENEW_MS)
            if step == 3:
                world.clock.set_wall(world.clock.now_ms() + 20 * LEASE_MS)
            assert list(await other.bury("o2")) == []
            await other.renew("o2")
            assert list(await other.bury("o2")) == []
            await world.store.renew("o1")

    async def test_an_outage_longer_than_the_lease_buries_nobody_alive(self, world: World) -> None:
        """After it every owner is late; the first that is back waits, and the others renew meanwhile."""
        await world.put(session())
        other = await world.another()
        await world.owner("o1")
        await other.register(world.host.owner("o2"))
        fence = granted(await world.store.claim(S1, "o1"))
        for _ in range(3):
            world.clock.advance(RENEW_MS)
            await world.store.renew("o1")
            await other.renew("o2")
        world.clock.advance(3 * LEASE_MS)

        await other.renew("o2")
        assert list(await other.bury("o2")) == []
        await world.store.renew("o1")
        await world.live(other, "o2", RENEW_MS)
        assert list(await other.bury("o2")) == []
        assert (await world.put(user(1), fence=fence)).seq > 0

    async def test_who_did_not_come_back_after_an_outage_is_buried(self, world: World) -> None:
        """The wait after an outage ends: one interval of unbroken renewals is enough."""
        await world.owner("o1")
        await world.owner("o2")
        world.clock.advance(3 * LEASE_MS)
        await world.store.renew("o2")
        await world.live(world.store, "o2", RENEW_MS)

        assert list(await world.store.bury("o2")) == ["o1"]

    async def test_a_buried_owner_registers_anew(self, world: World) -> None:
        """The process continues as another owner and may claim again."""
        await world.put(session())
        await world.owner("o1")
        await world.owner("o2")
        old = granted(await world.store.claim(S1, "o1"))
        await world.live(world.store, "o2", LEASE_MS + 1)
        await world.store.bury("o2")
        await world.owner("o3")

        assert granted(await world.store.claim(S1, "o3")).number > old.number
