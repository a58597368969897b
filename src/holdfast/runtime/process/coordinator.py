"""Which sessions this process runs: one drain a session, many sessions side by side.

A wake is a hint and may be lost: the inbox is stored, and the next process that opens the application finds
it. What must stay true: a session that is woken while it drains is drained again before it rests; a drain
that fails leaves no entry behind; an interrupt returns when everything is settled.
"""

import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec.structs import replace

from holdfast.errors import HoldfastError, InvariantBroken, LeaseLost, Refused, StoreError
from holdfast.log import event
from holdfast.runtime.drain import drain
from holdfast.runtime.engine import interrupt_requests
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.patience import PatientStore
from holdfast.runtime.engine.recorder import Recorder
from holdfast.runtime.engine.request_watcher import RequestWatcher
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history.last_request import LastRequest
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.runtime.history.work import is_settled
from holdfast.runtime.inbox import promotion
from holdfast.runtime.process.background import Background
from holdfast.runtime.process.child_prompts import ChildPrompts
from holdfast.runtime.process.claims import Claims
from holdfast.runtime.process.closing import close_behind
from holdfast.runtime.process.due import Due
from holdfast.runtime.process.lease import ProcessLease
from holdfast.runtime.process.placement_prompts import PlacementPrompts
from holdfast.runtime.process.resumption import Resumption
from holdfast.runtime.process.running_session import RunningSession
from holdfast.runtime.side_calls import prompt_summary, session_diffs
from holdfast.runtime.side_calls.session_title import Titles
from holdfast.runtime.user_command import UserCommand, run_command
from holdfast.schema.stored import Kind, Mark
from holdfast.store.batch import Held
from holdfast.toolkit.cancellation import ends_the_program
from holdfast.tools.plain import described

HISTORIES_MAX = 16
ENDED_S = 5.0
"""The pause between two looks for sessions that another owner has run since."""
LATE_S = 0.5
"""The least pause between two claims of a session whose owner is late with its lease."""
CLOSE_S = 4.5
RETIRE_S = 1.0
"""The part of `CLOSE_S` that is kept for releasing the claims."""


def _waiting_engine(engine: Engine, store: PatientStore) -> Engine:
    """An engine that waits for its store. The workspace is read from the store too (which folders the user
    trusts), so it waits likewise.
    """
    workspace = engine.workspace
    return replace(engine, store=store, workspace=lambda session: store.repeat(workspace, session))


