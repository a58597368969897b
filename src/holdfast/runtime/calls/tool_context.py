"""The `ToolContext` of one running call."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.runtime.calls.confinement import Confinement
from holdfast.runtime.calls.kept_files import KeptFiles
from holdfast.runtime.calls.permission_ask import PermissionAsk
from holdfast.runtime.calls.process_groups import Groups
from holdfast.runtime.calls.session_processes import SessionProcesses
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.call_box import CallBox
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.run import Run
from holdfast.schema.part import ToolPart
from holdfast.schema.permission import Action
from holdfast.schema.request import Question, ToolRef
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.schema.tool_state import ToolRunning
from holdfast.schema.wire import JsonMap
from holdfast.store.put import put, put_list
from holdfast.toolkit.box import Box
from holdfast.toolkit.context import OwnKind
from holdfast.toolkit.file_edit import FileEdit
from holdfast.toolkit.output import ToolFailure
from holdfast.tools.plain import plain
from holdfast.workspace import command_environment

if TYPE_CHECKING:
    from anyio.abc import Process

SAVE_S: Final = 1.0
_OWN: Final[dict[OwnKind, Any]] = {"todo": list[Todo], "diff": list[FileDiff]}
OVER: Final = "The call is over; nothing more can be done for it."


class RunningCall:
    """Fills `toolkit.context.ToolContext`."""

    def __init__(
        self,
        run: Run,
        turn: PreparedTurn,
        ask: PermissionAsk,
        part: ToolPart,
        asked: Callable[[float], Awaitable[None]],
    ) -> None:
        self.part = part
        self.agent = turn.agent.name
        self.directory = Path(turn.session.directory)
        self.worktree = turn.workspace.places.worktree
        self.cancelled = False
        self.returned = False
        """The tool has ended by itself: what is left is to bound its output and to settle the call."""
        self.effects: list[str] = []
        """What it has changed, or may have: from the first on it cannot be called undone."""
        self.in_effect = False
        """It is changing something now."""
        self.over = False
        """Settled: nothing that the tool still does is recorded."""
        self._ask = ask
        self._asked = asked
        """Is called when a question to the user has taken so many seconds."""
        self._confinement = Confinement(run, turn, ask)
        self._recorder = run.recorder
        self._feed = run.engine.feed
        self._admit = run.admit
        self._files = run.history.files
        self._saved_s = -SAVE_S
        self.files = KeptFiles(
            run.engine.shadow(turn.session, turn.workspace), turn.session.id, self._note, run.engine.warn
        )
        self._saving: asyncio.TimerHandle | None = None
        self._groups = Groups(run.engine.guard, run.engine.ending, run.engine.host, self._note)
        self.processes = SessionProcesses(
            run.engine, part, self._note, only_reads=self._confinement.only_reads
        )
        self._workspace = turn.workspace
        self._plugins = run.engine.plugins

    def return_(self) -> None:
        """Note that the tool has ended by itself."""
        self.returned = True

    @property
    def session_id(self) -> str:
        return self.part.session_id

    @property
    def message_id(self) -> str:
        return self.part.message_id

    @property
    def call_id(self) -> str:
        return self.part.call_id

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: JsonMap | None = None,
        aliases: Sequence[str] = (),
        unclear: Sequence[str] = (),
    ) -> None:
        """Return when every pattern is allowed; `ToolDenied` otherwise."""
        self._refuse_when_over()
        began_s = time.monotonic()
        await self._ask.ask(
            permission,
            patterns,
            always=always,
            metadata=metadata or {},
            tool=self._ref(),
            aliases=aliases,
            unclear=unclear,
        )
        await self._asked(time.monotonic() - began_s)
        self._refuse_when_over()

    async def verdict(self, permission: str, patterns: Sequence[str]) -> Action:
        """What the rules and stored approvals say."""
        return await self._ask.verdict(permission, patterns)

    async def question(self, questions: Sequence[Question]) -> list[list[str]]:
        """Put questions to the user and wait for the answers."""
        self._refuse_when_over()
        answers = await self._ask.questions.ask(questions, self._ref())
        self._refuse_when_over()
        return answers

    def _ref(self) -> ToolRef:
        return ToolRef(message_id=self.part.message_id, call_id=self.part.call_id)

    def _refuse_when_over(self) -> None:
        """`ToolFailure` if the call is over: a tool that ignored its cancellation does nothing more."""
        if self.over:
            raise ToolFailure(OVER)

    async def progress(self, *, title: str | None = None, metadata: JsonMap | None = None) -> None:
        """Publish the call's progress at once; store it at most once a second."""
        if not self._shown(title, metadata or {}):
            return
        status_events.part(self._feed, self.part, self._recorder.clock.now_ms())
        left_s = self._saved_s + SAVE_S - time.monotonic()
        if left_s <= 0:
            await self._save()
        elif self._saving is None:
            loop = asyncio.get_running_loop()
            self._saving = loop.call_later(left_s, lambda: loop.create_task(self._save_late()))

    async def _note(self, noted: JsonMap) -> None:
        """Store metadata of the call at once: recovery needs it."""
        if self._shown(None, noted):
            await self._save()

    def _shown(self, title: str | None, metadata: JsonMap) -> bool:
        state = self.part.state
        if not isinstance(state, ToolRunning) or self.over:
            return False
        news = plain(ToolRunning, ToolRunning(input={}, title=title, metadata=metadata, time=state.time))
        shown = replace(
            state,
            title=news.title if news.title is not None else state.title,
            metadata={**(state.metadata or {}), **(news.metadata or {})} or None,
        )
        self.part = replace(self.part, state=shown)
        return True

    async def _save(self) -> None:
        self._saved_s = time.monotonic()
        await self._recorder.commit(put(self.part))

    async def _save_late(self) -> None:
        self._saving = None
        if not self.over:  # Its settlement stores everything that was shown.
            with contextlib.suppress(HoldfastError):  # The settlement of the call meets the same error.
                await self._save()

    async def commit(self, kind: OwnKind, value: Sequence[Todo] | Sequence[FileDiff]) -> None:
        """Replace the session's list of this `kind`."""
        self._refuse_when_over()
        if kind not in _OWN:
            raise InvalidInput(f"a tool may write {' and '.join(_OWN)} of its session, not {str(kind)[:60]}")
        items = plain(_OWN[kind], list(value))
        await self._recorder.commit(put_list(self.part.session_id, kind, items))

    def publish(self, name: str, properties: JsonMap) -> None:
        """Publish an event to the session's clients, live only."""
        self._refuse_when_over()
        status_events.own(self._feed, self.part, name, plain(JsonMap, properties))

    async def admit(self, session: str, text: str, *, id: str | None = None, agent: str | None = None) -> str:
        """Admit a prompt to a child of this session."""
        self._refuse_when_over()
        return await self._admit(self.part.session_id, session, text, id=id, agent=agent)

    async def seen(self, path: Path) -> str | None:
        """The digest of what the session last read or wrote at a path."""
        return await self._files.digest(str(path))

    def edited(self, path: Path, digest: str | None) -> None:
        """Note what a file holds now, and publish that it was edited."""
        self._files.note(str(path), digest)
        status_events.file_edited(self._feed, str(path))

    async def keep(self, *edits: FileEdit) -> None:
        """Keep what files hold before they are changed."""
        self._refuse_when_over()
        await self.files.keep(edits)

    @contextlib.contextmanager
    def effect(self, *what: str, waits: bool = True) -> Iterator[None]:
        """Note what the call changes, until the block ends."""
        self._refuse_when_over()
        self.effects += what
        self.in_effect = waits
        try:
            yield
        finally:
            self.in_effect = False

    async def box(
        self,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: JsonMap | None = None,
        unconfined: str | None = None,
        asks: bool = True,
    ) -> CallBox:
        """The box for one command."""
        self._refuse_when_over()
        began_s = time.monotonic()
        box = await self._confinement.box(
            patterns,
            always=always,
            metadata=metadata or {},
            unconfined=unconfined,
            asks=asks,
            tool=self._ref(),
        )
        await self._asked(time.monotonic() - began_s)
        self._refuse_when_over()
        return box

    async def sealed(self) -> bool:
        """Whether a command would run in a whole box without a network."""
        return await self._confinement.sealed()

    async def environment(self, cwd: Path) -> dict[str, str]:
        """The environment of a command."""
        plugins = self._plugins(self._workspace)
        return await command_environment.command_environment(
            self._workspace, plugins, cwd, session=self.session_id, call=self.call_id
        )

    def spawn(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        strays: bool = False,
        noted: bool = True,
        box: Box | None = None,
    ) -> "AbstractAsyncContextManager[Process]":
        """Run a program in a process group of its own until the block ends."""
        self._refuse_when_over()
        assert box is None or isinstance(box, CallBox)
        given = command_environment.base(self._workspace) if env is None else env
        where = cwd or self.directory
        return self._groups.spawn(command, cwd=where, env=given, strays=strays, noted=noted, box=box)
