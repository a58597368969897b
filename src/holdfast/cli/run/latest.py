"""Which session `--continue` means: the latest root session of this project that has something in it."""

from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.cli.open_store import Reading
from holdfast.cli.readable import readable
from holdfast.cli.terminal import current_directory
from holdfast.errors import NotFound
from holdfast.location.project import GLOBAL, Location, locate
from holdfast.sessions.projects import remembered
from holdfast.store.batch import host_scope
from holdfast.store.host import ThisHost
from holdfast.store.query import MessageQuery, SessionQuery

PAGE = 20


class Latest(NamedTuple):
    """A session to go on with, and where it works."""

    updated: float
    id: str
    directory: str


def latest(store: Reading | None) -> Latest:
    """The session to go on with, from the current directory."""
    found: list[Latest] = []
    if store is not None:
        entries = store.select("cache", host_scope(ThisHost().id), None)
        here = locate(current_directory(), remembered(entries))
        found = [one for query in _queries(here) if (one := _first(store, query, here)) is not None]
    if not found:
        raise NotFound(
            "no session of this project is there to go on with; without --continue a new one begins"
        )
    return max(found)


def _queries(here: Location) -> list[SessionQuery]:
    """Those of this very directory, whatever its project was then; those of the project now."""
    queries = [SessionQuery(directory=here.directory, roots=True, limit=PAGE)]
    if here.project != GLOBAL:
        queries.append(SessionQuery(project=here.project, roots=True, limit=PAGE))
    return queries


def _first(store: Reading, query: SessionQuery, here: Location) -> Latest | None:
    while True:
        page = store.sessions(query)
        for record, line in readable(page):
            # Another checkout of the project is another place: a prompt given here is not meant for it.
            near = line.directory == here.directory or Path(line.directory).is_relative_to(here.worktree)
            if near and store.messages(MessageQuery(record.id, limit=1)).messages:
                return Latest(line.time.updated, record.id, line.directory)
        if page.next is None:
            return None
        query = replace(query, cursor=page.next)
