"""`holdfast session list`."""

from collections.abc import Sequence

import click
from msgspec.structs import replace

from holdfast.cli.current_directory import current_directory
from holdfast.cli.opening import Reading, reading
from holdfast.cli.output import ago, format_option, note, print_array, print_table
from holdfast.cli.readable import Line, readable
from holdfast.store.query import LIMIT_MAX, SessionQuery
from holdfast.store.record import SessionRecord


@click.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every project.")
@click.option("--archived", is_flag=True, help="Archived sessions too.")
@click.option("--roots", is_flag=True, help="Without the sessions of subagents.")
@click.option("--title", metavar="TEXT", help="Only those whose title contains this.")
@click.option("-n", "--limit", type=click.IntRange(1, LIMIT_MAX), default=100, show_default=True)
@format_option
@click.pass_context
def list_(
    ctx: click.Context,
    *,
    everywhere: bool,
    archived: bool,
    roots: bool,
    title: str | None,
    limit: int,
    form: str,
) -> None:
    """Show the sessions of this project, the last updated first."""
    query = SessionQuery(roots=roots, archived=None if archived else False, title=title, limit=limit)
    with reading(ctx) as store:
        if store is not None and not everywhere:
            query = replace(query, project=project_here(store))
        lines = [] if store is None else readable(store.sessions(query))
        if form == "json":
            print_array(record.json() for record, _ in lines)
        elif lines:
            print_lines(lines, everywhere=everywhere)
        else:
            note(
                "No sessions yet."
                if everywhere
                else "No sessions in this project. --all shows every project."
            )


def project_here(store: Reading) -> str:
    """The project of the current directory."""
    from holdfast.location.project import locate
    from holdfast.sessions.projects import remembered
    from holdfast.store.batch import host_scope
    from holdfast.store.host import ThisHost

    entries = store.select("cache", host_scope(ThisHost().id), None)
    return locate(current_directory(), remembered(entries)).project


def print_lines(lines: Sequence[tuple[SessionRecord, Line]], *, everywhere: bool) -> None:
    """The table of sessions."""
    rows = []
    for record, line in lines:
        state = "busy" if record.busy else "archived" if line.time.archived is not None else ""
        row = [record.id, ago(line.time.updated), state, line.title]
        rows.append([*row, line.directory] if everywhere else row)
    heads = ["SESSION", "UPDATED", "STATE", "TITLE"]
    print_table([*heads, "DIRECTORY"] if everywhere else heads, rows, stretch=3)
