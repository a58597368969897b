"""Iterates over sessions and messages, a page at a time: as long as the list may be, one page is in memory.

Nothing is held between two pages, so a caller may leave the loop at any point and take as long as it likes.
Each value is as of the moment its page was read.
"""

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from holdfast.schema.message import MessageWithParts
from holdfast.schema.session import Session
from holdfast.sessions import read
from holdfast.sessions.access import StoreAccess
from holdfast.store.cursor import BEFORE_ALL
from holdfast.store.query import MessageQuery, SessionQuery

SESSIONS = 500
MESSAGES = 100


async def each(access: StoreAccess, query: SessionQuery) -> AsyncGenerator[Session, None]:
    """Every session of a query, the last updated first; none comes twice.

    One that is updated meanwhile moves to the front of the list, which may be behind the loop: then it is
    left out. Sessions that cannot be read are left out, as from every list.
    """
    cursor: str | None = None
    while True:
        page = await read.list_(access, replace(query, limit=SESSIONS, cursor=cursor))
        for session in page.sessions:
            yield session
        if (cursor := page.next) is None:
            return


async def each_message(
    access: StoreAccess, session: str, *, since_compaction: bool, system: bool, reverted: bool
) -> AsyncGenerator[MessageWithParts, None]:
    """Every message of a session in the order of its creation, also those that come during the loop.

    What is removed meanwhile, or compacted under `since_compaction`, is left out from the next page on.
    """
    cursor: str | None = BEFORE_ALL
    while cursor is not None:
        query = MessageQuery(
            session,
            limit=MESSAGES,
            after=cursor,
            since_compaction=since_compaction,
            system=system,
            reverted=reverted,
        )
        page = await read.messages(access, query)
        for message in page.messages:
            yield message
        cursor = page.newer
