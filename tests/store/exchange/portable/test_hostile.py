"""Files that mean harm, or mean nothing: one clear line that says where, and nothing written."""

import copy
import os
import resource
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.store.base import Store
from tests.store.exchange.portable.world import (
    CHILD,
    GRANDCHILD,
    PARENT,
    document,
    entry,
    everything,
    msg,
    taken,
)

BAD_IDS = [
    "../../etc/passwd",
    "ses_a/b",
    "ses_..",
    "ses_a\0b",
    "ses_*",
    "",
    "ses_" + "a" * 10_000,
    "project_x",
]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def spoilt(path: str, value: Any) -> dict[str, Any]:
    """A good file with one thing in it replaced, or removed when the value is `...`."""
    made: dict[str, Any] = copy.deepcopy(document(entry()))
    node: Any = made
    *way, last = path.split(".")
    for step in way:
        node = node[int(step) if step.isdigit() else step]
    if value is ...:
        del node[last]
    else:
        node[int(last) if last.isdigit() else last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("sessions", {}, "Expected `array`, got `object` - at `$.sessions`"),
        ("sessions.0", [], "at `$.sessions[0]`"),
        ("sessions.0.session", 7, "$.sessions[0].session: Expected `object`"),
        ("sessions.0.session.id", ..., "$.sessions[0].session: Object missing required field `id`"),
        ("sessions.0.session.title", ..., "$.sessions[0].session: "),
        ("sessions.0.session.time.created", "now", "$.time.created"),
        ("sessions.0.session.parentID", "../x", "$.sessions[0].session.parentID: "),
        ("sessions.0.session.parentID", PARENT, "$.sessions[0].session.parentID: "),
        ("sessions.0.messages", ..., "`messages` - at `$.sessions[0]`"),
        ("sessions.0.messages.1.info", [], "$.sessions[0].messages[1].info: "),
        ("sessions.0.messages.1.info.role", "tool", "$.sessions[0].messages[1].info: "),
        (
            "sessions.0.messages.1.info.id",
            msg(1),
            "message msg_000000000001AAAAAAAAAAAAAA stands in the session twice",
        ),
        ("sessions.0.messages.1.info.id", "msg_/../x", "$.sessions[0].messages[1].info.id: "),
        ("sessions.0.messages.1.info.id", "prt_x", "does not start with 'msg'"),
        ("sessions.0.messages.1.info.sessionID", CHILD, "$.sessions[0].messages[1].info.sessionID is "),
        (
            "sessions.0.messages.1.parts.0.messageID",
            msg(1),
            "$.sessions[0].messages[1].parts[0].messageID is ",
        ),
        ("sessions.0.messages.1.parts.0.type", "future", "$.sessions[0].messages[1].parts[0]: "),
        ("sessions.0.messages.1.parts.0.id", "prt_000000000002AAAAAAAAAAAAAA", "stands in the session twice"),
        ("sessions.0.records", [{"after": 9, "kind": "placed", "value": msg(1)}], "only 2 messages"),
        ("sessions.0.records", [{"after": 0, "kind": "placed", "value": msg(1)}], "does not stand before it"),
        ("sessions.0.records", [{"after": 1, "kind": "share", "value": {}}], "$.sessions[0].records[0].kind"),
        (
            "sessions.0.records",
            [{"after": -1, "kind": "placed", "value": "x"}],
            "$.sessions[0].records[0].after",
        ),
        ("sessions.0.todos", [{"content": "x"}], "$.sessions[0].todos: "),
        ("sessions.0.more", 1, "unknown field `more` - at `$.sessions[0]`"),
        ("holdfast", 2, "written by a later version"),
        ("holdfast", "1", "$.holdfast: Expected `int`"),
        ("holdfast", 0, "not a version"),
    ],
)
async def test_a_file_of_the_wrong_shape_is_refused_with_the_place_of_its_fault(
    store: Store, path: str, value: Any, said: str
) -> None:
    """Wrong types, missing fields, ids that repeat, references that disagree: each names its path."""
    with pytest.raises(InvalidInput) as refusal:
        await taken(store, msgspec.json.encode(spoilt(path, value)))

    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert await everything(store) == []


@pytest.mark.parametrize("id", BAD_IDS)
async def test_an_id_that_could_be_a_path_is_refused(store: Store, tmp_path: Path, id: str) -> None:
    """Ids with slashes, dots, stars, NUL or 10 kB never reach the store, in either format."""
    before = names(tmp_path)
    ours = document(entry(id))
    theirs = {"info": ours["sessions"][0]["session"], "messages": []}

    for data in (ours, theirs):
        with pytest.raises(InvalidInput, match=r"\$\.(sessions\[0\]\.session|info)\.id: "):
            await taken(store, msgspec.json.encode(data))

    assert await everything(store) == []
    assert names(tmp_path) == before


