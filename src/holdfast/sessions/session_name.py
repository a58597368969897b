"""What a person may mean by the name of a session: an id, the beginning of one, or a slug. Pure."""

from holdfast.errors import InvalidInput, NotFound
from holdfast.store.query import SessionQuery
from holdfast.store.record import SessionRecord

PREFIX_MIN = 4


def name_queries(name: str) -> list[SessionQuery]:
    """The questions that find what a person may mean by a name."""
    queries = [SessionQuery(slug=name, archived=None, agent_runs=None, limit=2)]
    prefix = name if name.startswith("ses_") else f"ses_{name}"
    if len(prefix) >= PREFIX_MIN + len("ses_"):
        queries.append(SessionQuery(id_prefix=prefix, archived=None, agent_runs=None, limit=2))
    return queries


def the_one(name: str, matches: list[SessionRecord]) -> SessionRecord:
    """The only match, or an error that says what to do."""
    if not matches:
        raise NotFound(f"no session is called {name[:60]!r}; `holdfast session list --all` shows them")
    if len(matches) > 1:
        raise InvalidInput(f"{name[:60]!r} means more than one session; give more of the id")
    return matches[0]
