"""`holdfast trust`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.open_store import with_holdfast
from holdfast.cli.output import ago, clean, format_option, note, print_json, print_raw, print_table
from holdfast.cli.terminal import current_directory
from holdfast.config.loaded import Loaded
from holdfast.config.places import Folder, Places
from holdfast.schema.project_records import Trust
from holdfast.schema.wire import encode

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.config.pins.project_trust import Changed

SHOWN_MAX: Final = 20


@click.command()
@click.argument("path", required=False)
@click.option("--revoke", is_flag=True, help="Trust it no longer, and do not ask again.")
@click.option("--list", "listing", is_flag=True, help="What was decided on this machine.")
@click.option("--diff", "differing", is_flag=True, help="What changed since it was trusted; decides nothing.")
@format_option
@click.pass_context
def trust(
    ctx: click.Context, *, path: str | None, revoke: bool, listing: bool, differing: bool, form: str
) -> None:
    """Let the files of a folder, and of all below it, configure the agent, as they are now.

    Without PATH it is the checkout around the current directory. Once its settings, plugins, tools, agents,
    commands or skills change, it counts as not trusted until it is trusted again. A folder that is not
    trusted can only tighten permissions, name instruction files, and bring agents and commands.
    """
    if listing:
        if path is not None or revoke or differing:
            raise click.UsageError("--list goes alone")
        print_decisions(ctx, form)
        return
    if differing and revoke:
        raise click.UsageError("--diff decides nothing, so it does not go with --revoke")
    folder = path or str(checkout_here())
    if differing:
        print_diff(ctx, folder, form)
        return
    named = named_here()

    async def work(hf: "Holdfast") -> Trust:
        return await hf.trust.decide(folder, granted=not revoke, named=named)

    from holdfast.sessions.folder_trust import checked

    checked(folder)  # A mistake makes no store.
    decided = with_holdfast(ctx, work, create=True)
    if form == "json":
        print_raw(encode(decided))
    else:
        click.echo(f"{'Not trusted' if revoke else 'Trusted'}: {clean(decided.path)}")


def checkout_here() -> Path:
    """The top of the checkout, or the directory itself where there is none."""
    return _places_here().worktree


def named_here() -> list[Folder]:
    """Settings of the project that the environment names."""
    from holdfast.config import places

    return places.of_environment(_places_here())


def _places_here() -> Places:
    from holdfast.location.project import locate
    from holdfast.workspace.workspace import places_of

    return places_of(locate(current_directory()))


def print_decisions(ctx: click.Context, form: str) -> None:
    """What was decided, by path, and whether it holds."""
    from holdfast.cli.config.current import decided
    from holdfast.sessions.folder_trust import changed

    found = [(each, changed(each) if each.granted else None) for each in decided(ctx).all]
    if form == "json":
        print_json([_as_json(each, differs) for each, differs in found])
    elif found:
        rows = [[each.path, _state(each, differs), ago(each.time.created)] for each, differs in found]
        print_table(["FOLDER", "DECISION", "WHEN"], rows, whole=(0, 1))
    else:
        note("Nothing was decided yet.")


def _state(trust: Trust, differs: "Changed | None") -> str:
    if not trust.granted:
        return "not trusted"
    return "trusted" if differs is None else f"changed since: {len(differs.changes)}"


def _as_json(trust: Trust, differs: "Changed | None") -> dict[str, Any]:
    listed = [] if differs is None else differs.changes
    return {
        "id": trust.id,
        "host": trust.host,
        "path": trust.path,
        "granted": trust.granted,
        "holds": trust.granted and differs is None,
        "changed": [{"path": each.path, "kind": each.kind} for each in listed],
        "time": {"created": trust.time.created},
    }


def print_diff(ctx: click.Context, folder: str, form: str) -> None:
    """What changed in a folder since it was trusted, file by file."""
    from holdfast.cli.config.current import decided
    from holdfast.sessions.folder_trust import checked, diff

    real = checked(folder)
    trusted = decided(ctx).nearest(Path(real))
    # Pins are those of the folder that was trusted, which may stand above.
    top = Path(real) if trusted is None or not trusted.granted else Path(trusted.path)
    found = diff(trusted, top, named_here())
    if form == "json":
        print_json(
            [{"path": each.change.path, "kind": each.change.kind, "diff": each.lines} for each in found]
        )
        return
    for each in found:
        click.echo(clean(f"{each.change.kind}: {each.change.path}"))
        for line in each.lines:
            click.echo(clean(line))
    if not found:
        note("Nothing changed since it was trusted." if trusted else "There is nothing to trust.")


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


def ask_again(loaded: Loaded) -> "list[Changed]":
    """The trusted folders that changed, as far as the user trusts them as they are now.

    A no is not stored: the folder stays as it is, and the next run asks again.
    """
    if not _is_interactive():
        return []
    agreed = []
    for each in loaded.trust.changed:
        if each.why is not None:
            continue  # It cannot be pinned, and the notice said why.
        note(f"These files of {clean(str(each.folder))} steer the agent, and changed since you trusted them:")
        for change in each.changes[:SHOWN_MAX]:
            note(f"  {change.kind}: {clean(change.path)}")
        if len(each.changes) > SHOWN_MAX:
            note(f"  and {len(each.changes) - SHOWN_MAX} more")
        if click.confirm("Do you trust them as they are now?", default=False, err=True):
            agreed.append(each)
    return agreed


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
