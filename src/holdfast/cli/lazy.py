"""Groups whose commands are imported only when they are named."""

from importlib import import_module

import click

from holdfast.cli import everywhere


class LazyGroup(click.Group):
    """`table` maps a command's name to `module:attribute` and its one line of help."""

    def __init__(self, *, table: dict[str, tuple[str, str]], **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]
        self.table = table
        everywhere.added(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table, which is the order of use."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry[0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return everywhere.added(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named first; where there is none, what the user may have meant."""
        typed = args[0]
        if typed in self.table or typed.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from holdfast.cli import suggest

        found = suggest.suggested(typed, self.table, self._elsewhere(ctx))
        raise click.UsageError(f"No such command {typed!r}.{suggest.question(found)}", ctx)

    def _elsewhere(self, ctx: click.Context) -> list[str]:
        """The commands of the groups below, each with the words that lead to it."""
        below = [(name, self.get_command(ctx, name)) for name in self.table]
        groups = [(name, each) for name, each in below if isinstance(each, LazyGroup)]
        return [f"{name} {inner}" for name, group in groups for inner in group.table]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help of a group, without importing its commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])
