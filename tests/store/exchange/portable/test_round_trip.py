"""What is exported and imported elsewhere is the same session."""

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.errors import NotFound
from holdfast.schema.stored import Mark
from holdfast.store.base import Store
from holdfast.store.batch import Put
from holdfast.store.exchange.portable.import_file import Into
from holdfast.store.exchange.portable.report import Counts
from holdfast.store.query import MessageQuery
from tests.store.exchange.portable.world import (
    CHILD,
    GRANDCHILD,
    PARENT,
    assistant,
    commit,
    document,
    entry,
    everything,
    exported,
    msg,
    prt,
    put,
    session,
    taken,
    text,
    user,
)

EPOCH = {
    "id": "epoch-1",
    "sessionID": PARENT,
    "baseline": "You are",
    "snapshot": {"core/date": {"value": 1}},
    "begun": {"core/date": {"value": 1}},
    "cause": "first",
    "pins": {},
    "nested": [],
    "directory": "/p",
    "time": {"created": 1},
}
PROMPT = {
    "id": msg(7),
    "sessionID": PARENT,
    "parts": [{"type": "text", "text": "later", "id": prt(8)}],
    "delivery": "queue",
    "time": {"created": 1},
}
REQUEST = {
    "id": "per_1",
    "sessionID": PARENT,
    "type": "permission",
    "permission": "bash",
    "patterns": ["*"],
    "metadata": {},
    "always": [],
    "tool": {"messageID": msg(3), "callID": "c"},
    "time": {"created": 1},
}


def whole() -> list[Put]:
    """A session with a record of every kind, one message promoted after others were created."""
    first, second = put("message", user(1)), put("message", user(5))
    running = {"status": "running", "input": {}, "metadata": {"sessionId": GRANDCHILD}, "time": {"start": 1}}
    tool = {**text(4, 3), "type": "tool", "callID": "c", "tool": "task", "state": running}
    del tool["text"]
    tail = {**text(6, 5), "type": "compaction", "auto": True, "tail_start_id": msg(1)}
    del tail["text"]
    told = {
        "id": msg(9),
        "sessionID": PARENT,
        "role": "system",
        "time": {"created": 1},
        "text": "It is Monday",
        "snapshot": {"core/date": {"value": 2}},
    }
    return [
        put("session", session(revert={"messageID": msg(3), "partID": prt(4)}, future={"kept": True})),
        put("epoch", EPOCH),
        first,
        put("part", text(2, 1)),
        second,
        put("message", assistant(3, 1, future=1)),
        put("part", tool),
        put("message", told),
        replace(second, placed=True),
        put("part", tail),
        put("prompt", PROMPT),
        put("request", REQUEST),
        put("todo", [{"content": "c", "status": "pending", "priority": "low"}]),
        put("diff", [{"file": "a", "additions": 1, "deletions": 0}]),
        Put(PARENT, "share", PARENT, b'{"id":"s","secret":"hush","url":"https://example.invalid/s"}'),
    ]


async def test_an_unknown_session_cannot_be_exported(store: Store) -> None:
    """`NotFound`, before the first byte."""
    with pytest.raises(NotFound, match="does not exist"):
        await exported(store, CHILD)


async def test_every_kind_of_record_survives(store: Store, other: Store) -> None:
    """Export, import into another store, export: the same bytes; and the second store holds the same."""
    await commit(store, *whole())
    data = await exported(store)

    report = await taken(other, data)

    assert await exported(other) == data
    ones = {kind: Counts(new=1) for kind in ("session", "epoch", "prompt", "request", "todo", "diff")}
    assert report.counts == {**ones, "message": Counts(new=4), "part": Counts(new=3)}
    assert report.sessions == (PARENT,)
    shareless = [record for record in await everything(store) if record[1] != "share"]
    assert sorted(await everything(other)) == sorted(shareless)


async def test_what_is_marked_is_marked_again(store: Store, other: Store) -> None:
    """A file has no marks: they come from what the records say, so a page hides the same messages."""
    await commit(store, *whole())
    await taken(other, await exported(store))

    for each in (store, other):
        told = await each.select("message", session=PARENT, mark=Mark.SYSTEM)
        assert [record.id for record in told] == [msg(9)]
        page = await each.messages(MessageQuery(PARENT, limit=3, system=False, reverted=True))
        assert [message.info.id for message in page.messages] == [msg(1), msg(5), msg(3)]
        assert (page.older, page.newer) == (None, None)


async def test_the_secret_of_a_share_stays_at_home(store: Store) -> None:
    """Neither the share nor its address is in the file."""
    await commit(store, put("session", session(share={"url": "https://example.invalid/s"})), *whole()[-1:])

    data = await exported(store)

    assert b"hush" not in data
    assert b"example.invalid" not in data


