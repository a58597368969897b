"""Erasing a session with everything below it."""

import msgspec
import pytest

from holdfast.errors import Conflict, LeaseLost, NotFound, Refused
from holdfast.schema.stored import Kind, Mark
from holdfast.store.batch import Batch, Fence
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.testing.store_contract.build import (
    NONE,
    S1,
    S2,
    S3,
    msg,
    prompt,
    prt,
    record,
    ses,
    session,
    text,
    user,
)
from holdfast.testing.store_contract.feed import told
from holdfast.testing.store_contract.world import Contract, World, drain, granted

S4, S5 = ses(4), ses(5)
TREE = (session(), session(S2, parent=S1), session(S3, parent=S2), session(S4, parent=S1), session(S5))


class Erasing(Contract):
    """`erase`, its cascade, its tombstones and its refusals."""

    async def test_a_missing_session_is_not_found(self, world: World) -> None:
        """Also when it was erased before."""
        await world.put(session())
        await world.store.erase(S1)

        for id in (NONE, S1):
            with pytest.raises(NotFound):
                await world.store.erase(id)

    async def test_descendants_go_along_the_deepest_first(self, world: World) -> None:
        """The answer names each erased session, children before parents; others stay."""
        await world.put(*TREE)

        erased = list(await world.store.erase(S1))

        assert sorted(erased) == [S1, S2, S3, S4]
        assert erased[-1] == S1
        assert erased.index(S3) < erased.index(S2)
        assert [each.id for each in (await world.store.sessions(SessionQuery())).sessions] == [S5]

    async def test_one_that_was_used_since_stays(self, world: World) -> None:
        """`idle_since_ms` spares the whole tree for one session of it that was updated later."""
        await world.put(session(updated=100), session(S2, parent=S1, updated=201), session(S3, updated=200))

        with pytest.raises(Conflict, match=S2):
            await world.store.erase(S1, idle_since_ms=200)
        assert list(await world.store.erase(S3, idle_since_ms=200)) == [S3]
        left = await world.store.sessions(SessionQuery())
        assert [each.id for each in left.sessions] == [S2, S1]

    async def test_every_record_goes_along(self, world: World) -> None:
        """Nothing of an erased session can be read, selected or found."""
        kinds: list[tuple[Kind, str]] = [
            ("epoch", "e1"),
            ("todo", S1),
            ("request", "per_1"),
            ("diff", S1),
            ("share", S1),
        ]
        await world.put(session(title="zebra title"), user(1), text(2, 1, "zebra text"), prompt(3))
        await world.put(*(record(S1, kind, id, {"a": 1}, mark=Mark.OPEN) for kind, id in kinds))
        await world.store.erase(S1)

        for kind, id in [*kinds, ("session", S1), ("message", msg(1)), ("part", prt(2)), ("prompt", msg(3))]:
            assert await world.store.get(S1, kind, id) is None
        for kind, _ in kinds:
            assert list(await world.store.select(kind, mark=Mark.OPEN)) == []
            assert list(await world.store.select(kind, session=S1)) == []
        assert list(await world.store.search(SearchQuery("zebra"))) == []
        assert await world.store.session(S1) is None
        with pytest.raises(NotFound):
            await world.store.messages(MessageQuery(S1))

    async def test_followers_hear_of_it_once_a_session(self, world: World) -> None:
        """One tombstone for each erased session replaces all its records."""
        await world.put(*TREE, user(1), text(2, 1), user(3, session=S3), user(4, session=S5))
        head = await world.store.head()
        await world.store.erase(S1)

        changes = await drain(world.store, head)
        assert sorted(told(changes)) == [("session", each, "removed") for each in (S1, S2, S3, S4)]
        assert told(await drain(world.store, head, S3)) == [("session", S3, "removed")]
        assert (await drain(world.store, head, S5)).records == ()

    async def test_a_tombstone_tells_where_the_session_was(self, world: World) -> None:
        """Project and directory, so that the right followers get it, and nothing of its content."""
        await world.put(session(title="secret plans", project="p1", directory="/work/x", slug="calm-wolf"))
        head = await world.store.head()
        await world.store.erase(S1)

        (change,) = (await drain(world.store, head)).records
        told_of = msgspec.json.decode(change.record.json())
        assert (told_of["id"], told_of["projectID"], told_of["directory"]) == (S1, "p1", "/work/x")
        assert (told_of["title"], b"secret" in change.record.data) == ("", False)
        assert change.record.value() is not None

    async def test_a_claimed_session_is_not_erased(self, world: World) -> None:
        """Refused while a living owner runs it or anything below it, and nothing is gone."""
        await world.put(*TREE, user(1))
        await world.owner("o1")
        fence = granted(await world.store.claim(S3, "o1"))
        head = await world.store.head()

        for id in (S3, S2, S1):
            with pytest.raises(Refused):
                await world.store.erase(id)
        assert (await drain(world.store, head)).records == ()
        assert list(await world.store.erase(S4)) == [S4]

        await world.store.release(fence)
        assert sorted(await world.store.erase(S1)) == [S1, S2, S3]

    async def test_its_own_runner_may_erase_it(self, world: World) -> None:
        """Under the fence of the session's own runner; a stale fence is refused."""
        await world.put(*TREE)
        await world.owner("o1")
        fence = granted(await world.store.claim(S1, "o1"))

        with pytest.raises(LeaseLost):
            await world.store.erase(S1, fence=Fence(S1, "o1", fence.number + 1))
        assert sorted(await world.store.erase(S1, fence=fence)) == [S1, S2, S3, S4]

    async def test_the_fence_is_checked_whichever_session_it_names(self, world: World) -> None:
        """A stale fence of another session is refused as well, and a good one is taken."""
        await world.put(*TREE)
        await world.owner("o1")
        fence = granted(await world.store.claim(S5, "o1"))

        for stale in (Fence(S5, "o1", fence.number + 1), Fence(S5, "nobody", fence.number)):
            with pytest.raises(LeaseLost):
                await world.store.erase(S1, fence=stale)
        assert sorted(await world.store.erase(S1, fence=fence)) == [S1, S2, S3, S4]

    async def test_a_runner_may_erase_what_it_runs_below(self, world: World) -> None:
        """Children run by the fence's own owner do not protect the tree; those of another owner do."""
        await world.put(*TREE)
        await world.owner("o1")
        await world.owner("o2")
        fence = granted(await world.store.claim(S1, "o1"))
        granted(await world.store.claim(S3, "o1"))
        other = granted(await world.store.claim(S4, "o2"))

        with pytest.raises(Refused):
            await world.store.erase(S1, fence=fence)
        await world.store.release(other)
        assert sorted(await world.store.erase(S1, fence=fence)) == [S1, S2, S3, S4]

    async def test_a_dead_runner_does_not_protect_a_session(self, world: World) -> None:
        """Only a living owner does."""
        await world.put(session())
        owner = await world.owner("o1")
        granted(await world.store.claim(S1, "o1"))
        world.host.kill(owner)

        assert list(await world.store.erase(S1)) == [S1]

    async def test_a_child_cannot_slip_in(self, world: World) -> None:
        """A child put after the erasure has no parent, from any process."""
        await world.put(*TREE)
        other = await world.another()
        await world.store.erase(S1)

        with pytest.raises(NotFound):
            await other.commit(Batch((session(ses(9), parent=S2),)))
