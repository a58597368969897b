"""Commits: all or nothing, numbered, and never an orphan."""

from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Receipt, Remove, host_scope, project_scope
from holdfast.store.query import MessageQuery, SessionQuery
from holdfast.store.record import SessionRecord
from holdfast.testing.store_contract.build import (
    NONE,
    S1,
    S2,
    assistant,
    body,
    expected,
    msg,
    prt,
    record,
    session,
    shown,
    text,
    user,
)
from holdfast.testing.store_contract.world import Contract, World, drain


async def all_of(world: World, session: str = S1) -> list[tuple[str, list[str]]]:
    """Each message id of a session with its part ids, as listed."""
    page = await world.store.messages(MessageQuery(session))
    return [(each.info.id, [part.id for part in each.parts]) for each in page.messages]


class Numbering(Contract):
    """A number for each change, in their order."""

    async def test_an_empty_batch_changes_nothing(self, world: World) -> None:
        """A commit without changes is answered without numbers."""
        assert await world.put() == Receipt(())

    async def test_each_change_gets_a_number_in_batch_order(self, world: World) -> None:
        """Within a session numbers rise from change to change and from commit to commit."""
        first = await world.put(session(), user(1), text(2, 1), text(3, 1))
        second = await world.put(assistant(4, 1), user(1), text(3, 1, "again"))

        numbers = first.numbers + second.numbers
        assert len(first.numbers) == 4
        assert len(second.numbers) == 3
        assert list(numbers) == sorted(set(numbers))
        assert numbers[0] > 0
        assert second.seq == second.numbers[-1]

    async def test_position_is_the_first_number_and_seq_the_latest(self, world: World) -> None:
        """A record keeps the place of its creation, whatever happens to it later."""
        made = await world.put(session(), user(1), text(2, 1))
        changed = await world.put(text(2, 1, "more"), user(1, agent="plan"))

        assert shown(await world.store.get(S1, "message", msg(1))) == expected(
            user(1, agent="plan"), position=made.numbers[1], seq=changed.numbers[1]
        )
        assert shown(await world.store.get(S1, "part", prt(2))) == expected(
            text(2, 1, "more"), position=made.numbers[2], seq=changed.numbers[0]
        )
        assert await world.store.session(S1) == SessionRecord(
            id=S1,
            position=made.numbers[0],
            seq=made.numbers[0],
            head=changed.seq,
            top=body(2),
            owner=None,
            data=(await session_data(world)),
        )

    async def test_a_record_put_twice_in_one_batch_has_its_last_content(self, world: World) -> None:
        """Both changes have numbers; the record was created by the first and has the seq of the second."""
        receipt = await world.put(session(), user(1), text(2, 1, "a"), text(2, 1, "b"))

        assert shown(await world.store.get(S1, "part", prt(2))) == expected(
            text(2, 1, "b"), position=receipt.numbers[2], seq=receipt.numbers[3]
        )

    async def test_a_re_created_id_stands_at_the_end(self, world: World) -> None:
        """A removed id that is put again has a new position, after everything that stood in between."""
        await world.put(session(), user(1), text(5, 1), user(2))
        await world.put(Remove(S1, "message", msg(1)))
        again = await world.put(user(1))

        assert await all_of(world) == [(msg(2), []), (msg(1), [])]
        assert shown(await world.store.get(S1, "message", msg(1))) == expected(
            user(1), position=again.numbers[0]
        )

    async def test_an_id_removed_and_put_in_one_batch_is_made_anew(self, world: World) -> None:
        """Remove and put of one id in a batch replace the record, children included."""
        await world.put(session(), user(1), text(5, 1), user(2))
        receipt = await world.put(Remove(S1, "message", msg(1)), user(1))

        assert await all_of(world) == [(msg(2), []), (msg(1), [])]
        assert shown(await world.store.get(S1, "message", msg(1))) == expected(
            user(1), position=receipt.numbers[1]
        )

    async def test_a_re_created_session_goes_on_rising(self, world: World) -> None:
        """An erased session that is created again is empty, and its numbers are above the old ones."""
        old = await world.put(session(), user(1), text(2, 1))
        await world.store.erase(S1)
        new = await world.put(session())

        assert new.seq > old.seq
        assert await all_of(world) == []

    async def test_a_promotion_moves_the_place_and_not_the_position(self, world: World) -> None:
        """A `placed` put takes this commit's number as its place in the model's history, and keeps it."""
        made = await world.put(session(), user(1), user(2))
        placed = await world.put(user(1, placed=True))
        later = await world.put(user(1, agent="plan"))

        assert shown(await world.store.get(S1, "message", msg(1))) == expected(
            user(1, agent="plan"), position=made.numbers[1], seq=later.seq, place=placed.seq
        )
        assert [id for id, _ in await all_of(world)] == [msg(1), msg(2)]

    async def test_a_mark_is_kept_with_its_record(self, world: World) -> None:
        """The mark is part of the record and follows the latest put."""
        await world.put(session(), user(1), text(2, 1, mark=Mark.OPEN))
        assert [each.id for each in await world.store.select("part", mark=Mark.OPEN)] == [prt(2)]

        await world.put(text(2, 1, "done"))
        assert list(await world.store.select("part", mark=Mark.OPEN)) == []

    async def test_what_was_committed_outlives_the_process(self, world: World) -> None:
        """After everything was closed and opened again the records and their numbers are the same."""
        receipt = await world.put(session(), user(1), text(2, 1))
        before = await world.store.messages(MessageQuery(S1))
        head = await world.store.head()

        store = await world.reopen()

        assert await store.messages(MessageQuery(S1)) == before
        assert (await drain(store, head)).records == ()
        assert (await store.commit(Batch((user(3),)))).seq > receipt.seq


