"""Asks whether a call may do something: the rules, what was approved before, and else a person.

A question is a record: it survives a restart and is answered once, from any client. What must stay true:
where nobody is attached, ask means no, and that is recorded; a person who is there and silent is waited for
within a bound, then the session parks and the question stays.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, assert_never

import anyio
from msgspec.structs import replace

from holdfast.errors import Conflict, NotFound
from holdfast.permission.policy import Approved, Policy
from holdfast.runtime.engine.engine import Engine, OnAsk
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.run import Run
from holdfast.schema import stored
from holdfast.schema.ids import ApprovalID
from holdfast.schema.permission import Action
from holdfast.schema.project_records import Approval
from holdfast.schema.request import (
    PermissionAnswer,
    PermissionRequest,
    QuestionRequest,
    RequestTime,
    ToolRef,
)
from holdfast.schema.request import Reply as ReplyWord
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark
from holdfast.schema.times import Created
from holdfast.schema.wire import JsonMap, checked
from holdfast.store.batch import Batch, Change, Expectation, Put, Unchanged, project_scope
from holdfast.store.put import put
from holdfast.store.record import StoredRecord
from holdfast.tool.cancelling import is_cancelled
from holdfast.tool.output import ToolDenied, ToolParked
from holdfast.tools.plain import plain

_TRIES = 20
LEAVE_S: Final = 0.05
"""How long a program that answers questions has to end when nobody needs its answer any more."""


class PermissionAsk:
    """Asks about the calls of one turn, by the policy of that turn."""

    def __init__(self, run: Run, turn: PreparedTurn, *, again: bool = False) -> None:
        wishes = turn.workspace.loaded.config.experimental
        self._engine = run.engine
        self._recorder = run.recorder
        self._watcher = run.watcher
        self._session = turn.session
        self._policy = turn.policy
        self._worktree = str(turn.workspace.places.worktree)
        self._goes_on = wishes is not None and bool(wishes.continue_loop_on_deny)
        """A no without words is told to the model, and does not end the work."""
        self._again = again
        """The calls are run again after a crash: they may have asked before."""
        self._open: dict[str, PermissionRequest] = {}

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str],
        metadata: JsonMap,
        tool: ToolRef,
    ) -> None:
        """Return when all of it is allowed; `ToolDenied` when not."""
        approved = await approvals(self._engine, self._session, self._worktree)
        verdict = self._policy.strictest(permission, patterns, approved)
        if self._again and verdict != "ask":
            await self._decided_since(verdict, await self._asked_before(permission, patterns, tool))
        match verdict:
            case "allow":
                return
            case "deny":
                raise ToolDenied(f"The rules deny {permission} for {_shown(patterns)}.")
            case "ask":
                await self._person(permission, patterns, always, metadata, tool)
            case _:
                assert_never(verdict)

    def allows_anything(self, permission: str, pattern: str) -> bool:
        """Whether the rules allow it by a wildcard only: the user may not have thought of it."""
        verdict = self._policy.verdict(permission, pattern)
        return verdict == "allow" and not self._policy.names(permission, pattern)

    async def _decided_since(self, verdict: Action, known: PermissionRequest | None) -> None:
        """The rules have come to answer a question that still waits: it is closed with what they say."""
        if known is None or known.time.heard is not None:
            return
        if known.answer is None:
            word: ReplyWord = "once" if verdict == "allow" else "reject"
            known = _answered(known, PermissionAnswer(reply=word), self._engine.clock.now_ms())
        if verdict == "allow":
            judge(known, goes_on=self._goes_on)
            await self._heard(known)
        else:
            await self._recorder.commit(put(known))

    def waits(self, call: str) -> bool:
        """Whether a question of the call is still to be answered."""
        return any(each.tool is not None and each.tool.call_id == call for each in self._open.values())

    def withdrawn(self, call: str, why: str) -> list[Put]:
        """The questions of a call that is over and that nobody answered, closed."""
        now_ms = self._engine.clock.now_ms()
        no = PermissionAnswer(reply="reject", message=why)
        waiting = [
            each for each in self._open.values() if each.tool is not None and each.tool.call_id == call
        ]
        return [put(_answered(self._open.pop(each.id), no, now_ms)) for each in waiting]

    async def _person(
        self,
        permission: str,
        patterns: Sequence[str],
        always: Sequence[str],
        metadata: JsonMap,
        tool: ToolRef,
    ) -> None:
        known = await self._asked_before(permission, patterns, tool) if self._again else None
        program = self._engine.on_ask
        if known is None and program is None and not self._engine.presence.attached(self._session):
            raise ToolDenied(
                f"{permission} for {_shown(patterns)} needs the user's consent, "
                "which cannot be asked for here."
            )
        request = known or await self._write(permission, patterns, always, metadata, tool)
        if request.answer is None:
            self._open[request.id] = request
            if known is not None and program is None and not self._engine.presence.attached(self._session):
                raise ToolParked(f"nobody is there to answer {request.id}, which was asked before")
            wait_s = self._engine.limits.answer_wait_ms / 1_000
            answered = await self._answered(program, request, wait_s)
            if answered is None:
                raise ToolParked(f"session {self._session.id} waits for an answer to {request.id}")
            assert isinstance(answered, PermissionRequest)
            request = answered
            del self._open[request.id]
        judge(request, goes_on=self._goes_on)
        await self._heard(request)

    async def _heard(self, request: PermissionRequest) -> None:
        """Committed before the call goes on: after a crash from here on it may have had its effect."""
        heard = replace(request.time, heard=self._engine.clock.now_ms())
        await self._recorder.commit(put(replace(request, time=heard)))

    async def _answered(
        self, program: OnAsk | None, request: PermissionRequest, wait_s: float
    ) -> PermissionRequest | QuestionRequest | None:
        """The request once it was answered, by whoever is first: a program and people share one wait."""
        if program is None:
            return await self._watcher.answered(self._session.id, request.id, wait_s=wait_s)
        # A task of its own: a program that does not hear that its time is over is left behind.
        asked = asyncio.create_task(self._ask_program(program, request))
        heard = asyncio.create_task(self._watcher.answered(self._session.id, request.id, wait_s=wait_s))
        try:
            await asyncio.wait({asked, heard}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done() and (error := asked.result()) is not None:
                raise error
            found = await heard
        finally:
            asked.cancel()
            heard.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({asked, heard}, timeout=LEAVE_S)
        # The program may have answered in the very last moment.
        return found or await self._watcher.answered(self._session.id, request.id, wait_s=0)

    async def _ask_program(self, program: OnAsk, request: PermissionRequest) -> BaseException | None:
        """Let a program answer; what it raises is a value, since it is the call's and no task's."""
        try:
            answer = await program(request)
            if answer is not None:
                with contextlib.suppress(Conflict):  # Somebody else was quicker.
                    await reply(self._engine, self._session.id, request.id, answer.reply, answer.message)
                self._watcher.look(self._session.id, request.id)
        except BaseException as error:
            if is_cancelled(error):
                raise
            return error
        return None

    async def _asked_before(
        self, permission: str, patterns: Sequence[str], tool: ToolRef
    ) -> PermissionRequest | None:
        """The same question of the same call, from before a restart."""
        for record in await self._engine.store.select("request", session=self._session.id):
            value = record.value()
            if (
                isinstance(value, PermissionRequest)
                and value.tool == tool
                and value.permission == permission
                and value.patterns == list(patterns)
            ):
                return value
        return None

    async def _write(
        self,
        permission: str,
        patterns: Sequence[str],
        always: Sequence[str],
        metadata: JsonMap,
        tool: ToolRef,
    ) -> PermissionRequest:
        request = PermissionRequest(
            id=self._engine.mint.ascending("per"),
            session_id=self._session.id,
            permission=permission,
            patterns=list(patterns),
            metadata=metadata,
            always=list(always),
            tool=tool,
            time=RequestTime(created=self._engine.clock.now_ms()),
        )
        request = plain(PermissionRequest, request)  # A tool may give anything.
        await self._recorder.commit(put(request))
        return request


def _answered(request: PermissionRequest, answer: PermissionAnswer, now_ms: int) -> PermissionRequest:
    return replace(request, answer=answer, time=replace(request.time, answered=now_ms))


async def withdraw(engine: Engine, session: str, calls: set[str], why: str) -> list[Put]:
    """The open questions of calls that a runner who is gone left, closed."""
    if not calls:
        return []
    now_ms = engine.clock.now_ms()
    no = PermissionAnswer(reply="reject", message=why)
    waiting = [value for _, value in await _others(engine, session, "")]
    return [
        put(_answered(each, no, now_ms))
        for each in waiting
        if each.tool is not None and each.tool.call_id in calls
    ]


def judge(request: PermissionRequest, *, goes_on: bool = False) -> None:
    """Return for a yes, raise for a no, which the model hears. One without words ends the work, unless it
    `goes_on`.
    """
    answer = request.answer
    if answer is None or answer.reply != "reject":
        return
    if answer.message:
        raise ToolDenied(f"The person said no, and: {answer.message}")
    raise ToolDenied(f"The person said no to {request.permission}.", stops=not goes_on)


def _shown(patterns: Sequence[str]) -> str:
    return ", ".join(patterns[:5])[:300] + (" …" if len(patterns) > 5 else "")


async def approvals(engine: Engine, session: Session, worktree: str) -> list[Approved]:
    """What was approved for good in this project and checkout."""
    records = await engine.store.select("approval", session=project_scope(session.project_id))
    values = [record.value() for record in records]
    return [
        Approved(each.permission, each.pattern)
        for each in values
        if isinstance(each, Approval) and each.worktree == worktree
    ]


async def reply(
    engine: Engine, session: str, id: str, word: ReplyWord, message: str | None = None
) -> PermissionRequest:
    """Answer a question, once. "Always" is saved, and settles what it covers; a no covers all that wait."""
    given = checked(PermissionAnswer(reply=word, message=message), "the answer")
    for _ in range(_TRIES):
        request, changes, expect = await _answers(engine, session, id, given)
        try:
            await engine.store.commit(Batch(tuple(changes), tuple(expect)))
        except Conflict:
            continue  # Another question was answered meanwhile: what this answer covers has changed.
        return replace(request, answer=given)
    raise Conflict(f"the questions of session {session} change all the time; answer {id} again")


async def _answers(
    engine: Engine, session: str, id: str, given: PermissionAnswer
) -> tuple[PermissionRequest, list[Change], list[Expectation]]:
    """What an answer changes, under the condition that no question it covers changes meanwhile."""
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
        covered += [(*other, no) for other in await _others(engine, session, id)]
    elif given.reply == "always":
        worktree = str((await engine.workspace(owner)).places.worktree)
        saved = [_approval(engine, owner, request, pattern, worktree) for pattern in request.always]
        scope = project_scope(owner.project_id)
        changes += [Put(scope, "approval", each.id, stored.strip("approval", each)) for each in saved]
        now = [*await approvals(engine, owner, worktree)]
        now += [Approved(each.permission, each.pattern) for each in saved]
        for other in await _others(engine, session, id):
            if Policy(()).strictest(other[1].permission, other[1].patterns, now) == "allow":
                covered.append((*other, given))
    answered_ms = engine.clock.now_ms()
    for _, value, answer in covered:
        changes.append(put(_answered(value, answer, answered_ms)))
    return (
        request,
        changes,
        [Unchanged(session, "request", each.id, before.seq) for before, each, _ in covered],
    )


async def _others(engine: Engine, session: str, id: str) -> list[tuple[StoredRecord, PermissionRequest]]:
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
