"""Opens a store by its URL. Each engine is imported only when it is asked for."""

from collections.abc import Callable
from pathlib import Path

from holdfast.clock import Clock
from holdfast.errors import InvalidInput
from holdfast.store.base import Store
from holdfast.store.host import Host
from holdfast.store.store_url import find_place


async def open_store(
    url: str | None = None,
    *,
    create: bool = True,
    adopt: bool = False,
    clock: Clock | None = None,
    host: Host | None = None,
    start_backup: Callable[[Path], None] | None = None,
) -> Store:
    """The store at a URL (see `place`). `create` makes a new one; `adopt` takes over a tree of OpenCode's.

    `start_backup` is called with the path of a SQLite store that is written and whose daily backup is due.
    """
    place = find_place(url)
    if adopt and place.engine != "files":
        raise InvalidInput("only a files store (file:///PATH) can adopt a tree that OpenCode made")
    if place.engine == "postgres":
        from holdfast.store.postgres.store import PostgresStore

        return await PostgresStore.open(place.url, create=create, clock=clock, host=host)
    assert place.path is not None, "only PostgreSQL has no path"
    if place.engine == "files":
        from holdfast.store.files.store import FilesStore

        return await FilesStore.open(place.path, create=create, adopt=adopt, clock=clock, host=host)
    from holdfast.store.sqlite.store import SqliteStore

    return await SqliteStore.open(
        place.path, create=create, clock=clock, host=host, start_backup=start_backup
    )
