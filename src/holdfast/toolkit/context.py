"""What a running call is given: where it is, and callables that the runtime binds.

A tool reaches nothing else of ours: upward information travels through these callables and its result.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from holdfast.schema.permission import Action
from holdfast.schema.request import Question
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.box import Box
from holdfast.toolkit.file_edit import FileEdit
from holdfast.toolkit.processes import Processes

if TYPE_CHECKING:
    from anyio.abc import Process


OwnKind = Literal["todo", "diff"]
"""What a tool may write of its session: the todo list, and the changes of files."""


class Admit(Protocol):
    """Admits a prompt durably into a child of the session `above`, wakes it, and answers the prompt's id."""

    async def __call__(
        self, above: str, session: str, text: str, *, id: str | None, agent: str | None
    ) -> str: ...


class ToolContext(Protocol):
    """The world of one call."""

    @property
    def session_id(self) -> str: ...
    @property
    def message_id(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def agent(self) -> str:
        """The agent of the turn that made the call; a later switch changes nothing for it."""

    @property
    def directory(self) -> Path:
        """Where the session works; relative paths start here."""

    @property
    def worktree(self) -> Path:
        """The top of the project."""

    @property
    def cancelled(self) -> bool:
        """Whether the call is to end; a tool that loops without waiting looks here."""

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
        """Return when every pattern is allowed; `ToolDenied` otherwise. Called before any side effect.

        By `aliases`, other spellings of the patterns, a rule that names them may only tighten. `unclear` are
        permissions that the call may need for anything at all: a rule against something makes it ask.
        """

    async def verdict(self, permission: str, patterns: Sequence[str]) -> Action:
        """What the rules say of it now, and what the user allowed for good, without asking anybody.

        For a tool that leaves things out rather than ask about each of them.
        """

    async def question(self, questions: Sequence[Question]) -> list[list[str]]:
        """Put questions to the user and wait: what was chosen or typed, question by question.

        `ToolDenied` when the user dismissed them, `ToolFailure` where nobody is there to answer.
        """

    async def progress(self, *, title: str | None = None, metadata: JsonMap | None = None) -> None:
        """Show how far the call has come: live at once, durable with the next checkpoint."""

    async def commit(self, kind: OwnKind, value: Sequence[Todo] | Sequence[FileDiff]) -> None:
        """Replace what the session keeps under `kind`, under the fence of its runner.

        It is on disk when this returns. `InvalidInput` for what is no such list, `LeaseLost` when another
        owner runs the session by now.
        """

    def publish(self, name: str, properties: JsonMap) -> None:
        """Publish an event to the session's listeners, now: it is stored nowhere, and not replayed.

        They receive it as `holdfast.tool.NAME`, with the ids of the call among its properties. `InvalidInput`
        for a name that is none, and for more than 64 KiB.
        """

    async def admit(self, session: str, text: str, *, id: str | None = None, agent: str | None = None) -> str:
        """Send a prompt to a child of this session, as a user would: it is admitted durably, then woken.

        The answer is the prompt's id. The same `id` admits once, however often the call is run again.
        """

    async def seen(self, path: Path) -> str | None:
        """The SHA-256 of what this session last read or wrote at a real path; None if it never did.

        A tool that overwrites a file compares it with what the file holds: what the model does not know of
        must not be overwritten.
        """

    def edited(self, path: Path, digest: str | None) -> None:
        """This call has just given the file at a real path that content, or removed it (None).

        Clients receive `file.edited`, and other calls of the session see it at once.
        """

    async def keep(self, *edits: FileEdit) -> None:
        """Keep what files hold before they are changed, so that the change can be undone; called before it.

        It is on disk when this returns. Called again for a file, by the same call, it tells what the file
        holds in the end. Without it, or where it is switched off, the change is one that undo names and does
        not touch.
        """

    def effect(self, *what: str, waits: bool = True) -> AbstractContextManager[None]:
        """A block in which the call changes something that lasts; `what` names it for the model.

        An interrupt `waits` for the end of the block, within a bound; not for what may take long. From its
        beginning on, a call that does not come back by itself is settled as unknown, not as interrupted.
        """

    async def box(
        self,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: JsonMap | None = None,
        unconfined: str | None = None,
        asks: bool = True,
    ) -> Box:
        """The box for one command of the agent, to be given to `spawn`. `ToolDenied` where it may not run.

        `unconfined` is the model's reason to run it outside a box, which the user is asked about, as they are
        where this host cannot build a whole one. Patterns and the rest are those of `ask`. Without `asks` it
        is for a program that the user's settings name: it has the box that there can be.
        """

    async def sealed(self) -> bool:
        """Whether the box of a command would be a whole one, and without a network."""

    async def environment(self, cwd: Path) -> dict[str, str]:
        """The environment of a command: the user's, less keys and what the settings hide; plugins may add."""

    @property
    def processes(self) -> Processes:
        """The processes in the background of the session."""

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
        """Run a program in a process group of its own, with no input and with its errors in its output.

        Without a `box` it has the user's own rights: that is for programs of ours, not for the model's.

        The group ends with the block: TERM, then KILL after 3 s; also when this process is killed or paused.
        `strays`: so do processes that have left the group. Without an `env` it is given what commands see.
        Not `noted`: the record does not name the group, which takes a commit less. That is for a program that
        changes nothing and ends by itself soon, since nobody ends it if the guard is killed with its owner.
        """
