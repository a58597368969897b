"""Opens the store for a command: plainly and synchronously to read SQLite, else with an event loop."""

import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from holdfast.cli.root import Choice
from holdfast.errors import StoreMissing
from holdfast.schema.stored import Kind, Mark
from holdfast.store.query import MessageQuery, SessionQuery
from holdfast.store.record import JsonPage, MessagePage, SessionPage, SessionRecord, StoredRecord
from holdfast.store.store_url import StoreUrl, find_place

if TYPE_CHECKING:
    import asyncio

    from holdfast.app import Holdfast
    from holdfast.store.base import Store

T = TypeVar("T")


class Reading(Protocol):
    """What a command that only reads asks a store."""

    def session(self, id: str) -> SessionRecord | None: ...

    def sessions(self, query: SessionQuery) -> SessionPage: ...

    def messages(self, query: MessageQuery) -> MessagePage: ...

    def messages_json(self, query: MessageQuery) -> JsonPage: ...

    def select(self, kind: Kind, session: str | None, mark: Mark | None) -> Sequence[StoredRecord]: ...


def choice_of(ctx: click.Context) -> Choice:
    """What the user chose for the whole command."""
    choice = ctx.find_root().obj
    assert isinstance(choice, Choice), "the root command sets it"
    return choice


def place_of(ctx: click.Context) -> StoreUrl:
    """The store that the user named, or the default."""
    return find_place(choice_of(ctx).store)


@contextmanager
def reading(ctx: click.Context) -> Iterator[Reading | None]:
    """The store, to be read; None where the default store does not exist yet, which is no error."""
    place = place_of(ctx)
    if place.engine == "sqlite":
        yield from _sqlite(place, named=_is_named(ctx))
        return
    import asyncio

    from holdfast.store.open import open_store

    with asyncio.Runner() as runner:
        store = runner.run(open_store(place.url, create=False, adopt=choice_of(ctx).adopt))
        try:
            yield _Waiting(runner, store)
        finally:
            runner.run(store.close())


def _is_named(ctx: click.Context) -> bool:
    return bool(choice_of(ctx).store or os.environ.get("HOLDFAST_STORE"))


def _sqlite(place: StoreUrl, *, named: bool) -> Iterator[Reading | None]:
    """Read with no thread and no event loop: one connection, one snapshot."""
    import apsw

    from holdfast.clock import SystemClock
    from holdfast.store.host import ThisHost
    from holdfast.store.sqlite.database import Database, translated
    from holdfast.store.tables.leases import Leases
    from holdfast.store.tables.reader import Reader

    assert place.path is not None
    database = Database(place.path)
    try:
        database.prepare(create=False)
    except StoreMissing:
        if named or database.exists():
            raise
        yield None
        return
    except apsw.Error as error:
        raise translated(error, place.path) from error
    db = database.connect(readonly=True)
    try:
        db.execute("BEGIN")
        yield Reader(db, Leases(db, SystemClock(), ThisHost()).living)
    except apsw.Error as error:
        raise translated(error, place.path) from error
    finally:
        db.close()


class _Waiting:
    """An asynchronous store, one question at a time."""

    def __init__(self, runner: "asyncio.Runner", store: "Store") -> None:
        self._runner = runner
        self._store = store

    def session(self, id: str) -> SessionRecord | None:
        return self._runner.run(self._store.session(id))

    def sessions(self, query: SessionQuery) -> SessionPage:
        return self._runner.run(self._store.sessions(query))

    def messages(self, query: MessageQuery) -> MessagePage:
        return self._runner.run(self._store.messages(query))

    def messages_json(self, query: MessageQuery) -> JsonPage:
        return self._runner.run(self._store.messages_json(query))

    def select(self, kind: Kind, session: str | None, mark: Mark | None) -> Sequence[StoredRecord]:
        return self._runner.run(self._store.select(kind, session=session, mark=mark))


def with_holdfast(
    ctx: click.Context,
    work: "Callable[[Holdfast], Coroutine[Any, Any, T]]",
    *,
    create: bool = False,
    url: str | None = None,
) -> T:
    """Do something with an open runtime; the one place where the command line runs an event loop.

    `url` is another store than the one that the user named.
    """
    import asyncio

    from holdfast.app import open as open_holdfast
    from holdfast.cli.config.own import own_log_level
    from holdfast.log import setup

    async def main() -> T:
        place = place_of(ctx).url if url is None else url
        async with open_holdfast(place, create=create, adopt=choice_of(ctx).adopt) as hf:
            return await work(hf)

    setup.start_stderr(verbose=False)
    setup.start_file(own_log_level)
    try:
        return asyncio.run(main())
    except BaseExceptionGroup as group:
        raise _leaf(group) from group
    finally:
        setup.stop_file()


def _leaf(error: BaseException) -> BaseException:
    """The error inside groups of them: the user reads what happened, not how tasks are grouped."""
    return _leaf(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
