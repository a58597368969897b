"""Pages for the user: Mid-Conversation System Messages are left out without a trace."""

import msgspec
import pytest

from holdfast.schema.stored import Mark
from holdfast.store.query import MessageQuery
from holdfast.store.record import MessagePage
from holdfast.testing.store_contract.build import (
    S1,
    assistant,
    compaction,
    msg,
    prt,
    session,
    text,
    user,
)
from holdfast.testing.store_contract.message_pages import msgs, names, since, system
from holdfast.testing.store_contract.world import Contract, World, same_page


async def talk(world: World, pattern: str) -> None:
    """A session with a message for each sign, numbered: `u` the user, `a` the model, `s` the system."""
    await world.put(session())
    for n, sign in enumerate(pattern, 1):
        if sign == "s":
            await world.put(system(n))
        else:
            await world.put(user(n) if sign == "u" else assistant(n, n - 1), text(100 + n, n))


async def told(world: World, **more: object) -> MessagePage:
    """A page without system messages, as records and as JSON, which must agree in everything."""
    query = msgspec.structs.replace(MessageQuery(S1, system=False), **more)
    return await same_page(world.store, query)


class Hiding(Contract):
    """Pages for the user, which leave Mid-Conversation System Messages out."""

    @pytest.mark.parametrize("limit", [None, 1, 3])
    async def test_a_session_of_system_messages_alone_is_an_empty_page(
        self, world: World, limit: int | None
    ) -> None:
        """No messages and no cursors, from either end."""
        await talk(world, "sss")
        middle = await world.store.messages(MessageQuery(S1, limit=2))

        assert await told(world, limit=limit) == MessagePage(())
        assert await told(world, limit=limit, before=middle.older) == MessagePage(())
        assert await told(world, limit=limit, after=middle.older) == MessagePage(())

    async def test_one_alone_is_found_only_by_whoever_wants_it(self, world: World) -> None:
        """`only` finds a system message where they are shown; others it finds either way."""
        await talk(world, "usa")

        assert await told(world, only=msg(2)) == MessagePage(())
        assert names(await told(world, only=msg(3))) == msgs(3)
        shown_too = await world.store.messages(MessageQuery(S1, only=msg(2)))
        assert names(shown_too) == msgs(2)
        json = await world.store.messages_json(MessageQuery(S1, only=msg(2)))
        assert [each["info"]["role"] for each in msgspec.json.decode(json.body)] == ["system"]

    async def test_they_are_shown_unless_they_are_left_out(self, world: World) -> None:
        """By default a page has them, with their marks; without them it is the same page less those."""
        await talk(world, "sussaus")

        whole = await world.store.messages(MessageQuery(S1))
        assert [(each.info.id, each.info.mark is Mark.SYSTEM) for each in whole.messages] == [
            (msg(n), sign == "s") for n, sign in enumerate("sussaus", 1)
        ]
        left = [each for each in whole.messages if each.info.mark is not Mark.SYSTEM]
        assert await told(world) == MessagePage(tuple(left))

    async def test_every_way_of_writing_keeps_the_mark(self, world: World) -> None:
        """With its session, alone, among other new records, and when it is written again."""
        await world.put(session(), system(1), user(2))
        await world.put(system(3))
        await world.put(user(4), text(40, 4), system(5))
        await world.put(system(3, "It is Tuesday"), text(41, 4))
        await world.reopen()

        found = await world.store.select("message", session=S1, mark=Mark.SYSTEM)
        assert [each.id for each in found] == msgs(1, 3, 5)
        page = await told(world)
        assert [(each.info.id, [part.id for part in each.parts]) for each in page.messages] == [
            (msg(2), []),
            (msg(4), [prt(40), prt(41)]),
        ]

    @pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
    @pytest.mark.parametrize("pattern", ["uauau", "susassusasus", "ssuassuau", "usssssauaus"])
    async def test_pages_count_only_what_they_show(self, world: World, pattern: str, limit: int) -> None:
        """Backwards and forwards every page is full but the last, and each message comes once."""
        await talk(world, pattern)
        people = [msg(n) for n, sign in enumerate(pattern, 1) if sign != "s"]
        page = await told(world, limit=limit)
        assert page.newer is None
        backwards = [names(page)]
        while page.older is not None:
            page = await told(world, limit=limit, before=page.older)
            backwards.append(names(page))
        forwards = [names(page)]
        while page.newer is not None:
            page = await told(world, limit=limit, after=page.newer)
            assert page.older is not None
            forwards.append(names(page))

        short = len(people) % limit or limit
        assert backwards == [people[max(0, end - limit) : end] for end in range(5, 0, -limit)]
        assert forwards == [people[:short], *(people[at : at + limit] for at in range(short, 5, limit))]

    async def test_a_cursor_is_none_where_only_system_messages_follow(self, world: World) -> None:
        """At both ends and in both directions; a reader that is shown them gets the cursor."""
        await talk(world, "ssuaussss")
        newest = await told(world, limit=3)
        assert (names(newest), newest.older, newest.newer) == (msgs(3, 4, 5), None, None)

        begin = await world.store.messages(MessageQuery(S1, limit=8))
        forwards = await told(world, limit=3, after=begin.older)
        assert (names(forwards), forwards.older, forwards.newer) == (msgs(3, 4, 5), None, None)
        both = await world.store.messages(MessageQuery(S1, limit=3, after=begin.older))
        assert (names(both), both.older is None, both.newer is None) == (msgs(3, 4, 5), False, False)

    async def test_a_cursor_at_a_system_message_serves_too(self, world: World) -> None:
        """A cursor of a page that shows them is a point like any other to one that does not."""
        await talk(world, "uasau")
        at_system = (await world.store.messages(MessageQuery(S1, limit=3))).older

        older = await told(world, limit=1, before=at_system)
        assert (names(older), older.older is None, older.newer is None) == (msgs(2), False, False)
        newer = await told(world, limit=1, after=at_system)
        assert (names(newer), newer.older is None, newer.newer is None) == (msgs(4), False, False)
        assert names(await told(world, before=at_system)) == msgs(1, 2)
        assert names(await told(world, after=at_system)) == msgs(4, 5)

    async def test_what_would_hang_on_one_is_left_out_with_it(self, world: World) -> None:
        """They have no parts; one that was given to them all the same gets under no other message."""
        await world.put(session(), user(1), text(10, 1), system(2), text(20, 2), user(3), text(30, 3))

        for limit in (None, 1, 2):
            page = await told(world, limit=limit)
            assert [[part.id for part in each.parts] for each in page.messages][-1] == [prt(30)]
        assert [part.id for each in (await told(world)).messages for part in each.parts] == [prt(10), prt(30)]

    async def test_the_window_since_the_last_compaction(self, world: World) -> None:
        """It begins at the same place with them and without, even if that is a system message."""
        await world.put(session(), user(1), system(2), user(3), assistant(4, 3), system(5), user(6))
        await world.put(
            compaction(20, 6, tail=2), system(7), assistant(8, 6, summary=True), system(9), user(10)
        )

        assert await since(world) == msgs(2, 3, 4, 5, 6, 7, 8, 9, 10)
        assert await since(world, system=False) == msgs(3, 4, 6, 8, 10)

    async def test_the_window_is_paged_by_what_it_shows(self, world: World) -> None:
        """In both directions; what lies before the window, or is the system's in it, is no older page."""
        await world.put(session(), user(1), system(2), user(3), system(4), user(5), compaction(20, 5, tail=2))
        await world.put(system(6), assistant(7, 5, summary=True), system(8), user(9), system(10))

        newest = await told(world, since_compaction=True, limit=2)
        assert (names(newest), newest.newer) == (msgs(7, 9), None)
        older = await told(world, since_compaction=True, limit=2, before=newest.older)
        assert (names(older), older.older) == (msgs(3, 5), None)
        newer = await told(world, since_compaction=True, limit=2, after=older.newer)
        assert (names(newer), newer.older is None, newer.newer) == (msgs(7, 9), False, None)
        first = await told(world, limit=1, before=(await told(world, limit=4)).older)
        forwards = await told(world, since_compaction=True, limit=2, after=first.newer)
        assert (names(first), names(forwards), forwards.older) == (msgs(1), msgs(3, 5), None)