class Coordinator:
    """The drains of one process."""

    def __init__(self, engine: Engine, *beside: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`beside`: further tasks that run as long as this process works on sessions."""
        self._engine = engine
        self._entries: dict[str, RunningSession] = {}
        self._diffs_due = session_diffs.Due()
        self._cached: dict[str, tuple[SessionHistory, LastRequest]] = {}
        self._closing = False
        self.patient = PatientStore(engine.store, lambda: None)
        """The store with retries while it is unreachable."""
        self._patient_engine = _waiting_engine(engine, self.patient)
        self._admit = ChildPrompts(self._patient_engine, self.wake)
        self.watcher = RequestWatcher(self.patient, engine.clock)
        self.lease = ProcessLease(engine, self._abandon_all, (engine.host.id,), engine.guard)
        self._claims = Claims(self.patient, self.lease, running=self._entries)
        self.resumption = Resumption(engine, self.lease.owner, self.wake, self._take_on)
        self._elsewhere = PlacementPrompts(self.patient, self.lease, engine.host.id, self._entries, self.wake)
        self._background = Background(
            self.watcher.run,
            self.lease.keep,
            *beside,
            self._claims.keep_given_back,
            self._keep_ended,
            self.resumption.keep,
            self._elsewhere.keep,
            warn=engine.warn,
        )
        self.titles = Titles(engine, self._background.start)

    def active(self) -> list[str]:
        """The sessions that this process runs."""
        return list(self._entries)

    async def wake(self, session: str, *, force: bool = False, answered: bool = False) -> None:
        """Drain a session soon. If it is draining already, it is drained once more before it rests."""
        entry = self._entries.get(session)
        if entry is not None:
            entry.wake(force=force, answered=answered)
            if force:
                await self._note_resumed(session, entry)
        elif await self._begin(session, RunningSession(force=force, answered=answered)) is not None:
            self.titles.look(session)

    async def _note_resumed(self, session: str, entry: RunningSession) -> None:
        """Note when the user resumed it: another process's interrupt from before is seen later."""
        with contextlib.suppress(StoreError):  # Away: then such an interrupt counts as the later one.
            record = await self._engine.store.session(session)
            if record is not None and entry.note_resumed(record.head) and entry.done.is_set():
                await self.wake(session, force=True)

    async def _take_on(self, session: str, due: Due) -> None:
        """Do what was left, now that the store is there again."""
        if due.stop is None:
            await self.wake(session, force=due.force, answered=due.answered)
        else:  # Where a later prompt goes on with it, this is one wake more.
            await self._begin(session, RunningSession.of(due))

    async def _begin(self, session: str, entry: RunningSession) -> TaskGroup | None:
        """Start to work on a session; None if another task has started it meanwhile."""
        group = await self._background.group()
        if self._closing:
            raise Refused(
                f"the runtime is being closed; what session {session} owes waits until it is opened again"
            )
        if (known := self._entries.get(session)) is not None:
            known.wake(force=entry.force, answered=entry.answered)
            return None
        self._entries[session] = entry
        group.start_soon(self._work, session, entry, group)
        return group

    async def run_command(self, session: str, command: UserCommand) -> None:
        """Run a command of the user's own in a session that rests, and wait for it; `Refused` if it works."""
        entry = RunningSession()
        entry.command = command
        if session in self._entries or await self._begin(session, entry) is None:
            raise Refused(f"session {session} is working; interrupt it, or wait until it rests")
        await entry.done.wait()
        if isinstance(entry.error, LeaseLost):
            raise entry.error
        if command.message is None:
            raise entry.error or Refused(f"session {session} is run by another process; wait until it rests")

    async def wait(self, session: str) -> None:
        """Return when this process no longer runs the session; raises the error of its claim or drain."""
        while (entry := self._entries.get(session)) is not None:
            await entry.done.wait()
            if entry.error is not None and session not in self._entries:
                raise entry.error

    async def interrupt(self, session: str, *, reason: str | None = None) -> bool:
        """Stop the session, here or in another process, and wait until everything is settled.

        Returns whether there was anything to stop.
        """
        entry = await self._interrupt_here(session)
        stopped = entry is not None
        if entry is not None and entry.error is not None and not entry.is_settled:
            left = self.resumption.forget(session)
            await self._settle(session, left if isinstance(left, Due) else Due(stop=entry.asked_at))
            return True
        record = await self._engine.store.session(session)
        if record is None:
            return stopped
        if record.owner is not None and record.owner not in self.lease.ids:
            await interrupt_requests.stop_elsewhere(self._patient_engine, record, reason)
            return True
        # What runs here by now was begun by a prompt that came after the interrupt.
        if session not in self._entries and (
            self.resumption.forget(session) is not None or await self._is_unfinished(session)
        ):
            await self._settle(session, Due(stop=record.head))
            return True
        return stopped

    async def _interrupt_here(self, session: str) -> RunningSession | None:
        entry = self._entries.get(session)
        if entry is None:
            return None
        entry.end()
        if entry.run is not None:
            entry.run.interrupt(keeps_inbox=self._closing)
        if not self._closing:
            with contextlib.suppress(StoreError):  # Away: then all that waits is meant.
                if (record := await self._engine.store.session(session)) is not None:
                    entry.note_asked(record.head)
        await entry.done.wait()
        return entry

    async def _is_unfinished(self, session: str) -> bool:
        """Whether anything is open: a call that waits for the user, or the work of a dead runner."""
        kinds: tuple[Kind, ...] = ("request", "message", "part")
        found = [await self._engine.store.select(kind, session=session, mark=Mark.OPEN) for kind in kinds]
        # A call whose process runs in the background is settled: the process is no work of the session.
        return any(
            record.kind != "part" or not is_settled(record.value()) for each in found for record in each
        )

    async def _settle(self, session: str, due: Due) -> None:
        """Settle what is open in a session that no process runs, or raise what kept it from being settled."""
        entry = RunningSession.of(due)
        if await self._begin(session, entry) is None:
            known = self._entries.get(session)
            if known is None or not known.stop:  # A later prompt goes on with it.
                return
            entry = known  # Another task has just begun to settle it.
        await entry.done.wait()
        if entry.error is not None and not entry.is_settled:
            raise entry.error

    async def _work(self, session: str, entry: RunningSession, group: TaskGroup) -> None:
        try:
            await self._drains(session, entry)
        except HoldfastError as error:
            entry.error = error
        except BaseException as error:  # A bug in one session must not end the others.
            if ends_the_program(error):
                entry.error = Refused(f"session {session}: its work was cut off with the whole runtime")
                raise
            event.error("process", "session.failed", session=session, error=event.where(error))
            entry.error = InvariantBroken(f"session {session}: {described(error)}")
        finally:
            self._entries.pop(session, None)
            entry.done.set()
            if not self._closing:
                self._hand_on(session, entry, group)

    async def _drains(self, session: str, entry: RunningSession) -> None:
        """Drain a session until it rests, was stopped, or is lost."""
        refused = 0
        while True:
            entry.next_drain()
            had = await self._drain(session, entry)
            if entry.how == "abandoned":
                return
            if entry.owed and entry.how in ("done", "parked") and not self._closing:
                entry.owed = False  # Once more, to record what was interrupted before it began.
                continue
            if entry.stopped_elsewhere and not (entry.again or self._closing):
                entry.again = await self._came_later(session, entry.asked_at)
            if entry.stop or (entry.command is not None and not had):
                return
            entry.command = None
            refused = 0 if had else refused + 1
            if refused and not await self._wait_until_free(session, entry, late=refused > 1):
                return
            # The claim was released with an empty inbox; a later prompt has set `again`.
            if had and not entry.again:
                return

    def _hand_on(self, session: str, entry: RunningSession, group: TaskGroup) -> None:
        """Let what is left of a session's work be done: at once, or when the store is there again."""
        left = entry.left()
        if isinstance(left, Due) and not entry.is_cut_off:
            # It was woken while it stopped or failed: work on the prompts that came after that.
            after = self._entries[session] = RunningSession.of(left)
            group.start_soon(self._work, session, after, group)
        elif left is not None:
            if not entry.claimed:
                event.warn("process", "session.unclaimed", session=session)
            self.resumption.note(session, left)

    async def _came_later(self, session: str, asked_at: int) -> bool:
        """Whether prompts came after the interrupt that another process asked for; it is seen later."""
        try:
            waiting = await self.patient.repeat(promotion.pending, self._engine, session)
        except StoreError:
            return True  # Then the next drain finds out.
        return any(each.position > asked_at for each in waiting)

    async def _wait_until_free(self, session: str, entry: RunningSession, *, late: bool) -> bool:
        """Wait while another owner runs the session; then return whether there is still something to do.

        That owner works on what was admitted, unless it dies or had stopped before. An owner that is `late`
        keeps its claims until it is buried, so the session is not busy: then a pause precedes each look.
        """
        watch = self._engine.store.watch()
        try:
            with anyio.CancelScope() as entry.waiting:
                if late:
                    await anyio.sleep(LATE_S)
                    await watch.wait()
                while (record := await self.patient.session(session)) is not None and record.busy:
                    if record.owner == self.lease.id:
                        await self._claims.give_back(session)
                    await watch.wait()
                if entry.force or entry.answered:
                    return True
                return bool(await self.patient.repeat(promotion.pending, self._engine, session))
        finally:
            entry.waiting = None
            watch.close()
        return False

    async def _keep_ended(self) -> None:
        """End the background processes of sessions that another owner has run since, or that are gone."""
        background = self._engine.background
        while True:
            await anyio.sleep(ENDED_S)
            for session in [each for each in background.sessions() if each not in self._entries]:
                with contextlib.suppress(StoreError):  # Unreachable: the lease decides.
                    record = await self._engine.store.session(session)
                    if record is None or background.was_taken(session, record.claim):
                        background.end_all(session)

    async def _drain(self, session: str, entry: RunningSession) -> bool:
        """Claim the session and drain it; False when another owner holds it."""
        engine = self._engine
        # Interrupts from before the claim were meant for the owner that ran the session then.
        late = {each.id for each in await interrupt_requests.waiting(self.patient, session)}
        fence = await self._claims.take(session)
        if isinstance(fence, Held):
            return False
        entry.claimed, entry.answered = True, False
        engine.background.note_claim(session, fence.number)
        owner = fence.owner
        store = PatientStore(self._engine.store, lambda: self.lease.left_s(owner))
        engine = _waiting_engine(engine, store)
        recorder = Recorder(engine.store, fence, engine.clock, engine.mint)
        run = Run(engine, recorder, *self._take_cached(session), watcher=self.watcher, admit=self._admit)
        entry.run, drained = run, None
        try:
            if late:
                await interrupt_requests.answer(engine.store, recorder, only=late)
            # Only now: the watcher would apply the late ones to this run.
            self.watcher.runs(fence, partial(entry.interrupt, run))
            if entry.stop:
                run.asked_at = entry.asked_at
                run.interrupt(keeps_inbox=self._closing)
            command = entry.command
            with engine.hold(session):
                drained = await (
                    drain(run, force=entry.take_force()) if command is None else run_command(run, command)
                )
        finally:
            self.watcher.stopped(session)
            entry.run, entry.begun = None, recorder.has_written
            self._claims.note_end(recorder.fence, drained)
        entry.how = drained.how
        if drained.error is not None:
            event.error("process", "drain.failed", session=session, error=event.where(drained.error))
            raise drained.error
        if drained.how == "abandoned":
            entry.error = LeaseLost(
                f"session {session}: this process lost its lease and stopped; `resume` goes on with the work"
            )
        if run.summarises:
            self._background.start(prompt_summary.write, self._patient_engine, session)
        if self._diffs_due.after(session, changed=run.changed_files, reverted_ms=run.reverted_ms):
            self._background.start(self._write_diffs, session)
        return True

    async def _write_diffs(self, session: str) -> None:
        if not await session_diffs.write(self._patient_engine, session):
            self._diffs_due.forget(session)

    def _take_cached(self, session: str) -> tuple[SessionHistory, LastRequest]:
        """A session's decoded history and last request, cached for its next drain; the oldest are dropped."""
        known = self._cached.pop(session, None) or (SessionHistory(self.patient, session), LastRequest())
        self._cached[session] = known
        while len(self._cached) > HISTORIES_MAX:
            del self._cached[next(iter(self._cached))]
        return known

    def _abandon_all(self) -> None:
        """The lease may be lost: abandon every run at once. The store refuses what is written after this."""
        for entry in self._entries.values():
            if entry.run is not None:  # Otherwise it is not claimed yet.
                entry.run.abandon()
        self._engine.background.end_all()

    async def close(self) -> None:
        """Interrupt the drains of this process, then release its claims. Other processes' runs are left
        alone.

        Takes at most `CLOSE_S`, whatever tools and stores do: other owners bury what is not released by then.
        """
        self._closing = True
        self.resumption.close()
        self._elsewhere.close()
        until = anyio.current_time() + CLOSE_S
        with anyio.CancelScope(deadline=until - RETIRE_S, shield=True):
            async with anyio.create_task_group() as ending:
                for session in self.active():
                    ending.start_soon(self._interrupt_here, session)
        try:
            with anyio.CancelScope(deadline=until, shield=True):
                await self.lease.retire()
        except StoreError as error:
            # A warning only: raised here, it would hide the error that the program ends with.
            self._engine.warn(f"this process could not give back what it had claimed: {error}")
        finally:
            await close_behind(self._engine, self._background, until)
