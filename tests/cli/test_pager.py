"""Long output on a terminal: a pager, if it does not fit and there is one; colours as the user wishes."""

import re

import pytest

from tests.cli.conftest import Shell
from tests.cli.terminal import Terminal

WORDS = "\n".join(f"line {number}" for number in range(100))
ENDED = "line 99"


@pytest.fixture
def talk(shell: Shell) -> str:
    """A session with a message of a hundred lines."""
    return shell.conversation(words=WORDS)


def plain(text: str) -> str:
    """The text without what steers a terminal."""
    return re.sub(r"\x1b[\[\]?][0-9;?]*[ -/]*[@-~]|\x1b[=>]", "", text)


@pytest.mark.needs("less")
def test_what_does_not_fit_is_paged_and_leaving_early_is_no_error(shell: Shell, talk: str) -> None:
    """The screen shows the beginning; the rest comes with a key, or never."""
    screen = Terminal(shell, "session", "show", talk)
    screen.sees("line 10")
    assert ENDED not in screen.text
    screen.press("q")

    code, text = screen.ends()
    assert code == 0
    assert ENDED not in text
    assert "Traceback" not in text


@pytest.mark.ci
@pytest.mark.needs("less")
def test_ctrl_c_belongs_to_the_pager(shell: Shell, talk: str) -> None:
    """It neither ends the command nor leaves a message."""
    screen = Terminal(shell, "session", "show", talk)
    screen.sees(":\x1b[K")  # The pager waits for a key.
    screen.press("\x03")
    screen.sees(ENDED, keys="G")
    screen.press("q")

    code, text = screen.ends()
    assert code == 0
    assert "interrupted" not in text


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["--no-pager", "session", "show"], {}),
        (["session", "show", "--no-pager"], {}),
        (["session", "show"], {"HOLDFAST_PAGER": ""}),
        (["session", "show"], {"PAGER": "cat"}),
        (["session", "show"], {"PAGER": "/nowhere/no-such-pager --x"}),
        (["session", "show"], {"PAGER": "'unclosed"}),
        (["session", "show"], {"TERM": "dumb"}),
    ],
)
def test_without_a_pager_everything_is_printed(
    shell: Shell, talk: str, arguments: list[str], environment: dict[str, str]
) -> None:
    """The user wants none, or it is not there."""
    code, text = Terminal(shell, *arguments, talk, **environment).ends()

    assert code == 0
    assert plain(text).count("\nline ") == 100


def test_what_fits_is_printed_and_notes_come_after_it(shell: Shell) -> None:
    """No pager is started, even one that would wait; the note stands below the table."""
    first, second = shell.conversation("One"), shell.conversation("Two")
    code, text = Terminal(shell, "session", "list", "-n", "1", HOLDFAST_PAGER="sleep 60").ends()

    lines = plain(text).splitlines()
    assert code == 0
    assert lines[0].startswith("SESSION")
    assert lines[1].startswith(second)
    assert lines[2].startswith("There are more:")
    assert first not in text


def test_the_pager_of_our_own_variable_wins_and_gets_it_all(shell: Shell, talk: str) -> None:
    """With its arguments, in colour, and with what `less` needs in its environment."""
    environment = {"HOLDFAST_PAGER": "sh -c 'wc -l; echo [$LESS]'", "PAGER": "false"}
    code, text = Terminal(shell, "session", "show", talk, **environment).ends()

    assert code == 0
    assert int(text.split()[0]) > 100
    assert "[FRX]" in text


@pytest.mark.ci
def test_no_pager_and_no_colour_where_no_terminal_is(shell: Shell, talk: str) -> None:
    """A pipe gets plain text at once; FORCE_COLOR colours it all the same, and NO_COLOR wins."""
    shell.environment["HOLDFAST_PAGER"] = "sleep 60"
    piped = shell("session", "show", talk).out
    assert "\x1b" not in piped
    shell.environment["FORCE_COLOR"] = "1"
    assert "\x1b[1m" in shell("session", "show", talk).out
    shell.environment["NO_COLOR"] = "1"
    assert shell("session", "show", talk).out == piped


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"CLICOLOR": "0"}, False)],
)
def test_a_terminal_is_coloured_unless_the_user_says_no(
    shell: Shell, environment: dict[str, str], coloured: bool
) -> None:
    """An empty NO_COLOR says nothing."""
    session = shell.conversation()
    _, text = Terminal(shell, "session", "show", session, **environment).ends()

    assert ("\x1b[" in text) is coloured
