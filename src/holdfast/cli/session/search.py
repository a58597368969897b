"""`holdfast session search`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import clean, format_option, note, print_json
from holdfast.cli.paged import paged
from holdfast.cli.progress_line import progress_line
from holdfast.cli.session.list import location_here
from holdfast.store.query import SearchQuery
from holdfast.store.record import Found

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--all", "everywhere", is_flag=True, help="In every project.")
@click.option("--session", "name", metavar="SESSION", help="Only in this session.")
@click.option("--newest", is_flag=True, help="The newest first, instead of the best.")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--wait", is_flag=True, help="Until the whole store is indexed.")
@format_option
@click.pass_context
@paged
def search(
    ctx: click.Context,
    *,
    words: tuple[str, ...],
    everywhere: bool,
    name: str | None,
    newest: bool,
    limit: int,
    wait: bool,
    form: str,
) -> None:
    """Find words, all of them, in titles, messages, tool inputs and paths."""
    with reading(ctx) as store:
        is_there = store is not None
        project = None if store is None or everywhere or name else location_here(store).project

    async def work(hf: "Holdfast") -> Found:
        session = (await hf.sessions.named(name)).id if name else None
        query = SearchQuery(" ".join(words), project, session, limit, "newest" if newest else "best")
        found = await hf.sessions.search(query)
        if wait and found.indexed < 1:
            with progress_line("indexing") as progress:
                while found.indexed < 1:
                    if progress is not None:
                        progress("the store (percent)", round(found.indexed * 100), 100)
                    found = await hf.sessions.search(query)
        return found

    found = with_holdfast(ctx, work) if is_there else Found()
    if form == "json":
        print_json(found)
        return
    for hit in found:
        click.echo(click.style(f"{hit.session}  {clean(hit.title)}", bold=True))
        click.echo(f"  {hit.message or 'title'}: {clean(hit.snippet)}")
    if found.indexed < 1:
        note(f"Only {found.indexed:.0%} of the store is indexed yet: search again, or with --wait.")
    elif not found.hits:
        note("Nothing found." if everywhere or name else "Nothing found. --all searches every project.")