async def test_a_promoted_message_keeps_both_its_places(store: Store, other: Store) -> None:
    """Lists show it where it was created, the model's history where it was promoted; epochs keep between."""
    await commit(store, *whole())
    await taken(other, await exported(store))

    for each in (store, other):
        page = await each.messages(MessageQuery(PARENT, reverted=True))
        placed = sorted(page.messages, key=lambda message: message.info.place)
        assert [message.info.id for message in page.messages] == [msg(1), msg(5), msg(3), msg(9)]
        assert [message.info.id for message in placed] == [msg(1), msg(3), msg(9), msg(5)]
        (epoch,) = await each.select("epoch", session=PARENT)
        assert epoch.position < min(message.info.position for message in page.messages)


async def test_descendants_come_along_parents_first(store: Store, other: Store) -> None:
    """The whole family is one file and one commit, in whatever order the file has it."""
    await taken(
        store,
        msgspec.json.encode(
            document(entry(GRANDCHILD, parent=CHILD), entry(PARENT), entry(CHILD, parent=PARENT))
        ),
    )
    data = await exported(store, descendants=True)

    report = await taken(other, data)

    assert report.sessions == (PARENT, CHILD, GRANDCHILD)
    assert report.notes == ()
    assert await exported(other, descendants=True) == data
    assert len(msgspec.json.decode(await exported(store))["sessions"]) == 1


async def test_importing_again_changes_nothing(store: Store) -> None:
    """A session that is there and equal is left alone, and the report says so."""
    data = msgspec.json.encode(document(entry(), entry(CHILD, parent=PARENT)))
    await taken(store, data)
    before = await store.head()

    report = await taken(store, data)

    assert await store.head() == before
    assert not report.changed
    assert report.counts["session"] == Counts(unchanged=2)
    assert report.counts["part"] == Counts(unchanged=4)


async def test_a_child_without_its_parent_stands_alone_and_remembers(store: Store, other: Store) -> None:
    """The parent's id moves to the metadata; a second import finds it equal."""
    await taken(store, msgspec.json.encode(document(entry(), entry(CHILD, parent=PARENT))))
    data = await exported(store, CHILD)

    report = await taken(other, data)
    again = await taken(other, data)

    record = await other.session(CHILD)
    assert record is not None
    made = msgspec.json.decode(record.data)
    assert "parentID" not in made
    assert made["metadata"] == {"parent": {"sessionID": PARENT}}
    assert len(report.notes) == 1
    assert f"its parent {PARENT} is not here" in report.notes[0]
    assert again.counts["session"] == Counts(unchanged=1)


async def test_a_session_can_be_brought_to_another_place(store: Store) -> None:
    """Project, directory, path and placement are the importing place's, if it says so."""
    into = Into(project="p2", directory="/home/alice/x", path="sub", placement="there")

    await taken(store, msgspec.json.encode(document(entry())), into=into)

    record = await store.session(PARENT)
    assert record is not None
    made = msgspec.json.decode(record.data)
    assert [made[name] for name in ("projectID", "directory", "path", "placement")] == [
        "p2",
        "/home/alice/x",
        "sub",
        "there",
    ]


async def test_a_copy_gets_ids_of_its_own_and_its_references_follow(store: Store) -> None:
    """As new: nothing of the original is touched, and no reference of the copy leads back to it."""
    fork = {"fork": {"sessionID": CHILD}}
    await commit(store, put("session", session(CHILD)), *whole())
    changed = session(metadata=fork, revert={"messageID": msg(3), "partID": prt(4)})
    await commit(store, put("session", changed), put("session", session(GRANDCHILD, parent=PARENT)))
    data = await exported(store, descendants=True)
    before = {record[:3] for record in await everything(store)}

    report = await taken(store, data, as_new=True)

    copy, child = report.sessions
    doc = msgspec.json.decode(await exported(store, copy, descendants=True))
    one, two = doc["sessions"]
    messages = [each["info"]["id"] for each in one["messages"]]
    parts = [part for each in one["messages"] for part in each["parts"]]
    _, tail, tool = parts
    records = {each["kind"]: each["value"] for each in one["records"]}
    assert before <= {record[:3] for record in await everything(store)}
    assert not {copy, child, *messages, *(part["id"] for part in parts)} & {id for _, _, id in before}
    assert one["session"]["revert"] == {"messageID": messages[2], "partID": tool["id"]}
    assert one["session"]["metadata"] == fork
    assert two["session"]["parentID"] == copy
    assert one["messages"][2]["info"]["parentID"] == messages[0]
    assert tool["state"]["metadata"] == {"sessionId": child}
    assert tail["tail_start_id"] == messages[0]
    assert records["request"]["tool"]["messageID"] == messages[2]
    assert records["request"]["id"] != "per_1"
    assert records["placed"] == messages[1]
    assert records["prompt"]["id"] not in (msg(7), *messages)
    assert {part["sessionID"] for part in parts} == {copy}
    assert messages == sorted(messages)
    assert (await store.session(PARENT)) is not None
