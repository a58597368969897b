"""docs/commands.md names every command, option, flag and event that there is, and none that there is not."""

import re
from pathlib import Path

import click

from holdfast import flags
from tests.cli.tree import commands

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/commands.md").read_text("utf-8")
EVERYWHERE = {"--verbose", "--no-pager", "--format"}
EVENT = re.compile(r"\bevent\.(?:debug|info|warn|error)\(\s*\"[a-z]+\",\s*\"([a-z_.]+)\"")
NAMED = {"turn.end", "compaction.done", "compaction.failed", "log.dropped"}
"""Events whose call does not name them in the same breath."""


def rows(head: str) -> list[list[str]]:
    """The rows of the table with that head."""
    _, _, rest = PAGE.partition(f"{head}\n")
    assert rest, head
    lines = rest.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines]


def code(cell: str) -> list[str]:
    """What stands in code in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def usage(name: str, command: click.Command) -> str:
    """How a command is typed."""
    ctx = click.Context(command, info_name=name)
    typed = [each.make_metavar(ctx) for each in command.params if isinstance(each, click.Argument)]
    return " ".join([name, *typed])


def own_options(command: click.Command) -> set[str]:
    """The options of a command that not every command has."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    return {name for each in options for name in each.opts if not EVERYWHERE & set(each.opts)}


def test_the_page_has_every_command_with_its_options() -> None:
    """In the order of the help; arguments by the names that it uses."""
    real = {usage(name, command): own_options(command) for name, command in commands() if name != "models"}
    written = {code(row[0])[0]: set(code(row[1])) for row in rows("| command | own options | does |")}

    assert written == real
    assert list(written) == list(real)


def test_the_page_has_every_flag() -> None:
    """Each under our own name."""
    written = {name for row in rows("| variable | does |") for name in code(row[0])}

    assert {f"HOLDFAST_{name}" for name in flags.ALL} <= written


def test_the_page_has_every_event_of_the_log() -> None:
    """As the source logs them."""
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    logged = {name for text in sources for name in EVENT.findall(text)} | NAMED
    written = {name for row in rows("| event | level | says |") for name in code(row[0])}

    assert all(any(f'"{name}"' in text for text in sources) for name in NAMED)
    assert written == logged
