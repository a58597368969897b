"""How tests stand to one another, and what they may reach."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
# Also in the text of a program that a test starts.
OF_A_MODULE = re.compile(
    r"^\s*(?:from tests[.\w]*\.test_\w+ import|import tests[.\w]*\.test_\w+)", re.MULTILINE
)
OF_A_FOLDER = re.compile(r"^\s*from tests[.\w]* import .*\btest_\w+", re.MULTILINE)
PRIVATE = re.compile(
    r"\b(?:hf|one|other|first|second|alpha|beta)(?:\.sessions)?\._\w+|\._(?:coordinator|entries|engine)\b"
)


def borrowing(text: str) -> list[str]:
    """The lines that import something of a test module."""
    return [match[0].strip() for pattern in (OF_A_MODULE, OF_A_FOLDER) for match in pattern.finditer(text)]


def test_no_test_module_borrows_from_another() -> None:
    """What several of them use stands in a module of its own beside them."""
    found = {
        str(path.relative_to(TESTS)): lines
        for path in sorted(TESTS.rglob("*.py"))
        if path != Path(__file__) and (lines := borrowing(path.read_text(encoding="utf-8")))
    }

    assert found == {}


def test_stories_reach_the_inside_in_one_place() -> None:
    """A private name of the running application stands in `inside.py`, so that a change of it is one line.

    `test_application.py` is about the inside: what is built when, and closed in which order.
    """
    allowed = {TESTS / "stories" / "inside.py", TESTS / "stories" / "test_application.py"}
    paths = [path for room in ("stories", "property", "golden") for path in (TESTS / room).rglob("*.py")]
    found = {
        str(path.relative_to(TESTS)): names
        for path in sorted({*paths} - allowed)
        if (names := PRIVATE.findall(path.read_text(encoding="utf-8")))
    }

    assert found == {}


def test_what_is_borrowed_is_found() -> None:
    """In every spelling, in a program's text too."""
    planted = """
from tests.stories.test_epochs import told
from tests.stories import test_epochs
    import tests.stories.test_epochs
from tests.stories.epochs import test_day
from tests.stories.contest_ import Fact
"""

    assert borrowing(planted) == [
        "from tests.stories.test_epochs import",
        "import tests.stories.test_epochs",
        "from tests.stories import test_epochs",
        "from tests.stories.epochs import test_day",
    ]