async def test_sessions_that_are_their_own_ancestors_are_refused(store: Store) -> None:
    """A circle of parents, of any length, is an error and not an endless loop."""
    circle = document(
        entry(PARENT, parent=GRANDCHILD), entry(CHILD, parent=PARENT), entry(GRANDCHILD, parent=CHILD)
    )

    with pytest.raises(InvalidInput, match="is its own ancestor"):
        await taken(store, msgspec.json.encode(circle))

    assert await everything(store) == []


async def test_a_session_that_stands_in_the_file_twice_is_refused(store: Store) -> None:
    """Which of the two would be meant?"""
    with pytest.raises(InvalidInput, match=r"\$\.sessions\[1\]\.session\.id: session .* twice"):
        await taken(store, msgspec.json.encode(document(entry(), entry())))


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x01\x02",
        b"not json",
        b"\xff\xfe{}",
        b"[]",
        b"null",
        b"{}",
        b'{"holdfast":1',
        b'{"holdfast":1,"sessions":' + DEEP,
        b'{"holdfast":1,"sessions":[' + DEEP + b"]" * 100_000 + b"]}",
        b'{"info":' + DEEP + b"]" * 100_000 + b',"messages":[]}',
        b'{"info":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b',"messages":[]}',
        b'{"info":{"id":"\\ud800"},"messages":[]}',
        msgspec.json.encode(document(entry()))[:-20],
    ],
    ids=lambda data: repr(data[:24]),
)
async def test_what_is_no_session_file_is_refused_in_one_line(store: Store, data: bytes) -> None:
    """Empty, binary, truncated, of another shape, or 100,000 brackets deep."""
    with pytest.raises(InvalidInput) as refusal:
        await taken(store, data)

    assert 0 < len(str(refusal.value)) < 500
    assert str(refusal.value).isprintable()
    assert await everything(store) == []


async def test_content_that_is_nested_too_deeply_for_the_store_is_refused(store: Store) -> None:
    """Free JSON inside a record may be deep, but only as deep as can be read back."""
    data = msgspec.json.encode(spoilt("sessions.0.session.metadata", {"x": 0}))
    data = data.replace(b'{"x":0}', b'{"x":' * 90_000 + b"0" + b"}" * 90_000)

    with pytest.raises(InvalidInput, match="nested too deeply"):
        await taken(store, data)


async def test_a_file_beyond_the_limit_is_not_read(store: Store, tmp_path: Path) -> None:
    """The size is looked at first: a sparse file of a terabyte costs nothing."""
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(InvalidInput, match="has 1099511627776 bytes; at most 536870912 are read"):
        await taken(store, huge)
    with pytest.raises(InvalidInput, match="at most 10 are read"):
        await taken(store, b"{" * 11, file_bytes_max=10)


async def test_what_is_no_regular_file_is_refused(store: Store, tmp_path: Path) -> None:
    """A folder, a pipe (which would never end) and nothing at all each get their own answer."""
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(InvalidInput, match="is not a file"):
            await taken(store, path)
    with pytest.raises(NotFound, match="does not exist"):
        await taken(store, tmp_path / "absent.json")
    with pytest.raises(InvalidInput, match="NUL"):
        await taken(store, "a\0b")


@pytest.mark.ci
async def test_a_file_of_100_mb_is_read_with_memory_in_proportion(store: Store) -> None:
    """A hundred megabytes of parts come in, or are refused at their last byte, within 700 MB more."""
    parts = [
        {"id": f"prt_{n:012x}AAAAAAAAAAAAAA", "sessionID": PARENT, "messageID": msg(1), "type": "text"}
        | {"text": "x" * 10_000}
        for n in range(10_000)
    ]
    good = entry()
    good["messages"] = [{"info": good["messages"][0]["info"], "parts": parts}]
    data = msgspec.json.encode(document(good))
    assert len(data) > 100_000_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(InvalidInput):
        await taken(store, data[:-3])
    assert await everything(store) == []
    report = await taken(store, data)

    assert report.counts["part"].new == 10_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700_000


async def test_a_conflict_in_one_session_keeps_the_whole_file_out(store: Store) -> None:
    """All or nothing: a new session beside one that differs is not written either."""
    await taken(store, msgspec.json.encode(document(entry())))
    before = await everything(store)
    changed = entry()
    changed["session"]["title"] = "Another"

    with pytest.raises(Conflict, match=f"session {PARENT} is already here with other content; nothing"):
        await taken(store, msgspec.json.encode(document(entry(CHILD), changed)))

    assert await everything(store) == before
