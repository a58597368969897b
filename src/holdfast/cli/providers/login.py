"""`holdfast providers login`: takes a key from the keyboard or from standard input, never as an argument.

An argument would stand in the shell's history and in the list of processes.
"""

import sys

import click

from holdfast.cli.output import note
from holdfast.cli.providers import settings
from holdfast.errors import InvalidInput, NotFound, Refused
from holdfast.provider import credentials
from holdfast.provider.catalog import packages
from holdfast.provider.secret import Secret


@click.command()
@click.argument("provider_id", metavar="ID")
@click.option("--key-stdin", is_flag=True, help="Read the key from standard input.")
@click.option("--force", is_flag=True, help="Also for a provider that nothing knows of yet.")
def login(provider_id: str, *, key_stdin: bool, force: bool) -> None:
    """Keep the key of a provider, for this person alone to read."""
    if "://" in provider_id:
        raise Refused("signing in to a host is not there yet; name a provider, for example anthropic")
    if not force:
        _known(provider_id)
    credentials.save_key(provider_id, _key(provider_id, from_stdin=key_stdin))
    note(f"The key of {provider_id} is in {credentials.our_file()}.")


def _known(provider_id: str) -> None:
    try:
        provider = settings.providers().provider(provider_id)
    except NotFound as error:
        raise NotFound(f"{error} (--force keeps a key all the same)") from None
    why = packages.find(provider.npm, provider_id).why
    if why:
        raise Refused(f"{provider_id} is not supported: {why}")


def _key(provider_id: str, *, from_stdin: bool) -> Secret:
    if not from_stdin and sys.stdin.isatty():
        return Secret(click.prompt(f"Key of {provider_id}", hide_input=True, err=True))
    text = sys.stdin.read(credentials.KEY_MAX + 1).strip()
    if not text:
        raise InvalidInput("standard input holds no key")
    return Secret(text)
