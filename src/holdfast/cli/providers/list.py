"""`holdfast providers list`: whom the user can ask, and where each key comes from. Never the key."""

from collections.abc import Mapping

import click

from holdfast.cli.config.current import here
from holdfast.cli.output import format_option, note, print_json, print_table
from holdfast.cli.paged import paged
from holdfast.provider.accounts.resolve import KnownProvider
from holdfast.provider.accounts.secret import Credential


@click.command("list")
@format_option
@click.pass_context
@paged
def list_(ctx: click.Context, *, form: str) -> None:
    """Providers with a key or an entry in the settings."""
    workspace = here(ctx).workspace
    providers, held = workspace.providers, workspace.credentials
    configured = workspace.loaded.config.provider or {}
    known = [providers.provider(id) for id in providers.ids()]
    shown = [one for one in known if one.origin or one.id in configured or one.id in held]
    unknown = sorted(set(held) - set(providers.ids()))
    if form == "json":
        print_json([_fields(one) for one in shown])
        return
    if not shown and not unknown:
        note("No provider has a key yet; `holdfast providers login ID` keeps one.")
        return
    rows = [[one.id, one.name, _origin(one, held), one.problem or "can be used"] for one in shown]
    rows += [[id, "", held[id].origin, _unknown(held[id].type)] for id in unknown]
    print_table(["PROVIDER", "NAME", "KEY FROM", "STATE"], rows, stretch=3)


def _origin(provider: KnownProvider, held: Mapping[str, Credential]) -> str:
    if provider.origin or provider.id not in held:
        return provider.origin
    return f"{held[provider.id].origin} ({held[provider.id].type})"


def _unknown(type: str) -> str:
    return "a host's settings" if type == "wellknown" else "is in no settings and not in the catalogue"


def _fields(provider: KnownProvider) -> dict[str, object]:
    return {
        "id": provider.id,
        "name": provider.name,
        "origin": provider.origin or None,
        "available": provider.problem is None,
        "problem": provider.problem,
    }
