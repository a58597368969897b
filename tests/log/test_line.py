"""A line of the log: its form, and what is never in it."""

import logging

import pytest

from holdfast.log import line


def record(text: str, *, level: int = logging.INFO, event: str | None = None) -> logging.LogRecord:
    """A record of a fixed moment and process."""
    made = logging.LogRecord("holdfast.runtime", level, "f.py", 1, text, None, None)
    made.created, made.process = 1_794_814_970.123, 4711
    if event is not None:
        made.event = event
    return made


def test_an_event_is_time_level_process_room_name_and_facts() -> None:
    """In UTC; every part at its place, so that people and programs read it."""
    text = line.described("turn.end", {"session": "ses_1", "finish": "stop", "cost": 0.25, "ok": True})

    assert line.of(record(text, event="turn.end")) == (
        "2026-11-16T07:42:50.123Z INFO 4711 runtime turn.end session=ses_1 finish=stop cost=0.25 ok=yes"
    )


def test_what_others_log_becomes_an_event_of_the_same_form() -> None:
    """A warning in words is the fact `text`; levels have OpenCode's names."""
    assert line.of(record("it is\nbroken", level=logging.WARNING)) == (
        '2026-11-16T07:42:50.123Z WARN 4711 runtime message text="it is broken"'
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("anthropic/claude-5:x@1", "anthropic/claude-5:x@1"),
        ("two words", '"two words"'),
        ('a "quote"', '"a \\"quote\\""'),
        ("", '""'),
        ("line\nbreak\x1b[2J", '"line break [2J"'),
        ("key sk-abcdefghijklmnop and more", '"key …hidden… and more"'),
        ("Authorization: Bearer abcdefghijkl", '"Authorization: …hidden…"'),
        (
            "https://me:pw@host.example/x?api_key=abc&y=1",
            '"https://…hidden…@host.example/x?api_key=…hidden…&y=1"',
        ),
        ("x" * 400, '"' + "x" * 299 + '…"'),
    ],
)
def test_values_are_bounded_printable_and_hold_no_secret(value: str, shown: str) -> None:
    """One line whatever was given; keys and passwords are hidden by their shape."""
    assert line.described("e", {"v": value}) == f"e v={shown}"


def test_a_line_has_a_bound_of_its_own() -> None:
    """However many facts there are."""
    assert len(line.described("e", {f"k{number}": "x" * 200 for number in range(100)})) == line.LINE_MAX
