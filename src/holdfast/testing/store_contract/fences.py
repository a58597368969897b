"""Expectations and fences: when a commit that is well formed is refused all the same."""

import pytest

from holdfast.errors import Conflict, LeaseLost
from holdfast.schema.stored import Mark
from holdfast.store.batch import (
    Batch,
    Expectation,
    Fence,
    Remove,
    Rising,
    Settled,
    Unchanged,
    Unclaimed,
)
from holdfast.store.owner import LEASE_MS
from holdfast.testing.store_contract.build import NONE, S1, S2, body, msg, prompt, prt, session, text, user
from holdfast.testing.store_contract.world import Contract, World, drain, granted


async def fails(world: World, expectation: Expectation) -> None:
    """The expectation does not hold: `Conflict`, and nothing was written."""
    before = await world.store.head()
    with pytest.raises(Conflict):
        await world.put(user(99), text(100, 99), expect=(expectation,))
    assert (await drain(world.store, before)).records == ()


async def holds(world: World, expectation: Expectation) -> None:
    """The expectation holds: the commit is made."""
    assert (await world.put(user(98), expect=(expectation,))).seq > 0
    await world.put(Remove(S1, "message", msg(98)))


async def stale(world: World, fence: Fence) -> None:
    """A commit under this fence: `LeaseLost`, and nothing was written."""
    before = await world.store.head()
    with pytest.raises(LeaseLost):
        await world.put(user(99), fence=fence)
    assert (await drain(world.store, before)).records == ()


class Expecting(Contract):
    """Optional expectations of a commit."""

    async def test_unchanged(self, world: World) -> None:
        """The record's latest number must be the given one."""
        receipt = await world.put(session(), user(1))
        changed = await world.put(user(1, agent="plan"))

        await fails(world, Unchanged(S1, "message", msg(1), receipt.numbers[1]))
        await fails(world, Unchanged(S1, "message", msg(1), 0))
        await fails(world, Unchanged(S1, "message", msg(2), changed.seq))
        await holds(world, Unchanged(S1, "message", msg(1), changed.seq))

    async def test_unchanged_session(self, world: World) -> None:
        """A session's own record counts, not the records in it."""
        receipt = await world.put(session(), user(1))

        await fails(world, Unchanged(S1, "session", S1, receipt.numbers[1]))
        await holds(world, Unchanged(S1, "session", S1, receipt.numbers[0]))

    async def test_number_zero_means_absent(self, world: World) -> None:
        """0 holds for what never was and for what was removed."""
        await world.put(session(), user(1), user(2), text(3, 2))
        await world.put(Remove(S1, "message", msg(2)))

        await fails(world, Unchanged(S1, "message", msg(1), 0))
        await fails(world, Unchanged(S1, "session", S1, 0))
        await holds(world, Unchanged(S1, "message", msg(2), 0))
        await holds(world, Unchanged(S1, "part", prt(3), 0))
        await holds(world, Unchanged(S1, "message", msg(77), 0))
        await holds(world, Unchanged(NONE, "session", NONE, 0))

    async def test_a_session_is_created_once(self, world: World) -> None:
        """Of two creations that expect an absent session the second is refused, also from another process."""
        absent = Batch((session(),), (Unchanged(S1, "session", S1, 0),))
        other = await world.another()
        await world.store.commit(absent)

        with pytest.raises(Conflict):
            await other.commit(absent)

    async def test_settled(self, world: World) -> None:
        """No record of the kind may be open in that session; other kinds and sessions do not count."""
        await world.put(session(), session(S2), prompt(1), prompt(2, session=S2))

        await fails(world, Settled(S1, "prompt"))
        await holds(world, Settled(S1, "request"))

        await world.put(prompt(1, waiting=False))
        await holds(world, Settled(S1, "prompt"))

    async def test_a_removed_record_is_not_open(self, world: World) -> None:
        """Removing the last open record settles the session, a part with its message included."""
        await world.put(session(), prompt(1), user(2), text(3, 2, mark=Mark.OPEN))
        await fails(world, Settled(S1, "part"))
        await world.put(Remove(S1, "prompt", msg(1)), Remove(S1, "message", msg(2)))

        await holds(world, Settled(S1, "prompt"))
        await holds(world, Settled(S1, "part"))

    async def test_unclaimed(self, world: World) -> None:
        """No living owner may run the session; a dead one does not count."""
        await world.put(session(), session(S2))
        owner = await world.owner("o1")
        granted(await world.store.claim(S1, "o1"))

        await fails(world, Unclaimed(S1))
        await holds(world, Unclaimed(S2))

        world.host.kill(owner)
        await holds(world, Unclaimed(S1))

    async def test_rising(self, world: World) -> None:
        """New message and part ids must be above every id the session has had, removed ones included."""
        await world.put(session(), session(S2), user(5), text(7, 5), user(50, session=S2))
        await world.put(Remove(S1, "part", prt(7)))

        for change in (user(7), user(6), text(7, 5), text(1, 5)):
            with pytest.raises(Conflict):
                await world.put(change, expect=(Rising(S1),))
        with pytest.raises(Conflict):
            await world.put(user(9), text(8, 9), expect=(Rising(S1),))

        await world.put(user(8), text(9, 8), expect=(Rising(S1),))
        await world.put(user(8), text(9, 8, "again"), user(5), expect=(Rising(S1),))
        found = await world.store.session(S1)
        assert found is not None
        assert found.top == body(9)

    async def test_without_the_expectation_ids_need_not_rise(self, world: World) -> None:
        """Imported ids come in any order, and the top is the greatest of them."""
        await world.put(session(), user(9), user(3), text(4, 3))

        found = await world.store.session(S1)
        assert found is not None
        assert found.top == body(9)

    async def test_every_expectation_must_hold(self, world: World) -> None:
        """One of several that fails is enough."""
        await world.put(session(), prompt(1))

        with pytest.raises(Conflict):
            await world.put(user(2), expect=(Unchanged(S1, "message", msg(2), 0), Settled(S1, "prompt")))

    async def test_an_expectation_alone_is_a_question(self, world: World) -> None:
        """A batch without changes is still refused when what it expects does not hold."""
        await world.put(session(), prompt(1))

        with pytest.raises(Conflict):
            await world.put(expect=(Settled(S1, "prompt"),))


