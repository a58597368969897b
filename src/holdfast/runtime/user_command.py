"""Runs a command of the user's own in a session: recorded as the model will see it, and no turn follows.

A user message says that the user ran it, an assistant message holds it as a call of `bash`. What must stay
true: no rule is asked, since it is the user's own command; it can be interrupted like any work, and what it
printed until then is kept; a process that dies meanwhile leaves a call whose outcome is unknown.
"""

import contextlib
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from holdfast.errors import LeaseLost, StoreError
from holdfast.person import directories
from holdfast.runtime import recovery
from holdfast.runtime.answer import assistant_message
from holdfast.runtime.calls.process_groups import Groups
from holdfast.runtime.calls.tool_calls import settled
from holdfast.runtime.drain import Drained
from holdfast.runtime.engine import interrupt_requests, status_events
from holdfast.runtime.engine.recorder import Ids
from holdfast.runtime.engine.run import Run
from holdfast.runtime.history import work
from holdfast.runtime.inbox import choice
from holdfast.runtime.inbox.choice import Wish
from holdfast.runtime.undo.commit import committed
from holdfast.schema.ids import MessageID, SessionID
from holdfast.schema.message import AssistantMessage, AssistantPath, MessageWithParts, UserMessage
from holdfast.schema.model import ModelRef
from holdfast.schema.part import TextPart, ToolPart
from holdfast.schema.session import Session
from holdfast.schema.times import Created
from holdfast.schema.tool_state import Started, ToolRunning
from holdfast.schema.wire import JsonMap
from holdfast.store.batch import Change, Unchanged
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put
from holdfast.toolkit.cancellation import is_cancelled
from holdfast.toolkit.output import ToolFailure
from holdfast.tools import standard
from holdfast.tools.execute import Settlement
from holdfast.tools.shell import own_shell
from holdfast.tools.shell.output import Output
from holdfast.tools.shell.run import Ended
from holdfast.tools.shell.run import run as run_shell
from holdfast.workspace.command_environment import command_environment
from holdfast.workspace.workspace import Workspace

EXECUTED = "The following tool was executed by the user"
LONGEST_MS = 24 * 60 * 60 * 1_000
SAVE_S = 1.0
INTERRUPTED = "(The user ended the command.)"


class UserCommand(msgspec.Struct, kw_only=True):
    """A command, and the id of the message that holds it once it is recorded."""

    command: str
    wish: Wish = Wish()
    message: MessageID | None = None


async def run_command(run: Run, given: UserCommand) -> Drained:
    """Run it under the claim, and release the claim."""
    status_events.busy(run.engine.feed, run.recorder.session)
    error: BaseException | None = None
    try:
        await _recorded(run, given)
    except LeaseLost:
        return Drained("abandoned", released=False)
    except BaseException as raised:
        if is_cancelled(raised):
            raise
        error = raised
    if run.abandoned:
        return Drained("abandoned", released=False)
    released = False
    with anyio.CancelScope(shield=True), contextlib.suppress(StoreError):
        await interrupt_requests.answer(run.engine.store, run.recorder)
        await run.recorder.flush()
        await run.engine.store.release(run.recorder.fence)
        released = True
    await status_events.idle(run.engine.feed, run.recorder.session)
    if error is not None:
        return Drained("failed", released, error)
    return Drained("interrupted" if run.interrupted else "done", released)


async def _recorded(run: Run, given: UserCommand) -> None:
    history = await run.history.read()
    if run.history.is_open:
        await recovery.settle_left(run, history)
    # Another process may change the session while a staged revert is committed with the command.
    workspace, answer, call = await on_conflict(lambda: _begin(run, given))
    given.message = answer.id
    shown = _Shown(run, call)
    settlement = await _run(run, workspace, given.command, shown)
    with anyio.CancelScope(shield=True):
        end_ms = run.engine.clock.now_ms()
        done = settled(shown.part, settlement, now_ms=end_ms, mint=run.engine.mint)
        ended = replace(answer, time=replace(answer.time, completed=end_ms), finish=work.COMMAND)
        if not run.abandoned:
            await run.recorder.commit(put(done), put(ended))


