"""An import can be run again: nothing comes twice, and what is new since is added."""

from pathlib import Path

import msgspec
import pytest

from holdfast.schema.stored import Mark
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Fence, Put, Receipt
from holdfast.store.exchange.opencode import merge
from holdfast.store.exchange.portable.report import Counts
from holdfast.store.query import MessageQuery
from holdfast.testing.clock import START_MS, FakeClock
from holdfast.testing.hosts import FakeHost
from tests.store.exchange.opencode.world import (
    PARENT,
    Db,
    assistant,
    brought,
    held,
    msg,
    parts_of,
    step,
    text,
    tokens,
    user,
)


class Cut(Exception):
    """The import ends here."""


@pytest.fixture
def db(tmp_path: Path) -> Db:
    made = Db(tmp_path / "data" / "opencode.db")
    made.session(cost=0.25, tokens_input=1, tokens_output=2)
    made.exchange()
    return made


async def test_a_second_import_brings_nothing(store: Store, db: Db) -> None:
    """Not one record is written, and the report says so."""
    first = await brought(store, db.path)
    before = await store.head()

    second = await brought(store, db.path)

    assert await store.head() == before
    assert first.changed
    assert not second.changed
    assert second.counts["session"] == Counts(unchanged=1)
    assert second.counts["part"] == Counts(unchanged=3)


async def test_what_a_staged_revert_hides_is_here(store: Store, db: Db) -> None:
    """A session that was taken back over there is known whole: nothing is written or counted again."""
    db.session(revert={"messageID": msg(1)}, cost=0.25, tokens_input=1, tokens_output=2)
    db.exchange()
    await brought(store, db.path)
    before = await held(store)

    again = await brought(store, db.path)

    assert before["session"]["revert"] == {"messageID": msg(1)}
    assert len(before["messages"]) == 2
    assert not again.changed
    assert await held(store) == before


async def test_messages_added_since_are_added_at_the_end(store: Store, db: Db) -> None:
    """The totals grow by what they cost; what came before stays as it is, whatever the source says now."""
    await brought(store, db.path)
    db.part(2, 1, text("edited"))
    db.exchange(6)
    db.session(title="Renamed", time_updated=9000, cost=0.5, tokens_input=2, tokens_output=4)

    report = await brought(store, db.path)

    made = await held(store)
    assert report.counts["session"] == Counts(updated=1)
    assert report.counts["message"] == Counts(new=2, unchanged=2)
    assert [message["info"]["id"] for message in made["messages"]] == [msg(1), msg(3), msg(6), msg(8)]
    assert parts_of(made)[0]["text"] == "hello"
    assert (made["session"]["cost"], made["session"]["tokens"]) == (0.5, tokens(2, 4))
    assert (made["session"]["title"], made["session"]["time"]["updated"]) == ("Mock", 9000)


async def test_a_part_added_since_joins_its_message(store: Store, db: Db) -> None:
    """At the message's end, its cost with it."""
    await brought(store, db.path)
    db.part(9, 3, step(1, 10, 20))

    report = await brought(store, db.path)

    made = await held(store)
    assert report.counts["part"] == Counts(new=1, unchanged=3)
    assert (made["session"]["cost"], made["session"]["tokens"]) == (1.25, tokens(11, 22))


async def test_a_name_that_nobody_gave_follows_the_source(store: Store, db: Db) -> None:
    """A default title is replaced once the source has a better one."""
    db.session(title="New session - 2026-11-15T06:42:04.661Z")
    await brought(store, db.path)
    db.session(title="Fix the tests", cost=0.25)
    db.exchange(6)

    await brought(store, db.path)

    assert (await held(store))["session"]["title"] == "Fix the tests"


async def test_a_session_that_runs_here_is_left_alone(store: Store, db: Db) -> None:
    """Its owner writes to it; the import waits for another time."""
    await brought(store, db.path)
    db.exchange(6)
    owner = FakeHost().owner("owner1", placements=("hostA",))
    await store.register(owner)
    assert isinstance(await store.claim(PARENT, owner.id), Fence)

    report = await brought(store, db.path)

    assert report.counts["session"] == Counts(skipped=1)
    assert report.skipped[0].why == "it is running here; import again when it is idle"
    assert len((await held(store))["messages"]) == 2


async def test_what_the_store_refuses_costs_only_its_session(store: Store, db: Db) -> None:
    """A part that belongs to another message here is a conflict of that session; the others come."""
    other = PARENT[:-1] + "X"
    await brought(store, db.path)
    stray = Put(PARENT, "part", "prt_1ddf10d20007HHwMVX2nnRNWcv", b'{"type":"text","text":"x"}', msg(1))
    await store.commit(Batch((stray,)))
    db.exchange(6)
    db.session(other)

    report = await brought(store, db.path)

    assert report.counts["session"] == Counts(new=1, skipped=1)
    assert "belongs to another message" in report.skipped[0].why


