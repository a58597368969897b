"""The calls of the public API of sessions that are about files: snapshots and diffs."""

from typing import TYPE_CHECKING

from holdfast.sessions.engine_calls import EngineCalls

if TYPE_CHECKING:
    from holdfast.schema.session import SessionSummary
    from holdfast.schema.snapshot import Snapshot


class FileCalls(EngineCalls):
    """What a caller may do with the files of sessions."""

    async def snapshot(self, session: str, message: str | None = None) -> "Snapshot":
        """Take the files of a session's worktree as they are now, and keep them with the session.

        It is recorded with a message; without one, with the last. Snapshots are taken by themselves around
        each step that can write.
        """
        from holdfast.sessions import snapshots

        return await snapshots.take(self.access, self._prompting().engine, session, message)

    async def snapshots(self, session: str) -> "list[Snapshot]":
        """The snapshots of a session, the oldest first."""
        from holdfast.sessions import snapshots

        return await snapshots.list_(self.access, session)

    async def diff(
        self,
        session: str,
        start: str | None = None,
        end: str | None = None,
        *,
        message: str | None = None,
    ) -> "SessionSummary":
        """What was changed in files, with a unified diff for each.

        Between two snapshots, or from `start` to the files as they are now; without any, what the agent
        changed: in the whole session, or in its answers to the prompt `message`.
        """
        from holdfast.sessions import snapshots

        engine = self._prompting().engine
        return await snapshots.diff(self.access, engine, session, start=start, end=end, message=message)
