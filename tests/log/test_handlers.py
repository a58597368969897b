"""What becomes of an event: a line of the file, a line on the screen, or a count of those that were lost."""

import logging
from pathlib import Path

import pytest

from holdfast.log.file import LogFile
from holdfast.log.handlers import FileHandler, StandardError


def record(text: str, *, level: int = logging.INFO, event: str | None = "e") -> logging.LogRecord:
    """An event, or a warning in words."""
    made = logging.LogRecord("holdfast.runtime", level, "f.py", 1, text, None, None)
    if event is not None:
        made.event = event
    return made


def test_lines_that_could_not_be_written_are_counted(tmp_path: Path) -> None:
    """When the disk takes lines again, the first says how many are missing."""
    path = tmp_path / "log"
    path.mkdir()
    handler = FileHandler(LogFile(path), lambda: logging.INFO)
    for _ in range(3):
        handler.handle(record("lost"))
    path.rmdir()
    handler.handle(record("e x=1"))
    handler.handle(record("e x=2"))

    lines = [
        line.partition(" runtime ")[2] or line.partition(" log ")[2] for line in path.read_text().splitlines()
    ]
    assert lines == ["log.dropped count=3", "e x=1", "e x=2"]


def test_the_level_is_asked_for_by_the_first_event_and_only_then(tmp_path: Path) -> None:
    """Below it nothing is opened or made."""
    asked: list[str] = []

    def level() -> int:
        asked.append("asked")
        return logging.WARNING

    handler = FileHandler(LogFile(tmp_path / "log"), level)
    assert asked == []
    for _ in range(2):
        handler.handle(record("e", level=logging.INFO))

    assert asked == ["asked"]
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_is_logged_can_fail_the_caller(tmp_path: Path) -> None:
    """Words that do not fit their pattern, or settings that cannot be read: the next line is there."""

    def broken() -> int:
        raise RuntimeError("settings")

    handler = FileHandler(LogFile(tmp_path / "log"), broken)
    wrong = logging.LogRecord("holdfast", logging.WARNING, "f.py", 1, "%d", ("x",), None)
    for each in (record("first"), wrong, record("e x=1")):
        handler.handle(each)
        StandardError(verbose=True).handle(each)

    text = (tmp_path / "log").read_text()
    assert [line.rpartition(" ")[2] for line in text.splitlines()] == ["count=1", "count=1", "x=1"]


def test_the_screen_gets_warnings_in_words_and_with_verbose_everything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An event is for the log; a warning is for the user, without anything that a terminal would obey."""
    for verbose in (False, True):
        handler = StandardError(verbose=verbose)
        handler.handle(record("e x=1"))
        handler.handle(record("look\x1b[2J out", level=logging.WARNING, event=None))
        text = capsys.readouterr().err
        if verbose:
            assert [line.split(" ", 3)[3] for line in text.splitlines()] == [
                "runtime e x=1",
                'runtime message text="look [2J out"',
            ]
        else:
            assert text == "look [2J out\n"
