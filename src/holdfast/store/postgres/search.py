"""Full-text search: words that the commit put beside each record, found by words and nothing else."""

from holdfast.errors import InvalidInput
from holdfast.schema.stored import KINDS
from holdfast.store.postgres.connections import Connections
from holdfast.store.postgres.reader import plain
from holdfast.store.postgres.sql import statements
from holdfast.store.query import SearchQuery
from holdfast.store.record import Found, Hit
from holdfast.store.search_text import query_words, searchable, snippet

HITS_MAX = 1000
_ORDER = {"best": "rank DESC, born DESC, position DESC", "newest": "born DESC, n DESC, position DESC"}


async def search(connections: Connections, schema: str, query: SearchQuery) -> Found:
    """The hits of a query."""
    words = query_words(query.text)
    try:
        scope = [None if each is None else plain(each) for each in (query.project, query.session)]
    except InvalidInput:
        return Found()
    if not words:
        return Found()
    limit = min(max(query.limit, 1), HITS_MAX)
    statement = f"{statements(schema)['search']} ORDER BY {_ORDER[query.order]} LIMIT {limit}"
    async with connections.use() as connection:
        rows = await connection.fetch(statement, " & ".join(f"'{word}'" for word in words), *scope)
    hits = (
        Hit(
            session=row["session"],
            title=row["title"],
            message=row["message"],
            part=row["id"],
            snippet=snippet(searchable(KINDS[row["kind"]], row["data"].encode()), words),
        )
        for row in rows
    )
    return Found(tuple(hits))
