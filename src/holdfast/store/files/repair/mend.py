"""Mends what an examination found. Nothing is thrown away: what cannot be read moves to `quarantine/`."""

from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
import apsw
import msgspec

from holdfast.store.batch import Batch, Put, Remove
from holdfast.store.columns import KIND_NUMBER
from holdfast.store.examining import Examining
from holdfast.store.files import layout
from holdfast.store.files.connections import ReadConnection, WriteConnection
from holdfast.store.files.repair.examine import ORPHANED, Examination, Fault, judged
from holdfast.store.report import Finding, Report
from holdfast.store.sqlite.connections import failure_of

if TYPE_CHECKING:
    from holdfast.store.files.store import FilesStore


async def examine(store: "FilesStore", examining: Examining, *, repair: bool) -> Report:
    """See the port."""

    def look(connection: ReadConnection) -> Examination:
        with examining.statements(connection.db):
            return Examination(connection.db, connection.disk, examining).run()

    seen = await store.read(look)
    spoilt = await store.read(
        lambda connection: not connection.index.readonly and search_is_spoilt(connection.index.search_path)
    )
    report = seen.report()
    found = Finding("the search index is damaged", str(store.root.index.search_path), mended=repair)
    if not repair:
        return Report(report.sessions, report.records, (*report.findings, *([found] if spoilt else ())))
    mended: list[Finding] = []
    for fault in seen.faults:
        if fault.cure == "set aside" and not await store.write(
            lambda connection, fault=fault: set_aside(connection, fault)  # type: ignore[misc]
        ):
            continue
        mended.append(fault.finding(mended=fault.cure != "none"))
    if any(fault.cure == "rebuild" for fault in seen.faults):
        try:
            await anyio.to_thread.run_sync(store.root.rebuild, store.clock, store.host)
        except (apsw.Error, OSError) as error:
            raise failure_of(error, store.root.index.path) from error
        left = await store.read(look)
        paths = [fault.path for fault in left.faults if fault.cure == "rebuild" and fault.path]
        await store.write(lambda connection: move_strays(connection, paths))
    if spoilt:
        await store.read(lambda connection: connection.drop_search())
        mended.append(found)
    return Report(report.sessions, report.records, tuple(mended))


def set_aside(connection: WriteConnection, fault: Fault) -> bool:
    """Keep a record's file in quarantine and leave a tombstone; a session is written again from the index.

    False when it was sound by now: between the look and this, any process may have written it again.
    """
    place = fault.place
    assert place is not None, "a fault to be set aside has a place"
    if not is_still_faulty(connection, fault, place):
        return False
    keep(connection, fault.path)
    if place.kind == "session":
        connection.writer.apply(
            Batch((Put(place.id, "session", place.id, from_index(connection, place.id)),))
        )
        return True
    if place.kind == "message":
        parts = (
            "SELECT p.id, p.data FROM record p JOIN record m ON m.k=p.parent JOIN session s ON s.n=m.session "
        )
        for id, data in connection.rows(
            parts + "WHERE s.id=? AND m.id=? AND m.kind=1", place.session, place.id
        ):
            if data is not None:
                keep(connection, layout.record_path("part", place.session, id, place.id, aside=bool(data)))
    connection.writer.apply(Batch((Remove(place.session, place.kind, place.id),)))
    return True


def is_still_faulty(connection: WriteConnection, fault: Fault, place: layout.TreePlace) -> bool:
    """Whether the record is the one that was looked at, and no better; the store is held alone."""
    if place.kind == "session":
        found = connection.rows("SELECT seq FROM session WHERE id=? AND data IS NOT NULL", place.id)
    else:
        found = connection.rows(
            "SELECT r.seq FROM record r JOIN session s ON s.n=r.session "
            "WHERE s.id=? AND r.id=? AND r.kind=? AND r.data IS NOT NULL",
            place.session,
            place.id,
            KIND_NUMBER[place.kind],
        )
    if found != [(fault.seq,)]:
        return False
    return fault.what == ORPHANED or judged(connection.disk, fault.path, place)[1] is not None


def keep(connection: WriteConnection, path: str) -> None:
    """Copy a file into quarantine, safely, before the commit removes it."""
    try:
        raw = connection.disk.read(path)
    except OSError:
        return
    connection.disk.replace(f"{layout.QUARANTINE}/{path}", raw)


def from_index(connection: WriteConnection, id: str) -> bytes:
    """A session's JSON as far as the index knows it."""
    ((project, directory, path, slug, title, placement, updated, archived, run, parent),) = connection.rows(
        "SELECT project, directory, path, slug, title, placement, updated, archived, agent_run, parent "
        "FROM session WHERE id=?",
        id,
    )
    time = {"created": updated or connection.clock.now_ms(), "updated": updated or connection.clock.now_ms()}
    info: dict[str, object] = {
        "slug": slug or "",
        "projectID": project or "global",
        "directory": directory or "/",
        "title": title or "(its file could not be read)",
        "version": "",
        "time": time if archived is None else {**time, "archived": archived},
    }
    more = {"path": path, "placement": placement, "parentID": parent}
    if run is not None:
        more["agentRun"] = {"agent": run}
    return msgspec.json.encode(info | {name: value for name, value in more.items() if value is not None})


def move_strays(connection: WriteConnection, paths: list[str]) -> None:
    """Move files that belong to nothing out of the tree."""
    for path in paths:
        connection.disk.rename(path, f"{layout.QUARANTINE}/{path}")


def search_is_spoilt(path: Path) -> bool:
    """Whether the search index is there and cannot be used; it is derived, so nothing is lost with it."""
    if not path.exists():
        return False
    try:
        index = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            sound = index.execute("PRAGMA quick_check(1)").get == "ok"
            index.execute("INSERT INTO words(words) VALUES ('integrity-check')")
        finally:
            index.close()
    except apsw.Error:
        return True
    return not sound
