"""Which sessions this process runs: one drain a session, many sessions side by side.

A wake is a hint and may be lost: the inbox is the truth, and whoever opens the application later finds it.
What must stay true: a session that is woken while it drains is looked at again before it rests; a drain that
fails leaves no entry behind; an interrupt returns when everything is settled.
"""

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec.structs import replace

from holdfast.errors import HoldfastError, InvariantBroken, LeaseLost, Refused, StoreError
from holdfast.runtime.drain import drain
from holdfast.runtime.engine import interrupt_requests
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.patience import PatientStore
from holdfast.runtime.engine.recorder import Recorder
from holdfast.runtime.engine.request_watcher import RequestWatcher
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history.last_request import LastRequest
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.runtime.inbox import promotion
from holdfast.runtime.process.background import Background
from holdfast.runtime.process.child_prompts import ChildPrompts
from holdfast.runtime.process.lease import ProcessLease
from holdfast.runtime.process.resumption import Resumption
from holdfast.runtime.side_calls import prompt_summary
from holdfast.runtime.side_calls.session_title import Titles
from holdfast.schema.stored import Kind, Mark
from holdfast.store.batch import Fence, Held
from holdfast.tool.cancellation import ends_the_program
from holdfast.tools.plain import described

HISTORIES_MAX = 16
GIVE_BACK_S = 5.0
LATE_S = 0.5
"""How long the least pause is between two claims of a session whose owner is late."""
LOOK_S = 0.5
"""How long the least pause is between two looks for prompts that were admitted elsewhere."""
CLOSE_S = 4.5
RETIRE_S = 1.0
"""How much of the time to close is kept for giving everything back."""


class RunningSession:
    """A session that this process works on."""

    def __init__(self, *, force: bool) -> None:
        self.run: Run | None = None
        self.done = anyio.Event()
        self.again = False
        self.force = force
        self.stop = False
        self.waiting: anyio.CancelScope | None = None
        """Around the wait for another process that runs the session; each wait has one of its own."""
        self.error: HoldfastError | None = None

    def end(self) -> None:
        """No more after what runs now. Who wakes the session from here on wants another beginning."""
        self.again, self.force, self.stop = False, False, True
        if self.waiting is not None:
            self.waiting.cancel()


def _stop(entry: RunningSession, run: Run) -> None:
    """Somebody in another process wants the session to stop. He may be heard more than once."""
    if not run.interrupted:
        entry.end()
        run.interrupt()


