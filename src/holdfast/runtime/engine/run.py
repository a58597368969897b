"""One drain of a session: its recorder, its dependencies, and how it is interrupted."""

from typing import TYPE_CHECKING

import anyio
from msgspec.structs import replace

from holdfast.provider.port import Provider
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.recorder import Recorder
from holdfast.runtime.engine.request_watcher import RequestWatcher
from holdfast.runtime.history.last_request import LastRequest
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.schema.part import StepStartPart
from holdfast.schema.session import Session
from holdfast.toolkit.context import Admit
from holdfast.tools import pictures
from holdfast.tools.bound import OutputLimits
from holdfast.workspace.workspace import Workspace

if TYPE_CHECKING:
    from holdfast.runtime.history.epoch import Epoch


class Run:
    """A session that this process runs, from its claim to its release."""

    def __init__(
        self,
        engine: Engine,
        recorder: Recorder,
        history: SessionHistory,
        last: LastRequest,
        *,
        watcher: RequestWatcher,
        admit: Admit,
    ) -> None:
        self.engine = engine
        self.recorder = recorder
        self.history = history
        self.last = last
        self.watcher = watcher
        self.admit = admit
        self.scope = anyio.CancelScope()
        self.interrupted = False
        self.keeps_inbox = False
        """Whether an interrupt leaves the prompt that was to be worked on next in the inbox."""
        self.asked_at = 0
        """The number at which it was interrupted; 0 where that is not known."""
        self.at_hand: list[str] | None = None
        """The prompts that are chosen to begin work and not promoted yet; None while nothing is chosen."""
        self.abandoned = False
        self.epoch: Epoch | None = None
        """The epoch in force, once it was read: no other process changes it while this run has the session.
        """
        self.step: StepStartPart | None = None
        """The step of the request in flight, as it was stored when it began."""
        self._turn_began_ms: int | None = None
        self.summarises = False
        """Whether the user's settings want prompts summarised."""
        self.answered = False
        """Whether a reply of the user let a waiting call run: the work continues."""
        self.processes_seen = False
        """Whether the processes that other processes of ours left in the background were looked for."""
        self.changed_files = False
        """Whether a call changed files, or may have."""
        self.reverted_ms = 0
        """When the last revert of the session that had changed files was committed."""
        self.breaks = 0
        """How many streams in a row broke off after their first output."""

    def begin_turn(self) -> None:
        """Measure the time of a turn from now on."""
        self._turn_began_ms = self.engine.clock.boot_ms()

    def turn_ms(self) -> int:
        """How long the turn has taken, by a clock that cannot be set; 0 for one that another run began."""
        began_ms = self._turn_began_ms
        return 0 if began_ms is None else self.engine.clock.boot_ms() - began_ms

    def interrupt(self, *, keeps_inbox: bool = False) -> None:
        """Stop what runs, once; with `keeps_inbox` what has not begun is left to the next process."""
        self.interrupted = True
        self.keeps_inbox = keeps_inbox
        self.scope.cancel()

    def again(self) -> None:
        """Begin another round under the same claim."""
        self.scope = anyio.CancelScope()
        self.at_hand = None
        if self.interrupted or self.abandoned:
            self.scope.cancel()

    def abandon(self) -> None:
        """Stop without another write: another process may have the session by now."""
        self.abandoned = True
        self.recorder.lost = True
        self.scope.cancel()

    async def session(self) -> Session:
        """The session as it is now."""
        record = await self.engine.store.session(self.recorder.session)
        assert record is not None, "a claimed session cannot be removed"
        return record.value()

    def provider(self, workspace: Workspace) -> Provider:
        """The provider for a workspace."""
        return self.engine.provider(workspace)

    def output_limits(self, workspace: Workspace) -> OutputLimits:
        """How much of a tool's output the model sees."""
        config, attachment = workspace.loaded.config.tool_output, workspace.loaded.config.attachment
        limits = OutputLimits(pictures=pictures.limits_of(None if attachment is None else attachment.image))
        if config is None:
            return limits
        given = {"lines_max": config.max_lines, "bytes_max": config.max_bytes}
        return replace(limits, **{name: value for name, value in given.items() if value is not None})
