"""The feed: what changed after a cursor, in a session or in the whole store."""

import pytest

from holdfast.errors import NotFound
from holdfast.schema.stored import Kind
from holdfast.store.batch import Batch, Remove, project_scope
from holdfast.store.record import Changed, Changes
from holdfast.testing.store_contract.build import S1, S2, msg, prompt, prt, record, session, text, user
from holdfast.testing.store_contract.replica import Replica, contents
from holdfast.testing.store_contract.world import Contract, World, drain


def told(changes: Changes) -> list[tuple[Kind, str, str]]:
    """Each change as (kind, id, what happened)."""
    return [(each.record.kind, each.record.id, _verb(each)) for each in changes.records]


def _verb(change: Changed) -> str:
    return "removed" if change.removed else "created" if change.created else "updated"


class Following(Contract):
    """Changes after a cursor."""

    async def test_a_new_store_has_nothing_to_tell(self, world: World) -> None:
        """From nothing, from the head, and from the cursor that this answered."""
        first = await drain(world.store, None)
        assert first.records == ()
        assert (await drain(world.store, first.cursor)).records == ()
        assert (await drain(world.store, await world.store.head())).records == ()

    async def test_everything_once_in_its_latest_state(self, world: World) -> None:
        """Without a cursor each living record comes once, a parent before its children."""
        await world.put(session(), user(1), text(2, 1, "a"), session(S2, parent=S1))
        await world.put(text(2, 1, "b"), user(1, agent="plan"), session(title="new"))

        changes = await drain(world.store, None)

        assert told(changes) == [
            ("session", S1, "created"),
            ("message", msg(1), "created"),
            ("part", prt(2), "created"),
            ("session", S2, "created"),
        ]
        for each in changes.records:
            assert each.record == await world.store.get(each.record.session, each.record.kind, each.record.id)

    async def test_only_what_changed_after_the_cursor(self, world: World) -> None:
        """Updated and created records are distinguished; unchanged ones are not reported."""
        await world.put(session(), user(1), text(2, 1), session(S2), user(3, session=S2))
        head = await world.store.head()
        await world.put(text(4, 1), user(1, agent="plan"), user(5), user(6, session=S2))

        changes = await drain(world.store, head)

        assert told(changes) == [
            ("message", msg(1), "updated"),
            ("part", prt(4), "created"),
            ("message", msg(5), "created"),
            ("message", msg(6), "created"),
        ]
        assert (await drain(world.store, changes.cursor)).records == ()

    async def test_a_parent_comes_before_its_children_whatever_was_last(self, world: World) -> None:
        """A message that was updated after its parts still comes first (402 parts once did not)."""
        head = await world.store.head()
        await world.put(session(), session(S2, parent=S1), user(1), text(2, 1), text(3, 1))
        await world.put(
            text(3, 1, "x"), text(2, 1, "y"), user(1, agent="plan"), session(S2, parent=S1, title="z")
        )
        await world.put(session(title="last"))

        changes = await drain(world.store, head)

        assert told(changes) == [
            ("session", S1, "created"),
            ("message", msg(1), "created"),
            ("part", prt(2), "created"),
            ("part", prt(3), "created"),
            ("session", S2, "created"),
        ]

    async def test_tombstones_come_first_and_stand_for_their_children(self, world: World) -> None:
        """One tombstone for a message covers its parts; a part removed alone names its message."""
        await world.put(session(), user(1), text(2, 1), text(3, 1), user(4), text(5, 4), prompt(6))
        head = await world.store.head()
        await world.put(user(7), Remove(S1, "message", msg(1)))
        removed = await world.put(Remove(S1, "part", prt(5)), Remove(S1, "prompt", msg(6)))

        changes = await drain(world.store, head)

        gone = sorted((each for each in changes.records if each.removed), key=lambda each: each.record.id)
        assert [(each.record.kind, each.record.id, each.record.parent) for each in gone] == [
            ("message", msg(1), None),
            ("prompt", msg(6), None),
            ("part", prt(5), msg(4)),
        ]
        assert gone[2].record.seq == removed.numbers[0]
        assert [(each.record.data, each.created) for each in gone] == [(b"", False)] * 3
        assert [_verb(each) for each in changes.records] == ["removed"] * 3 + ["created"]

    async def test_a_re_created_record_is_created_anew(self, world: World) -> None:
        """Removed and put again since the cursor: reported as created, so a replica drops its children."""
        await world.put(session(), user(1), text(2, 1), text(3, 1))
        head = await world.store.head()
        await world.put(Remove(S1, "message", msg(1)))
        await world.put(user(1), text(3, 1, "new"))

        changes = await drain(world.store, head)

        assert told(changes)[-2:] == [("message", msg(1), "created"), ("part", prt(3), "created")]
        replica = Replica()
        for change in changes.records:
            if change.record.kind != "session":
                replica.records[S1, "session", S1] = change.record
                replica._apply(change)  # noqa: SLF001 - our own
        assert (S1, "part", prt(2)) not in replica.records

    async def test_an_id_made_anew_is_told_as_such(self, world: World) -> None:
        """Also within one batch, and after another write; not for a new follower, nor a second time."""
        await world.put(session(), user(1), text(2, 1), session(S2))
        head = await world.store.head()
        await world.store.erase(S2)
        await world.put(Remove(S1, "message", msg(1)), user(1), text(3, 1), session(S2))
        await world.put(user(1, agent="plan"))

        changes = await drain(world.store, head)
        assert {each.record.id: (each.created, each.again) for each in changes.records} == {
            msg(1): (True, True),
            prt(3): (True, False),
            S2: (True, True),
        }
        assert not any(each.again for each in (await drain(world.store, None)).records)
        await world.put(user(1, agent="build"), session(S2, title="later"))
        later = await drain(world.store, changes.cursor)
        assert [(each.record.id, each.again) for each in later.records] == [(msg(1), False), (S2, False)]

    async def test_what_is_created_while_a_batch_is_under_way_waits_for_the_next(self, world: World) -> None:
        """A batch ends however fast others write, and the next one has what this one left."""
        await world.put(session(), user(1), user(2), user(3))
        first = await world.store.changes(None, limit=2)
        assert isinstance(first, Changes)
        await world.put(user(4), Remove(S1, "message", msg(1)))
        rest = await drain(world.store, first.cursor, limit=2)

        assert told(rest) == [("message", msg(2), "created"), ("message", msg(3), "created")]
        assert told(await drain(world.store, rest.cursor)) == [
            ("message", msg(1), "removed"),
            ("message", msg(4), "created"),
        ]

    async def test_a_re_created_session_replaces_the_old_one(self, world: World) -> None:
        """A replica that slept through erase and re-creation ends with the new session's records only."""
        replica = Replica()
        await world.put(session(), user(1), text(2, 1), session(S2))
        await replica.catch_up(world.store)
        await world.store.erase(S1)
        await world.put(session(parent=S2), user(3))
        await replica.catch_up(world.store)

        assert replica.records == await contents(world.store)

    async def test_a_session_follows_itself_alone(self, world: World) -> None:
        """With a session named, other sessions' changes are not reported; the cursor is of the same kind."""
        await world.put(session(), session(S2), user(1), user(2, session=S2))
        head = await world.store.head()
        assert told(await drain(world.store, None, S1)) == [
            ("session", S1, "created"),
            ("message", msg(1), "created"),
        ]

        await world.put(user(3, session=S2), user(4), Remove(S2, "message", msg(2)), text(5, 1))
        mine = await drain(world.store, head, S1)
        assert told(mine) == [("message", msg(4), "created"), ("part", prt(5), "created")]
        assert (await drain(world.store, mine.cursor, S1)).records == ()
        assert told(await drain(world.store, head, S2)) == [
            ("message", msg(2), "removed"),
            ("message", msg(3), "created"),
        ]

    async def test_scoped_records_are_in_the_feed(self, world: World) -> None:
        """A project's records are followed like a session's; the scope itself is no record."""
        scope = project_scope("abc")
        head = await world.store.head()
        await world.put(record(scope, "project", "abc", {"n": 1}), record(scope, "approval", "a1", {}))
        changes = await drain(world.store, head)
        assert told(changes) == [("project", "abc", "created"), ("approval", "a1", "created")]
        assert told(await drain(world.store, head, scope)) == told(changes)

        await world.put(record(scope, "project", "abc", {"n": 2}), Remove(scope, "approval", "a1"))
        assert told(await drain(world.store, changes.cursor)) == [
            ("approval", "a1", "removed"),
            ("project", "abc", "updated"),
        ]

    async def test_a_refused_commit_is_not_told(self, world: World) -> None:
        """What was rolled back never appears."""
        await world.put(session())
        head = await world.store.head()
        with pytest.raises(NotFound):
            await world.put(user(1), text(2, 9))

        assert (await drain(world.store, head)).records == ()

    async def test_every_process_hears_every_other(self, world: World) -> None:
        """A cursor of one handle works on the other, and both see the same changes."""
        other = await world.another()
        head = await world.store.head()
        await other.commit(Batch((session(), user(1))))
        await world.put(user(2))

        here, there = await drain(world.store, head), await drain(other, head)
        assert here.records == there.records
        assert told(here) == [
            ("session", S1, "created"),
            ("message", msg(1), "created"),
            ("message", msg(2), "created"),
        ]

    async def test_a_cursor_survives_a_restart(self, world: World) -> None:
        """Closing and opening the store does not change its incarnation."""
        await world.put(session(), user(1))
        head = await world.store.head()
        store = await world.reopen()
        await world.put(user(2))

        assert told(await drain(store, head)) == [("message", msg(2), "created")]
