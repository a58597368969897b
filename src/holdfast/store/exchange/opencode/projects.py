"""Brings over projects, and what the user always allows in them. Neither replaces what is here."""

import anyio.to_thread
import apsw
import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema.ids import ApprovalID, Mint, ProjectID
from holdfast.schema.project import Project
from holdfast.schema.project_records import Approval
from holdfast.schema.times import Created
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Put, project_scope
from holdfast.store.exchange.opencode import mend_session
from holdfast.store.exchange.opencode.source import RawApproval, RawRecord, Source
from holdfast.store.exchange.opencode.tree import GLOBAL
from holdfast.store.exchange.portable.names import record_id
from holdfast.store.exchange.portable.report import Tally
from holdfast.store.put import put_in


class _Records(msgspec.Struct, frozen=True):
    projects: list[RawRecord]
    approvals: list[RawApproval]


async def bring(
    store: Store, source: Source, *, approvals: bool, mint: Mint, now_ms: int, tally: Tally
) -> None:
    """The projects of a source and, if wanted, the approvals."""
    records = await anyio.to_thread.run_sync(_read, source, tally)
    worktrees: dict[str, str] = {}
    for record in records.projects:
        project = await _project(store, record, now_ms, tally)
        if project is not None:
            worktrees[project.id] = project.worktree
    if not approvals:
        return
    by_project: dict[str, list[RawApproval]] = {}
    for approval in records.approvals:
        by_project.setdefault(approval.project, []).append(approval)
    for id, given in by_project.items():
        worktree = worktrees.get(id)
        if worktree is None or id == GLOBAL:
            why = "the project is not there" if worktree is None else "they would hold in every folder"
            what = f"{len(given)} approvals of project {id[:60]}"
            tally.skip("approval", what, given[0].where, why)
        else:
            await _approvals(store, given, worktree, mint=mint, now_ms=now_ms, tally=tally)


def _read(source: Source, tally: Tally) -> _Records:
    try:
        return _Records(list(source.projects(tally)), list(source.approvals(tally)))
    except apsw.Error as error:
        raise InvalidInput(f"{source.name} cannot be read: {error}") from error


async def _project(store: Store, record: RawRecord, now_ms: int, tally: Tally) -> Project | None:
    try:
        record_id(record.id, "its id")
        if not isinstance(record.value, dict):
            raise InvalidInput(record.problem or "it is no JSON object")
        project, _ = mend_session.project(record.value, id=record.id, now_ms=now_ms)
    except InvalidInput as error:
        tally.skip("project", f"project {record.id[:60]}", record.where, str(error))
        return None
    scope = project_scope(project.id)
    here = await store.get(scope, "project", project.id)
    if here is not None:
        tally.unchanged("project")
        value = here.value()
        assert isinstance(value, Project)
        return value
    await store.commit(Batch((put_in(scope, project),)))
    tally.new("project")
    return project


async def _approvals(
    store: Store, given: list[RawApproval], worktree: str, *, mint: Mint, now_ms: int, tally: Tally
) -> None:
    """Each "always" holds for the worktree that the project was opened in: nowhere else was it asked."""
    scope = project_scope(given[0].project)
    known: set[tuple[str, str]] = set()
    for record in await store.select("approval", session=scope):
        here = record.value()
        assert isinstance(here, Approval)
        if here.worktree == worktree:
            known.add((here.permission, here.pattern))
    puts: list[Put] = []
    for raw in given:
        if (raw.permission, raw.pattern) in known:
            tally.unchanged("approval")
            continue
        known.add((raw.permission, raw.pattern))
        made = Approval(
            id=ApprovalID(mint.ascending("psv")),
            project_id=ProjectID(raw.project),
            worktree=worktree,
            permission=raw.permission,
            pattern=raw.pattern,
            time=Created(created=raw.created or now_ms),
        )
        puts.append(put_in(scope, made))
    if puts:
        await store.commit(Batch(tuple(puts)))
        tally.new("approval", len(puts))
