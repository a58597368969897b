"""Terminals at a hundred times their usual size."""

import tracemalloc
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from holdfast.errors import Refused
from holdfast.location.terminal.scrollback import PIECE_BYTES_MAX, SCROLLBACK_BYTES_MAX
from tests.location.terminal.desk import descriptors, desk, over, runs, shown
from tests.until import until


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.ci
async def test_sixty_four_at_once_and_not_one_more(tmp_path: Path) -> None:
    """Each answers by itself; when they are gone, so are their descriptors and processes."""
    async with desk(tmp_path) as here:
        first = await here.open("cat")
        before = descriptors()
        refused: list[str] = []

        async def start() -> None:
            try:
                await here.open("cat")
            except Refused as error:
                refused.append(str(error))

        async with anyio.create_task_group() as starting:
            for _ in range(66):
                starting.start_soon(start)
        made = [here.terminals.get(info.id) for info in here.terminals.of()]
        assert len(made) == 64
        assert refused == ["64 terminals are open; remove one of them first"] * 3
        for number, each in enumerate(made):
            await each.write(f"number {number}\n".encode())
        for number, each in enumerate(made):
            await shown(each, f"number {number}\r\n")
        async with anyio.create_task_group() as removing:
            for each in made[1:]:
                removing.start_soon(here.terminals.remove, each.info.id)

        assert here.terminals.of() == [first.info]
        assert descriptors() == before
        await until(lambda: not any(runs(each.info.pid) for each in made[1:]))


@pytest.mark.long
async def test_nothing_is_left_of_two_hundred_that_came_and_went(tmp_path: Path) -> None:
    """One after the other, removed while they run or after they have ended, or never begun."""
    async with desk(tmp_path) as here:
        first = await here.open("cat")
        before = descriptors(), threads()
        for number in range(200):
            made = await here.open("cat" if number % 2 else "true")
            if number % 2 == 0:
                await over(made)
            await here.terminals.remove(made.info.id)

        assert here.terminals.of() == [first.info]
        await until(lambda: (descriptors(), threads()) <= before)


@pytest.mark.ci
async def test_a_flood_takes_no_more_memory_than_is_kept(tmp_path: Path) -> None:
    """100 MB, with a follower that counts every byte, and one that does not read meanwhile."""
    size = 100_000_000
    async with desk(tmp_path) as here:
        made = await here.sh(f"stty -opost -echo; echo up; read go; head -c {size} /dev/zero; echo end")
        stuck = made.follow(0, PIECE_BYTES_MAX)
        first = await anext(stuck)
        await made.write(b"\n")
        tracemalloc.start()
        try:
            counted = 0
            with anyio.fail_after(120):
                async with aclosing(made.follow(0, PIECE_BYTES_MAX)) as pieces:
                    async for piece in pieces:
                        counted += len(piece.data) + piece.dropped
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        late = await anext(stuck)

    assert counted == len("up\n") + size + len("end\n")
    assert late.dropped == counted - first.cursor - SCROLLBACK_BYTES_MAX
    assert most < 3 * SCROLLBACK_BYTES_MAX
