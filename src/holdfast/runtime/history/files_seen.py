"""What a session knows of files: the content that it last read or wrote, by digest.

It is read from the records of its calls, and of files that the user attached to prompts which the model has
seen, so it survives a restart and a compaction; a write of this process counts at once, before its call
is settled. What must stay true: a session that has not read a file, or whose file was changed by anybody else
since, is known to be ignorant of it.
"""

from collections.abc import Iterable
from typing import Any

import anyio
import msgspec

from holdfast.schema.file_part import FilePart, FileRead
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.store.base import Store
from holdfast.store.record import Changed, Resync, StoredRecord

_SIGN = b'"sha256"'
_BATCH = 500


class FilesSeen:
    """The files of one session, by their real path."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._lock = anyio.Lock()
        self._cursor: str | None = None
        """Where the changes go on; None until the records before it were taken."""
        self._known: dict[str, tuple[int, str | None]] = {}
        """The number of the record that says it, and the digest; None for a file that was removed."""
        self._waiting: dict[str, list[tuple[int, FileRead]]] = {}
        """Files attached to prompts that the model was not shown yet, as far as is known, by prompt."""

    async def digest(self, path: str) -> str | None:
        """The digest of what the session last read or wrote there; None if it knows nothing of it.

        One call at a time: another one, side by side with it, would look into what is only half read.
        """
        async with self._lock:
            await self._catch_up()
            for prompt in list(self._waiting):
                await self._look(prompt)
            return self._known.get(path, (0, None))[1]

    async def _look(self, prompt: str) -> None:
        """Count what a prompt brought, once the model was shown it. An imported prompt has no record."""
        record = await self._store.get(self._session, "prompt", prompt)
        if record is None or record.value().promoted is not None:
            for at, read in self._waiting.pop(prompt, ()):
                self._learn(at, read.filepath, read.sha256)

    def note(self, path: str, digest: str | None) -> None:
        """A call of this process has just written it. Its record, which comes later, says the same."""
        known = self._known.get(path)
        self._known[path] = (0 if known is None else known[0], digest)

    async def _catch_up(self) -> None:
        if self._cursor is None:
            head = await self._store.head()
            for record in await self._store.select("part", session=self._session):
                self._take(record)
            self._cursor = head
        while True:
            changes = await self._store.changes(self._cursor, self._session, limit=_BATCH, recent=True)
            # What was removed is known no longer, and something older may be.
            if isinstance(changes, Resync) or any(map(_is_removal, changes.records)):
                self._cursor, self._known, self._waiting = None, {}, {}
                return await self._catch_up()
            for changed in changes.records:
                if changed.record.kind == "part":
                    self._take(changed.record)
            self._cursor = changes.cursor
            if changes.complete:
                return None

    def _take(self, record: StoredRecord) -> None:
        if _SIGN not in record.data:  # Most parts say nothing of files, and need not be decoded.
            return
        part = record.value()
        if isinstance(part, FilePart) and part.read is not None:
            self._waiting.setdefault(part.message_id, []).append((record.position, part.read))
        if not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted):
            return
        for path, digest in digests(part.state.metadata):
            # Pruning writes old calls again, and says nothing new of them.
            pruned = part.state.time.compacted is not None
            self._learn(record.position if pruned else record.seq, path, digest)

    def _learn(self, at: int, path: str, digest: str | None) -> None:
        if at > self._known.get(path, (0, None))[0]:
            self._known[path] = (at, digest)


def _is_removal(changed: Changed) -> bool:
    return changed.removed and changed.record.kind in ("message", "part")


def digests(metadata: dict[str, Any]) -> Iterable[tuple[str, str | None]]:
    """The files that a call read or wrote, with the digest of what they held then; None for a removed one."""
    files = metadata.get("files")
    for each in [metadata, *(files if isinstance(files, list) else [])]:
        if not isinstance(each, dict):
            continue
        path, moved = each.get("filepath") or each.get("filePath"), each.get("movePath")
        digest = each.get("sha256", msgspec.UNSET)
        if not isinstance(path, str) or not (digest is None or isinstance(digest, str)):
            continue
        if isinstance(moved, str):
            yield moved, digest
            yield path, None
        else:
            yield path, digest
