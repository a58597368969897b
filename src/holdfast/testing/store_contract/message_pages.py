"""Pages of messages in either direction, and everything since the last compaction."""

import msgspec
import pytest

from holdfast.errors import InvalidInput, NotFound
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Put, Remove
from holdfast.store.query import MessageQuery
from holdfast.store.record import JsonPage, MessagePage
from holdfast.testing.store_contract.build import (
    NONE,
    S1,
    assistant,
    compaction,
    expected,
    msg,
    prt,
    record,
    ses,
    session,
    shown,
    text,
    tool,
    user,
)
from holdfast.testing.store_contract.world import Contract, World, same_page


def names(page: MessagePage) -> list[str]:
    """The message ids of a page."""
    return [each.info.id for each in page.messages]


def msgs(*numbers: int) -> list[str]:
    return [msg(n) for n in numbers]


async def filled(world: World, count: int) -> None:
    """Messages 1 to `count`, each with one part; their ids fall, since order must not come from ids."""
    await world.put(session())
    for n in range(1, count + 1):
        await world.put(user(1000 - n), text(2000 - n, 1000 - n))


class Paging(Contract):
    """Messages by page, in either direction."""

    async def test_a_missing_session_is_not_found(self, world: World) -> None:
        """Neither a page nor its JSON exists for a session that does not, or no longer does."""
        await world.put(session())
        await world.store.erase(S1)

        for id in (NONE, S1):
            with pytest.raises(NotFound):
                await world.store.messages(MessageQuery(id))
            with pytest.raises(NotFound):
                await world.store.messages_json(MessageQuery(id))

    async def test_an_empty_session_has_an_empty_page(self, world: World) -> None:
        """No messages, no cursors."""
        await world.put(session())

        assert await world.store.messages(MessageQuery(S1)) == MessagePage(())
        assert await world.store.messages(MessageQuery(S1, limit=5)) == MessagePage(())
        assert msgspec.json.decode((await world.store.messages_json(MessageQuery(S1))).body) == []

    async def test_a_cursor_that_is_none_is_invalid(self, world: World) -> None:
        """A cursor that no page returned is refused."""
        await filled(world, 1)

        for query in (MessageQuery(S1, limit=1, before="x"), MessageQuery(S1, limit=1, after="' OR 1=1")):
            with pytest.raises(InvalidInput):
                await world.store.messages(query)

    async def test_all_messages_with_their_parts_in_order_of_creation(self, world: World) -> None:
        """Messages and parts are listed by their positions; later updates do not move them."""
        one = await world.put(session(), user(9), text(30, 9), user(5), text(20, 5), text(10, 9))
        two = await world.put(user(9, agent="plan"), text(30, 9, "late"))

        page = await world.store.messages(MessageQuery(S1))

        assert [(shown(each.info), [shown(part) for part in each.parts]) for each in page.messages] == [
            (
                expected(user(9, agent="plan"), position=one.numbers[1], seq=two.numbers[0]),
                [
                    expected(text(30, 9, "late"), position=one.numbers[2], seq=two.numbers[1]),
                    expected(text(10, 9), position=one.numbers[5]),
                ],
            ),
            (expected(user(5), position=one.numbers[3]), [expected(text(20, 5), position=one.numbers[4])]),
        ]
        assert (page.older, page.newer) == (None, None)

    async def test_pages_backwards_meet_every_message_once(self, world: World) -> None:
        """From the newest page by `older` to the first message, each page oldest first."""
        await filled(world, 7)
        pages, cursor = [], None
        while True:
            page = await world.store.messages(MessageQuery(S1, limit=3, before=cursor))
            pages.append(names(page))
            cursor = page.older
            if cursor is None:
                break

        assert pages == [msgs(995, 994, 993), msgs(998, 997, 996), msgs(999)]

    async def test_pages_forwards_meet_every_message_once(self, world: World) -> None:
        """From the oldest page by `newer` to the last message."""
        await filled(world, 7)
        oldest = await world.store.messages(MessageQuery(S1, limit=3))
        while oldest.older is not None:
            oldest = await world.store.messages(MessageQuery(S1, limit=3, before=oldest.older))
        pages, page = [names(oldest)], oldest
        while page.newer is not None:
            page = await world.store.messages(MessageQuery(S1, limit=3, after=page.newer))
            pages.append(names(page))

        assert pages == [msgs(999), msgs(998, 997, 996), msgs(995, 994, 993)]

    @pytest.mark.parametrize("limit", [7, 8, 10_000])
    async def test_a_page_that_holds_everything_has_no_cursors(self, world: World, limit: int) -> None:
        """At both ends there is None, also when the limit is exactly reached."""
        await filled(world, 7)

        page = await world.store.messages(MessageQuery(S1, limit=limit))

        assert (len(page.messages), page.older, page.newer) == (7, None, None)

    async def test_a_cursor_survives_what_happens_beside_it(self, world: World) -> None:
        """Messages that come, change or go, the cursor's own included, do not shift the page."""
        await filled(world, 6)
        page = await world.store.messages(MessageQuery(S1, limit=2))
        assert names(page) == msgs(995, 994)
        await world.put(
            user(990), user(997), Remove(S1, "message", msg(995)), Remove(S1, "message", msg(998))
        )

        older = await world.store.messages(MessageQuery(S1, limit=2, before=page.older))
        assert names(older) == msgs(997, 996)
        newer = await world.store.messages(MessageQuery(S1, limit=5, after=older.newer))
        assert names(newer) == msgs(994, 990)

    @pytest.mark.parametrize("limit", [None, 1, 9])
    async def test_nothing_comes_after_the_newest_message(self, world: World, limit: int | None) -> None:
        """A cursor at the newest message has an empty page behind it, not the beginning of the session."""
        await filled(world, 3)
        newest = await world.store.messages(MessageQuery(S1, limit=1))

        query = MessageQuery(S1, limit=limit, after=newest.older)
        assert await world.store.messages(query) == MessagePage(())
        assert await world.store.messages_json(query) == JsonPage(b"[]")

    async def test_a_page_without_limit_after_a_cursor_is_the_rest(self, world: World) -> None:
        """Without a limit a cursor still cuts."""
        await filled(world, 5)
        page = await world.store.messages(MessageQuery(S1, limit=2))

        rest = await world.store.messages(MessageQuery(S1, before=page.older))
        assert names(rest) == msgs(999, 998, 997)
        back = await world.store.messages(MessageQuery(S1, after=rest.newer or page.older))
        assert names(back)[-1:] == msgs(995)

    async def test_one_message_alone(self, world: World) -> None:
        """`only` is the page of one message with its parts; of none when there is no such message."""
        await world.put(session(), user(1), user(2), text(20, 2), user(3), text(21, 2), text(30, 3))

        page = await world.store.messages(MessageQuery(S1, only=msg(2)))
        assert [(each.info.id, [part.id for part in each.parts]) for each in page.messages] == [
            (msg(2), [prt(20), prt(21)])
        ]
        assert (page.older, page.newer) == (None, None)
        json = await world.store.messages_json(MessageQuery(S1, only=msg(2)))
        assert [part["id"] for part in msgspec.json.decode(json.body)[0]["parts"]] == [prt(20), prt(21)]
        assert await world.store.messages(MessageQuery(S1, only=msg(9))) == MessagePage(())
        assert await world.store.messages(MessageQuery(S1, only=prt(20))) == MessagePage(())

    @pytest.mark.parametrize("limit", [0, -1, 10_001])
    async def test_a_limit_out_of_bounds_is_invalid(self, world: World, limit: int) -> None:
        """A page has at least one message and at most ten thousand."""
        await world.put(session())

        with pytest.raises(InvalidInput):
            await world.store.messages(MessageQuery(S1, limit=limit))

    @pytest.mark.parametrize("limit", [None, 1, 2, 3, 4])
    async def test_json_is_the_same_page(self, world: World, limit: int | None) -> None:
        """The undecoded page has the records' JSON, in the same order, with the same cursors."""
        await world.put(session(), user(9), text(8, 9, "a"), tool(7, 9, input={"a": 1}), user(6), user(5))
        await world.put(text(4, 5, '"},{'), Remove(S1, "part", prt(8)))
        queries = [MessageQuery(S1, limit=limit)]
        if limit is not None:
            first = await world.store.messages(queries[0])
            queries += [MessageQuery(S1, limit=limit, before=first.older)] if first.older else []

        for query in queries:
            await same_page(world.store, query)


