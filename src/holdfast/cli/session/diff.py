"""`holdfast session diff`."""

import math
from typing import TYPE_CHECKING

import click

from holdfast.cli import color
from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import clean, format_option, note, print_json
from holdfast.cli.paged import paged
from holdfast.cli.session.patch_text import print_patch
from holdfast.cli.session_name import named, session_argument

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.schema.session import SessionSummary
    from holdfast.schema.session_lists import FileDiff

_BAR = 40


@click.command()
@session_argument
@click.argument("message", required=False)
@click.option("--from", "start", metavar="SNAPSHOT", help="From this snapshot on, whoever changed the files.")
@click.option("--to", "end", metavar="SNAPSHOT", help="Up to this one; without it, to the files as they are.")
@click.option("--stat", is_flag=True, help="Only the files, and how many lines were added and removed.")
@format_option
@click.pass_context
@paged
def diff(
    ctx: click.Context,
    *,
    name: str,
    message: str | None,
    start: str | None,
    end: str | None,
    stat: bool,
    form: str,
) -> None:
    """What the agent changed in files: in the whole session, or in its answers to MESSAGE."""
    with reading(ctx) as store:
        session = named(store, name).id
    found: list[SessionSummary] = []

    async def work(hf: "Holdfast") -> int:
        found.append(await hf.sessions.diff(session, start, end, message=message))
        return 0

    with_holdfast(ctx, work)
    (summary,) = found
    if form == "json":
        print_json(summary)
    elif not summary.diffs:
        note("Nothing was changed.")
    elif stat:
        _print_stat(summary)
    else:
        _print_patches(summary)


def _print_stat(summary: "SessionSummary") -> None:
    """Like git's: a line a file, then the sum."""
    diffs = summary.diffs or []
    names = [clean(each.file or "") for each in diffs]
    width = max(map(len, names))
    most = max(each.additions + each.deletions for each in diffs)
    for name, each in zip(names, diffs, strict=True):
        count = int(each.additions + each.deletions)
        said = f"{count:>5} {_bar(each, most)}" if each.patch else " not kept"
        click.echo(f" {name:<{width}} | {said}".rstrip(), color=color.wanted())
    lines = f"{summary.additions} lines added, {summary.deletions} removed"
    click.echo(f" {summary.files} files changed, {lines}")


def _bar(each: "FileDiff", most: float) -> str:
    scale = min(1, _BAR / max(1, most))
    plus, minus = math.ceil(each.additions * scale), math.ceil(each.deletions * scale)
    return click.style("+" * plus, fg="green") + click.style("-" * minus, fg="red")


def _print_patches(summary: "SessionSummary") -> None:
    for each in summary.diffs or []:
        print_patch(each.patch or f"{each.file}: changed, and not kept\n")
