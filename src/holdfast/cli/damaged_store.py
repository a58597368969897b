"""What `holdfast doctor` does with a SQLite file that is damaged: salvage it, or bring a backup back."""

import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from holdfast.cli.output import ago, clean, note, print_json, print_table
from holdfast.clock import SystemClock
from holdfast.errors import InvalidInput, StoreDamaged, StoreError
from holdfast.person.private import make_file
from holdfast.store.report import Finding, Report
from holdfast.store.store_url import StoreUrl

if TYPE_CHECKING:
    from holdfast.store.sqlite.salvage.report import SalvageReport

LINES_MAX = 200


def path_of(place: StoreUrl, option: str) -> Path:
    """The file of a SQLite store; other engines have no such thing."""
    if place.engine != "sqlite" or place.path is None:
        raise InvalidInput(f"{option} is for a SQLite store; this one is another engine's")
    return place.path


def salvage_to(place: StoreUrl, target: str, form: str) -> int:
    """Write all that can be read into a new store, and say what could not; the exit code."""
    path = path_of(place, "--salvage")
    note("reading …")
    report = salvaged(path, Path(target))
    if form == "json":
        print_json({**msgspec.to_builtins(report), "complete": report.complete, "store": target})
    else:
        print_losses(report)
        click.echo(
            f"{clean(target)}: {len(report.whole)} sessions whole, {len(report.incomplete)} in part, "
            f"{report.records} records"
        )
    return 0 if report.complete else 1


def salvaged(path: Path, target: Path) -> "SalvageReport":
    """Salvage a file into a new store; a disk that is full is named."""
    import apsw

    from holdfast.store.sqlite.database import Database, translated
    from holdfast.store.sqlite.salvage.rescue import salvage

    try:
        return salvage(Database(path), target, SystemClock())
    except apsw.Error as error:
        raise translated(error, target) from error
    except OSError as error:
        raise StoreError(f"{target} could not be written: {error.strerror or error}") from error


def print_losses(report: "SalvageReport") -> None:
    """What is gone, by name, a line each."""
    lines = [f"{report.log}: what was written there may be missing"] if report.log else []
    lines += [f"lost: {each}" for each in report.lost]
    for session in report.incomplete:
        lines += [f"lost: {name} of {session.id} ({session.title})" for name in session.lost]
    if report.doubtful:
        lines.append(f"not certain to be complete: {', '.join(report.doubtful)}")
    for line in lines[:LINES_MAX]:
        click.echo(clean(line))
    if len(lines) > LINES_MAX:
        click.echo(f"… {len(lines) - LINES_MAX} more; --format json has them all")


def check_log(place: StoreUrl) -> None:
    """Raise `StoreDamaged` where the log is damaged in the middle, as opening the store would."""
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.salvage.log_file import log_trouble

    database = Database(path_of(place, "doctor"))
    if trouble := log_trouble(database.log_path):
        raise StoreDamaged(str(database.path), trouble)


def looked_at(place: StoreUrl, error: StoreDamaged) -> Report:
    """The report on a store that cannot even be opened."""
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.examine import surveyed

    return surveyed(Database(path_of(place, "doctor")), SystemClock(), [error.what])


def mend(place: StoreUrl, error: StoreDamaged, backup: str | None) -> tuple[Report, str]:
    """The last resort of --repair: salvage, and let the new store take the place of the damaged file.

    The findings, and where the damaged file is kept. A backup of it that was asked for, and is not made yet,
    is a plain copy.
    """
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.exchange import beside, exchange

    database = Database(path_of(place, "--repair"))
    path = database.path
    aside = beside(path, "damaged")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    copied(place, backup)
    note("the file itself is damaged; salvaging what can be read …")
    try:
        report = salvaged(path, draft)
        if not (report.whole or report.incomplete or report.records):
            raise StoreError(f"nothing can be read of {path}, and an empty store does not take its place")
        exchange(database, draft, aside)
    finally:
        draft.unlink(missing_ok=True)
    findings = [Finding(f"SQLite: {error.what}", str(path), mended=True)] if error.what != report.log else []
    if report.log:
        what = f"{report.log}: what was written there may be missing"
        findings.append(Finding(what, str(database.log_path), mended=True, given_up=True))
    findings += [Finding("it is lost", each, mended=True, given_up=True) for each in report.lost]
    findings += [
        Finding(f"{name} is lost", f"session {each.id}", mended=True, given_up=True)
        for each in report.incomplete
        for name in each.lost
    ]
    sessions = len(report.whole) + len(report.incomplete)
    return Report(sessions, report.records, tuple(findings)), str(aside)


def list_backups(place: StoreUrl, form: str) -> None:
    """The automatic backups of a store, the newest first."""
    from holdfast.store.sqlite.backups import Backups
    from holdfast.store.sqlite.database import Database

    found = Backups(Database(path_of(place, "--restore"))).listed()
    held = [(path.name, path.stat()) for path in found]
    if form == "json":
        print_json(
            [{"name": name, "made": int(each.st_mtime * 1000), "bytes": each.st_size} for name, each in held]
        )
    elif held:
        rows = [[name, ago(int(each.st_mtime * 1000)), str(each.st_size)] for name, each in held]
        print_table(["BACKUP", "MADE", "BYTES"], rows, stretch=0)
    else:
        note("There are no automatic backups yet.")


def concerns(place: StoreUrl) -> tuple[str, ...]:
    """What there is to say of the automatic backups of a store, where they are wanted."""
    from holdfast.cli.daily_backup import is_wanted
    from holdfast.store.sqlite.backups import Backups
    from holdfast.store.sqlite.database import Database

    if place.engine != "sqlite" or place.path is None or not is_wanted():
        return ()
    return Backups(Database(place.path)).concerns()


def restore(place: StoreUrl, name: str, form: str) -> None:
    """Put a backup in the place of the store, whose present file is kept beside it."""
    from holdfast.store.sqlite import backups
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.exchange import beside, exchange

    database = Database(path_of(place, "--restore"))
    path = database.path
    source = backups.Backups(database).named(name)
    backups.check(source)
    aside = beside(path, "replaced")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    kept = str(aside) if path.exists() else None
    held = Database(source)
    held.readonly = True  # Nothing is made beside a backup.
    try:
        backups.copy(held, draft)
        exchange(database, draft, aside)
    finally:
        draft.unlink(missing_ok=True)
    if form == "json":
        print_json({"restored": str(source), "kept": kept, "store": str(path)})
        return
    click.echo(clean(f"{path} is the backup {source.name} now"))
    if kept is not None:
        note(f"the former file is kept as {kept}")


def copied(place: StoreUrl, backup: str | None) -> str | None:
    """The backup that was asked for of a damaged store, if any: a plain copy, never over a file."""
    from holdfast.store.sqlite.backup import check_free
    from holdfast.store.sqlite.database import Database

    if backup is not None:
        check_free(Path(backup), "for the backup")
        keep_copy(Database(path_of(place, "--backup")).path, Path(backup))
    return backup


def keep_copy(path: Path, target: Path) -> None:
    """Copy a damaged file as it is, with its log: nothing else can be done with it."""
    for suffix in ("-wal", ""):
        source = path.with_name(path.name + suffix)
        if source.exists():
            copy = target.with_name(target.name + suffix)
            make_file(copy)
            shutil.copyfile(source, copy)
