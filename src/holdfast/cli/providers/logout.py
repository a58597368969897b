"""`holdfast providers logout`: forgets a key of ours. Another program's file is left alone."""

import os

import click

from holdfast.cli.config.current import here
from holdfast.cli.output import format_option, note, print_json
from holdfast.errors import HoldfastError, NotFound
from holdfast.provider.accounts import credentials


@click.command()
@click.argument("provider_id", metavar="ID")
@format_option
@click.pass_context
def logout(ctx: click.Context, provider_id: str, *, form: str) -> None:
    """Forget the key of a provider, or of a host."""
    forgotten = credentials.forget(provider_id)
    elsewhere = _elsewhere(ctx, provider_id)
    if not forgotten:
        raise NotFound(f"{credentials.our_file()} holds no key of {provider_id}{elsewhere}")
    if form == "json":
        print_json({"provider": provider_id, "remains": elsewhere.removeprefix("; ") or None})
    else:
        note(f"The key of {provider_id} is forgotten{elsewhere}.")


def _elsewhere(ctx: click.Context, provider_id: str) -> str:
    """Where a key remains that we do not touch."""
    held = credentials.load().get(provider_id)
    if held is not None and held.origin == "opencode":
        return f"; another one is in {credentials.opencode_file()}"
    try:
        names = here(ctx).workspace.providers.provider(provider_id).env
    except HoldfastError:
        return ""
    found = [name for name in names if os.environ.get(name)]
    return f"; {' and '.join(found)} of the environment remains" if found else ""
