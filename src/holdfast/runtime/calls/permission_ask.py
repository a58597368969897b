"""Decides whether a call may do something: by the rules, by stored approvals, otherwise by asking the user.

A permission request is a record: it survives a restart and is answered once, from any client. What must stay
true: where the user is not attached, ask means no, and that is recorded; a user who is attached and does not
reply is waited for within a bound, then the session parks and the request stays open.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, assert_never

import anyio
from msgspec.structs import replace

from holdfast.errors import Conflict
from holdfast.permission import steering
from holdfast.runtime.calls.permission_reply import answered, read_approvals, reply
from holdfast.runtime.calls.question_ask import QuestionAsk
from holdfast.runtime.engine.engine import OnAsk
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.run import Run
from holdfast.schema.permission import Action
from holdfast.schema.request import (
    PermissionAnswer,
    PermissionRequest,
    QuestionRequest,
    RequestTime,
    ToolRef,
)
from holdfast.schema.request import Reply as ReplyKind
from holdfast.schema.wire import JsonMap
from holdfast.store.batch import Put
from holdfast.store.put import put
from holdfast.toolkit.cancellation import is_cancelled
from holdfast.toolkit.output import ToolDenied, ToolParked
from holdfast.tools.plain import plain

LEAVE_S: Final = 0.05
"""How long an `on_ask` program has to end when its answer is no longer needed."""


class PermissionAsk:
    """Asks about the calls of one turn, under the policy of that turn."""

    def __init__(self, run: Run, turn: PreparedTurn, *, again: bool = False) -> None:
        settings = turn.workspace.loaded.config.experimental
        self._engine = run.engine
        self._recorder = run.recorder
        self._watcher = run.watcher
        self._session = turn.session
        self._policy = turn.policy
        self._worktree = str(turn.workspace.places.worktree)
        self._goes_on = settings is not None and bool(settings.continue_loop_on_deny)
        """Whether a rejection without a message is only passed to the model and does not end the work."""
        self._again = again
        """Whether the calls are run again after a crash: they may have asked before."""
        self._open: dict[str, PermissionRequest] = {}
        self.questions = QuestionAsk(run, turn.session, again=again, goes_on=self._goes_on)

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str],
        metadata: JsonMap,
        tool: ToolRef,
        aliases: Sequence[str] = (),
        unclear: Sequence[str] = (),
        hint: str = "",
        insist: bool = False,
    ) -> None:
        """Return if every pattern is allowed; otherwise raise `ToolDenied`.

        `hint` says which setting would allow it where the user cannot be asked. `insist`: ask the user even
        where the rules allow it.
        """
        verdict = await self.verdict(permission, patterns, aliases=aliases, unclear=unclear)
        if insist and verdict == "allow":
            verdict = "ask"
        if self._again and verdict != "ask":
            await self._close_decided(verdict, await self._find_earlier(permission, patterns, tool))
        match verdict:
            case "allow":
                return
            case "deny":
                raise ToolDenied(f"The rules deny {permission} for {_shown(patterns)}.")
            case "ask":
                savable = steering.savable(permission, patterns, always)
                await self._ask_user(permission, patterns, savable, metadata, tool, hint=hint)
            case _:
                assert_never(verdict)

    async def verdict(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        aliases: Sequence[str] = (),
        unclear: Sequence[str] = (),
    ) -> Action:
        """What the rules and stored approvals say; the user is not asked."""
        approved = await read_approvals(self._engine, self._session, self._worktree)
        return self._policy.strictest(permission, patterns, approved, aliases=aliases, unclear=unclear)

    def allows_anything(self, permission: str, pattern: str) -> bool:
        """Whether the rules allow it only by a wildcard: the user may not have meant it."""
        verdict = self._policy.verdict(permission, pattern)
        return verdict == "allow" and not self._policy.names(permission, pattern)

    async def _close_decided(self, verdict: Action, known: PermissionRequest | None) -> None:
        """The rules now decide a request that still waits: close it with their verdict."""
        if known is None or known.time.heard is not None:
            return
        if known.answer is None:
            kind: ReplyKind = "once" if verdict == "allow" else "reject"
            known = answered(known, PermissionAnswer(reply=kind), self._engine.clock.now_ms())
        if verdict == "allow":
            raise_if_rejected(known, goes_on=self._goes_on)
            await self._mark_received(known)
        else:
            await self._recorder.commit(put(known))

    def waits(self, call: str) -> bool:
        """Whether a request of the call is still open."""
        waiting = any(each.tool is not None and each.tool.call_id == call for each in self._open.values())
        return waiting or self.questions.waits(call)

    def withdrawn(self, call: str, why: str) -> list[Put]:
        """The open requests of a call that is over, closed."""
        now_ms = self._engine.clock.now_ms()
        no = PermissionAnswer(reply="reject", message=why)
        waiting = [
            each for each in self._open.values() if each.tool is not None and each.tool.call_id == call
        ]
        closed = [put(answered(self._open.pop(each.id), no, now_ms)) for each in waiting]
        return [*closed, *self.questions.withdrawn(call)]

    async def _ask_user(
        self,
        permission: str,
        patterns: Sequence[str],
        always: Sequence[str],
        metadata: JsonMap,
        tool: ToolRef,
        *,
        hint: str,
    ) -> None:
        known = await self._find_earlier(permission, patterns, tool) if self._again else None
        program = self._engine.on_ask
        if known is None and program is None and not self._engine.presence.attached(self._session):
            raise ToolDenied(
                f"{permission} for {_shown(patterns)} needs the user's consent, "
                f"which cannot be asked for here{f'; {hint}' if hint else ''}."
            )
        request = known or await self._write(permission, patterns, always, metadata, tool)
        if request.answer is None:
            self._open[request.id] = request
            if known is not None and program is None and not self._engine.presence.attached(self._session):
                raise ToolParked(f"nobody is there to answer {request.id}, which was asked before")
            wait_s = self._engine.limits.answer_wait_ms / 1_000
            replied = await self._wait(program, request, wait_s)
            if replied is None:
                raise ToolParked(f"session {self._session.id} waits for an answer to {request.id}")
            assert isinstance(replied, PermissionRequest)
            request = replied
            del self._open[request.id]
        raise_if_rejected(request, goes_on=self._goes_on)
        await self._mark_received(request)

    async def _mark_received(self, request: PermissionRequest) -> None:
        """Record that the call received its reply, before it continues and may have an effect."""
        time = replace(request.time, heard=self._engine.clock.now_ms())
        await self._recorder.commit(put(replace(request, time=time)))

    async def _wait(
        self, program: OnAsk | None, request: PermissionRequest, wait_s: float
    ) -> PermissionRequest | QuestionRequest | None:
        """Wait until the request is answered, by the user or the program, whichever is first."""
        if program is None:
            return await self._watcher.answered(self._session.id, request.id, wait_s=wait_s)
        # A task of its own: a program that ignores its cancellation is left behind.
        asked = asyncio.create_task(self._ask_program(program, request))
        replied = asyncio.create_task(self._watcher.answered(self._session.id, request.id, wait_s=wait_s))
        try:
            await asyncio.wait({asked, replied}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done() and (error := asked.result()) is not None:
                raise error
            found = await replied
        finally:
            asked.cancel()
            replied.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({asked, replied}, timeout=LEAVE_S)
        # The program may have answered just before the end.
        return found or await self._watcher.answered(self._session.id, request.id, wait_s=0)

    async def _ask_program(self, program: OnAsk, request: PermissionRequest) -> BaseException | None:
        """Let the program answer. Its error is returned: it belongs to the call, not to this task."""
        try:
            answer = await program(request)
            if answer is not None:
                with contextlib.suppress(Conflict):  # The user, or another client, was quicker.
                    await reply(self._engine, self._session.id, request.id, answer.reply, answer.message)
                self._watcher.look(self._session.id, request.id)
        except BaseException as error:
            if is_cancelled(error):
                raise
            return error
        return None

    async def _find_earlier(
        self, permission: str, patterns: Sequence[str], tool: ToolRef
    ) -> PermissionRequest | None:
        """The same request of the same call, from before a restart."""
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
        request = plain(PermissionRequest, request)  # A tool may pass anything.
        await self._recorder.commit(put(request))
        return request


def raise_if_rejected(request: PermissionRequest, *, goes_on: bool = False) -> None:
    """Raise `ToolDenied` if the user rejected the request.

    A rejection without a message also stops the session, unless it `goes_on`.
    """
    answer = request.answer
    if answer is None or answer.reply != "reject":
        return
    if answer.message:
        raise ToolDenied(f"The person said no, and: {answer.message}")
    raise ToolDenied(f"The person said no to {request.permission}.", stops=not goes_on)


def _shown(patterns: Sequence[str]) -> str:
    return ", ".join(patterns[:5])[:300] + (" …" if len(patterns) > 5 else "")
