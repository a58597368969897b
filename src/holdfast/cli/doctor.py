"""`holdfast doctor`."""

import time
from typing import TYPE_CHECKING

import click
import msgspec

from holdfast.cli import damaged_store, end_signals
from holdfast.cli.open_store import place_of, with_holdfast
from holdfast.cli.output import clean, format_option, note, print_json
from holdfast.cli.progress_line import progress_line
from holdfast.errors import Refused, StoreDamaged, StoreError, StoreMissing
from holdfast.location.box import host_level
from holdfast.person import directories
from holdfast.sessions import erase
from holdfast.store.report import Report
from holdfast.store.store_url import StoreUrl, shown

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.location.shadow.stored import Orphans


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended, after a backup.")
@click.option("--backup", metavar="FILE", help="Write a backup there (with --repair: that one).")
@click.option("--no-backup", is_flag=True, help="With --repair: there is a backup already.")
@click.option("--salvage", metavar="NEW", help="Write all that can be read of a SQLite store into a new one.")
@click.option(
    "--restore",
    metavar="[NAME]",
    is_flag=False,
    flag_value="",
    help="List the automatic backups of a SQLite store; with NAME, put that one in its place.",
)
@format_option
@click.pass_context
def doctor(
    ctx: click.Context,
    *,
    repair: bool,
    backup: str | None,
    no_backup: bool,
    salvage: str | None,
    restore: str | None,
    form: str,
) -> None:
    """Verify numbers, parents, JSON and index of the store, and try the box around commands.

    Nothing is changed unless asked.
    """
    end_signals.listen()
    place = place_of(ctx)
    if salvage is not None or restore is not None:
        if repair or backup is not None or no_backup or None not in (salvage, restore):
            raise click.UsageError("--salvage and --restore stand alone")
        if salvage is not None:
            ctx.exit(damaged_store.salvage_to(place, salvage, form))
        if restore:
            damaged_store.restore(place, restore, form)
        else:
            damaged_store.list_backups(place, form)
        return
    if no_backup and (backup is not None or not repair):
        raise click.UsageError("--no-backup goes with --repair, and in place of --backup")
    if place.path is None and (backup is not None or (repair and not no_backup)):
        raise Refused(
            "a PostgreSQL store is not backed up from here; make a backup with pg_dump, "
            "then give --repair --no-backup"
        )

    known: set[str] = set()
    made: list[str] = []

    async def work(hf: "Holdfast") -> tuple[Report, str | None]:
        target = backup or (backup_name(place) if repair and not no_backup else None)
        if target is not None:
            note(f"writing a backup to {target} …")
            await hf.store.backup(target)
            made.append(target)
        with progress_line("examining") as progress:
            if progress is None:
                note("examining …")
            report = await hf.store.examine(repair=repair, progress=progress)
        known.update(await erase.named(hf.store))
        return report, target

    partial = False
    try:
        if repair:
            damaged_store.settle(place)
        if place.engine == "sqlite":
            damaged_store.check_log(place)
        report, target = with_holdfast(ctx, work)
    except StoreMissing:
        # A new user has no store yet, and may want to know what this host can do.
        note(f"box: {_level()}")
        raise
    except StoreDamaged as error:
        if place.engine != "sqlite":
            raise StoreError(
                f"{error.path} is damaged ({error.what}); remove it: it is made again"
            ) from error
        if repair:
            report, target, partial = damaged_store.mend(place, error, None if made else backup)
            note(f"the damaged {damaged_store.what_is_kept(target)} is kept as {target}")
        else:
            report, target = damaged_store.looked_at(place, error), damaged_store.copied(place, backup)
    report = msgspec.structs.replace(report, advice=(*report.advice, *damaged_store.concerns(place)))
    box = _level()
    kept = _orphans(known)
    if form == "json":
        body = {
            **msgspec.to_builtins(report),
            "clean": report.clean,
            "backup": target,
            "store": shown(place.url),
            "box": msgspec.to_builtins(box),
            "orphans": [msgspec.to_builtins(each) for each in kept],
        }
        print_json(body)
    else:
        print_report(report, shown(place.url), repair=repair)
        for each in kept:
            click.echo(clean(_told(each)))
        click.echo(clean(f"box: {box}"))
    if partial or not report.clean:
        ctx.exit(1)


def _orphans(known: set[str]) -> "list[Orphans]":
    """Snapshots for nobody; none where the store tells of no session, since then it may be the wrong one."""
    from holdfast.location.shadow import stored

    return stored.orphans(directories.data(), known) if known else []


def _told(orphans: "Orphans") -> str:
    size = f"{orphans.bytes / (1 << 20):.1f} MiB"
    if orphans.is_gone:
        return f"advice: {orphans.worktree} is gone, and its snapshots take {size}: remove {orphans.git_dir}"
    return (
        f"advice: the snapshots of {orphans.worktree} take {size}, and some are of {len(orphans.sessions)} "
        f"sessions that this store does not have ({', '.join(orphans.sessions[:3])}): if no other store has "
        f"them, remove {orphans.git_dir}/refs/sessions/ID"
    )


def _level() -> host_level.HostLevel:
    """What the host can do for the box; kept where there is a folder: a command that reads makes none."""
    state = directories.state()
    return host_level.renewed(state) if state.is_dir() else host_level.measured()


def backup_name(place: StoreUrl) -> str:
    """A name beside the store that says when."""
    return f"{place.path}.{time.strftime('%Y%m%d-%H%M%S')}.backup"


def print_report(report: Report, where: str, *, repair: bool) -> None:
    """The findings, a line each."""
    for finding in report.findings:
        state = "given up" if finding.given_up else "mended" if finding.mended else "found"
        click.echo(f"{state}: {clean(finding.where)}: {clean(finding.what)}")
    for line in report.advice:
        click.echo(f"advice: {clean(line)}")
    verdict = "sound" if report.clean else "not sound" if repair else "not sound; --repair mends what it can"
    click.echo(f"{clean(where)}: {report.sessions} sessions, {report.records} records, {verdict}")
