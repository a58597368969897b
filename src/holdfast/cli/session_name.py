"""Finds the session that the user means."""

import click

from holdfast.cli.open_store import Reading
from holdfast.errors import NotFound
from holdfast.sessions.session_name import name_queries, only_match
from holdfast.store.record import SessionRecord

session_argument = click.argument("name", metavar="SESSION")


def named(store: Reading | None, name: str) -> SessionRecord:
    """The session of that id, beginning of an id, or slug."""
    if store is None:
        raise NotFound(f"no session is called {name[:60]!r}: there are no sessions yet")
    exact = store.session(name) if name.isascii() else None
    if exact is not None:
        return exact
    matches = {record.id: record for query in name_queries(name) for record in store.sessions(query).sessions}
    return only_match(name, list(matches.values()))
