"""Mends what an examination found. Nothing is thrown away: what cannot be read moves to `quarantine/`."""

from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
import apsw
import msgspec

from holdfast.store.batch import Batch, Put, Remove
from holdfast.store.files import layout
from holdfast.store.files.connections import WriteConnection
from holdfast.store.files.repair.examine import ORPHANED, Examination, Fault, judged
from holdfast.store.report import Finding, Report
from holdfast.store.sqlite.connections import told
from holdfast.store.tables.writer import KIND_NUMBER

if TYPE_CHECKING:
    from holdfast.store.files.store import FilesStore


async def examine(store: "FilesStore", *, repair: bool) -> Report:
    """See the port."""
    seen = await store.read(lambda hand: Examination(hand.db, hand.disk).run())
    spoilt = await store.read(
        lambda hand: not hand.index.readonly and search_is_spoilt(hand.index.search_path)
    )
    report = seen.report()
    found = Finding("the search index is damaged", str(store.root.index.search_path), mended=repair)
    if not repair:
        return Report(report.sessions, report.records, (*report.findings, *([found] if spoilt else ())))
    mended: list[Finding] = []
    for fault in seen.faults:
        if fault.cure == "set aside" and not await store.write(
            lambda hand, fault=fault: set_aside(hand, fault)  # type: ignore[misc]
        ):
            continue
        mended.append(fault.finding(mended=fault.cure != "none"))
    if any(fault.cure == "rebuild" for fault in seen.faults):
        try:
            await anyio.to_thread.run_sync(store.root.rebuild, store.clock, store.host)
        except (apsw.Error, OSError) as error:
            raise told(error, store.root.index.path) from error
        left = await store.read(lambda hand: Examination(hand.db, hand.disk).run())
        paths = [fault.path for fault in left.faults if fault.cure == "rebuild" and fault.path]
        await store.write(lambda hand: move_strays(hand, paths))
    if spoilt:
        await store.read(lambda hand: hand.drop_search())
        mended.append(found)
    return Report(report.sessions, report.records, tuple(mended))


def set_aside(hand: WriteConnection, fault: Fault) -> bool:
    """Keep a record's file in quarantine and leave a tombstone; a session is written anew from the index.

    False when it was sound by now: between the look and this, anybody may have written it anew.
    """
    place = fault.place
    assert place is not None, "a fault to be set aside has a place"
    if not is_still_faulty(hand, fault, place):
        return False
    keep(hand, fault.path)
    if place.kind == "session":
        hand.writer.apply(Batch((Put(place.id, "session", place.id, from_index(hand, place.id)),)))
        return True
    if place.kind == "message":
        parts = (
            "SELECT p.id, p.data FROM record p JOIN record m ON m.k=p.parent JOIN session s ON s.n=m.session "
        )
        for id, data in hand.rows(parts + "WHERE s.id=? AND m.id=? AND m.kind=1", place.session, place.id):
            if data is not None:
                keep(hand, layout.record_path("part", place.session, id, place.id, aside=bool(data)))
    hand.writer.apply(Batch((Remove(place.session, place.kind, place.id),)))
    return True


def is_still_faulty(hand: WriteConnection, fault: Fault, place: layout.TreePlace) -> bool:
    """Whether the record is the one that was looked at, and no better; the store is held alone."""
    if place.kind == "session":
        found = hand.rows("SELECT seq FROM session WHERE id=? AND data IS NOT NULL", place.id)
    else:
        found = hand.rows(
            "SELECT r.seq FROM record r JOIN session s ON s.n=r.session "
            "WHERE s.id=? AND r.id=? AND r.kind=? AND r.data IS NOT NULL",
            place.session,
            place.id,
            KIND_NUMBER[place.kind],
        )
    if found != [(fault.seq,)]:
        return False
    return fault.what == ORPHANED or judged(hand.disk, fault.path, place)[1] is not None


def keep(hand: WriteConnection, path: str) -> None:
    """Copy a file into quarantine, safely, before the commit removes it."""
    try:
        raw = hand.disk.read(path)
    except OSError:
        return
    hand.disk.replace(f"{layout.QUARANTINE}/{path}", raw)


def from_index(hand: WriteConnection, id: str) -> bytes:
    """A session's JSON as far as the index knows it."""
    ((project, directory, path, slug, title, placement, updated, archived, run, parent),) = hand.rows(
        "SELECT project, directory, path, slug, title, placement, updated, archived, agent_run, parent "
        "FROM session WHERE id=?",
        id,
    )
    time = {"created": updated or hand.clock.now_ms(), "updated": updated or hand.clock.now_ms()}
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


def move_strays(hand: WriteConnection, paths: list[str]) -> None:
    """Move files that belong to nothing out of the tree."""
    for path in paths:
        hand.disk.rename(path, f"{layout.QUARANTINE}/{path}")


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
