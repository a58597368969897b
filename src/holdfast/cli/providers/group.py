"""`holdfast providers …`."""

import click

from holdfast.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    table={
        "list": ("holdfast.cli.providers.list:list_", "Providers with a key or an entry in the settings."),
        "discover": ("holdfast.cli.providers.discover:discover", "Model servers that run on this machine."),
        "login": ("holdfast.cli.providers.login:login", "Keep the key of a provider."),
        "logout": ("holdfast.cli.providers.logout:logout", "Forget the key of a provider."),
    },
)
def providers() -> None:
    """Who answers, and with which key."""
