"""`holdfast doctor`."""

import time
from typing import TYPE_CHECKING

import click
import msgspec

from holdfast.cli.opening import place_of, with_holdfast
from holdfast.cli.output import clean, format_option, note, print_json
from holdfast.errors import Refused
from holdfast.store.place import Place, shown
from holdfast.store.report import Report

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended, after a backup.")
@click.option("--backup", metavar="FILE", help="Write a backup there (with --repair: that one).")
@click.option("--no-backup", is_flag=True, help="With --repair: there is a backup already.")
@format_option
@click.pass_context
def doctor(ctx: click.Context, *, repair: bool, backup: str | None, no_backup: bool, form: str) -> None:
    """Verify numbers, parents, JSON and index of the store. Nothing is changed unless asked."""
    place = place_of(ctx)
    if no_backup and (backup is not None or not repair):
        raise click.UsageError("--no-backup goes with --repair, and in place of --backup")
    if place.path is None and (backup is not None or (repair and not no_backup)):
        raise Refused(
            "a PostgreSQL store is not backed up from here; make a backup with pg_dump, "
            "then give --repair --no-backup"
        )

    async def work(hf: "Holdfast") -> tuple[Report, str | None]:
        target = backup or (backup_name(place) if repair and not no_backup else None)
        if target is not None:
            note(f"writing a backup to {target} …")
            await hf.store.backup(target)
        note("examining …")
        return await hf.store.examine(repair=repair), target

    report, target = with_holdfast(ctx, work)
    if form == "json":
        body = {
            **msgspec.to_builtins(report),
            "clean": report.clean,
            "backup": target,
            "store": shown(place.url),
        }
        print_json(body)
    else:
        print_report(report, shown(place.url), repair=repair)
    if not report.clean:
        ctx.exit(1)


def backup_name(place: Place) -> str:
    """A name beside the store that says when."""
    return f"{place.path}.{time.strftime('%Y%m%d-%H%M%S')}.backup"


def print_report(report: Report, where: str, *, repair: bool) -> None:
    """The findings, a line each."""
    for finding in report.findings:
        click.echo(
            f"{'mended' if finding.mended else 'found'}: {clean(finding.where)}: {clean(finding.what)}"
        )
    verdict = "sound" if report.clean else "not sound" if repair else "not sound; --repair mends what it can"
    click.echo(f"{clean(where)}: {report.sessions} sessions, {report.records} records, {verdict}")
