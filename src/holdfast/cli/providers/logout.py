"""`holdfast providers logout`: forgets a key of ours. Another program's file is left alone."""

import os

import click

from holdfast.cli.output import note
from holdfast.cli.providers import settings
from holdfast.errors import HoldfastError, NotFound
from holdfast.provider import credentials


@click.command()
@click.argument("provider_id", metavar="ID")
def logout(provider_id: str) -> None:
    """Forget the key of a provider."""
    forgotten = credentials.forget(provider_id)
    elsewhere = _elsewhere(provider_id)
    if not forgotten:
        raise NotFound(f"{credentials.our_file()} holds no key of {provider_id}{elsewhere}")
    note(f"The key of {provider_id} is forgotten{elsewhere}.")


def _elsewhere(provider_id: str) -> str:
    """Where a key remains that we do not touch."""
    held = credentials.load().get(provider_id)
    if held is not None and held.origin == "opencode":
        return f"; another one is in {credentials.opencode_file()}"
    try:
        names = settings.providers().provider(provider_id).env
    except HoldfastError:
        return ""
    found = [name for name in names if os.environ.get(name)]
    return f"; {' and '.join(found)} of the environment remains" if found else ""
