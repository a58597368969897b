"""`holdfast session list`."""

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from holdfast.cli.open_store import Reading, reading
from holdfast.cli.output import ago, format_option, note, print_array, print_table
from holdfast.cli.paged import paged
from holdfast.cli.readable import Line, readable
from holdfast.cli.terminal import current_directory
from holdfast.store.query import LIMIT_MAX, SessionQuery
from holdfast.store.record import SessionPage, SessionRecord

if TYPE_CHECKING:
    from holdfast.location.project import Location

_UNITS_S = {"min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO = re.compile(rf"(\d{{1,6}})\s*({'|'.join(_UNITS_S)})")


@click.command("list")
@click.option(
    "--all", "everywhere", is_flag=True, help="Sessions of every project, and those of single agent runs."
)
@click.option("--archived", is_flag=True, help="Archived sessions too.")
@click.option("--roots", is_flag=True, help="Without the sessions of subagents.")
@click.option("--title", metavar="TEXT", help="Only those whose title contains this.")
@click.option("--since", metavar="WHEN", help="Only those updated since: 90min, 12h, 3d, or 2026-11-16.")
@click.option("--cursor", metavar="CURSOR", help="Go on where an earlier list ended; it says with what.")
@click.option("-n", "--limit", type=click.IntRange(1, LIMIT_MAX), default=100, show_default=True)
@format_option
@click.pass_context
@paged
def list_(
    ctx: click.Context,
    *,
    everywhere: bool,
    archived: bool,
    roots: bool,
    title: str | None,
    since: str | None,
    cursor: str | None,
    limit: int,
    form: str,
) -> None:
    """Show the sessions of this project, the last updated first.

    Outside of a checkout those of this directory.
    """
    query = SessionQuery(
        roots=roots,
        archived=None if archived else False,
        agent_runs=None if everywhere else False,
        title=title,
        updated_from=None if since is None else moment_ms(since),
        limit=limit,
        cursor=cursor,
    )
    with reading(ctx) as store:
        if store is not None and not everywhere:
            query = within(query, location_here(store))
        page = SessionPage(()) if store is None else store.sessions(query)
        lines = readable(page)
        if form == "json":
            print_array(record.json() for record, _ in lines)
        elif lines:
            print_lines(lines, everywhere=everywhere)
        else:
            where = "directory" if query.project is None else "project"
            note(
                "No sessions yet."
                if everywhere
                else f"No sessions in this {where}. --all shows every project."
            )
        if page.next is not None:
            note(f"There are more: --cursor {page.next} shows the next, --limit more at once.")


def moment_ms(when: str) -> int:
    """A moment that the user named: so long ago, or the beginning of a day."""
    from datetime import datetime

    if (ago := _AGO.fullmatch(when)) is not None:
        return int((time.time() - float(ago[1]) * _UNITS_S[ago[2]]) * 1_000)
    try:
        return int(datetime.fromisoformat(when).astimezone().timestamp() * 1_000)
    except (ValueError, OverflowError):
        raise click.UsageError(
            f"--since: {when!r} is no moment; write 90min, 12h, 3d, or 2026-11-16"
        ) from None


def within(query: SessionQuery, here: "Location") -> SessionQuery:
    """The sessions of a project. Outside of a checkout the directory itself is the project."""
    from holdfast.location.project import GLOBAL

    if here.project == GLOBAL:
        return replace(query, directory=here.directory)
    return replace(query, project=here.project)


def location_here(store: Reading) -> "Location":
    """Where the current directory lies."""
    from holdfast.location.project import locate
    from holdfast.sessions.projects import remembered
    from holdfast.store.batch import host_scope
    from holdfast.store.host import ThisHost

    entries = store.select("cache", host_scope(ThisHost().id), None)
    return locate(current_directory(), remembered(entries))


def print_lines(lines: Sequence[tuple[SessionRecord, Line]], *, everywhere: bool) -> None:
    """The table of sessions."""
    rows = []
    for record, line in lines:
        put_away = "archived" if line.time.archived is not None else "agent run" if line.agentRun else ""
        state = "busy" if record.busy else put_away
        row = [record.id, ago(line.time.updated), state, line.title]
        rows.append([*row, line.directory] if everywhere else row)
    heads = ["SESSION", "UPDATED", "STATE", "TITLE"]
    print_table([*heads, "DIRECTORY"] if everywhere else heads, rows, stretch=3)
