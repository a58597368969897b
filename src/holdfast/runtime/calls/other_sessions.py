"""What other sessions of a project noted about files while a step ran, whichever process runs them: it is not
that step's. A change is noted in the record of its call before it is made, so that the store knows them all.
"""

from collections.abc import Iterator
from typing import Final

from holdfast.runtime.history import file_changes
from holdfast.schema.file_change import FileChange
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolPending, ToolRunning
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery, SessionQuery
from holdfast.store.record import StoredMessage

SESSIONS_MAX: Final = 20
"""So many are looked at, those that were used last."""
MESSAGES_MAX: Final = 20
"""And so many messages of each, the last ones."""
RECENT_MS: Final = 24 * 3600 * 1000
_FILES: Final = file_changes.FILES.encode()


async def changes(store: Store, session: str, since_ms: int) -> list[FileChange]:
    """What others have noted since then; not those right below the session, whose changes are its own."""
    record = await store.session(session)
    if record is None:
        return []
    query = SessionQuery(
        project=record.value().project_id,
        updated_from=since_ms - RECENT_MS,
        archived=None,
        agent_runs=None,
        limit=SESSIONS_MAX,
    )
    found: list[FileChange] = []
    for other in (await store.sessions(query)).sessions:
        if other.id != session and other.value().parent_id != session:
            page = await store.messages(MessageQuery(other.id, limit=MESSAGES_MAX))
            found += [change for message in page.messages for change in _noted(message, since_ms)]
    return found


def _noted(message: StoredMessage, since_ms: int) -> Iterator[FileChange]:
    """What the calls of a message noted that had not ended by then."""
    for record in message.parts:
        part = record.value() if _FILES in record.data else None
        if not isinstance(part, ToolPart) or isinstance(part.state, ToolPending):
            continue
        if isinstance(part.state, ToolRunning) or part.state.time.end >= since_ms:
            yield from file_changes.of_part(part)
