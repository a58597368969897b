"""`holdfast trust`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.open_store import with_holdfast
from holdfast.cli.output import ago, clean, format_option, note, print_array, print_raw, print_table
from holdfast.cli.terminal import current_directory
from holdfast.config.loaded import Loaded
from holdfast.schema.project_records import Trust
from holdfast.schema.wire import encode

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@click.argument("path", required=False)
@click.option("--revoke", is_flag=True, help="Trust it no longer, and do not ask again.")
@click.option("--list", "listing", is_flag=True, help="What was decided on this machine.")
@format_option
@click.pass_context
def trust(ctx: click.Context, *, path: str | None, revoke: bool, listing: bool, form: str) -> None:
    """Let the files of a folder, and of all below it, configure the agent.

    Without PATH it is the checkout around the current directory. A folder that is not trusted can only
    tighten permissions, name instruction files, and bring agents and commands.
    """
    if listing:
        if path is not None or revoke:
            raise click.UsageError("--list goes alone")
        print_decisions(ctx, form)
        return
    folder = path or str(checkout_here())

    async def work(hf: "Holdfast") -> Trust:
        return await hf.trust.decide(folder, granted=not revoke)

    from holdfast.sessions.folder_trust import checked

    checked(folder)  # A mistake makes no store.
    decided = with_holdfast(ctx, work, create=True)
    if form == "json":
        print_raw(encode(decided))
    else:
        click.echo(f"{'Not trusted' if revoke else 'Trusted'}: {clean(decided.path)}")


def checkout_here() -> Path:
    """The top of the checkout, or the directory itself where there is none."""
    from holdfast.location.project import locate
    from holdfast.workspace.workspace import places_of

    return places_of(locate(current_directory())).worktree


def print_decisions(ctx: click.Context, form: str) -> None:
    """What was decided, by path."""
    from holdfast.cli.config.current import decided

    found = decided(ctx).all
    if form == "json":
        print_array(map(encode, found))
    elif found:
        rows = [
            [each.path, "trusted" if each.granted else "not trusted", ago(each.time.created)]
            for each in found
        ]
        print_table(["FOLDER", "DECISION", "WHEN"], rows, whole=(0, 1))
    else:
        note("Nothing was decided yet.")


def ask_trust(loaded: Loaded, decided: bool | None) -> bool | None:  # noqa: FBT001 - a stored answer
    """The user's answer, to be remembered; None where nothing is left out, this is no terminal, or they have
    answered before. What was left out is printed in every case.
    """
    for line in loaded.notices:
        note(line)
    if loaded.untrusted is None or decided is not None or not _is_interactive():
        return None
    question = f"Do you trust the files of {clean(str(loaded.untrusted))} to configure the agent?"
    return click.confirm(question, default=False, err=True)


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
