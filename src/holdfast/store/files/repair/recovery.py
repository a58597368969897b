"""Brings tree and index to what the journal says, and trims it. The caller holds the store alone.

The journal is applied again and again without harm: each entry says how files shall be, not how to change
them. After a change of boot nothing that was not synced can be trusted, so the tree is written from the
front of the journal; otherwise only what the index has not seen is applied.
"""

import apsw

from holdfast.clock import Clock
from holdfast.store.files import layout
from holdfast.store.files.disk import Disk
from holdfast.store.files.index import read_mark, write_mark
from holdfast.store.files.journal import Entry, Journal, Mark
from holdfast.store.files.repair.absorb import Absorber, order
from holdfast.store.tables.connection import Connection


def is_stale(db: Connection, journal: Journal) -> bool:
    """Whether the index misses a whole generation of the journal: then only the tree can tell."""
    found = journal.generation()
    return found is not None and found > read_mark(db).generation + 1


def recover(db: apsw.Connection, disk: Disk, journal: Journal, *, clock: Clock, boot: str) -> None:
    """Apply what is in the journal and not yet, or not safely, in tree and index."""
    mark = read_mark(db)
    found = journal.generation()
    generation, offset = mark.generation, mark.offset
    if found is not None and found > mark.generation:
        generation, offset = found, 0
    rebooted = mark.boot != boot
    if rebooted:
        write_tree(disk, [entry for _, entry in journal.frames(generation, 0)])
    entries = list(journal.frames(generation, offset))
    if entries:
        if not rebooted:
            write_tree(disk, [entry for _, entry in entries])
        disk.step("index begin")
        with db:
            absorber = Absorber(db, clock)
            for _, entry in entries:
                absorb(absorber, entry)
            disk.step("index commit")
            write_mark(db, Mark(generation, entries[-1][0], mark.boot))
    end = entries[-1][0] if entries else offset
    if journal.is_begun(generation, end):
        journal.wipe(end)
    if rebooted:
        trim(db, disk, journal, boot)


def write_tree(disk: Disk, entries: list[Entry]) -> None:
    """Write the files as the last entry that names each wants it."""
    for path, content in _wanted(entries).items():
        if content is None:
            disk.unlink(path)
        else:
            disk.write(path, content)


def is_written(disk: Disk, entries: list[Entry]) -> bool:
    """Whether the files are as the last entry that names each wants it: a power cut may have undone some."""
    return all(
        not disk.exists(path) if content is None else disk.exists(path) and disk.read(path) == content
        for path, content in _wanted(entries).items()
    )


def _wanted(entries: list[Entry]) -> dict[str, bytes | None]:
    wanted: dict[str, bytes | None] = {}
    for entry in entries:
        wanted.update(dict.fromkeys(entry.gone))
        wanted.update((path, bytes(content)) for path, content in entry.files.items())
    return wanted


def absorb(absorber: Absorber, entry: Entry) -> None:
    """Enter one journal entry into the index."""
    absorber.forget(entry.gone.items())
    files = sorted(entry.files.items(), key=lambda item: order(item[0]))
    absorber.take((path, bytes(content)) for path, content in files)
    if layout.HORIZON in entry.files:
        absorber.settings(bytes(entry.files[layout.HORIZON]))


def trim(db: apsw.Connection, disk: Disk, journal: Journal, boot: str) -> None:
    """Make sure that the disk has everything, then begin the journal again."""
    mark = read_mark(db)
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    disk.sync_all(lambda: journal.paths(mark.generation))
    disk.step("index commit")
    write_mark(db, Mark(mark.generation + 1, 0, boot))
    journal.clear()
