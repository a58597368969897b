"""Copies of messages and parts into another session: what a fork is made of."""

import msgspec
import pytest

from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Copies, Put, Receipt, Remove
from holdfast.store.query import MessageQuery, SearchQuery
from holdfast.store.record import StoredMessage, StoredRecord
from holdfast.testing.store_contract.build import (
    NONE,
    S1,
    S2,
    assistant,
    msg,
    part,
    prompt,
    prt,
    session,
    shown,
    text,
    user,
)
from holdfast.testing.store_contract.world import Contract, World, drain, same_page

NASTY = f'ids {msg(1)} "{msg(1)}" \\u0000 é \U0001f600 \u2028 "parentID":"{msg(1)}" }}{{ \\\\ \n\t'


def history() -> tuple[Put, ...]:
    """Two answered questions with whatever a part may hold; a part of the first message comes last."""
    strange: dict[str, object] = {"type": "text", "text": NASTY, "unknown": {"id": msg(1), "n": [1.5, None]}}
    return (
        session(),
        user(1),
        text(2, 1, "question"),
        assistant(3, 1),
        part(4, 3, strange),
        part(
            5, 3, {"type": "tool", "callID": "c", "tool": "t", "state": {"status": "running"}}, mark=Mark.OPEN
        ),
        assistant(6, 1, summary=True),
        user(7),
        text(8, 7, "late"),
        part(9, 1, {"type": "file", "mime": "text/plain", "url": "file:///x"}),
    )


def flat(messages: tuple[StoredMessage, ...] | list[StoredMessage]) -> tuple[StoredRecord, ...]:
    """The records of messages, each message before its parts."""
    return tuple(record for each in messages for record in (each.info, *each.parts))


async def copies(world: World, count: int, *, first: int = 100, **more: object) -> Copies:
    """The first `count` records of the session, to be copied."""
    originals = flat(list(await world.store.originals(S1)))[:count]
    ids = tuple(
        (msg if each.kind == "message" else prt)(number) for number, each in enumerate(originals, first)
    )
    return msgspec.structs.replace(Copies(S2, S1, originals, ids), **more)


