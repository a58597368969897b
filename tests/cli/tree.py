"""The commands as they really are, found by walking the groups."""

from collections.abc import Iterator

import click

from holdfast.cli.root import root


def commands(group: click.Group = root, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each command that can be run, by what is typed after `holdfast`."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        assert found is not None, name
        typed = (*path, name)
        if not isinstance(found, click.Group) or found.invoke_without_command:
            yield " ".join(typed), found
        if isinstance(found, click.Group):
            yield from commands(found, typed)


def options(command: click.Command) -> dict[str, click.Option]:
    """The options of a command, by each of their names."""
    own = [each for each in command.params if isinstance(each, click.Option)]
    return {name: each for each in own for name in (*each.opts, *each.secondary_opts)}
