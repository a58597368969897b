"""A replica built from the feed, from any cursor, equals the store; no child comes before its parent."""

import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Remove
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.store_contract.build import msg, prt, ses, session, text, user
from holdfast.testing.store_contract.replica import Replica, contents
from tests.examples import examples

number = st.integers(0, 2)
action = st.one_of(
    st.tuples(st.just("session"), number, number, number),
    st.tuples(st.just("child"), number, number, number),
    st.tuples(st.just("message"), number, number, number),
    st.tuples(st.just("part"), number, number, number),
    st.tuples(st.just("remove message"), number, number, number),
    st.tuples(st.just("remove part"), number, number, number),
    st.tuples(st.just("erase"), number, number, number),
    st.tuples(st.just("follow"), number, number, number),
    st.tuples(st.just("join"), number, number, number),
)


async def act(store: Store, what: str, a: int, b: int, c: int) -> None:
    """One change; what cannot be done is refused and changes nothing."""
    one, message, part = ses(a + 1), 10 * a + b, 100 + 100 * a + 10 * b + c
    try:
        match what:
            case "session":
                await store.commit(Batch((session(one, title=f"{b}{c}"),)))
            case "child":
                await store.commit(Batch((session(ses(10 + a), parent=ses(b + 1)),)))
            case "message":
                await store.commit(Batch((user(message, session=one, agent=str(c)),)))
            case "part":
                await store.commit(Batch((text(part, message, str(c), session=one),)))
            case "remove message":
                await store.commit(Batch((Remove(one, "message", msg(message)),)))
            case "remove part":
                await store.commit(Batch((Remove(one, "part", prt(part)),)))
            case "erase":
                await store.erase(one)
            case _:
                pass  # A follower's turn, while there is none.
    except HoldfastError:
        pass


async def check(actions: list[tuple[str, int, int, int]]) -> None:
    """Two writers, and followers that come at any moment and read page by page."""
    with tempfile.TemporaryDirectory() as folder:
        writers = [await SqliteStore.open(Path(folder) / "s.db", clock=FakeClock()) for _ in range(2)]
        followers: list[tuple[Replica, int, str | None]] = []
        for count, (what, a, b, c) in enumerate(actions):
            if what == "join":
                followers.append((Replica(), a + 1, ses(b + 1) if c == 2 else None))
            elif what == "follow" and followers:
                replica, limit, only = followers[a % len(followers)]
                await replica.follow(writers[0], only, limit=limit)
            else:
                await act(writers[count % 2], what, a, b, c)
        for replica, limit, only in followers:
            # What changed while a batch was under way comes in the next one, so there are two to read.
            await replica.catch_up(writers[1], only, limit=limit)
            await replica.catch_up(writers[1], only, limit=limit)
            fresh = Replica()
            await fresh.catch_up(writers[0], only)
            assert replica.records == fresh.records
            if only is None:
                assert await contents(writers[0]) == fresh.records
        for writer in writers:
            await writer.close()


@pytest.mark.ci
@settings(max_examples=examples(60))
@given(st.lists(action, max_size=60))
def test_a_replica_from_any_cursor_equals_the_store(actions: list[tuple[str, int, int, int]]) -> None:
    """Creates, updates, removals and ids made anew by two writers, followed in pages of one to three."""
    anyio.run(check, actions)