class Copying(Contract):
    """Messages and parts of one session as those of another."""

    async def test_originals_are_the_messages_in_the_order_of_their_creation(self, world: World) -> None:
        """With all parts, wherever those lie; the same as a page has."""
        await world.put(*history())
        assert (
            tuple(await world.store.originals(S1)) == (await world.store.messages(MessageQuery(S1))).messages
        )
        assert list(await world.store.originals(NONE)) == []

    async def test_originals_below_a_place_leave_out_what_was_promoted_later(self, world: World) -> None:
        """By place and not by position: the first prompt was promoted after the second."""
        made = await world.put(*history(), prompt(7))
        placed = await world.put(user(7, placed=True))
        await world.put(user(10))

        everything = await world.store.originals(S1)
        assert [each.info.id for each in everything] == [msg(1), msg(3), msg(6), msg(7), msg(10)]
        assert list(await world.store.originals(S1, placed.seq)) == list(everything[:3])
        assert list(await world.store.originals(S1, placed.seq + 1)) == list(everything[:4])
        assert list(await world.store.originals(S1, made.numbers[6])) == list(everything[:2])

    async def test_copies_say_what_their_originals_say(self, world: World) -> None:
        """Byte for byte, with their marks, under new ids, parents and numbers; the originals stay."""
        await world.put(*history())
        before = await world.store.messages(MessageQuery(S1))
        wanted = await copies(world, 8)
        cursor = await world.store.head()
        receipt = await world.store.commit(Batch((session(S2), wanted)))

        page = await same_page(world.store, MessageQuery(S2))
        copied = flat(page.messages)
        numbers = range(receipt.seq - 7, receipt.seq + 1)
        assert receipt == Receipt((receipt.numbers[0], receipt.seq))
        assert list(copied) == [
            StoredRecord(
                S2,
                original.kind,
                id,
                None if original.parent is None else wanted.ids[index_of(wanted, original.parent)],
                number,
                number,
                number,
                original.mark,
                original.data,
            )
            for original, id, number in zip(wanted.originals, wanted.ids, numbers, strict=True)
        ]
        assert await world.store.messages(MessageQuery(S1)) == before
        found = await world.store.session(S2)
        assert found is not None
        assert (found.head, found.top) == (receipt.seq, wanted.ids[-1].partition("_")[2])
        changes = await drain(world.store, cursor)
        assert [(each.record, each.created) for each in changes.records[1:]] == [
            (record, True) for record in copied
        ]
        assert [shown(await world.store.get(S2, "part", each.id)) for each in page.messages[0].parts] == [
            shown(each) for each in page.messages[0].parts
        ]

    async def test_a_copy_may_say_something_else(self, world: World) -> None:
        """Its JSON replaces the original's; it is found by its own words, the others by the original's."""
        await world.put(*history())
        wanted = await copies(world, 2)
        other = b'{"type":"text","text":"answer"}'
        changed = {wanted.originals[1].position: other}
        await world.store.commit(Batch((session(S2), msgspec.structs.replace(wanted, changed=changed))))

        copied = (await world.store.messages(MessageQuery(S2))).messages
        assert [(each.info.data, [part.data for part in each.parts]) for each in copied] == [
            (wanted.originals[0].data, [other])
        ]
        assert [hit.session for hit in await world.store.search(SearchQuery("answer"))] == [S2]
        assert [hit.session for hit in await world.store.search(SearchQuery("question"))] == [S1]

    async def test_what_was_copied_is_found(self, world: World) -> None:
        """By the words of the original."""
        await world.put(*history())
        await world.store.commit(Batch((session(S2), await copies(world, 2))))
        hits = await world.store.search(SearchQuery("question"))
        assert {(hit.session, hit.part) for hit in hits} == {(S1, prt(2)), (S2, prt(101))}

    async def test_an_original_that_changed_is_a_conflict(self, world: World) -> None:
        """Nothing is written, neither when it was written again nor when it was removed."""
        await world.put(*history())
        for change in (text(2, 1, "again"), Remove(S1, "part", prt(2)), Remove(S1, "message", msg(1))):
            wanted = await copies(world, 2)
            await world.put(change)
            with pytest.raises(Conflict, match="changed meanwhile"):
                await world.store.commit(Batch((session(S2), wanted)))
            assert await world.store.session(S2) is None
            await world.put(user(1), text(2, 1, "question"))

    async def test_a_change_behind_the_originals_is_none(self, world: World) -> None:
        """A session that runs can be copied: only what is copied must stay what it was."""
        await world.put(*history())
        wanted = await copies(world, 2)
        await world.put(text(8, 7, "later still"), user(11))
        await world.store.commit(Batch((session(S2), wanted)))
        assert len(await world.store.originals(S2)) == 1

    async def test_copies_go_with_the_rest_of_their_batch(self, world: World) -> None:
        """Before and after other records, into a session that has some already, all or nothing."""
        await world.put(*history(), session(S2), user(50, session=S2))
        wanted = await copies(world, 2)
        other = await copies(world, 2, first=200)
        receipt = await world.store.commit(Batch((wanted, user(150, session=S2), other)))
        assert [each.info.id for each in await world.store.originals(S2)] == [
            msg(50),
            msg(100),
            msg(150),
            msg(200),
        ]
        assert len(receipt.numbers) == 3
        with pytest.raises(NotFound):
            await world.store.commit(Batch((await copies(world, 2, first=300), user(400, session=NONE))))
        assert len(await world.store.originals(S2)) == 4

    async def test_sessions_must_exist(self, world: World) -> None:
        """The one that is copied, and the one that gets the copies."""
        await world.put(*history())
        wanted = await copies(world, 2)
        with pytest.raises(NotFound):
            await world.store.commit(Batch((wanted,)))
        await world.put(session(S2))
        with pytest.raises(NotFound):
            await world.store.commit(Batch((msgspec.structs.replace(wanted, source=NONE),)))

    async def test_new_ids_rise_above_those_of_the_session(self, world: World) -> None:
        """Else they may be there already: mint them anew."""
        await world.put(*history(), session(S2), user(100, session=S2))
        with pytest.raises(Conflict, match="not above"):
            await world.store.commit(Batch((await copies(world, 2),)))
        assert len(await world.store.originals(S2)) == 1

    async def test_what_cannot_be_copies_is_refused(self, world: World) -> None:
        """No id for each, ids that fall, a part without its message before it, no JSON."""
        await world.put(*history(), session(S2))
        wanted = await copies(world, 3)
        at = wanted.originals[0].position
        for wrong in (
            {"ids": wanted.ids[:2]},
            {"ids": wanted.ids[::-1]},
            {"ids": (msg(100), "prt_/etc", "prt_z")},
            {"originals": (), "ids": ()},
            {"originals": wanted.originals[1:], "ids": wanted.ids[1:]},
            {"changed": {at: b"{"}},
            {"changed": {at: b"\xff"}},
            {"session": "x"},
            {"source": "x"},
        ):
            with pytest.raises(InvalidInput):
                await world.store.commit(Batch((msgspec.structs.replace(wanted, **wrong),)))
        assert list(await world.store.originals(S2)) == []


def index_of(copies: Copies, id: str) -> int:
    """The place of an original message among the copies."""
    return next(at for at, each in enumerate(copies.originals) if each.kind == "message" and each.id == id)
