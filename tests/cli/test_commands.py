"""What every command has, so that a new one cannot forget it."""

import click

from tests.cli.tree import commands, options

WITHOUT_FORMAT = {"config schema", "models"}
"""The first answers JSON always; the second stands for `models list`."""


def test_every_command_answers_programs() -> None:
    """`--format` with the choice `json`."""
    lacking = []
    for name, command in commands():
        option = options(command).get("--format")
        kinds = option.type.choices if option is not None and isinstance(option.type, click.Choice) else ()
        if "json" not in kinds:
            lacking.append(name)

    assert set(lacking) == WITHOUT_FORMAT


def test_every_command_takes_the_options_for_all() -> None:
    """`--verbose` and `--no-pager`, after the command as before it, each with a line of help."""
    for name, command in commands():
        known = options(command)
        assert {"--verbose", "--no-pager"} <= set(known), name
        assert known["--verbose"].help, name


def test_every_command_has_help() -> None:
    """A docstring of its own, and help for each option."""
    silent = [name for name, command in commands() if not command.help]
    silent += [
        f"{name} {option}"
        for name, command in commands()
        for option, each in options(command).items()
        if not each.help and option not in ("--limit", "-n")
    ]

    assert silent == []