async def _begin(run: Run, given: UserCommand) -> tuple[Workspace, AssistantMessage, ToolPart]:
    """Record that the command runs."""
    record = await run.engine.store.session(run.recorder.session)
    assert record is not None, "a claimed session cannot be removed"
    revert = await committed(run.engine.store, record, run.engine.clock.now_ms())
    session = revert.session
    workspace = await run.engine.workspace(session)
    workspace.check_here(session.id)
    agent, model = _named(given.wish, session, workspace, work.newest_user(await run.history.read()))
    now_ms = run.engine.clock.now_ms()
    made: list[tuple[AssistantMessage, ToolPart]] = []
    is_staged = record.value().revert is not None
    reverting = [*revert.changes, put(session)] if is_staged else []
    expect = [Unchanged(session.id, "session", session.id, record.seq)] if is_staged else []

    def compose(ids: Ids) -> list[Change]:
        user = UserMessage(
            id=ids.message(),
            session_id=SessionID(session.id),
            time=Created(created=now_ms),
            agent=agent,
            model=model,
            no_reply=True,
        )
        said = TextPart(
            id=ids.part(), session_id=user.session_id, message_id=user.id, text=EXECUTED, synthetic=True
        )
        answer = replace(
            assistant_message.unanswered(user, ids.message(), now_ms),
            path=AssistantPath(cwd=session.directory, root=str(workspace.places.worktree)),
        )
        id = ids.part()
        call = ToolPart(
            id=id,
            session_id=user.session_id,
            message_id=answer.id,
            tool="bash",
            call_id=f"user_{id}",
            state=ToolRunning(input={"command": given.command}, title="", time=Started(start=now_ms)),
        )
        made[:] = [(answer, call)]
        return [*reverting, put(user), put(said), put(answer), put(call)]

    await run.recorder.write(compose, expect=expect)
    return workspace, *made[0]


def _named(
    wish: Wish, session: Session, workspace: Workspace, last: MessageWithParts | None
) -> tuple[str, ModelRef]:
    """The agent and model that the record names: those of the last prompt, which need not exist any more."""
    if wish == Wish() and last is not None and isinstance(last.info, UserMessage):
        return last.info.agent, last.info.model
    chosen = choice.choose(wish, session, workspace)
    return chosen.agent.name, chosen.model


class _Shown:
    """The call as it is shown while it runs; stored at most once a second."""

    def __init__(self, run: Run, part: ToolPart) -> None:
        self._run = run
        self.part = part
        self._saved_s = anyio.current_time()

    async def note(self, noted: JsonMap) -> None:
        """Store metadata of the call at once."""
        self._take(noted)
        await self._run.recorder.commit(put(self.part))

    async def show(self, output: str) -> None:
        """Show what it has printed."""
        self._take({"output": output})
        engine = self._run.engine
        status_events.part(engine.feed, self.part, engine.clock.now_ms())
        if anyio.current_time() - self._saved_s >= SAVE_S:
            self._saved_s = anyio.current_time()
            await self._run.recorder.commit(put(self.part))

    def _take(self, noted: JsonMap) -> None:
        state = self.part.state
        assert isinstance(state, ToolRunning)
        self.part = replace(self.part, state=replace(state, metadata={**(state.metadata or {}), **noted}))


async def _run(run: Run, workspace: Workspace, command: str, shown: _Shown) -> Settlement:
    engine, cwd = run.engine, Path(workspace.places.directory)
    groups = Groups(engine.guard, engine.ending, engine.host, shown.note)
    output = Output(standard.managed_output(engine.clock, trouble=engine.warn))
    argv = own_shell.argv(command, cwd, directories.home(), wanted=workspace.loaded.config.shell)
    env = await command_environment(
        workspace, engine.plugins(workspace), cwd, session=shown.part.session_id, call=shown.part.call_id
    )

    async def show() -> None:
        await shown.show(output.shown())

    ended = Ended(exit=None)
    failure = ""
    try:
        with run.scope:
            spawned = groups.spawn(argv, cwd=cwd, env=env, strays=True)
            ended = await run_shell(spawned, output, show, timeout_ms=LONGEST_MS)
    except ToolFailure as error:
        failure = str(error)
    with anyio.CancelScope(shield=True):
        await output.finish()
    note = failure or (INTERRUPTED if run.interrupted else "")
    if ended.exit:
        note = f"(Exit code {ended.exit}.)"
    text = output.text(note)
    metadata: JsonMap = {
        "output": text,
        "exit": ended.exit,
        "truncated": output.path is not None or output.lossy,
    }
    if output.path is not None:
        metadata["outputPath"] = output.path
    return Settlement(output=text, title="", metadata=metadata)
