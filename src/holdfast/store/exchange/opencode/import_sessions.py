"""Brings OpenCode's sessions into a store: one at a time, parents first, and again without harm.

The source is only read. What came over stays as it is; a later import adds what is new since. What cannot be
read is left behind and reported, and never ends the import.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio.to_thread
import apsw

from holdfast.clock import Clock
from holdfast.errors import InvalidInput, StoreError
from holdfast.schema.ids import Mint
from holdfast.store.base import Store
from holdfast.store.exchange.opencode import projects
from holdfast.store.exchange.opencode.draft import Draft, draft
from holdfast.store.exchange.opencode.find import sources
from holdfast.store.exchange.opencode.merge import merge
from holdfast.store.exchange.opencode.source import Source, Stub
from holdfast.store.exchange.opencode.tree import ProjectOf
from holdfast.store.exchange.portable.names import session_id
from holdfast.store.exchange.portable.report import ImportReport, Tally
from holdfast.store.host import Host
from holdfast.store.parents_first import parents_first

DELETED: Final = (
    "it is older than OpenCode's database, which took over all sessions, and not in it: deleted since; "
    "to have it all the same, import the storage folder by itself"
)

Progress = Callable[[int, int, str], None]
"""Called before each session: how many are done, of how many, and its id."""


async def import_opencode(
    store: Store,
    path: str | Path,
    *,
    mint: Mint,
    clock: Clock,
    host: Host,
    progress: Progress | None = None,
    project_of: ProjectOf | None = None,
) -> ImportReport:
    """Import a data directory of OpenCode's, its `storage` folder, or one of its databases."""
    found = await anyio.to_thread.run_sync(sources, Path(path), project_of)
    try:
        tally = Tally("; ".join(source.name for source in found))
        has_database = any(source.is_database for source in found)
        for source in found:
            # A tree beside a database is of the past: what was allowed then may have been revoked since.
            wanted = source.is_database or not has_database
            await projects.bring(
                store, source, approvals=wanted, mint=mint, now_ms=clock.now_ms(), tally=tally
            )
        plan = await anyio.to_thread.run_sync(_plan, found, tally)
        for done, (source, stub) in enumerate(plan):
            if progress is not None:
                progress(done, len(plan), stub.id)
            made = await anyio.to_thread.run_sync(_draft, source, stub, clock.now_ms(), host.id, tally)
            if made is not None:
                tally.session(stub.id)
                try:
                    await merge(store, made, stub.where, tally)
                except StoreError as error:
                    raise StoreError(
                        f"{error}; {done} of {len(plan)} sessions had come over whole, and the same import "
                        "brings the rest"
                    ) from error
        if not has_database:
            for source in found:
                await anyio.to_thread.run_sync(source.leftovers, tally)
    finally:
        for source in found:
            source.close()
    return tally.report()


def _draft(source: Source, stub: Stub, now_ms: int, placement: str, tally: Tally) -> Draft | None:
    try:
        raw = source.load(stub, tally)
    except (apsw.Error, InvalidInput) as error:
        tally.skip("session", f"session {stub.id}", stub.where, f"the database cannot be read: {error}")
        return None
    if raw is None:
        tally.skip("session", f"session {stub.id}", stub.where, "it was deleted meanwhile")
        return None
    return draft(raw, now_ms=now_ms, placement=placement, tally=tally)


def _plan(found: list[Source], tally: Tally) -> list[tuple[Source, Stub]]:
    """Every session to bring, parents first; of several formats the newest one's.

    A database took over all the sessions of the trees when it was made. One that only a tree has, though it
    is older, was deleted since.
    """
    made_ms = min((source.made_ms for source in found if source.made_ms is not None), default=None)
    chosen: list[tuple[Source, Stub]] = []
    seen: set[str] = set()
    for source in found:
        try:
            stubs = source.stubs(tally)
        except apsw.Error as error:
            raise InvalidInput(f"{source.name} cannot be read: {error}") from error
        for stub in stubs:
            if not source.is_database and stub.id in seen:
                continue
            try:
                session_id(stub.id, "its id")
                if not source.is_database and made_ms is not None and (stub.created or 0) < made_ms:
                    raise InvalidInput(DELETED)
            except InvalidInput as error:
                tally.skip("session", f"session {stub.id[:60]}", stub.where, str(error))
                continue
            chosen.append((source, stub))
        seen.update(stub.id for stub in stubs)
    order = parents_first([stub.id for _, stub in chosen], [stub.parent for _, stub in chosen])
    return [chosen[place] for place in order]
