"""Which session the user names: by its id, the beginning of the id, or its slug. Pure."""

from typing import Any

import msgspec

from holdfast.errors import Ambiguous, NotFound
from holdfast.store.query import SessionQuery
from holdfast.store.record import SessionRecord

PREFIX_MIN = 4
CANDIDATES_MAX = 10
MATCHES_MAX = 1_000
"""How many are counted: enough to see that a beginning of an id is too short."""


def name_queries(name: str) -> list[SessionQuery]:
    """The queries that find every session a name can stand for."""
    queries = [SessionQuery(slug=name, archived=None, agent_runs=None, limit=MATCHES_MAX)]
    prefix = name if name.startswith("ses_") else f"ses_{name}"
    if len(prefix) >= PREFIX_MIN + len("ses_"):
        queries.append(SessionQuery(id_prefix=prefix, archived=None, agent_runs=None, limit=MATCHES_MAX))
    return queries


def only_match(name: str, matches: list[SessionRecord]) -> SessionRecord:
    """The only match; otherwise an error that says what to do."""
    if not matches:
        raise NotFound(f"no session is called {name[:60]!r}; `holdfast session list --all` shows them")
    if len(matches) > 1:
        shown = tuple(_candidate(each) for each in matches[:CANDIDATES_MAX])
        raise Ambiguous(name, shown, len(matches) - len(shown))
    return matches[0]


def _candidate(record: SessionRecord) -> tuple[str, str, int]:
    """What tells a session from others; nothing of one that cannot be read."""
    try:
        fields = msgspec.json.decode(record.data, type=dict[str, Any])
        return record.id, str(fields["title"]), int(fields["time"]["updated"])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError, ValueError):
        return record.id, "", 0