class Coordinator:
    """The drains of one process."""

    def __init__(self, engine: Engine, *beside: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`beside`: what else runs for as long as this process works on sessions."""
        self._engine = engine
        self._entries: dict[str, RunningSession] = {}
        self._known: dict[str, tuple[SessionHistory, LastRequest]] = {}
        self._kept: dict[str, Fence] = {}
        """Claims that are not known to be released: the store may have been away when a drain ended."""
        self._closing = False
        self._admit = ChildPrompts(engine, self.wake)
        self.patient = PatientStore(engine.store, lambda: None)
        """The store, waited for when it is away."""
        self.watcher = RequestWatcher(self.patient, engine.clock)
        self.ownership = ProcessLease(engine, self._lost, (engine.host.id,), engine.guard)
        self.resumption = Resumption(engine, self.ownership.owner, self.wake)
        self._background = Background(
            self.watcher.run,
            self.ownership.keep,
            *beside,
            self._keep_given_back,
            self.resumption.keep,
            self._keep_taking_up,
            warn=engine.warn,
        )
        self.titles = Titles(engine, self._background.start)

    def active(self) -> list[str]:
        """The sessions that this process runs."""
        return list(self._entries)

    async def wake(self, session: str, *, force: bool = False) -> None:
        """See to a session soon. Woken again while it runs, it is looked at again before it rests."""
        entry = self._entries.get(session)
        if entry is not None:
            entry.again = True
            entry.force = entry.force or force
            return
        if await self._begin(session, RunningSession(force=force)) is not None:
            self.titles.look(session)

    async def _begin(self, session: str, entry: RunningSession) -> TaskGroup | None:
        """Work on a session in the background; None when it was begun meanwhile."""
        group = await self._background.group()
        if (known := self._entries.get(session)) is not None:
            known.again, known.force = True, known.force or entry.force
            return None
        self._entries[session] = entry
        group.start_soon(self._work, session, entry, group)
        return group

    async def wait(self, session: str) -> None:
        """Return when this process no longer runs the session; what went wrong in claiming it is raised."""
        while (entry := self._entries.get(session)) is not None:
            await entry.done.wait()
            if entry.error is not None:
                raise entry.error

    async def interrupt(self, session: str, *, reason: str | None = None) -> bool:
        """Stop what the session does, here or in another process, and wait until it is settled.

        Answers whether there was anything to stop.
        """
        stopped = await self._interrupt_here(session)
        record = await self._engine.store.session(session)
        if record is not None and record.owner is not None:
            await interrupt_requests.stop_elsewhere(self._engine, record, reason)
        elif record is not None and await self._is_unfinished(session):
            await self._end_left(session)
        else:
            return stopped
        return True

    async def _interrupt_here(self, session: str) -> bool:
        entry = self._entries.get(session)
        if entry is None:
            return False
        entry.end()
        if entry.run is not None:
            entry.run.interrupt()
        await entry.done.wait()
        return True

    async def _is_unfinished(self, session: str) -> bool:
        """Whether anything is left open: a call that waits for a person, or what a dead runner had begun."""
        kinds: tuple[Kind, ...] = ("request", "message", "part")
        return any([await self._engine.store.select(kind, session=session, mark=Mark.OPEN) for kind in kinds])

    async def _end_left(self, session: str) -> None:
        """Settle what is open in a session that nobody runs."""
        entry = RunningSession(force=False)
        entry.end()
        if await self._begin(session, entry) is not None:
            await entry.done.wait()

    async def _work(self, session: str, entry: RunningSession, group: TaskGroup) -> None:
        refused = 0
        try:
            while True:
                if not entry.stop:  # Else it was woken after the interrupt, which is kept.
                    entry.again = False
                entry.error = None
                had = await self._drain(session, entry)
                if entry.stop:
                    return
                refused = 0 if had else refused + 1
                if refused and not await self._free_again(session, entry, late=refused > 1):
                    return
                # The session was given back with an empty inbox; who admitted something since has woken it.
                if had and not entry.again:
                    return
                entry.force = entry.force and not had
        except HoldfastError as error:
            entry.error = error
        except BaseException as error:  # A bug in one session must not end the others.
            if ends_the_program(error):
                entry.error = Refused(f"session {session}: its work was cut off with the whole runtime")
                raise
            entry.error = InvariantBroken(f"session {session}: {described(error)}")
        finally:
            self._entries.pop(session, None)
            entry.done.set()
            if entry.stop and entry.again and not self._closing:
                # It was woken while it stopped: what was said after the interrupt is not lost with it.
                after = self._entries[session] = RunningSession(force=entry.force)
                group.start_soon(self._work, session, after, group)

    async def _free_again(self, session: str, entry: RunningSession, *, late: bool) -> bool:
        """Wait while somebody else runs the session; whether there is something left to do when he is gone.

        He sees to what was admitted, unless he dies, or had stopped when it came. One who is `late` is not
        busy, but keeps his claims until he is buried: then each look comes a while after the one before.
        """
        watch = self._engine.store.watch()
        try:
            with anyio.CancelScope() as entry.waiting:
                if late:
                    await anyio.sleep(LATE_S)
                    await watch.wait()
                while (record := await self.patient.session(session)) is not None and record.busy:
                    if record.owner == self.ownership.id:
                        await self._give_back(session)
                    await watch.wait()
                waiting = await self.patient.repeat(promotion.pending, self._engine, session)
                return entry.force or bool(waiting)
        finally:
            entry.waiting = None
            watch.close()
        return False

    async def _keep_given_back(self) -> None:
        """Give back claims that could not be when their drains ended, as soon as the store takes it."""
        while True:
            await anyio.sleep(GIVE_BACK_S)
            for session in [each for each in self._kept if each not in self._entries]:
                with contextlib.suppress(StoreError):  # Still away: the next look may succeed.
                    await self._give_back(session)

    async def _give_back(self, session: str) -> None:
        """Release a claim of ours that could not be released when its drain ended."""
        if (fence := self._kept.get(session)) is not None:
            with contextlib.suppress(LeaseLost):  # Somebody else has it: it is given back.
                await self.patient.release(fence)
            self._kept.pop(session, None)

    async def _keep_taking_up(self) -> None:
        """As an owner, run what processes elsewhere have admitted for this place."""
        watch = self._engine.store.watch()
        try:
            while True:
                if self.ownership.id is not None:
                    for session in await promotion.admitted_for(self.patient, self._engine.host.id):
                        if session not in self._entries and not self._closing:
                            await self.wake(session)
                await anyio.sleep(LOOK_S)
                await watch.wait()
        finally:
            watch.close()

    async def _claim(self, session: str) -> Fence | Held:
        """Claim a session. An owner that was buried without noticing registers anew, once."""
        owner = await self.patient.repeat(self.ownership.owner)
        try:
            claimed = await self.patient.claim(session, owner)
        except LeaseLost:
            self.ownership.forget(owner)
            owner = await self.patient.repeat(self.ownership.owner)
            claimed = await self.patient.claim(session, owner)
        if isinstance(claimed, Held) and claimed.owner == owner:
            # Granted before, and the answer was lost: nobody else in this process runs the session.
            record = await self.patient.session(session)
            if record is not None and record.owner == owner:
                return await self.patient.renumber(Fence(session, owner, record.claim))
        return claimed

    async def _drain(self, session: str, entry: RunningSession) -> bool:
        """Claim the session and drain it; False when another owner holds it."""
        engine = self._engine
        # Interrupts from before the claim were meant for whoever ran the session then.
        late = {each.id for each in await interrupt_requests.waiting(self.patient, session)}
        await self._give_back(session)
        fence = await self._claim(session)
        if isinstance(fence, Held):
            return False
        self._kept[session] = fence
        owner = fence.owner
        store = PatientStore(self._engine.store, lambda: self.ownership.left_s(owner))
        # What stands around the session is read from the store too: which folders the user trusts.
        workspace = engine.workspace
        engine = replace(engine, store=store, workspace=lambda session: store.repeat(workspace, session))
        recorder = Recorder(engine.store, fence, engine.clock, engine.mint)
        run = Run(engine, recorder, *self._remembered(session), watcher=self.watcher, admit=self._admit)
        entry.run, drained = run, None
        try:
            if late:
                await interrupt_requests.answer(engine.store, recorder, only=late)
            # Not before that: the watcher would take the late ones for orders to this run.
            self.watcher.runs(fence, lambda: _stop(entry, run))
            if entry.stop:
                run.interrupt()
            drained = await drain(run, force=entry.force)
        finally:
            self.watcher.stopped(session)
            entry.run = None
            self._kept[session] = recorder.fence
            if drained is not None and (drained.released or drained.how == "abandoned"):
                self._kept.pop(session, None)
        if drained.error is not None:
            raise drained.error
        if drained.how == "abandoned":
            entry.error = LeaseLost(
                f"session {session}: this process lost its lease and stopped; `resume` goes on with the work"
            )
        if run.summarises:
            self._background.start(prompt_summary.write, self._engine, session)
        return True

    def _remembered(self, session: str) -> tuple[SessionHistory, LastRequest]:
        """What was decoded and sent of a session before is not made again; the least used is forgotten."""
        known = self._known.pop(session, None) or (SessionHistory(self.patient, session), LastRequest())
        self._known[session] = known
        while len(self._known) > HISTORIES_MAX:
            del self._known[next(iter(self._known))]
        return known

    def _lost(self) -> None:
        """The lease is no longer sure: stop everything at once. What is written after this is refused."""
        for session, entry in self._entries.items():
            if entry.run is None:
                continue  # It has claimed nothing yet.
            if not entry.run.interrupted:
                self.resumption.note(session)
            entry.end()
            entry.run.abandon()

    async def close(self) -> None:
        """Interrupt the drains of this process, then give everything back. Others' work is left alone.

        Within `CLOSE_S`, whatever tools and stores do: what is not given back by then is buried by others.
        """
        self._closing = True
        self.resumption.close()
        until = anyio.current_time() + CLOSE_S
        with anyio.CancelScope(deadline=until - RETIRE_S, shield=True):
            async with anyio.create_task_group() as ending:
                for session in self.active():
                    ending.start_soon(self._interrupt_here, session)
        try:
            with anyio.CancelScope(deadline=until, shield=True):
                await self.ownership.retire()
        except StoreError as error:
            # It must not take the place of the error with which a program leaves. Others bury this owner.
            self._engine.warn(f"this process could not give back what it had claimed: {error}")
        finally:
            await self._let_go(until)

    async def _let_go(self, until: float) -> None:
        """End what runs beside the drains, the guard last: it ends the programs that are left."""
        with anyio.CancelScope(deadline=until, shield=True):
            await self._background.close()
        with anyio.CancelScope(shield=True):
            wait_s = max(0.0, until - anyio.current_time())
            await anyio.to_thread.run_sync(lambda: self._engine.guard.close(wait_s=wait_s))
