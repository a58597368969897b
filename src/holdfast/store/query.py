"""Questions that are put to a store."""

from typing import Literal, TypeVar

import msgspec

from holdfast.errors import InvalidInput

LIMIT_MAX = 10_000

Q = TypeVar("Q")


class SessionQuery(msgspec.Struct, frozen=True):
    """Which sessions, newest update first."""

    project: str | None = None
    directory: str | None = None
    path: str | None = None
    """Equal, or below: `src` finds `src` and `src/app`."""
    roots: bool = False
    parent: str | None = None
    archived: bool | None = False
    """False hides archived sessions, True shows only them, None shows both."""
    agent_runs: bool | None = False
    """Sessions that were made for one run of an agent: False hides them, True shows only them, None both."""
    updated_from: int | None = None
    updated_to: int | None = None
    title: str | None = None
    """Text that the title contains, whatever its case."""
    id_prefix: str | None = None
    slug: str | None = None
    limit: int = 100
    cursor: str | None = None


class MessageQuery(msgspec.Struct, frozen=True):
    """Which messages of a session. Without a cursor: the newest `limit`, or all of them."""

    session: str
    limit: int | None = None
    before: str | None = None
    """A cursor: the messages older than it, the nearest `limit` of them."""
    after: str | None = None
    """A cursor: the messages newer than it, the nearest `limit` of them."""
    only: str | None = None
    """Just this message; an empty page when there is none."""
    since_compaction: bool = False
    """Only what the model may still see: from the kept tail of the last completed compaction on."""
    system: bool = True
    """Whether Mid-Conversation System Messages are among them: they are for the model, not for users."""
    damaged: bool = False
    """Whether a record that cannot be read is among them, without content, or ends the page by its name."""
    reverted: bool = False
    """Whether what a staged revert hides is among them. A message that is asked for by its id is whole."""


class SearchQuery(msgspec.Struct, frozen=True):
    """Words to be found, all of them, in titles, message text, tool inputs and paths."""

    text: str
    project: str | None = None
    session: str | None = None
    limit: int = 20
    order: Literal["best", "newest"] = "best"


def one_query(query: Q | None, given: Q, default: Q) -> Q:
    """The query of a call that takes one, or keywords (`given`, made of them), and not both."""
    if query is None:
        return given
    if given != default:
        raise InvalidInput("a query and keywords exclude one another; put all of it into one of them")
    return query


def check_limit(limit: int) -> int:
    """The limit, if a page may have as many entries."""
    if not 0 < limit <= LIMIT_MAX:
        raise InvalidInput(f"a page has 1 to {LIMIT_MAX} entries, not {limit}")
    return limit
