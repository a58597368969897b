"""`holdfast models …`: a list when no command is named, so that `holdfast models anthropic` works."""

import click

from holdfast.cli.lazy import LazyGroup


class ListingGroup(LazyGroup):
    """What is no command is for `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` before arguments that begin with no command, and ask for no help."""
        if not args or (args[0] not in self.table and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=ListingGroup,
    table={
        "list": ("holdfast.cli.models.list:list_", "Models that can be used (the default)."),
        "install": (
            "holdfast.cli.models.install:install",
            "Put a small model on this machine; no key needed.",
        ),
        "uninstall": ("holdfast.cli.models.install:uninstall", "Take it away again."),
    },
    invoke_without_command=True,
)
def models() -> None:
    """Models: their limits, prices and what they take."""
