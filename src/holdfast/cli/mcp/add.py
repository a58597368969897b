"""`holdfast mcp add`: puts a server into the user's own settings, and leaves the rest as it is."""

import re

import click

from holdfast.cli.output import format_option, note, print_json
from holdfast.errors import InvalidInput
from holdfast.schema.wire import JsonMap

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")


@click.command()
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", help="The address of a remote server, in the place of a command.")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="A variable of its program.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of each request.")
@click.option("--timeout", type=click.IntRange(1), metavar="MS", help="How long it may take to connect.")
@click.option("--box", is_flag=True, help="Run its program in the box of commands.")
@click.option("--force", is_flag=True, help="In the place of a server of that name.")
@format_option
def add(
    name: str,
    command: tuple[str, ...],
    *,
    url: str | None,
    variables: tuple[str, ...],
    headers: tuple[str, ...],
    timeout: int | None,
    box: bool,
    force: bool,
    form: str,
) -> None:
    """Put a server into your settings: `add NAME -- COMMAND …`, or `add NAME --url ADDRESS`.

    A secret need not stand there: `{env:NAME}` and `{file:PATH}` in a value are filled in when it is used.
    """
    from holdfast.config import own_file

    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name[:60]!r} is no name of a server: letters, digits, _ . and -, at most 40")
    if bool(command) == bool(url):
        raise InvalidInput("name either a command, after `--`, or an address with --url")
    if url and not url.startswith(("https://", "http://", "{env:", "{file:")):
        raise InvalidInput(f"{url[:60]!r} is no address: it begins with https:// or http://")
    entry: JsonMap = {"type": "remote", "url": url} if url else {"type": "local", "command": list(command)}
    if variables:
        entry["environment"] = _pairs(variables)
    if headers:
        entry["headers"] = _pairs(headers)
    entry |= {key: value for key, value in (("timeout", timeout), ("box", box or None)) if value is not None}
    if not force and own_file.has(("mcp", name)):
        raise InvalidInput(f"your settings have a server {name} already; --force puts this in its place")
    file = own_file.set_value(("mcp", name), entry)
    if form == "json":
        print_json({"name": name, "file": str(file), "entry": sorted(entry)})
    else:
        note(f"{name} is in {file}; `holdfast mcp list` connects to it.")


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    if wrong := next(
        (each for each, pair in zip(given, pairs, strict=True) if not (pair[0] and pair[1])), None
    ):
        raise InvalidInput(f"{wrong.partition('=')[0][:40]!r} is not NAME=VALUE")
    return {name: value for name, _, value in pairs}
