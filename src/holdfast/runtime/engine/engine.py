"""The engine's dependencies: store, clock, feed, provider, limits. Built once, by `app.py`."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakValueDictionary

import anyio
import msgspec

from holdfast import flags
from holdfast.clock import Clock
from holdfast.context.registry import SystemContextRegistry
from holdfast.errors import ContextError
from holdfast.feed.tail import Feed
from holdfast.location.box.boxes import Boxes
from holdfast.location.ending_processes import EndingProcesses
from holdfast.location.guard import Guard
from holdfast.location.shadow.shadows import Shadows, Worker
from holdfast.plugins.dispatcher import Dispatcher
from holdfast.provider.port import Provider
from holdfast.runtime.engine.background_processes import BackgroundProcesses
from holdfast.runtime.engine.limits import Limits
from holdfast.schema.ids import Mint
from holdfast.schema.request import PermissionAnswer, PermissionRequest
from holdfast.schema.session import Session
from holdfast.store.base import Store
from holdfast.store.host import Host
from holdfast.tools.execute import Keep
from holdfast.tools.registry import Registry
from holdfast.workspace.workspace import Workspace

if TYPE_CHECKING:
    from holdfast.net.stream import Http

OnAsk = Callable[[PermissionRequest], Awaitable[PermissionAnswer | None]]
"""A program that answers for the user; None leaves the question open for the user."""


class Presence(Protocol):
    """Knows whether the user would see a question about a session."""

    def attached(self, session: Session) -> bool: ...


class NeverPresent:
    """The user is never attached: a permission that has to be asked for is denied."""

    def attached(self, session: Session) -> bool:
        return False


def can_answer(presence: Presence) -> bool:
    """Whether a user may be attached to sessions of this process at all: only then questions are offered.

    Not whether one is now: the tools of a session would change with each client that comes and goes.
    """
    return not isinstance(presence, NeverPresent) or flags.enabled(flags.ENABLE_QUESTION_TOOL)


ROOTS_MAX: Final = 1_000


class Trees:
    """The roots of sessions, and a lock for each: one task of this process changes a root at a time."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._roots: dict[str, str] = {}

    def root(self, child: str) -> str | None:
        """The root of a child's tree, if it was looked for before: a session never changes its parent."""
        return self._roots.get(child)

    def note_root(self, child: str, root: str) -> None:
        """The root of a child's tree was found; the oldest of many are forgotten."""
        self._roots[child] = root
        while len(self._roots) > ROOTS_MAX:
            del self._roots[next(iter(self._roots))]

    def of(self, root: str) -> anyio.Lock:
        """The lock of a root; it exists as long as a task refers to it."""
        lock = self._locks.get(root)
        if lock is None:
            lock = self._locks[root] = anyio.Lock()
        return lock


async def _nothing(session: Session, workspace: Workspace) -> None:
    """There are no servers."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """The engine of one process."""

    store: Store
    clock: Clock
    mint: Mint
    host: Host
    feed: Feed
    provider: Callable[[Workspace], Provider]
    """The provider for a workspace: real wires, or a script."""
    workspace: Callable[[Session], Awaitable[Workspace]]
    tools: Callable[[Session, Workspace | None], Registry]
    """The tools that a session may call: those of the application, of its directory, and of the plugins of
    its workspace, where that is known.
    """
    connect: Callable[[Session, Workspace], Awaitable[None]] = _nothing
    """Connects the MCP servers of a workspace, and waits for new ones within their bounds."""
    keep: Keep
    """Stores tool output that is too long for the record."""
    guard: Guard = msgspec.field(default_factory=Guard)
    """Ends the process groups of tools when this process cannot; started with the first group."""
    ending: EndingProcesses = msgspec.field(default_factory=EndingProcesses)
    """Programs of tools whose end was not waited for."""
    background: BackgroundProcesses = msgspec.field(default_factory=BackgroundProcesses)
    """The processes in the background of sessions; they end with this process."""
    boxes: Boxes = msgspec.field(default_factory=Boxes)
    """What the boxes around commands of this process share."""
    shadows: Shadows = msgspec.field(default_factory=Shadows)
    """The shadow repositories of worktrees."""
    presence: Presence = NeverPresent()
    on_ask: OnAsk | None = None
    limits: Limits = Limits()
    trees: Trees = msgspec.field(default_factory=Trees)
    plugins: Callable[[Workspace], Dispatcher]
    contexts: Callable[[Session], Sequence[SystemContextRegistry]]
    """What the application contributes to the System Context of a session."""
    http: Callable[[], "Http"]
    cache: Path
    """The folder for copies of fetched files."""
    stored_at: Path | None = None
    """The file or folder of the store, where it has one: commands of agents do not see it."""
    warn: Callable[[str], None]
    """Logs a warning for the operator of this process."""
    hold: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()
    """What is held for a session as long as this process runs it."""

    def shadow(self, session: Session, workspace: Workspace) -> Worker | None:
        """The shadow repository for a session's files; None where snapshots are switched off."""
        if workspace.loaded.config.snapshot is False:
            return None
        # Outside of a repository the worktree is the whole file system: the session's folder stands for it.
        top = workspace.places.worktree if workspace.git else Path(session.directory)
        try:
            worker = self.shadows.at(session.project_id, top)
        except ContextError as error:
            self.warn(str(error))
            return None
        if (given := workspace.loaded.config.snapshot_budget) is not None:
            worker.budget = given << 20
        return worker
