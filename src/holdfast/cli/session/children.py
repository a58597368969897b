"""`holdfast session children`."""

import click

from holdfast.cli.open_store import Reading, reading
from holdfast.cli.output import format_option, note, print_array
from holdfast.cli.paged import paged
from holdfast.cli.readable import readable
from holdfast.cli.session.list import print_lines
from holdfast.cli.session_name import named, session_argument
from holdfast.store.query import LIMIT_MAX, SessionQuery
from holdfast.store.record import SessionPage, SessionRecord


@click.command()
@session_argument
@click.option("--deep", is_flag=True, help="Their children too.")
@format_option
@click.pass_context
@paged
def children(ctx: click.Context, *, name: str, deep: bool, form: str) -> None:
    """Show the sessions that a session started."""
    with reading(ctx) as store:
        record = named(store, name)
        assert store is not None, "named found it there"
        lines = readable(_below(store, record.id, deep=deep))
        if form == "json":
            print_array(child.json() for child, _ in lines)
        elif lines:
            print_lines(lines, everywhere=False)
        else:
            note(f"{record.id} has no children.")


def _below(store: Reading, parent: str, *, deep: bool) -> SessionPage:
    found: list[SessionRecord] = []
    damaged: list[str] = []
    parents, seen = [parent], {parent}
    while parents:
        nearest: list[SessionRecord] = []
        for each in parents:
            cursor = None
            while True:
                page = store.sessions(
                    SessionQuery(parent=each, archived=None, agent_runs=None, limit=LIMIT_MAX, cursor=cursor)
                )
                nearest.extend(child for child in page.sessions if child.id not in seen)
                damaged.extend(page.damaged)
                cursor = page.next
                if cursor is None:
                    break
        seen.update(child.id for child in nearest)
        found.extend(nearest)
        parents = [child.id for child in nearest] if deep else []
    return SessionPage(tuple(found), damaged=tuple(damaged))
