"""A salvage takes time for what is there: not for what is gone, and not for the one times the other."""

import random
import time
from pathlib import Path

import anyio
import pytest

from holdfast.store.sqlite.salvage import cells
from holdfast.store.sqlite.salvage.cells import loose_cells
from holdfast.store.sqlite.salvage.key_ranges import within
from holdfast.store.sqlite.salvage.pages import Pages
from tests.store.sqlite import damage

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
PROCESSOR_S = 2.0
"""Each takes a tenth of it; one range after the other took half a minute."""


@pytest.mark.parametrize(
    ("ranges", "found"),
    [
        ([], set()),
        ([(3, 3)], {3}),
        ([(4, 5)], set()),
        ([(LEAST, 1)], {1}),
        ([(9, GREATEST), (LEAST, 0)], {9, 12}),
        ([(2, 9), (3, 6), (1, 1)], {1, 3, 6, 9}),
        ([(6, 9), (3, 6), (3, 3), (6, 9)], {3, 6, 9}),
        ([(LEAST, GREATEST)], {1, 3, 6, 9, 12}),
        ([(9, 3)], set()),
        ([(9, 1), (3, 6)], {3, 6}),
    ],
)
def test_what_lies_in_a_range_is_found(ranges: list[tuple[int, int]], found: set[int]) -> None:
    """Both ends belong to it; ranges may touch, overlap, lie in one another, or hold nothing."""
    assert within([6, 1, 12, 3, 9], ranges) == found


def test_ranges_at_random_find_what_each_number_finds_by_itself() -> None:
    """As if each number were asked about each range."""
    dice = random.Random(1)
    for _ in range(300):
        numbers = dice.sample(range(60), dice.randrange(20))
        ranges = [(dice.randrange(60), dice.randrange(60)) for _ in range(dice.randrange(12))]
        expected = {n for n in numbers if any(low <= n <= high for low, high in ranges)}
        assert within(numbers, ranges) == expected


@pytest.mark.parametrize("width", [1, 1 << 40])
def test_many_sessions_and_many_lost_pages_take_no_time(width: int) -> None:
    """The ranges of pages one beside the other, and all of them in one another."""
    began_s = time.process_time()
    found = within(range(80_000), [(n, n + width) for n in range(0, 80_000, 2)])
    assert len(found) == 80_000
    assert time.process_time() - began_s < PROCESSOR_S


def test_no_cell_is_looked_for_where_a_page_is_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell begins with its size, which is not 0; what is behind the zeros is found."""
    path = tmp_path / "store.db"
    anyio.run(damage.few, path)
    data, number = path.read_bytes(), damage.leaves(path, "record")[0]
    page = damage.page(data, number)
    sound = Pages(damage.hit(data, number, bytes(100) + page[100:]))
    expected = [(cell.key, cell.offset) for cell in loose_cells(sound, number)]
    assert len(expected) > 3
    looked: list[int] = []
    read = cells.read_cell

    def counted(pages: Pages, page: bytes, number: int, offset: int, kind: int) -> cells.Cell | None:
        looked.append(offset)
        return read(pages, page, number, offset, kind)

    monkeypatch.setattr(cells, "read_cell", counted)
    assert [(cell.key, cell.offset) for cell in loose_cells(sound, number)] == expected
    assert {offset for offset in looked if offset < 100} == set()
    looked.clear()
    zeros = Pages(damage.hit(data, number, bytes(damage.PAGE)))
    assert (list(loose_cells(zeros, number)), looked) == ([], [])
