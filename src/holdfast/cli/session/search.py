"""`holdfast session search`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import clean, format_option, note, print_json
from holdfast.cli.paged import paged
from holdfast.cli.session.list import location_here
from holdfast.store.query import SearchQuery
from holdfast.store.record import Hit

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--all", "everywhere", is_flag=True, help="In every project.")
@click.option("--session", "name", metavar="SESSION", help="Only in this session.")
@click.option("--newest", is_flag=True, help="The newest first, instead of the best.")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
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
    form: str,
) -> None:
    """Find words, all of them, in titles, messages, tool inputs and paths."""
    hits: list[Hit] = []
    with reading(ctx) as store:
        is_there = store is not None
        project = None if store is None or everywhere or name else location_here(store).project

    async def work(hf: "Holdfast") -> list[Hit]:
        session = (await hf.sessions.named(name)).id if name else None
        query = SearchQuery(" ".join(words), project, session, limit, "newest" if newest else "best")
        return list(await hf.sessions.search(query))

    if is_there:
        hits = with_holdfast(ctx, work)
    if form == "json":
        print_json(hits)
        return
    for hit in hits:
        click.echo(click.style(f"{hit.session}  {clean(hit.title)}", bold=True))
        click.echo(f"  {hit.message or 'title'}: {clean(hit.snippet)}")
    if not hits:
        note("Nothing found." if everywhere or name else "Nothing found. --all searches every project.")