async def since(world: World, **more: object) -> list[str]:
    """The window as a page and as JSON, which must agree."""
    query = msgspec.structs.replace(MessageQuery(S1, since_compaction=True), **more)
    page = await world.store.messages(query)
    json = await world.store.messages_json(query)
    assert [each["info"]["id"] for each in msgspec.json.decode(json.body)] == names(page)
    return names(page)


class Compacting(Contract):
    """Everything since the last compaction."""

    async def test_without_a_compaction_it_is_everything(self, world: World) -> None:
        """A compaction that was asked for but has no summary yet cuts nothing."""
        await world.put(session(), user(1), assistant(2, 1), user(3), compaction(4, 3, tail=2))

        assert await since(world) == msgs(1, 2, 3)

    async def test_it_begins_at_the_message_that_asked_for_the_summary(self, world: World) -> None:
        """Without a kept tail the window begins with the compaction's own user message."""
        await world.put(session(), user(1), assistant(2, 1), user(3), compaction(4, 3))
        await world.put(assistant(5, 3, summary=True), user(6))

        assert await since(world) == msgs(3, 5, 6)

    async def test_it_begins_at_the_kept_tail(self, world: World) -> None:
        """With a kept tail it begins where the compaction part says."""
        await world.put(session(), user(1), assistant(2, 1), user(8), assistant(7, 8), user(3))
        await world.put(compaction(4, 3, tail=8), assistant(5, 3, summary=True), user(6))

        assert await since(world) == msgs(8, 7, 3, 5, 6)

    async def test_the_last_completed_compaction_counts(self, world: World) -> None:
        """A later one without a summary does not move the window; one with a summary does."""
        await world.put(session(), user(1), user(2), compaction(20, 2), assistant(3, 2, summary=True))
        await world.put(user(4), compaction(21, 4))
        assert await since(world) == msgs(2, 3, 4)

        await world.put(assistant(5, 4, summary=True), user(6))
        assert await since(world) == msgs(4, 5, 6)

    async def test_a_summary_that_was_removed_does_not_count(self, world: World) -> None:
        """A reverted compaction gives the window back."""
        await world.put(session(), user(1), user(2), compaction(20, 2), assistant(3, 2, summary=True))
        await world.put(Remove(S1, "message", msg(3)))

        assert await since(world) == msgs(1, 2)

    async def test_the_cut_goes_by_place(self, world: World) -> None:
        """A prompt admitted before the cut and promoted after it belongs to the window."""
        await world.put(session(), user(1), user(2), user(3), compaction(4, 3))
        await world.put(assistant(5, 3, summary=True))
        await world.put(user(2, placed=True))

        assert sorted(await since(world)) == msgs(2, 3, 5)

    async def test_the_window_can_be_paged(self, world: World) -> None:
        """Pages end at the window's edge."""
        await world.put(session(), user(1), user(2), compaction(20, 2), assistant(3, 2, summary=True))
        await world.put(user(4), user(5))
        query = MessageQuery(S1, limit=3, since_compaction=True)
        newest = await world.store.messages(query)
        assert names(newest) == msgs(3, 4, 5)
        assert newest.older is not None

        older = await world.store.messages(msgspec.structs.replace(query, before=newest.older))
        assert (names(older), older.older) == (msgs(2), None)

    async def test_pages_of_the_window_go_by_place_too(self, world: World) -> None:
        """What lies between an early prompt, promoted late, and the cut is on no page of the window."""
        await world.put(session(), user(1), user(2), user(3), user(4), compaction(20, 4))
        await world.put(assistant(5, 4, summary=True), user(2, placed=True))
        query = MessageQuery(S1, limit=1, since_compaction=True)
        last = await world.store.messages(query)
        middle = await world.store.messages(msgspec.structs.replace(query, before=last.older))
        first = await world.store.messages(msgspec.structs.replace(query, before=middle.older))
        again = await world.store.messages(msgspec.structs.replace(query, after=first.newer))

        assert [names(page) for page in (first, middle, last)] == [msgs(2), msgs(4), msgs(5)]
        assert (first.older, last.newer, again) == (None, None, middle)

    async def test_forwards_too_the_window_has_an_edge(self, world: World) -> None:
        """A page forwards that begins with the window has nothing older, though the session has."""
        await world.put(session(), user(1), user(2), compaction(20, 2), assistant(3, 2, summary=True))
        all_but_one = await world.store.messages(MessageQuery(S1, limit=2))
        first = await world.store.messages(MessageQuery(S1, limit=1, before=all_but_one.older))
        query = MessageQuery(S1, limit=1, after=first.newer, since_compaction=True)

        page = await world.store.messages(query)
        assert (names(page), page.older) == (msgs(2), None)
        last = await world.store.messages(msgspec.structs.replace(query, after=page.newer))
        assert (names(last), last.older is None, last.newer) == (msgs(3), False, None)

    async def test_another_session_has_its_own_window(self, world: World) -> None:
        """Compactions of other sessions do not matter."""
        other = ses(77)
        await world.put(session(), user(1), session(other), user(1, session=other), user(2, session=other))
        part = Put(other, "part", prt(3), compaction(3, 2).data, msg(2))
        await world.store.commit(Batch((part, assistant(4, 2, session=other, summary=True))))

        assert await since(world) == msgs(1)


def system(n: int, text: str = "It is Monday") -> Put:
    """A Mid-Conversation System Message, with its mark."""
    info = {"role": "system", "time": {"created": 1000}, "text": text}
    return record(S1, "message", msg(n), info, mark=Mark.SYSTEM)