async def test_what_is_being_written_waits_for_the_next_import(store: Store, db: Db) -> None:
    """An unfinished answer of a few minutes ago is left out with all after it; later it comes whole."""
    db.message(6, user(6), created=START_MS - 2000)
    db.message(7, assistant(7, 6, time={"created": START_MS - 1000}), created=START_MS - 1000)

    early = await brought(store, db.path)
    db.message(7, assistant(7, 6, finish="stop"), created=START_MS - 1000)
    late = await brought(store, db.path)

    assert early.counts["message"] == Counts(new=3, skipped=1)
    assert "may still be writing it" in early.skipped[0].why
    assert late.counts["message"] == Counts(new=1, unchanged=3)
    assert (await held(store))["messages"][-1]["info"]["finish"] == "stop"


async def test_what_was_broken_off_long_ago_is_closed(store: Store, db: Db) -> None:
    """Nothing imported is open, so nothing comes to life by itself; a tool's outcome is unknown."""
    db.message(6, assistant(6, 1, time={"created": 1006}))
    running = {"status": "running", "input": {"command": "ls"}, "time": {"start": 1007}, "metadata": {"a": 1}}
    db.part(7, 6, {"type": "tool", "callID": "c", "tool": "bash", "state": running})
    db.part(
        8, 6, {"type": "tool", "callID": "d", "tool": "bash", "state": {"status": "pending", "input": {}}}
    )
    db.part(9, 6, text("half", time={"start": 1008}))

    await brought(store, db.path, clock=FakeClock(START_MS))

    page = await store.messages(MessageQuery(PARENT))
    marks = {record.mark for each in page.messages for record in (each.info, *each.parts)}
    assert marks == {Mark.NONE}
    made = (await held(store))["messages"][-1]
    assert made["info"]["time"] == {"created": 1006, "completed": 1008}
    assert made["info"]["error"]["name"] == "MessageAbortedError"
    assert made["parts"][0]["state"]["metadata"] == {"a": 1, "outcome": "unknown", "interrupted": True}
    assert made["parts"][0]["state"]["time"] == {"start": 1007, "end": 1007}
    assert made["parts"][2]["time"] == {"start": 1008, "end": 1008}


async def test_a_long_session_comes_in_commits_of_bounded_size(
    store: Store, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off after the first of them, the import is run again: nothing doubled, the totals right."""
    monkeypatch.setattr(merge, "BATCH_RECORDS_MAX", 5)
    db.exchange(6)
    db.exchange(11)
    db.session(cost=9.75, tokens_input=3, tokens_output=6)
    sizes: list[int] = []
    commit = store.commit

    async def cut(batch: Batch) -> Receipt:
        sizes.append(len(batch.changes))
        if len(sizes) == 3:  # the project, a first commit, and then no more
            raise Cut
        return await commit(batch)

    monkeypatch.setattr(store, "commit", cut)
    with pytest.raises(Cut):
        await brought(store, db.path)
    half = await held(store)
    monkeypatch.setattr(store, "commit", commit)
    report = await brought(store, db.path)

    made = await held(store)
    assert max(sizes) <= 6
    assert 0 < len(half["messages"]) < len(made["messages"]) == 6
    assert half["session"]["cost"] == 9.25
    assert report.counts["session"] == Counts(updated=1)
    assert (made["session"]["cost"], made["session"]["tokens"]) == (9.75, tokens(3, 6))
    assert [part["type"] for part in parts_of(made)] == ["text", "text", "step-finish"] * 3


async def test_lists_follow_when_the_source_has_moved_on(store: Store, db: Db) -> None:
    """A todo list that was changed here stays, until the source has new messages."""
    row = {"session_id": PARENT, "status": "pending", "priority": "low", "position": 0}
    times = {"time_created": 1, "time_updated": 1}
    db.insert("todo", content="theirs", **row, **times)
    await brought(store, db.path)
    ours = msgspec.json.encode([{"content": "ours", "status": "pending", "priority": "low"}])
    await store.commit(Batch((Put(PARENT, "todo", PARENT, ours),)))

    await brought(store, db.path)
    kept = (await held(store))["todos"]
    db.exchange(6)
    report = await brought(store, db.path)

    assert report.counts["todo"] == Counts(updated=1)
    assert kept[0]["content"] == "ours"
    assert (await held(store))["todos"][0]["content"] == "theirs"
