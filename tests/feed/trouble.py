"""What tests about trouble share."""

from collections.abc import Callable
from typing import Any

from holdfast.store.sqlite.store import SqliteStore


def before_changes(store: SqliteStore, work: Callable[[str | None], Any]) -> None:
    """Do something each time just before the store is asked for changes."""
    plain = store.changes

    async def changes(cursor: str | None, *arguments: Any, **options: Any) -> Any:
        await work(cursor)
        return await plain(cursor, *arguments, **options)

    store.changes = changes  # type: ignore[method-assign]
