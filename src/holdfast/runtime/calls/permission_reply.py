"""Replies to permission requests, by the user or a program, and stored approvals."""

from msgspec.structs import replace

from holdfast.errors import Conflict, NotFound
from holdfast.permission.policy import Approved, Policy
from holdfast.runtime.engine.engine import Engine
from holdfast.schema.ids import ApprovalID
from holdfast.schema.project_records import Approval
from holdfast.schema.request import (
    PermissionAnswer,
    PermissionRequest,
)
from holdfast.schema.request import Reply as ReplyKind
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark
from holdfast.schema.times import Created
from holdfast.schema.wire import checked
from holdfast.store.batch import Batch, Change, Expectation, Put, Unchanged, project_scope
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put, put_in
from holdfast.store.record import StoredRecord


def answered(request: PermissionRequest, answer: PermissionAnswer, now_ms: int) -> PermissionRequest:
    return replace(request, answer=answer, time=replace(request.time, answered=now_ms))


async def withdraw(engine: Engine, session: str, calls: set[str], why: str) -> list[Put]:
    """Close the open requests of calls that a dead runner left."""
    if not calls:
        return []
    now_ms = engine.clock.now_ms()
    no = PermissionAnswer(reply="reject", message=why)
    waiting = [value for _, value in await _read_others(engine, session, "")]
    return [
        put(answered(each, no, now_ms))
        for each in waiting
        if each.tool is not None and each.tool.call_id in calls
    ]


async def read_approvals(engine: Engine, session: Session, worktree: str) -> list[Approved]:
    """The approvals of this project and checkout."""
    records = await engine.store.select("approval", session=project_scope(session.project_id))
    values = [record.value() for record in records]
    return [
        Approved(each.permission, each.pattern)
        for each in values
        if isinstance(each, Approval) and each.worktree == worktree
    ]


async def reply(
    engine: Engine, session: str, id: str, kind: ReplyKind, message: str | None = None
) -> PermissionRequest:
    """Answer a request, once. "Always" is stored as an approval and answers the requests it covers; a
    rejection answers all that wait.
    """
    given = checked(PermissionAnswer(reply=kind, message=message), "the answer")

    async def once() -> PermissionRequest:
        # If another request is answered meanwhile, this one covers others.
        request, changes, expect = await _answers(engine, session, id, given)
        await engine.store.commit(Batch(tuple(changes), tuple(expect)))
        return replace(request, answer=given)

    return await on_conflict(once)


async def _answers(
    engine: Engine, session: str, id: str, given: PermissionAnswer
) -> tuple[PermissionRequest, list[Change], list[Expectation]]:
    """The changes that an answer makes, on the condition that no request it covers changes meanwhile."""
    record = await engine.store.get(session, "request", id)
    request = None if record is None else record.value()
    if record is None or not isinstance(request, PermissionRequest):
        raise NotFound(f"there is no permission request {id[:60]} in session {session}")
    if request.answer is not None:
        raise Conflict(f"permission request {id} was answered already: {request.answer.reply}")
    found = await engine.store.session(session)
    if found is None:
        raise NotFound(f"session {session} does not exist")
    owner = found.value()
    covered: list[tuple[StoredRecord, PermissionRequest, PermissionAnswer]] = [(record, request, given)]
    changes: list[Change] = []
    if given.reply == "reject":
        no = PermissionAnswer(reply="reject")
        covered += [(*other, no) for other in await _read_others(engine, session, id)]
    elif given.reply == "always":
        worktree = str((await engine.workspace(owner)).places.worktree)
        saved = [_approval(engine, owner, request, pattern, worktree) for pattern in request.always]
        scope = project_scope(owner.project_id)
        changes += [put_in(scope, each) for each in saved]
        now = [*await read_approvals(engine, owner, worktree)]
        now += [Approved(each.permission, each.pattern) for each in saved]
        for other in await _read_others(engine, session, id):
            if Policy(()).strictest(other[1].permission, other[1].patterns, now) == "allow":
                covered.append((*other, given))
    answered_ms = engine.clock.now_ms()
    for _, value, answer in covered:
        changes.append(put(answered(value, answer, answered_ms)))
    return (
        request,
        changes,
        [Unchanged(session, "request", each.id, before.seq) for before, each, _ in covered],
    )


async def _read_others(engine: Engine, session: str, id: str) -> list[tuple[StoredRecord, PermissionRequest]]:
    found = []
    for record in await engine.store.select("request", session=session, mark=Mark.OPEN):
        value = record.value()
        if isinstance(value, PermissionRequest) and value.id != id:
            found.append((record, value))
    return found


def _approval(
    engine: Engine, session: Session, request: PermissionRequest, pattern: str, worktree: str
) -> Approval:
    return Approval(
        id=ApprovalID(engine.mint.ascending("psv")),
        project_id=session.project_id,
        worktree=worktree,
        permission=request.permission,
        pattern=pattern,
        time=Created(created=engine.clock.now_ms()),
    )
