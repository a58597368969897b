"""Reading single records, and every record of a kind."""

import msgspec
import pytest

from holdfast.errors import NotFound
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Remove, host_scope, project_scope
from holdfast.store.query import MessageQuery
from holdfast.testing.store_contract.build import (
    NONE,
    S1,
    S2,
    expected,
    msg,
    prompt,
    prt,
    record,
    session,
    shown,
    text,
    user,
)
from holdfast.testing.store_contract.world import Contract, World


def msgs(*numbers: int) -> list[str]:
    return [msg(n) for n in numbers]


class Getting(Contract):
    """Single records, and every record of a kind."""

    async def test_what_is_absent_is_none(self, world: World) -> None:
        """A missing session, a missing record and another kind's id are all None."""
        await world.put(session(), user(1))

        assert await world.store.session(NONE) is None
        assert await world.store.get(NONE, "message", msg(1)) is None
        assert await world.store.get(S1, "message", msg(2)) is None
        assert await world.store.get(S1, "part", msg(1)) is None
        assert await world.store.get(S1, "prompt", msg(1)) is None

    async def test_the_sessions_that_have_a_record_are_found_by_its_id(self, world: World) -> None:
        """The first made first; a removed record, an erased session and another kind do not count."""
        await world.put(session(), user(1), text(2, 1))
        await world.put(session(S2), user(1, session=S2), user(3, session=S2))
        assert await world.store.holders("message", msg(1)) == [S1, S2]
        assert await world.store.holders("message", msg(3)) == [S2]
        assert await world.store.holders("part", prt(2)) == [S1]
        assert await world.store.holders("part", msg(1)) == []
        assert await world.store.holders("message", "no'such") == []

        await world.store.commit(Batch((Remove(S1, "message", msg(1)),)))
        assert await world.store.holders("message", msg(1)) == [S2]
        assert await world.store.holders("part", prt(2)) == []
        await world.store.erase(S2)
        assert await world.store.holders("message", msg(1)) == []

    async def test_every_kind_comes_back_whole(self, world: World) -> None:
        """Each kind of record is read with the numbers and the content that it was given."""
        changes = (
            session(),
            user(1),
            text(2, 1),
            prompt(3),
            record(S1, "epoch", "epoch1", {"baseline": "b"}),
            record(S1, "todo", S1, [{"content": "c", "status": "pending", "priority": "low"}]),
            record(S1, "request", "per_1", {"permission": "bash"}, mark=Mark.OPEN),
            record(S1, "diff", S1, [{"file": "a", "additions": 1, "deletions": 0}]),
            record(S1, "share", S1, {"url": "https://example.invalid"}),
            record(project_scope("p"), "project", "p", {"worktree": "/"}),
            record(project_scope("p"), "approval", "psv_1", {}),
            record(project_scope("p"), "cache", "c", {"etag": "x"}),
            record(host_scope("h"), "trust", "t", {"path": "/"}),
        )
        receipt = await world.put(*changes)

        for put, number in zip(changes, receipt.numbers, strict=True):
            found = await world.store.get(put.session, put.kind, put.id)
            assert shown(found) == expected(put, position=number)

    async def test_content_survives_byte_for_byte(self, world: World) -> None:
        """Large numbers, floats, every script, escapes, NUL in a string, unknown fields: not a byte moves.

        What the model saw yesterday is what it sees today, so stored JSON is returned as it was put.
        """
        value = {
            "type": "text",
            "text": 'nul \x00 quote " backslash \\ line\n sep\u2028 emoji 🦦 é',
            "metadata": {"big": 2**60, "float": 0.1, "exp": 1e300, "empty": {}, "list": [None, True, []]},
            "unknown": {"deep": [{"a": [1]}]},
        }
        await world.put(
            session(title="ti\x00tle ' \" % _"), user(1), record(S1, "part", prt(2), value, parent=msg(1))
        )

        found = await world.store.get(S1, "part", prt(2))
        assert found is not None
        assert found.data == msgspec.json.encode(value)
        read = await world.store.messages(MessageQuery(S1))
        assert read.messages[0].parts[0].data == found.data
        page = await world.store.messages_json(MessageQuery(S1))
        assert msgspec.json.decode(page.body)[0]["parts"][0] == value | {
            "id": prt(2),
            "sessionID": S1,
            "messageID": msg(1),
        }

    async def test_one_message_is_read_with_its_parts(self, world: World) -> None:
        """Just that one; an empty page when the session has no such message."""
        await world.put(session(), user(1), user(2), text(3, 2, "a"), user(4), text(5, 2, "b"), text(6, 4))

        page = await world.store.messages(MessageQuery(S1, only=msg(2)))
        assert [message.info.id for message in page.messages] == [msg(2)]
        assert [part.id for part in page.messages[0].parts] == [prt(3), prt(5)]
        assert (await world.store.messages(MessageQuery(S1, only=msg(9)))).messages == ()
        with pytest.raises(NotFound):
            await world.store.messages(MessageQuery(S2, only=msg(2)))

    async def test_a_large_record_comes_back_whole(self, world: World) -> None:
        """A part of some megabytes is one record like any other."""
        words = "0123456789abcdef " * 200_000
        await world.put(session(), user(1), text(2, 1, words))

        found = await world.store.get(S1, "part", prt(2))
        assert found is not None
        assert msgspec.json.decode(found.data)["text"] == words

    async def test_select_by_session_kind_and_mark(self, world: World) -> None:
        """The records of a kind in one session, oldest first; all, or those with a mark."""
        await world.put(session(), session(S2), prompt(3), prompt(1), prompt(2, waiting=False))
        await world.put(prompt(4, session=S2), prompt(3))

        assert [each.id for each in await world.store.select("prompt", session=S1)] == msgs(3, 1, 2)
        assert [each.id for each in await world.store.select("prompt", session=S1, mark=Mark.OPEN)] == msgs(
            3, 1
        )
        assert list(await world.store.select("prompt", session=NONE)) == []
        assert list(await world.store.select("request", session=S1)) == []

    async def test_open_records_are_selected_over_the_whole_store(self, world: World) -> None:
        """A process that continues work after a restart finds every waiting prompt with one query."""
        await world.put(session(), session(S2), prompt(1), prompt(2, session=S2), prompt(3, waiting=False))

        found = await world.store.select("prompt", mark=Mark.OPEN)
        assert sorted((each.session, each.id) for each in found) == [(S1, msg(1)), (S2, msg(2))]

    async def test_scoped_records_are_selected_over_the_whole_store(self, world: World) -> None:
        """Every project's record, without knowing the projects."""
        await world.put(*(record(project_scope(f"p{n}"), "project", f"p{n}", {"n": n}) for n in range(3)))
        await world.put(Remove(project_scope("p1"), "project", "p1"))

        found = await world.store.select("project")
        assert sorted((each.session, each.id) for each in found) == [
            ("project_p0", "p0"),
            ("project_p2", "p2"),
        ]
