"""Everything that makes a session work: prompt, wait, interrupt, resume, compact, reply."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TypeVar, cast

from holdfast.errors import InvalidInput, LeaseLost, NotFound, Refused
from holdfast.feed.frame import Frame
from holdfast.runtime.calls import permission_reply, question_ask
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.history import work
from holdfast.runtime.inbox import admission
from holdfast.runtime.inbox.admission import Admitted, Prompt
from holdfast.runtime.inbox.choice import Wish
from holdfast.runtime.process.coordinator import Coordinator
from holdfast.runtime.undo.commit import RevertUnfinished
from holdfast.runtime.user_command import UserCommand
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.model import ModelRef
from holdfast.schema.prompt import AdmittedPrompt, PartInput, TextPartInput
from holdfast.schema.request import PermissionRequest, QuestionRequest, Reply
from holdfast.schema.stored import Mark
from holdfast.sessions import compact, context, read, state
from holdfast.sessions.access import StoreAccess
from holdfast.sessions.compact import Answer
from holdfast.sessions.context import ContextView
from holdfast.sessions.model_name import model_ref
from holdfast.sessions.options import PromptOptions
from holdfast.sessions.state import State
from holdfast.store.query import MessageQuery
from holdfast.toolkit.processes import ProcessInfo

TAKEN_UP_S = 30.0
"""How long a prompt may wait for a process at its placement while no process runs the session."""
LATE_S = 0.5
"""How long nothing may come after the end of a session before it is looked whether all of it has come."""
LATE_MAX_S = 30.0
"""How long the last events may take to arrive here after its end."""

T = TypeVar("T")

Shown = dict[tuple[str, str], int]
"""The numbers of the messages and parts that a follower was shown last, by kind and id."""


class Prompts:
    """The calls of `SessionService` that need the engine."""

    def __init__(self, access: StoreAccess, engine: Engine, coordinator: Coordinator) -> None:
        self._access = access
        self.engine = engine
        self._coordinator = coordinator

    def processes(self, session: str) -> list[ProcessInfo]:
        """The processes in the background of a session, in this process."""
        return [each.info for each in self.engine.background.of(session)]

    def end_processes(self, session: str) -> None:
        """End the processes in the background of a session, in this process."""
        self.engine.background.end_all(session)

    async def shell(
        self, session: str, command: str, *, agent: str | None, model: str | ModelRef | None
    ) -> MessageWithParts:
        """Run a command of the user's own, and wait for it."""
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            raise InvalidInput("the command is empty, or holds a NUL character")
        await self._check_here(session)
        revert = (await read.get(self._access, session)).revert
        if revert is not None and revert.writes is not None:
            from holdfast.sessions.undo import unrevert

            await unrevert.finish_cut_off(self._access, session)
        given = UserCommand(command=command, wish=Wish(agent=agent, model=model_ref(model)))
        await self._coordinator.run_command(session, given)
        assert given.message is not None, "it was recorded"
        return await read.message(self._access, session, given.message)

    async def _check_here(self, session: str) -> None:
        record = await self.engine.store.session(session)
        if record is None:
            raise NotFound(f"session {session[:60]} does not exist")
        place = admission.elsewhere(self.engine, record.value())
        if place is not None:
            raise Refused(f"session {session} runs at placement {place}, which this process does not offer")

    async def prompt(
        self, session: str, parts: str | Sequence[PartInput], options: PromptOptions, *, resume: bool = True
    ) -> Admitted:
        """Admit a prompt durably, then wake the session unless `resume` is False."""
        if not isinstance(parts, Sequence):
            raise InvalidInput("a prompt is a text or a list of parts")
        given = Prompt(
            parts=[TextPartInput(text=parts)] if isinstance(parts, str) else list(parts),
            id=options.id,
            delivery=options.delivery,
            agent=options.agent,
            model=model_ref(options.model),
            variant=options.variant,
            system=options.system,
            tools=options.tools,
            format=options.format,
            no_reply=options.no_reply,
        )
        admitted = await self._finished(
            session, lambda: admission.admit(self.engine, session, given, runs=resume)
        )
        # A prompt without reply is promoted at once, unless a process ran the session: that one may just have
        # stopped and missed it. A session of another placement is run by an owner there.
        here = admitted.prompt.placement is None
        if resume and here and (not options.no_reply or admitted.prompt.promoted is None):
            await self._coordinator.wake(session)
        return admitted

    async def _finished(self, session: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work; if a revert of the session was cut off, finish that first."""
        try:
            return await work()
        except RevertUnfinished:
            from holdfast.sessions.undo import unrevert

            await unrevert.finish_cut_off(self._access, session)
            return await work()

    async def process(
        self, session: str, parts: str | Sequence[PartInput], options: PromptOptions, *, check: bool
    ) -> MessageWithParts:
        """Prompt, and wait for the last answer. A prompt with `no_reply` is returned itself."""
        await self._check_place(session)
        admitted = await self.prompt(session, parts, options)
        if admitted.prompt.placement is not None:
            await self._wait_for_promotion(admitted.prompt)
        await self.wait(session)
        answer = await self._find_answer(session, admitted.prompt)
        if check:
            answer.raise_for_error()
        return answer

    async def _check_place(self, session: str) -> None:
        """Refuse to wait for a session of another placement, unless a process there runs it now."""
        record = await self.engine.store.session(session)
        place = None if record is None else admission.elsewhere(self.engine, record.value())
        if place is not None and record is not None and not record.busy:
            raise Refused(
                f"session {session} runs at placement {place}, which this process does not offer, and no "
                "process there runs it now; admit with `prompt`, and an owner there takes it up"
            )

    async def _wait_for_promotion(self, prompt: AdmittedPrompt) -> None:
        """Return when a process at its placement has promoted the prompt, or none is to: it is gone, or was
        left in the inbox by an interrupt.
        """
        watch = self.engine.store.watch()
        patient = self._coordinator.patient
        try:
            idle_s: float | None = None
            while await self._is_to_be_taken_up(prompt):
                record = await patient.session(prompt.session_id)
                now_s = asyncio.get_running_loop().time()
                idle_s = None if record is not None and record.busy else idle_s or now_s
                if idle_s is not None and now_s - idle_s > TAKEN_UP_S:
                    raise Refused(
                        f"prompt {prompt.id} waits for a process at placement {prompt.placement}; "
                        f"none has taken it up within {TAKEN_UP_S:.0f} s of its session's rest"
                    )
                await watch.wait()
        finally:
            watch.close()

    async def turn(
        self, session: str, parts: str | Sequence[PartInput], options: PromptOptions, *, check: bool
    ) -> AsyncGenerator[Frame, None]:
        """Prompt, and yield every event of the session until it is idle; then check its answer.

        To leave early, close the generator (`aclosing`); the session keeps working.
        """
        await self._check_place(session)
        cursor = await self.engine.store.head()
        admitted = await self.prompt(session, parts, options)
        following = cast(
            "AsyncGenerator[list[Frame], None]", self.engine.feed.follow(cursor, session=session)
        )
        async with (
            aclosing(following) as batches,
            aclosing(self._until_idle(session, batches, admitted.prompt)) as frames,
        ):
            async for frame in frames:
                yield frame
        if check:
            with suppress(NotFound):  # The prompt waits in the inbox.
                (await self._find_answer(session, admitted.prompt)).raise_for_error()

    async def _until_idle(
        self, session: str, batches: AsyncGenerator[list[Frame], None], prompt: AdmittedPrompt
    ) -> AsyncGenerator[Frame, None]:
        """The frames until the session is idle. A session of another process publishes no idle event here."""
        resting = asyncio.ensure_future(self.wait(session))
        coming = asyncio.ensure_future(anext(batches))
        shown: Shown = {}
        late = 0
        try:
            while True:
                late_s = LATE_S if resting.done() else None
                await asyncio.wait({coming, resting}, timeout=late_s, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    if late_s is not None:
                        resting.result()  # Raises what kept the session from running, or cut it off.
                        late += 1
                        if await self._was_shown(session, prompt, shown) or late * LATE_S > LATE_MAX_S:
                            return
                    continue
                for frame in coming.result():
                    if frame.origin is not None:
                        shown[frame.origin.kind, frame.origin.id] = frame.origin.seq
                    yield frame
                    # Frames of earlier work may still arrive.
                    if frame.type == "session.idle" and await self._is_promoted(session, prompt.id):
                        return
                coming = asyncio.ensure_future(anext(batches))
        except StopAsyncIteration:
            return
        finally:
            for task in (coming, resting):
                task.cancel()
            await asyncio.gather(coming, resting, return_exceptions=True)

    async def _was_shown(self, session: str, prompt: AdmittedPrompt, shown: Shown) -> bool:
        """Whether a follower has the answer to a prompt as it is stored; also if the prompt waits for one."""
        try:
            answer = await self._find_answer(session, prompt)
            patient = self._coordinator.patient
            stored = await patient.repeat(read.stored_message, self._access, session, answer.id)
        except NotFound:  # It waits in the inbox, or is gone.
            return True
        return all(shown.get((each.kind, each.id), 0) >= each.seq for each in (stored.info, *stored.parts))

    async def _is_promoted(self, session: str, prompt: str) -> bool:
        """Whether a prompt was promoted, or is gone and cannot be."""
        record = await self._coordinator.patient.get(session, "prompt", prompt)
        return record is None or record.value().promoted is not None

    async def _is_to_be_taken_up(self, prompt: AdmittedPrompt) -> bool:
        record = await self._coordinator.patient.get(prompt.session_id, "prompt", prompt.id)
        waiting = None if record is None else record.value()
        return waiting is not None and waiting.promoted is None and waiting.placement is not None

    async def state(self, session: str, *, limit: int) -> State:
        """See `state.read_state`."""
        return await state.read_state(self._access, self.engine, session, limit=limit)

    async def _find_answer(self, session: str, prompt: AdmittedPrompt) -> MessageWithParts:
        """The last answer to a prompt; the prompt itself if it has `no_reply`."""
        since: list[MessageWithParts] = []
        cursor: str | None = None
        while True:
            # Mostly it is among the last few.
            query = MessageQuery(session, limit=20 if cursor else 4, system=False, before=cursor)
            page = await self._coordinator.patient.repeat(read.messages, self._access, query)
            for message in reversed(page.messages):
                since.append(message)
                if message.info.id == prompt.id:
                    return message if prompt.no_reply else _finished(since[::-1], prompt)
            if (cursor := page.older) is None:
                raise NotFound(f"prompt {prompt.id} is no longer in session {session}")

    async def wait(self, session: str) -> None:
        """Return when no process runs the session any more.

        `LeaseLost` if this process had to stop in the middle and no other has finished the work.
        """
        lost: LeaseLost | None = None
        while True:
            try:
                await self._coordinator.wait(session)
                break
            except LeaseLost as error:
                lost = error  # It may have been woken again, here or by another process.
        watch = self.engine.store.watch()
        try:
            while (record := await self._coordinator.patient.session(session)) is not None and record.busy:
                await watch.wait()
        finally:
            watch.close()
        if lost is None:
            return
        if work.is_unfinished(await self._coordinator.patient.repeat(read.latest, self._access, session)):
            raise lost

    async def titled(self, session: str) -> None:
        """Return when this process no longer tries to give the session a title."""
        await self._coordinator.titles.wait(session)

    async def interrupt(self, session: str) -> bool:
        """Stop the session, and return when everything is settled: whether there was anything to stop."""
        await read.get(self._access, session)
        return await self._coordinator.interrupt(session)

    async def resume(self, session: str) -> None:
        """Continue an unfinished session, also after a call with an unknown outcome."""
        if (await read.get(self._access, session)).revert is not None:
            raise Refused(
                f"session {session} has a staged revert; prompt it to go on from there, or unrevert it"
            )
        await self._coordinator.wake(session, force=True)

    async def compact(self, session: str, *, force: bool) -> Answer:
        """Admit a compaction and wake the session for it."""
        answer = await self._finished(
            session, lambda: compact.request_compaction(self.engine, session, force=force)
        )
        if answer == "admitted":
            await self._coordinator.wake(session)
        return answer

    async def context(self, session: str) -> ContextView:
        """What the model is sent, block by block."""
        return await context.context(self.engine, session)

    async def requests(self, session: str) -> list[PermissionRequest | QuestionRequest]:
        """The session's open permission requests and questions."""
        records = await self.engine.store.select("request", session=session, mark=Mark.OPEN)
        values = [record.value() for record in records]
        return [value for value in values if isinstance(value, PermissionRequest | QuestionRequest)]

    async def reply(
        self, session: str, request: str, reply: Reply, *, message: str | None = None
    ) -> PermissionRequest:
        """Answer a permission request, and wake the session in case it is parked."""
        answered = await permission_reply.reply(self.engine, session, request, reply, message)
        await self._coordinator.wake(session, answered=True)
        return answered

    async def answer(
        self, session: str, request: str, answers: Sequence[Sequence[str]] | None
    ) -> QuestionRequest:
        """Answer questions of the model, and wake the session in case it is parked."""
        answered = await question_ask.answer(self.engine, session, request, answers)
        await self._coordinator.wake(session, answered=True)
        return answered


def _finished(since: Sequence[MessageWithParts], prompt: AdmittedPrompt) -> MessageWithParts:
    """The finished answer to the prompt that `since` begins with; raises if there is none."""
    found = work.answer(since)
    if found is None:
        raise NotFound(
            f"prompt {prompt.id} of session {prompt.session_id} has no answer yet; `resume` goes on with the "
            "session, and `holdfast doctor` looks for damage"
        )
    newest = next((each for each in reversed(since) if isinstance(each.info, AssistantMessage)), None)
    if newest is found and work.is_unfinished([found]):
        raise LeaseLost(
            f"session {prompt.session_id}: the process that worked on prompt {prompt.id} is gone, and its "
            "answer is unfinished; `resume` goes on with it"
        )
    return found
