"""Mistyped commands and names that stand for several sessions: what the user may have meant."""

import json
from itertools import takewhile

import pytest

from holdfast.app import Holdfast
from holdfast.cli.suggest import question, suggested
from tests.cli.conftest import Shell

HERE = ("run", "session", "models", "providers")
ELSEWHERE = ("session list", "session show", "session delete", "models list", "models install")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("sesion", ["session"]),
        ("ses", ["session"]),
        ("auth", ["providers"]),
        ("list", ["session list", "models list"]),
        ("shwo", ["session show"]),
        ("rm", ["session delete"]),
        ("instal", ["models install"]),
        ("xyzzy", []),
    ],
)
def test_a_mistyped_command_is_near_a_real_one(typed: str, found: list[str]) -> None:
    """By its letters, its beginning, the name that other tools give it, or in another group."""
    assert suggested(typed, HERE, ELSEWHERE) == found


def test_the_question_names_them() -> None:
    """At the end of the message; nothing where nothing is near."""
    assert question([]) == ""
    assert question(["a"]) == " Did you mean 'a'?"
    assert question(["a", "b", "c"]) == " Did you mean 'a', 'b' or 'c'?"


@pytest.mark.ci
def test_the_command_line_asks(shell: Shell) -> None:
    """For commands and for options, with exit code 2."""
    assert shell.fails("session", "lst", code=2) == (
        "No such command 'lst'. Did you mean 'list'? (try 'holdfast session --help')"
    )
    assert "Did you mean 'session show'?" in shell.fails("show", "x", code=2)
    assert "Did you mean '--limit'?" in shell.fails("session", "list", "--limt", "1", code=2)


@pytest.mark.ci
def test_a_beginning_of_several_ids_lists_them(shell: Shell) -> None:
    """Ten at most, with titles and times, and how many others there are; as JSON for programs."""

    async def work(hf: Holdfast) -> list[str]:
        return [
            (await hf.sessions.create(directory=shell.folder, title=f"talk {number}")).id
            for number in range(13)
        ]

    ids = shell.make(work)
    # How many letters ids share depends on when they were made.
    shared = takewhile(lambda letters: len(set(letters)) == 1, zip(*ids, strict=True))
    beginning = "".join(letters[0] for letters in shared)
    done = shell("session", "show", beginning)
    for_programs = json.loads(shell("session", "show", beginning, "--format", "json").err)

    head, *rows, others, complaint = done.err.splitlines()
    assert (done.code, done.out) == (1, "")
    assert head.split() == ["SESSION", "UPDATED", "TITLE"]
    assert [row.split()[0] for row in rows] == ids[:2:-1]
    assert rows[0].endswith("just now  talk 12")
    assert others == "… and 3 others"
    assert complaint == f"holdfast: '{beginning}' means more than one session; give more of the id"
    assert for_programs["name"] == "AmbiguousError"
    assert [each["title"] for each in for_programs["data"]["candidates"]][:2] == ["talk 12", "talk 11"]
    assert for_programs["data"]["others"] == 3
