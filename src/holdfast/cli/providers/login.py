"""`holdfast providers login`: takes a key from the keyboard or from standard input, never as an argument.

An argument would stand in the shell's history and in the list of processes.
"""

import sys

import click

from holdfast.cli.config.current import here
from holdfast.cli.output import format_option, note, print_json
from holdfast.cli.terminal import read_text
from holdfast.errors import InvalidInput, NotFound, Refused
from holdfast.provider.accounts import credentials
from holdfast.provider.accounts.secret import Secret
from holdfast.provider.catalog import packages


@click.command()
@click.argument("provider_id", metavar="ID")
@click.option("--key-stdin", is_flag=True, help="Read the key from standard input.")
@click.option("--force", is_flag=True, help="Also for a provider that nothing knows of yet.")
@format_option
@click.pass_context
def login(ctx: click.Context, provider_id: str, *, key_stdin: bool, force: bool, form: str) -> None:
    """Keep the key of a provider, or of a host (https://HOST), for this user alone to read."""
    if "://" in provider_id:
        from holdfast.cli.providers.login_host import login_host

        login_host(provider_id, key_stdin=key_stdin, form=form)
        return
    if not force:
        _known(ctx, provider_id)
    credentials.save_key(provider_id, read_key(f"Key of {provider_id}", from_stdin=key_stdin))
    if form == "json":
        print_json({"provider": provider_id, "file": str(credentials.our_file())})
    else:
        note(f"The key of {provider_id} is in {credentials.our_file()}.")


def _known(ctx: click.Context, provider_id: str) -> None:
    try:
        provider = here(ctx).workspace.providers.provider(provider_id)
    except NotFound as error:
        raise NotFound(f"{error} (--force keeps a key all the same)") from None
    why = packages.find(provider.npm, provider_id).why
    if why:
        raise Refused(f"{provider_id} is not supported: {why}")


def read_key(question: str, *, from_stdin: bool) -> Secret:
    """A key from the keyboard, unseen, or from standard input."""
    if not from_stdin and sys.stdin.isatty():
        return Secret(click.prompt(question, hide_input=True, err=True))
    text = read_text(credentials.KEY_MAX, beyond="standard input holds more than a key").strip()
    if not text:
        raise InvalidInput("standard input holds no key; pipe one into the command, or use a terminal")
    return Secret(text)
