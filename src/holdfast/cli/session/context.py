"""`holdfast session context`."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import clean, print_json, print_table
from holdfast.cli.paged import paged
from holdfast.cli.session_name import named, session_argument

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.sessions.context import ContextView


@click.command()
@session_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "text"]),
    default="table",
    show_default=True,
    help="Sizes for people, everything as JSON, or the blocks as they are sent.",
)
@click.pass_context
@paged
def context(ctx: click.Context, *, name: str, form: str) -> None:
    """Show what the model is sent: every block in send order, with its source, its size, and the cache."""
    with reading(ctx) as store:
        session = named(store, name).id

    async def work(hf: "Holdfast") -> "ContextView":
        return await hf.sessions.context(session)

    view = with_holdfast(ctx, work)
    if form == "json":
        print_json(view)
        return
    if form == "text":
        for block in view.blocks:
            click.echo(f"--- {clean(block.source)} ({block.tokens} tokens)")
            click.echo("\n".join(map(clean, block.text.split("\n"))))
        return
    rows = [
        (str(number), block.source, f"{block.tokens:,}", "cached" if block.cached else "", block.name)
        for number, block in enumerate(view.blocks)
    ]
    print_table(("BLOCK", "SOURCE", "TOKENS", "CACHE", "NAME"), rows, stretch=1)
    click.echo(_below(view))


def _below(view: "ContextView") -> str:
    room = "" if view.usable is None else f" of {view.usable:,} usable"
    lines = [f"{view.tokens:,} tokens{room}; {view.agent} on {view.model}"]
    if view.cause is not None:
        lines.append(f"epoch {view.epoch}, begun for: {view.cause}")
    if view.hit is not None and view.ideal is not None:
        lines.append(f"read from the cache: {view.hit:.1%} of all input; {view.ideal:.1%} were possible")
    lines += [f"block {move.block} moved before {move.message}: {move.reason}" for move in view.moves]
    return "\n".join(lines)
