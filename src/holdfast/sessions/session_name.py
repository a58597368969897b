"""Which session the user names: by its id, the beginning of the id, or its slug. Pure."""

from holdfast.errors import InvalidInput, NotFound
from holdfast.store.query import SessionQuery
from holdfast.store.record import SessionRecord

PREFIX_MIN = 4


def name_queries(name: str) -> list[SessionQuery]:
    """The queries that find every session a name can stand for."""
    queries = [SessionQuery(slug=name, archived=None, agent_runs=None, limit=2)]
    prefix = name if name.startswith("ses_") else f"ses_{name}"
    if len(prefix) >= PREFIX_MIN + len("ses_"):
        queries.append(SessionQuery(id_prefix=prefix, archived=None, agent_runs=None, limit=2))
    return queries


def only_match(name: str, matches: list[SessionRecord]) -> SessionRecord:
    """The only match; otherwise an error that says what to do."""
    if not matches:
        raise NotFound(f"no session is called {name[:60]!r}; `holdfast session list --all` shows them")
    if len(matches) > 1:
        raise InvalidInput(f"{name[:60]!r} means more than one session; give more of the id")
    return matches[0]
