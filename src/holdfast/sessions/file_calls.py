"""The calls of the public API of sessions that are about files: snapshots, diffs, undo."""

from typing import TYPE_CHECKING

from holdfast.sessions.engine_calls import EngineCalls

if TYPE_CHECKING:
    from holdfast.schema.session import SessionSummary
    from holdfast.schema.snapshot import Snapshot
    from holdfast.sessions.undo.result import Undo


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

    async def revert(
        self,
        session: str,
        message: str | None = None,
        *,
        part: str | None = None,
        snapshot: str | None = None,
        preview: bool = False,
    ) -> "Undo":
        """Take back everything from a message (or a part of it) on, else from the last prompt on.

        The files that the agent has changed since are put back at once; where the user has changed one too,
        both are merged, and `UndoConflict` names what cannot be, with nothing changed. The messages are
        hidden, and go with the next prompt; until then `unrevert` brings everything back. `snapshot`: put
        the files back as in this tree. `preview` only tells what would become of each file.
        """
        from holdfast.sessions.undo import revert

        done = await revert.revert(
            self.access, session, message, part=part, snapshot=snapshot, preview=preview
        )
        return await self._with_diffs(done)

    async def unrevert(self, session: str, *, committed: bool = False, preview: bool = False) -> "Undo":
        """Undo a staged revert. `committed`: put the files of the last one back that a prompt has committed,
        up to 7 days later; its messages stay gone.
        """
        from holdfast.sessions.undo import unrevert

        done = await unrevert.unrevert(self.access, session, committed=committed, preview=preview)
        return await self._with_diffs(done)

    async def _with_diffs(self, undo: "Undo") -> "Undo":
        """Bring the diffs of the session up to date with the messages that are shown now."""
        from holdfast.runtime.side_calls import session_diffs

        if undo.done:
            await session_diffs.write(self._prompting().engine, undo.session.id)
        return undo
