"""What `holdfast doctor` does with a SQLite file that is damaged: salvage it, or bring a backup back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from holdfast.cli.output import ago, clean, note, print_json, print_table
from holdfast.clock import SystemClock
from holdfast.errors import InvalidInput, StoreDamaged, StoreError
from holdfast.person.private import make_file
from holdfast.store.report import Finding, Report
from holdfast.store.store_url import StoreUrl

if TYPE_CHECKING:
    from holdfast.store.sqlite.database import Database
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
        click.echo(f"{clean(target)}: {report.count}, {report.records} records")
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
    lines = _unnamed(report)
    lines += [f"lost: {each}" for each in report.lost]
    for session in report.incomplete:
        lines += [f"lost: {name} of {session.id} ({session.title})" for name in session.lost]
    if report.doubtful:
        lines.append(f"not certain to be complete: {', '.join(report.doubtful)}")
    for line in lines[:LINES_MAX]:
        click.echo(clean(line))
    if len(lines) > LINES_MAX:
        click.echo(f"… {len(lines) - LINES_MAX} more; --format json has them all")


def _unnamed(report: "SalvageReport") -> list[str]:
    """Losses of which nothing says what they held."""
    log = [f"{report.log}: what was written there may be missing"] if report.log else []
    return [*report.gaps, *log]


def _given_up(report: "SalvageReport", database: "Database") -> list[Finding]:
    """What a salvage did not bring, as findings of a repair that has put the rest in place."""
    found = [(gap, str(database.path)) for gap in report.gaps]
    if report.log:
        found.append((f"{report.log}: what was written there may be missing", str(database.log_path)))
    found += [("it is lost", each) for each in report.lost]
    found += [(f"{name} is lost", f"session {each.id}") for each in report.incomplete for name in each.lost]
    found += [("it is not certain to be complete", f"session {id}") for id in report.doubtful]
    return [Finding(what, where, mended=True, given_up=True) for what, where in found]


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


class Mended(NamedTuple):
    """What a salvage in place of the store has done."""

    report: Report
    kept: str
    """Where the damaged file is, or its log, where that was all there was."""
    partial: bool
    """Whether more is lost than can be named."""


def mend(place: StoreUrl, error: StoreDamaged, backup: str | None) -> Mended:
    """The last resort of --repair: salvage, and let the new store take the place of the damaged file.

    A backup of it that was asked for, and is not made yet, is a plain copy.
    """
    from holdfast.store.sqlite.backups import Backups
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.draft import drafting
    from holdfast.store.sqlite.exchange import beside, exchange
    from holdfast.store.sqlite.identity import identify

    database = Database(path_of(place, "--repair"))
    path = database.path
    copied(place, backup)
    note("the file itself is damaged; salvaging what can be read …")
    advice: tuple[str, ...] = ()
    with drafting(database) as draft:
        seen = identify(database)
        report = salvaged(path, draft)
        if not (report.whole or report.incomplete or report.records):
            raise StoreError(f"nothing can be read of {path}, and an empty store does not take its place")
        if not report.complete and (backups := Backups(database).listed()):
            advice = (f"a backup may hold more: --restore {backups[0].name} puts it in place of the store",)
            note(advice[0])
        kept = exchange(database, draft, beside(path, "damaged"), seen=seen)
    findings = [Finding(f"SQLite: {error.what}", str(path), mended=True)] if error.what != report.log else []
    findings += _given_up(report, database)
    sessions = len(report.whole) + len(report.incomplete)
    result = Report(sessions, report.records, tuple(findings), advice)
    return Mended(result, str(kept[0]) if kept else "", report.unproved)


def settle(place: StoreUrl) -> None:
    """Undo an exchange of the store's file that was cut off."""
    from holdfast.store.sqlite import cut_off
    from holdfast.store.sqlite.database import Database

    if place.engine == "sqlite" and place.path is not None:
        cut_off.settle(Database(place.path))


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
    from holdfast.store.sqlite.draft import drafting
    from holdfast.store.sqlite.exchange import beside, exchange

    database = Database(path_of(place, "--restore"))
    path = database.path
    settle(place)
    source = backups.Backups(database).named(name)
    with drafting(database) as draft, _with_log_played(database, source) as whole:
        backups.check(whole)
        held = Database(whole)
        held.readonly = True  # Nothing is made beside a backup.
        backups.copy(held, draft)
        moved = exchange(database, draft, beside(path, "replaced"))
    kept = str(moved[0]) if moved else None
    if form == "json":
        print_json({"restored": str(source), "kept": kept, "store": str(path)})
        return
    click.echo(clean(f"{path} is the backup {source.name} now"))
    if kept is not None:
        note(f"the former {what_is_kept(kept)} is kept as {kept}")


def what_is_kept(name: str) -> str:
    """Whether a store's file was kept, or its log alone."""
    return "log" if name.endswith("-wal") else "file"


@contextmanager
def _with_log_played(database: "Database", source: Path) -> Iterator[Path]:
    """A file that holds its log's commits too: itself, or a copy, such as of a `.replaced` that has a log.

    Where another process has it open, the log is read through the memory that they share.
    """
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.draft import drafting

    log, memory = (source.with_name(source.name + suffix) for suffix in ("-wal", "-shm"))
    if memory.exists() or not (log.exists() and log.stat().st_size):
        yield source
        return
    with drafting(database) as copy:
        keep_copy(source, copy)
        try:
            Database(copy).connect().close()  # The last connection that is closed plays the log.
        except StoreDamaged as error:
            raise StoreError(
                f"{source} is damaged ({error.what}); salvage it with `holdfast --store "
                f"sqlite://{source} doctor --salvage NEW`, and restore that"
            ) from error
        yield copy


def copied(place: StoreUrl, backup: str | None) -> str | None:
    """The backup that was asked for of a damaged store, if any: a plain copy, never over a file."""
    from holdfast.store.sqlite.backup import check_free
    from holdfast.store.sqlite.database import Database

    if backup is not None:
        check_free(Path(backup), "for the backup")
        made = keep_copy(Database(path_of(place, "--backup")).path, Path(backup))
        note(f"copied to {' and '.join(map(str, made))}" if made else "there is nothing to copy")
        return str(made[0]) if made else None
    return None


def keep_copy(path: Path, target: Path) -> list[Path]:
    """Copy a damaged file as it is, with its log: nothing else can be done with it. What was written."""
    from holdfast.store.sqlite.salvage.log_file import not_given
    from holdfast.store.sqlite.salvage.raw_file import copy_raw

    made: list[Path] = []
    try:
        for suffix in ("-wal", ""):
            source = path.with_name(path.name + suffix)
            if source.exists():
                copy = target.with_name(target.name + suffix)
                made.insert(0, copy)
                make_file(copy)
                if unreadable := copy_raw(source, copy):
                    note(f"{not_given(unreadable, str(source))}; the copy has zeros there")
    except BaseException as error:
        for copy in made:
            copy.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StoreError(f"{target} could not be written: {error.strerror or error}") from error
        raise
    return made
