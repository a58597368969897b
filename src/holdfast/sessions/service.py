"""The public API of sessions, in one object. Each call is a function in a file of its own."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from holdfast.schema.budget import Budget
from holdfast.schema.message import Message, MessageWithParts
from holdfast.schema.model import SessionModel
from holdfast.schema.part import Part
from holdfast.schema.permission import Rule
from holdfast.schema.session import Session
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.sessions import create, edit, fork, read, update
from holdfast.sessions.access import StoreAccess, require_session
from holdfast.sessions.edit import MessageEditor, PartEditor
from holdfast.sessions.read import Messages, Sessions
from holdfast.sessions.update import SessionEditor
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery
from holdfast.store.record import Found, JsonPage, SessionRecord

if TYPE_CHECKING:  # The engine is loaded by the first prompt: a process that only reads does not wait for it.
    from holdfast.feed.frame import Frame
    from holdfast.runtime.inbox.admission import Admitted
    from holdfast.schema.prompt import PartInput
    from holdfast.schema.request import PermissionRequest, QuestionRequest, Reply
    from holdfast.sessions.context import ContextView
    from holdfast.sessions.prompts import Prompts
    from holdfast.sessions.state import State


class SessionService:
    """What a caller may do with sessions."""

    def __init__(self, access: StoreAccess, prompting: "Callable[[], Prompts]") -> None:
        self.access = access
        self._prompting = prompting

    async def create(
        self,
        *,
        directory: str | os.PathLike[str] | None = None,
        parent: str | None = None,
        title: str | None = None,
        permission: Sequence[Rule] | None = None,
        agent: str | None = None,
        model: SessionModel | None = None,
        metadata: dict[str, object] | None = None,
        id: str | None = None,
    ) -> Session:
        """Create a session; see `create.create`."""
        return await create.create(
            self.access,
            directory=directory,
            parent=parent,
            title_=title,
            permission=permission,
            agent=agent,
            model=model,
            metadata=metadata,
            id=id,
        )

    async def get(self, session: str) -> Session:
        """The session, or `NotFound`."""
        return await read.get(self.access, session)

    async def named(self, name: str) -> SessionRecord:
        """The session that the user names by its id, the beginning of the id, or its slug."""
        return await read.named(self.access, name)

    async def list(self, query: SessionQuery = SessionQuery()) -> Sessions:  # noqa: B008 - a frozen value
        """A page of sessions; archived ones and agent runs only if the query includes them."""
        return await read.list_(self.access, query)

    async def children(self, session: str, *, deep: bool = False) -> Sequence[Session]:
        """Direct children, or all descendants."""
        return await read.children(self.access, session, deep=deep)

    async def search(self, query: SearchQuery) -> Found:
        """Full text over titles, messages, tool inputs and paths."""
        return await self.access.store.search(query)

    async def update(self, session: str, editor: SessionEditor) -> Session:
        """Atomic read-modify-write of the session's record."""
        return await update.update(self.access, session, editor)

    async def touch(self, session: str) -> Session:
        """Move it to the top of lists."""
        return await update.touch(self.access, session)

    async def rename(self, session: str, title: str) -> Session:
        """Give it another title."""
        return await update.rename(self.access, session, title)

    async def set_budget(self, session: str, budget: Budget | None) -> Session:
        """What the tree below a root session may spend; None lifts every limit."""
        return await update.set_budget(self.access, session, budget)

    async def archive(self, session: str) -> Session:
        """Hide it from ordinary lists."""
        return await update.archive(self.access, session)

    async def restore(self, session: str) -> Session:
        """Show it again."""
        return await update.restore(self.access, session)

    async def move(self, session: str, directory: str) -> Session:
        """Let it work in another directory."""
        return await update.move(self.access, session, directory)

    async def remove(self, session: str) -> Sequence[str]:
        """Erase the session, its descendants and their content. Those that run are interrupted first."""
        for each in (
            session,
            *(child.id for child in await read.children(self.access, session, deep=True)),
        ):
            if (await require_session(self.access, each)).busy:
                await self._prompting().interrupt(each)
        return await self.access.store.erase(session)

    async def fork(self, session: str, message: str | None = None) -> Session:
        """A new session with the history before the message."""
        return await fork.fork(self.access, session, message)

    async def messages(
        self,
        session: str,
        *,
        limit: int | None = None,
        before: str | None = None,
        after: str | None = None,
        since_compaction: bool = False,
        system: bool = False,
    ) -> Messages:
        """A page of messages with their parts, oldest first; `system` shows those for the model too."""
        query = MessageQuery(session, limit, before, after, since_compaction=since_compaction, system=system)
        return await read.messages(self.access, query)

    async def messages_json(self, query: MessageQuery) -> JsonPage:
        """The same page as JSON, not decoded."""
        return await read.messages_json(self.access, query)

    async def message(self, session: str, id: str) -> MessageWithParts:
        """One message with its parts."""
        return await read.message(self.access, session, id)

    async def new_id(self, session: str, prefix: Literal["msg", "prt"]) -> str:
        """An id for a new message or part, above every id that the session has had."""
        return self.access.mint.above(prefix, (await require_session(self.access, session)).top)

    async def add_message(self, message: Message) -> None:
        """Write a new message; refused while the session runs."""
        await edit.add_message(self.access, message)

    async def add_part(self, part: Part) -> None:
        """Write a new part; refused while the session runs."""
        await edit.add_part(self.access, part)

    async def update_message(self, session: str, id: str, editor: MessageEditor) -> Message:
        """Change a message: see `edit.update_message`; refused while the session runs."""
        return await edit.update_message(self.access, session, id, editor)

    async def update_part(self, session: str, id: str, editor: PartEditor) -> Part:
        """Change a part: see `edit.update_part`; refused while the session runs."""
        return await edit.update_part(self.access, session, id, editor)

    async def remove_message(self, session: str, id: str) -> None:
        """Remove a message with its parts; refused while the session runs."""
        await edit.remove_message(self.access, session, id)

    async def remove_part(self, session: str, id: str) -> None:
        """Remove a part; refused while the session runs."""
        await edit.remove_part(self.access, session, id)

    async def todos(self, session: str) -> Sequence[Todo]:
        """The todo list."""
        return await read.todos(self.access, session)

    async def set_todos(self, session: str, todos: Sequence[Todo]) -> None:
        """Replace the todo list."""
        await edit.set_todos(self.access, session, todos)

    async def diffs(self, session: str) -> Sequence[FileDiff]:
        """What the session changed in files."""
        return await read.diffs(self.access, session)

    async def set_diffs(self, session: str, diffs: Sequence[FileDiff]) -> None:
        """Replace the file changes."""
        await edit.set_diffs(self.access, session, diffs)

    async def prompt(self, session: str, parts: "str | Sequence[PartInput]", **options: Any) -> "Admitted":
        """Admit a prompt and wake the session; `Prompts.prompt` lists the options."""
        return await self._prompting().prompt(session, parts, **options)

    async def process(
        self, session: str, parts: "str | Sequence[PartInput]", **options: Any
    ) -> MessageWithParts:
        """Prompt, and wait for the last answer.

        `LeaseLost` if the process that worked on it is gone or had to stop: an unfinished answer is never
        returned.
        """
        return await self._prompting().process(session, parts, **options)

    def turn(
        self, session: str, parts: "str | Sequence[PartInput]", **options: Any
    ) -> "AsyncGenerator[Frame, None]":
        """Prompt, and yield every event of the session until it is idle.

        As in `process`, work that was cut off raises `LeaseLost`.
        """
        return self._prompting().turn(session, parts, **options)

    async def state(self, session: str, *, limit: int = 100) -> "State":
        """Everything a client needs to show the session: itself, its latest messages, what it may do."""
        return await self._prompting().state(session, limit=limit)

    async def wait(self, session: str) -> None:
        """Return when no process runs the session any more."""
        await self._prompting().wait(session)

    async def interrupt(self, session: str) -> bool:
        """Stop the session, and return when everything is settled: whether there was anything to stop."""
        return await self._prompting().interrupt(session)

    async def titled(self, session: str) -> None:
        """Return when the session has its title, or this process no longer tries to give it one."""
        await self._prompting().titled(session)

    async def resume(self, session: str) -> None:
        """Continue a session that was left unfinished."""
        await self._prompting().resume(session)

    async def compact(self, session: str, *, force: bool = False) -> Literal["admitted", "not needed"]:
        """Request a compaction: a summary replaces the beginning in the model view; `wait` until it is done.

        Without `force` nothing happens while the session is under every threshold.
        """
        return await self._prompting().compact(session, force=force)

    async def context(self, session: str) -> "ContextView":
        """What the model is sent: every block in send order, with its source, its size, and the cache."""
        return await self._prompting().context(session)

    async def requests(self, session: str) -> "Sequence[PermissionRequest | QuestionRequest]":
        """The session's open permission requests and questions."""
        return await self._prompting().requests(session)

    async def reply(
        self, session: str, request: str, reply: "Reply", *, message: str | None = None
    ) -> "PermissionRequest":
        """Answer a permission request."""
        return await self._prompting().reply(session, request, reply, message=message)
