"""`docs/architecture.md` shows the house as it is."""

from pathlib import Path

import pytest

from tests.house.levels import LEVELS, SRC, charter, drawing

DOCUMENT = Path(__file__).parents[2] / "docs" / "architecture.md"
BEGIN, END = "<!-- drawn by scripts/architecture -->\n", "<!-- end of the drawing -->"


@pytest.mark.ci
def test_the_drawing_is_made_from_the_imports() -> None:
    """Run `scripts/architecture` after an import between rooms has come or gone."""
    drawn = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]

    assert drawn.strip() == drawing()


def test_every_room_says_what_it_is_for() -> None:
    """A charter is one sentence."""
    rooms = [room for level in LEVELS for room in level if (SRC / room.replace(".", "/")).is_dir()]

    assert [room for room in rooms if not charter(room).endswith(".")] == []


def test_every_file_that_the_answers_name_exists() -> None:
    """The questions of a newcomer are answered with files that are there."""
    import re

    named = re.findall(r"`((?:src|tests|docs|scripts|bench)/[\w./-]+)`", DOCUMENT.read_text(encoding="utf-8"))

    assert named
    assert [name for name in named if not (DOCUMENT.parents[1] / name).exists()] == []
