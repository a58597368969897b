"""The public API of sessions, in one object. Each call is a function in a file of its own.

The calls that need the engine stand in `engine_calls.py`, those about files in `file_calls.py`.
"""

import os
from collections.abc import AsyncGenerator, Sequence
from typing import Literal

from holdfast.schema.budget import Budget
from holdfast.schema.message import Message, MessageWithParts
from holdfast.schema.model import ModelRef, SessionModel
from holdfast.schema.part import Part
from holdfast.schema.permission import Rule
from holdfast.schema.session import Session
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.sessions import create, edit, erase, fork, iterate, read, update
from holdfast.sessions.access import require_session
from holdfast.sessions.edit import MessageEditor, PartEditor
from holdfast.sessions.file_calls import FileCalls
from holdfast.sessions.read import Messages, Sessions
from holdfast.sessions.update import SessionEditor
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery, one_query
from holdfast.store.record import Found, JsonPage, SessionRecord


class SessionService(FileCalls):
    """What a caller may do with sessions."""

    async def create(
        self,
        *,
        directory: str | os.PathLike[str] | None = None,
        parent: str | None = None,
        title: str | None = None,
        permission: Sequence[Rule] | None = None,
        agent: str | None = None,
        model: str | ModelRef | SessionModel | None = None,
        metadata: dict[str, object] | None = None,
        id: str | None = None,
    ) -> Session:
        """Create a session: in `directory`, else in that of its `parent`, else in the current one.

        `model` is `provider/model` or a value; without one the settings, or the first prompt, choose it.
        """
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

    async def list(
        self,
        query: SessionQuery | None = None,
        *,
        project: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        path: str | None = None,
        roots: bool = False,
        parent: str | None = None,
        archived: bool | None = False,
        agent_runs: bool | None = False,
        updated_from: int | None = None,
        updated_to: int | None = None,
        title: str | None = None,
        limit: int = SessionQuery().limit,
        cursor: str | None = None,
    ) -> Sessions:
        """A page of sessions, the last updated first: by keywords, or by a query, whose fields they are.

        Archived ones and agent runs are left out unless these are True (only them) or None (them too).
        """
        given = SessionQuery(
            project=project,
            directory=_real(directory),
            path=path,
            roots=roots,
            parent=parent,
            archived=archived,
            agent_runs=agent_runs,
            updated_from=updated_from,
            updated_to=updated_to,
            title=title,
            limit=limit,
            cursor=cursor,
        )
        return await read.list_(self.access, one_query(query, given, SessionQuery()))

    def each(
        self,
        *,
        project: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        path: str | None = None,
        roots: bool = False,
        parent: str | None = None,
        archived: bool | None = False,
        agent_runs: bool | None = False,
        updated_from: int | None = None,
        updated_to: int | None = None,
        title: str | None = None,
    ) -> AsyncGenerator[Session, None]:
        """Iterate over all sessions that `list` would show, page by page; see `iterate.each`."""
        query = SessionQuery(
            project=project,
            directory=_real(directory),
            path=path,
            roots=roots,
            parent=parent,
            archived=archived,
            agent_runs=agent_runs,
            updated_from=updated_from,
            updated_to=updated_to,
            title=title,
        )
        return iterate.each(self.access, query)

    async def children(self, session: str, *, deep: bool = False) -> Sequence[Session]:
        """Direct children, or all descendants."""
        return await read.children(self.access, session, deep=deep)

    async def search(
        self,
        query: str | SearchQuery,
        *,
        project: str | None = None,
        session: str | None = None,
        limit: int = 20,
        order: Literal["best", "newest"] = "best",
    ) -> Found:
        """Full text over titles, messages, tool inputs and paths: words and keywords, or a query."""
        text = query if isinstance(query, str) else ""
        given = SearchQuery(text, project, session, limit, order)
        asked = None if isinstance(query, str) else query
        return await self.access.store.search(one_query(asked, given, SearchQuery(text)))

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
        below = [child.id for child in await read.children(self.access, session, deep=True)]
        for each in (session, *below):
            if (await require_session(self.access, each)).busy:
                await self._prompting().interrupt(each)
            self._end_processes(each)
        gone = await erase.traces(self.access.store, (session, *below))
        erased = await self.access.store.erase(session)
        await erase.forget(self.access.store, gone)
        return erased

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
        reverted: bool = False,
    ) -> Messages:
        """A page of messages with their parts, oldest first; `system` shows those for the model too,
        `reverted` those that a staged revert hides.
        """
        query = MessageQuery(
            session,
            limit,
            before,
            after,
            since_compaction=since_compaction,
            system=system,
            reverted=reverted,
        )
        return await read.messages(self.access, query)

    def each_message(
        self, session: str, *, since_compaction: bool = False, system: bool = False, reverted: bool = False
    ) -> AsyncGenerator[MessageWithParts, None]:
        """Iterate over the messages of a session, oldest first, page by page; see `iterate.each_message`."""
        return iterate.each_message(
            self.access, session, since_compaction=since_compaction, system=system, reverted=reverted
        )

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


def _real(directory: str | os.PathLike[str] | None) -> str | None:
    """A directory as sessions name theirs."""
    return None if directory is None else os.path.realpath(directory)
