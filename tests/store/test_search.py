"""Search over many texts: the answer does not wait for the index, and says how far that is."""

import contextlib
from pathlib import Path

import apsw
import pytest

from holdfast.store.base import Store
from holdfast.store.batch import Batch, Remove
from holdfast.store.open import open_store
from holdfast.store.query import SearchQuery
from holdfast.store.sqlite.database import Database
from holdfast.store.tables import search
from holdfast.store.tables.shell import Shell
from holdfast.testing.store_contract.build import S1, msg, prt, ses, session, text, user

COUNT = 60


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that has time for ten records before it is asked."""
    monkeypatch.setattr(search, "CHUNK", 10)
    monkeypatch.setattr(search, "CATCH_UP_S", -1)


async def filled(url: str) -> Store:
    """A store with so many sessions of one text each."""
    store = await open_store(url)
    for n in range(1, COUNT + 1):
        await store.commit(
            Batch((session(ses(n)), user(n, session=ses(n)), text(n, n, f"word w{n}", session=ses(n))))
        )
    return store


@pytest.mark.ci
@pytest.mark.parametrize("engine", ["sqlite", "file"])
async def test_a_first_search_answers_from_what_is_indexed_and_goes_on(engine: str, tmp_path: Path) -> None:
    """The share rises from answer to answer; what was indexed by itself meanwhile is in the next one."""
    store = await filled(f"{engine}://{tmp_path}/store")
    assert isinstance(store, Shell)
    found = await store.search(SearchQuery("word", limit=1000))
    assert 0 < len(found) < COUNT
    assert found.indexed == pytest.approx(len(found) / COUNT, abs=0.03)
    assert (await store.search(SearchQuery("nowhere"))).indexed > found.indexed

    indexing = store._indexing
    assert indexing is not None
    await indexing
    found = await store.search(SearchQuery("word", limit=1000))
    assert (len(found), found.indexed) == (COUNT, 1)
    assert {hit.session for hit in found} == {ses(n) for n in range(1, COUNT + 1)}
    await store.close()


@pytest.mark.ci
@pytest.mark.parametrize("engine", ["sqlite", "file"])
async def test_what_is_removed_leaves_an_index_that_is_not_complete(engine: str, tmp_path: Path) -> None:
    """At once, and without the rest being indexed first."""
    store = await filled(f"{engine}://{tmp_path}/store")
    await store.search(SearchQuery("word"))
    before = words(tmp_path)
    await store.commit(Batch((Remove(ses(1), "part", prt(1)), Remove(ses(2), "message", msg(2)))))
    await store.erase(ses(3))
    after = words(tmp_path)
    assert {"w1", "w2", "w3"} <= before
    assert before - after == {"w1", "w2", "w3"}
    assert len(after) < COUNT
    await store.close()


def words(place: Path) -> set[str]:
    """Every word in the index that stands for one text."""
    (path,) = place.rglob("*-search")
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("CREATE VIRTUAL TABLE temp.seen USING fts5vocab(main, words, 'row')")
        return {
            term
            for (term,) in db.execute("SELECT term FROM temp.seen")
            if term.startswith("w") and term[1:].isdigit()
        }


async def test_the_best_hits_of_a_common_word_are_those_of_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only so many are rated; a rare word is rated everywhere, and a project or session by itself."""
    monkeypatch.setattr(search, "CATCH_UP_S", 10)
    monkeypatch.setattr(search, "RANKED_MAX", 5)
    store = await filled(f"sqlite://{tmp_path}/store")
    found = await store.search(SearchQuery("word", limit=100))
    assert {hit.session for hit in found} == {ses(n) for n in range(COUNT - 4, COUNT + 1)}
    assert len(await store.search(SearchQuery("word", limit=100, order="newest"))) == COUNT
    assert [hit.session for hit in await store.search(SearchQuery("word w2"))] == [ses(2)]
    assert [hit.session for hit in await store.search(SearchQuery("word", session=S1))] == [S1]
    await store.close()


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_search_writes_the_index_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readonly: bool
) -> None:
    """The store is opened to be read, with the index beside it. Where this user may only read, the index is
    in the memory of that connection, which must be able to write it.
    """
    await (await open_store(f"sqlite://{tmp_path}/store.db")).close()
    database, asked = Database(tmp_path / "store.db"), list[bool]()
    database.readonly = readonly
    connect = database.connect

    def connected(*, readonly: bool = False) -> apsw.Connection:
        asked.append(readonly)
        return connect(readonly=readonly)

    monkeypatch.setattr(database, "connect", connected)
    search.Search(database).close()
    assert asked == [not readonly]
    assert database.search_path.exists() != readonly
