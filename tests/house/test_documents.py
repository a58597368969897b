"""The tests that documents name: each is there, so that a row that says *done* can be looked up."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
CONTRACT = ROOT / "src/holdfast/testing/store_contract"

_ALIAS = re.compile(r"\b([A-Z])(?: is)?\s`([\w/]+\.py)`")
_NAME = re.compile(r"contract |\b[A-Z](?= `)|`[^`]+`|\]\(([\w.-]+)\)")


def missing(text: str) -> list[str]:
    """What the last cells of a document's tables name and nobody finds.

    A cell names a file or folder below `tests/` (or the repository), a letter for a file (said before the
    table), or, behind either, tests without their `test_`; behind the word contract, a file of the contract.
    """
    prose, _, _ = text.partition("| sentence |")
    files = {letter: TESTS / path for letter, path in _ALIAS.findall(prose)}
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            found += [each for each in _unknown(line.split(" | ")[-1], files) if each not in found]
    return found


def _unknown(cell: str, files: dict[str, Path]) -> list[str]:
    unknown, file, contract = [], None, False
    for match in _NAME.finditer(cell):
        word = match[0].strip("` ")
        if match[1] is not None:
            unknown += [] if (ROOT / "docs" / match[1]).exists() else [match[1]]
        elif word == "contract":
            contract = True
        elif not match[0].startswith("`"):
            file, contract = files[word], False
        elif contract and "/" not in word:
            unknown += [] if (CONTRACT / f"{word}.py").exists() else [word]
        elif word.endswith(("/", ".py")):
            contract, places = False, [place / word for place in (TESTS, ROOT)]
            file = next((place for place in places if place.exists()), None)
            unknown += [] if file is not None else [word]
        elif file is None or not file.is_file() or f"def test_{word}(" not in file.read_text("utf-8"):
            unknown.append(word)
    return unknown


@pytest.mark.parametrize("name", ["context.md", "parity.md"])
def test_every_test_that_a_document_names_exists(name: str) -> None:
    """A test that was renamed or removed takes its row with it."""
    assert missing((ROOT / "docs" / name).read_text("utf-8")) == []


def test_every_row_of_parity_names_a_test_or_says_that_it_is_missing() -> None:
    """*done* and *partial* are claims: somebody must be able to look them up."""
    text = (ROOT / "docs/parity.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    claims = [row for row in rows if len(row) > 1 and row[1].startswith(("done", "partial"))]

    assert len(claims) > 50
    assert [row[0] for row in claims if len(row) != 3 or "`" not in row[2]] == []


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("H `the_patterns_that_are_not_there`", ["the_patterns_that_are_not_there"]),
        ("H `no_source_file_is_too_long`", []),
        ("`house/test_files.py` `no_source_file_is_too_long`, `nobody_wrote_this`", ["nobody_wrote_this"]),
        ("`house/`, `house/test_gone.py`", ["house/test_gone.py"]),
        ("contract `message_pages`, `gone`; `bench/store.py`", ["gone"]),
        ("[context.md](context.md), [gone.md](gone.md)", ["gone.md"]),
    ],
)
def test_what_is_not_there_is_found(cell: str, expected: list[str]) -> None:
    """The test of this test."""
    text = f"H `house/test_files.py`\n\n| sentence | test |\n|---|---|\n| a fact | {cell} |\n"

    assert missing(text) == expected
