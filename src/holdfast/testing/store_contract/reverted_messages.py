"""Pages of a session with a staged revert: what it hides is left out, unless everything is asked for."""

import pytest
from msgspec.structs import replace

from holdfast.store.batch import Put
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
from holdfast.testing.store_contract.message_pages import msgs, names
from holdfast.testing.store_contract.world import Contract, World, same_page


def reverting(message: int, part: int | None = None) -> Put:
    """The session with a staged revert."""
    return session(revert={"messageID": msg(message)} | ({} if part is None else {"partID": prt(part)}))


async def talk(world: World, count: int) -> None:
    """So many messages, each with two parts."""
    await world.put(session())
    for n in range(1, count + 1):
        said = user(n) if n % 2 else assistant(n, n - 1)
        await world.put(said, text(10 * n, n), text(10 * n + 1, n))


async def page(world: World, **more: object) -> MessagePage:
    """A page in all its forms."""
    return await same_page(world.store, replace(MessageQuery(S1), **more))


def parts(found: MessagePage) -> list[list[str]]:
    return [[part.id for part in each.parts] for each in found.messages]


class Reverting(Contract):
    """Pages leave out what a staged revert hides."""

    async def test_everything_from_the_message_on(self, world: World) -> None:
        """Without a trace; whoever asks for everything gets it, and a message by its id is there, whole."""
        await talk(world, 6)
        whole = await page(world)
        await world.put(reverting(3))

        assert names(await page(world)) == msgs(1, 2)
        assert await page(world, reverted=True) == whole
        assert names(await page(world, only=msg(4))) == msgs(4)
        await world.put(session())
        assert await page(world) == whole

    async def test_from_a_part_on(self, world: World) -> None:
        """The message stays with the parts before it."""
        await talk(world, 6)
        await world.put(reverting(4, 41))

        assert parts(await page(world)) == [
            [prt(10), prt(11)], [prt(20), prt(21)], [prt(30), prt(31)], [prt(40)],
        ]  # fmt: skip
        assert parts(await page(world, limit=1)) == [[prt(40)]]
        assert parts(await page(world, only=msg(4))) == [[prt(40), prt(41)]]
        await world.put(reverting(4, 40))
        assert parts(await page(world))[-1] == []

    @pytest.mark.parametrize("limit", [1, 2, 3])
    async def test_pages_end_where_it_hides(self, world: World, limit: int) -> None:
        """Backwards and forwards; what is hidden is no newer page."""
        await talk(world, 7)
        await world.put(reverting(5))
        found = await page(world, limit=limit)
        assert (names(found), found.newer) == (msgs(*range(5 - limit, 5)), None)
        backwards = names(found)
        while found.older is not None:
            found = await page(world, limit=limit, before=found.older)
            backwards[:0] = names(found)
        forwards = names(found)
        while found.newer is not None:
            found = await page(world, limit=limit, after=found.newer)
            forwards += names(found)
        assert backwards == forwards == msgs(1, 2, 3, 4)
        last = (await page(world, limit=1, reverted=True)).older
        assert await page(world, limit=limit, after=last) == MessagePage(())

    async def test_it_hides_by_place(self, world: World) -> None:
        """A prompt that was admitted before the point and promoted behind it is hidden."""
        await world.put(session(), user(1), user(2), user(3))
        await world.put(replace(user(2), placed=True))
        await world.put(reverting(3))
        assert names(await page(world)) == msgs(1)
        await world.put(reverting(2))
        assert names(await page(world)) == msgs(1, 3)

    async def test_a_compaction_that_is_hidden_does_not_count(self, world: World) -> None:
        """The window since the last one begins where it began before."""
        await world.put(session(), user(1), user(2), compaction(20, 2), assistant(3, 2, summary=True))
        await world.put(user(4), user(5), compaction(50, 5), assistant(6, 5, summary=True), user(7))
        assert names(await page(world, since_compaction=True)) == msgs(5, 6, 7)
        await world.put(reverting(5))
        assert names(await page(world, since_compaction=True)) == msgs(2, 3, 4)
        await world.put(reverting(2))
        assert names(await page(world, since_compaction=True)) == msgs(1)

    async def test_a_point_that_is_not_there_hides_nothing(self, world: World) -> None:
        """And a part of another message, or of none, is no point."""
        await talk(world, 3)
        await world.put(reverting(9))
        assert names(await page(world)) == msgs(1, 2, 3)
        await world.put(reverting(2, 30))
        assert names(await page(world)) == msgs(1)
        await world.put(reverting(2, 99))
        assert names(await page(world)) == msgs(1)