class Removing(Contract):
    """Removals inside a session."""

    async def test_removing_what_is_absent_changes_nothing(self, world: World) -> None:
        """An absent record, or an absent session, is removed without a number and without a change."""
        await world.put(session(), user(1))
        before, head = await world.store.session(S1), await world.store.head()

        receipt = await world.put(
            Remove(S1, "message", msg(7)), Remove(S1, "part", prt(7)), Remove(NONE, "message", msg(1))
        )

        assert receipt == Receipt((0, 0, 0))
        assert receipt.seq == 0
        assert await world.store.session(S1) == before
        assert (await drain(world.store, head)).records == ()

    async def test_a_message_takes_its_parts_along(self, world: World) -> None:
        """Removing a message removes its parts and no other message's."""
        await world.put(session(), user(1), text(2, 1), text(3, 1), user(4), text(5, 4))
        await world.put(Remove(S1, "message", msg(1)))

        assert await all_of(world) == [(msg(4), [prt(5)])]
        assert await world.store.get(S1, "message", msg(1)) is None
        assert await world.store.get(S1, "part", prt(2)) is None

    async def test_a_part_is_removed_alone(self, world: World) -> None:
        """The message and its other parts stay; removing it a second time changes nothing."""
        await world.put(session(), user(1), text(2, 1), text(3, 1))

        assert (await world.put(Remove(S1, "part", prt(2)))).seq > 0
        assert (await world.put(Remove(S1, "part", prt(2)))).seq == 0
        assert await all_of(world) == [(msg(1), [prt(3)])]

    async def test_a_part_of_a_removed_message_may_come_back_elsewhere(self, world: World) -> None:
        """Once its message is gone a part id is free, also for another message."""
        await world.put(session(), user(1), text(3, 1), user(2))
        await world.put(Remove(S1, "message", msg(1)))
        await world.put(text(3, 2))

        assert await all_of(world) == [(msg(2), [prt(3)])]


class Spanning(Contract):
    """Batches over several sessions, and records of projects and machines."""

    async def test_a_batch_may_span_sessions(self, world: World) -> None:
        """Changes of several sessions are made together, each numbered in its own session."""
        await world.put(session(S2), session(S1))
        before = [(await world.store.session(each)) for each in (S1, S2)]

        receipt = await world.put(user(1, session=S2), user(2), user(3, session=S2))

        assert await all_of(world, S1) == [(msg(2), [])]
        assert await all_of(world, S2) == [(msg(1), []), (msg(3), [])]
        assert receipt.numbers[2] > receipt.numbers[0]
        for was, after in zip(before, (receipt.numbers[1], receipt.numbers[2]), strict=True):
            assert was is not None
            now = await world.store.session(was.id)
            assert now is not None
            assert (now.head, now.head > was.head) == (after, True)

    async def test_the_same_ids_may_live_in_two_sessions(self, world: World) -> None:
        """Ids are names within a session, so that an import may come twice."""
        await world.put(session(), session(S2), user(1), text(2, 1))
        await world.put(user(1, session=S2), text(2, 1, "other", session=S2))

        mine, other = [await world.store.get(each, "part", prt(2)) for each in (S1, S2)]
        assert mine is not None
        assert other is not None
        assert (mine.json() != other.json(), mine.parent, other.parent) == (True, msg(1), msg(1))

    async def test_a_scope_is_made_by_its_first_record(self, world: World) -> None:
        """Records of a project or a machine need no session to be created, and no list shows one."""
        project, host = project_scope("abc"), host_scope("m1")
        receipt = await world.put(
            record(project, "project", "abc", {"worktree": "/work"}),
            record(project, "approval", "a1", {"pattern": "*"}),
            record(host, "trust", "t1", {"path": "/work"}),
            session(),
        )

        assert shown(await world.store.get(project, "approval", "a1")) == expected(
            record(project, "approval", "a1", {"pattern": "*"}), position=receipt.numbers[1]
        )
        assert shown(await world.store.get(host, "trust", "t1")) == expected(
            record(host, "trust", "t1", {"path": "/work"}), position=receipt.numbers[2]
        )
        assert receipt.numbers[1] > receipt.numbers[0]
        assert [each.id for each in (await world.store.sessions(SessionQuery())).sessions] == [S1]

    async def test_a_scoped_record_changes_and_goes_like_any_other(self, world: World) -> None:
        """Numbers of a scope rise, and a removed record is gone."""
        scope = project_scope("abc")
        first = await world.put(record(scope, "cache", "c1", {"text": "old"}))
        second = await world.put(record(scope, "cache", "c1", {"text": "new"}))
        assert shown(await world.store.get(scope, "cache", "c1")) == expected(
            record(scope, "cache", "c1", {"text": "new"}), position=first.seq, seq=second.seq
        )

        assert (await world.put(Remove(scope, "cache", "c1"))).seq > second.seq
        assert await world.store.get(scope, "cache", "c1") is None


async def session_data(world: World) -> bytes:
    """The session's JSON as this backend lays it out; its content is compared here."""
    found = await world.store.get(S1, "session", S1)
    assert found is not None
    assert shown(found) == expected(session(), position=found.position)
    return found.data
