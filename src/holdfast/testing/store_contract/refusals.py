"""What a commit refuses, and that a refusal leaves nothing behind."""

from typing import Any

import pytest

from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.store.batch import Batch, Change, Put, Remove, Settled, Unchanged, project_scope
from holdfast.store.query import SessionQuery
from holdfast.testing.store_contract.build import (
    NONE,
    S1,
    S2,
    S3,
    msg,
    prt,
    record,
    session,
    text,
    user,
)
from holdfast.testing.store_contract.commits import all_of
from holdfast.testing.store_contract.world import Contract, World, drain


class Refusing(Contract):
    """What a commit refuses, and that a refusal leaves nothing behind."""

    @pytest.mark.parametrize(
        "bad",
        [
            pytest.param(text(9, 8), id="a part of a missing message"),
            pytest.param(user(9, session=NONE), id="a message of a missing session"),
            pytest.param(session(S3, parent=NONE), id="a child of a missing session"),
        ],
    )
    async def test_a_failing_change_in_the_middle_leaves_nothing(self, world: World, bad: Change) -> None:
        """When one change of a batch cannot be made, none is, and no number of the session is visible."""
        await world.put(session(), user(1), text(2, 1))
        head = await world.store.head()
        before = await world.store.session(S1)

        with pytest.raises(NotFound):
            await world.put(session(title="new"), session(S2), user(3), text(4, 3), bad, user(5))

        assert await world.store.session(S1) == before
        assert await world.store.session(S2) is None
        assert await all_of(world) == [(msg(1), [prt(2)])]
        assert (await drain(world.store, head)).records == ()

    async def test_a_part_of_a_missing_message_is_not_found(self, world: World) -> None:
        """A part needs its message, in its own session; a message of another session does not count."""
        await world.put(session(), session(S2), user(1, session=S2))

        with pytest.raises(NotFound):
            await world.put(text(2, 1))

        assert await all_of(world) == []

    async def test_a_part_before_its_message_in_one_batch_is_not_found(self, world: World) -> None:
        """Changes are made in their order, so a parent must come before its children."""
        await world.put(session())

        with pytest.raises(NotFound):
            await world.put(text(2, 1), user(1))

        assert await all_of(world) == []

    async def test_a_part_of_a_removed_message_is_not_found(self, world: World) -> None:
        """A message that a batch removes is gone for the rest of the batch."""
        await world.put(session(), user(1))

        with pytest.raises(NotFound):
            await world.put(Remove(S1, "message", msg(1)), text(2, 1))

        assert await all_of(world) == [(msg(1), [])]

    async def test_a_part_cannot_change_its_message(self, world: World) -> None:
        """Putting a part again under another message is a conflict, and the part stays."""
        await world.put(session(), user(1), user(2), text(3, 1))

        with pytest.raises(Conflict):
            await world.put(text(3, 2))

        assert await all_of(world) == [(msg(1), [prt(3)]), (msg(2), [])]

    async def test_a_session_cannot_change_its_parent(self, world: World) -> None:
        """The tree of sessions grows and is cut, but no branch moves."""
        await world.put(session(), session(S2), session(S3, parent=S1))

        for parent in (S2, None):
            with pytest.raises(Conflict):
                await world.put(session(S3, parent=parent))

    async def test_a_session_needs_its_parent(self, world: World) -> None:
        """A child of a missing session is not found; a child and its parent in one batch are fine."""
        with pytest.raises(NotFound):
            await world.put(session(S2, parent=S1))

        await world.put(session(S1), session(S2, parent=S1))

        assert [each.id for each in (await world.store.sessions(SessionQuery(parent=S1))).sessions] == [S2]

    async def test_putting_into_an_erased_session_is_not_found(self, world: World) -> None:
        """A tombstone is not a session."""
        await world.put(session(), user(1))
        await world.store.erase(S1)

        with pytest.raises(NotFound):
            await world.put(user(2))

    @pytest.mark.parametrize(
        "bad",
        [
            pytest.param(Remove(S1, "session", S1), id="a session goes by erase"),
            pytest.param(record(S1, "project", "global", {}), id="a project's record in a session"),
            pytest.param(record(project_scope("p"), "message", msg(1), {}), id="a message in a project"),
            pytest.param(record(S1, "message", msg(1), {}, parent=msg(2)), id="a message under a message"),
            pytest.param(record(S1, "part", prt(1), {}), id="a part without a message"),
            pytest.param(record(S1, "session", S2, {}), id="a session under another name"),
            pytest.param(record(S1, "session", S1, {"title": 7}), id="a session that is none"),
            pytest.param(Put(S1, "message", msg(7), b"garbage"), id="what is no JSON"),
            pytest.param(Put(S1, "message", msg(7), b'{"a":"\xff"}'), id="what is no UTF-8"),
        ],
    )
    async def test_what_cannot_be_a_record_is_invalid(self, world: World, bad: Change) -> None:
        """A change of the wrong shape is refused with the whole batch."""
        await world.put(session())
        before = await world.store.session(S1)

        with pytest.raises(InvalidInput):
            await world.put(user(5), bad)

        assert await world.store.session(S1) == before

    async def test_a_kind_that_no_record_has_is_invalid(self, world: World) -> None:
        """To get it, to select it or to expect something of it is the caller's mistake."""
        await world.put(session())
        kind: Any = "bogus"

        for ask in (
            lambda: world.store.get(S1, kind, "x"),
            lambda: world.store.select(kind, session=S1),
            lambda: world.store.select(kind),
            lambda: world.store.commit(Batch((), (Settled(S1, kind),))),
            lambda: world.store.commit(Batch((), (Unchanged(S1, kind, "x", 0),))),
        ):
            with pytest.raises(InvalidInput):
                await ask()