class Fencing(Contract):
    """Which process may write as the runner of a session."""

    async def test_a_session_without_a_claim_has_no_fence(self, world: World) -> None:
        """Any number under any owner is refused, and so is a missing session."""
        await world.put(session())
        await world.owner("o1")

        for fence in (Fence(S1, "o1", 0), Fence(S1, "o1", 1), Fence(NONE, "o1", 1)):
            await stale(world, fence)

    async def test_number_and_owner_must_both_match(self, world: World) -> None:
        """Another number, another owner, and the same number under another owner id are refused."""
        await world.put(session(), session(S2))
        await world.owner("o1")
        await world.owner("o2")
        fence = granted(await world.store.claim(S1, "o1"))
        other = granted(await world.store.claim(S2, "o2"))

        await stale(world, Fence(S1, "o1", fence.number + 1))
        await stale(world, Fence(S1, "o1", fence.number - 1))
        await stale(world, Fence(S1, "o2", fence.number))
        await stale(world, Fence(S2, "o1", other.number))
        assert (await world.put(user(1), fence=fence)).seq > 0

    async def test_a_released_fence_is_stale(self, world: World) -> None:
        """After release nothing can be written or released under it, and a new claim has a higher number."""
        await world.put(session())
        await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))
        await world.store.release(fence)

        await stale(world, fence)
        with pytest.raises(LeaseLost):
            await world.store.release(fence)
        again = granted(await world.store.claim(S1, "o1"))
        assert again.number > fence.number
        await stale(world, fence)

    async def test_a_fence_is_stale_after_burial(self, world: World) -> None:
        """A dead owner's commits are refused even before another owner claims its session."""
        await world.put(session())
        await world.owner("o1")
        await world.owner("o2")
        fence = granted(await world.store.claim(S1, "o1"))
        await world.live(world.store, "o2", LEASE_MS + 1)
        assert list(await world.store.bury("o2")) == ["o1"]

        await stale(world, fence)

    async def test_a_fence_is_stale_after_a_take_over(self, world: World) -> None:
        """The next owner has a higher number, and only its commits are taken."""
        await world.put(session())
        dead = await world.owner("o1")
        await world.owner("o2")
        old = granted(await world.store.claim(S1, "o1"))
        world.host.kill(dead)
        new = granted(await world.store.claim(S1, "o2"))

        assert new.number > old.number
        await stale(world, old)
        assert (await world.put(user(1), fence=new)).seq > 0

    @pytest.mark.parametrize("killed", [False, True], ids=["late", "dead"])
    async def test_a_fence_is_stale_after_an_edit_of_the_unclaimed(self, world: World, killed: bool) -> None:  # noqa: FBT001
        """An edit of a session that no living owner runs ends the claim: its late runner is refused."""
        await world.put(session())
        owner = await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))
        if killed:
            world.host.kill(owner)
        else:
            world.clock.advance(LEASE_MS + 1)
        await world.put(user(1), expect=(Unclaimed(S1),))

        await stale(world, fence)

    async def test_the_fence_names_its_session_and_the_batch_may_touch_others(self, world: World) -> None:
        """A runner writes to other sessions (its budget's root) under the fence of its own."""
        await world.put(session(), session(S2))
        await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))
        await world.put(user(1), user(2, session=S2), fence=fence)
        await world.store.release(fence)

        with pytest.raises(LeaseLost):
            await world.put(user(3, session=S2), fence=fence)

    async def test_a_commit_may_give_the_session_back(self, world: World) -> None:
        """`release` ends the claim in the commit that settles the session, or not at all."""
        await world.put(session(), prompt(1))
        await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))
        last = Batch((user(2),), (Settled(S1, "prompt"),), fence, release=True)
        with pytest.raises(Conflict):
            await world.store.commit(last)
        found = await world.store.session(S1)
        assert found is not None
        assert found.owner == "o1"

        await world.put(prompt(1, waiting=False), fence=fence)
        await world.store.commit(last)

        found = await world.store.session(S1)
        assert found is not None
        assert (found.owner, found.busy) == (None, False)
        await stale(world, fence)

    async def test_a_release_can_ask_for_an_empty_inbox(self, world: World) -> None:
        """With `settled`, a prompt that came meanwhile keeps the claim: no prompt is left behind."""
        await world.put(session())
        await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))
        await world.put(prompt(1))
        with pytest.raises(Conflict):
            await world.store.release(fence, settled=True)
        await world.put(prompt(1, waiting=False), fence=fence)

        await world.store.release(fence, settled=True)
        await stale(world, fence)

    async def test_a_re_created_session_knows_no_old_fence(self, world: World) -> None:
        """Fence numbers are not given out twice, also when the session was erased in between."""
        await world.put(session())
        await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))
        await world.store.erase(S1, fence=fence)
        await world.put(session())

        await stale(world, fence)
        assert granted(await world.store.claim(S1, "o1")).number > fence.number
