"""`holdfast info`: prints the facts, for people to paste and for programs to read."""

from pathlib import Path
from typing import Any

import click

from holdfast.cli.info import facts
from holdfast.cli.output import clean, format_option, print_json
from holdfast.cli.paged import paged
from holdfast.person import directories


@click.command()
@format_option
@click.pass_context
@paged
def info(ctx: click.Context, *, form: str) -> None:
    """Show versions, paths, the store and the settings in force, for a report of a fault.

    Keys, tokens and passwords are hidden. What cannot be read says so in its place.
    """
    found = facts.gather(ctx)
    if form == "json":
        print_json(found)
        return
    home = _home()
    for number, (section, values) in enumerate(found.items()):
        click.echo(click.style(f"{chr(10) if number else ''}{section}", bold=True))
        wide = max(map(len, values), default=0)
        for key, value in values.items():
            click.echo(f"  {clean(key):<{wide}}  {_shortened(clean(_text(value)), home)}".rstrip())
        if not values:
            click.echo("  nothing is set")


def _text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case str():
            return value
        case _:
            import msgspec

            return msgspec.json.encode(value).decode()


def _home() -> str | None:
    try:
        return str(directories.home())
    except facts.TROUBLE:
        return None


def _shortened(text: str, home: str | None) -> str:
    """The text with `~` for the home directory: a report need not tell the user's name."""
    if home is None or home == str(Path("/")):
        return text
    return text.replace(f"{home}/", "~/")
