"""Options that every command takes, before its name or after it."""

import click

_VERBOSE = "holdfast.verbose"
_NO_PAGER = "holdfast.no_pager"


def added(command: click.Command) -> click.Command:
    """The command with these options, added once."""
    known = {option for param in command.params for option in param.opts}
    for make in (_verbose_option, _pager_option):
        option = make()
        if not known & set(option.opts):
            command.params.append(option)
    return command


def pages(ctx: click.Context) -> bool:
    """Whether long output may go to a pager."""
    return not ctx.meta.get(_NO_PAGER, False)


def _verbose_option() -> click.Option:
    return click.Option(
        ["--verbose"],
        is_flag=True,
        expose_value=False,
        callback=_begin,
        help="Print the log to standard error.",
    )


def _pager_option() -> click.Option:
    return click.Option(
        ["--no-pager"],
        is_flag=True,
        expose_value=False,
        callback=_keep_pager,
        help="Never page long output.",
    )


def _keep_pager(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's call
    if value:
        ctx.meta[_NO_PAGER] = True


def _begin(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's call
    """Switch the log on; the command that runs begins with a line of what a report of a fault needs."""
    if value:
        ctx.meta[_VERBOSE] = True
    if not ctx.meta.get(_VERBOSE):
        return
    import platform

    from holdfast.log import event, setup
    from holdfast.version import __version__

    setup.start_stderr(verbose=True)
    group = ctx.command if isinstance(ctx.command, click.Group) else None
    if group is None or group.invoke_without_command:
        event.debug(
            "cli",
            "command.begin",
            command=ctx.command_path.removeprefix("holdfast "),
            version=__version__,
            python=platform.python_version(),
            system=platform.system(),
        )
