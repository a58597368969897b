"""Forks: equal, byte for byte, to what copying record by record gives, on every engine."""

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.app import Holdfast
from holdfast.errors import RecordCorrupt
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Put, Receipt
from holdfast.store.query import MessageQuery
from holdfast.store.record import StoredMessage
from holdfast.testing.store_contract.build import (
    S1,
    assistant,
    compaction,
    msg,
    part,
    prompt,
    prt,
    session,
    text,
    user,
)
from tests.store.postgres.server import schema_url

ENGINES = [
    "sqlite",
    "file",
    pytest.param("postgres", marks=pytest.mark.ci("most of the work is done by a database server")),
]

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def odd(n: int, message: int, data: bytes, mark: Mark = Mark.NONE) -> Put:
    """A part with this JSON, as it is."""
    return msgspec.structs.replace(part(n, message, {}), data=data, mark=mark)


def history() -> tuple[Put, ...]:
    """Content that a careless copy would change: ids in texts, in keys, in inner fields; blanks, escapes."""
    one, name = msg(1), msg(1).encode()
    twice = msgspec.json.decode(assistant(20, 1).data) | {"structured": {"parentID": one}}
    return (
        session(),
        user(1),
        text(2, 1, f'"{one}" {one} "parentID":"{one}" \\u0041 é \U0001f600 \u2028'),
        assistant(3, 1),
        odd(
            4,
            3,
            b'{"type":"text","text":"\\"tail_start_id\\":\\"%b\\"","parentID":"%b"}' % (name, name),
        ),
        odd(
            5,
            3,
            b'{"type":"tool","callID":"%b","tool":"t","state":{"status":"completed","input":{"parentID":'
            b'"%b"},"output":"\\ud83d\\ude00","title":"","metadata":{"x":1.0e3},"time":{"start":1,"end":2}}}'
            % (name, name),
        ),
        odd(
            6,
            3,
            b'{"type":"step-finish","reason":"stop","cost":0.5,"tokens":{"input":1,"output":2,'
            b'"reasoning":0,"cache":{"read":0,"write":0}},"unknown":{"prefix":null}}',
        ),
        user(7),
        compaction(8, 7, tail=1),
        assistant(9, 7, summary=True),
        compaction(10, 9, tail=77),
        odd(
            11,
            9,
            b'{"type":"text","text":"x","tail_start_id":"%b","inner":{"tail_start_id":"%b"}}' % (name, name),
        ),
        Put(S1, "message", msg(20), msgspec.json.encode(twice)),
        assistant(21, 30),
        user(30),
        assistant(31, 30, mark=Mark.OPEN),
        text(32, 1, "late"),
        user(40),
        prompt(40),
        text(41, 40, "waits"),
        user(50),
        text(51, 50, "the cut"),
    )


def by_hand(kept: list[StoredMessage], copied: tuple[StoredMessage, ...]) -> list[Any]:
    """What copying record by record gives, with the ids that the copies have."""
    names: dict[bytes, msgspec.Raw] = {}
    made = []
    for old, new in zip(kept, copied, strict=True):
        names[b'"%b"' % old.info.id.encode()] = msgspec.Raw(b'"%b"' % new.info.id.encode())
        made.append((new.info.id, old.info.mark, renamed(old.info.data, "parentID", names)))
        made += [
            (copy.id, each.mark, renamed(each.data, "tail_start_id", names))
            for each, copy in zip(old.parts, new.parts, strict=True)
        ]
    return made


def renamed(data: bytes, field: str, names: dict[bytes, msgspec.Raw]) -> bytes:
    """Decode, replace, encode."""
    fields = _fields.decode(data)
    name = names.get(bytes(fields.get(field, b"")))
    return data if name is None else msgspec.json.encode(fields | {field: name})


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_fork_is_what_copying_record_by_record_gives(engine: str, tmp_path: Path) -> None:
    """Cut and whole; only the parent of an answer and the tail of a compaction are named anew."""
    url = schema_url(tmp_path) if engine == "postgres" else f"{engine}://{tmp_path}/store"
    async with holdfast.open(url) as hf:
        await hf.store.commit(Batch(history()))
        source = (await hf.store.messages(MessageQuery(S1))).messages
        gone = {msg(31), msg(40)}
        for cut, expected in (
            (msg(50), source[:-1]),
            (msg(40), source[:-2]),
            (None, source),
            (msg(3), source[:1]),
        ):
            forked = await hf.sessions.fork(S1, cut)
            copied = (await hf.store.messages(MessageQuery(forked.id))).messages
            kept = [each for each in expected if each.info.id not in gone]
            records = [record for each in copied for record in (each.info, *each.parts)]
            assert [(each.id, each.mark, each.data) for each in records] == by_hand(kept, copied)
            assert [each.id.partition("_")[2] for each in records] == sorted(
                {each.id.partition("_")[2] for each in records}
            )
            assert [each.place for each in records] == [each.seq for each in records]
        assert (await hf.store.messages(MessageQuery(S1))).messages == source


async def test_a_fork_begins_again_when_its_source_changed(
    hf: Holdfast, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is copied is what was there at one moment: a part that is written meanwhile is read again."""
    await hf.store.commit(Batch(history()))
    read = hf.store.originals
    written: list[Receipt] = []

    async def originals(session: str, below: int | None = None) -> Any:
        found = await read(session, below)
        if not written:
            written.append(await hf.store.commit(Batch((text(2, 1, "meanwhile"),))))
        return found

    monkeypatch.setattr(hf.store, "originals", originals)
    forked = await hf.sessions.fork(S1, msg(3))
    (copied,) = (await hf.store.messages(MessageQuery(forked.id))).messages
    assert [msgspec.json.decode(part.data)["text"] for part in copied.parts] == ["meanwhile", "late"]


async def test_a_message_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Where its reference would have to be read; nothing is made."""
    async with holdfast.open(f"sqlite://{tmp_path}/store") as hf:
        await hf.store.commit(Batch(history()))
        db = sqlite3.connect(tmp_path / "store")
        with db:
            db.execute("UPDATE record SET data='{' WHERE id=?", (msg(3),))
        db.close()
        with pytest.raises(RecordCorrupt, match=msg(3)):
            await hf.sessions.fork(S1)
        assert [each.id for each in (await hf.sessions.list()).sessions] == [S1]


CALL: dict[str, object] = {"type": "tool", "callID": "c", "tool": "bash"}
RUNS: dict[str, object] = {**CALL, "state": {"status": "running", "input": {}, "time": {"start": 1}}}
RAN: dict[str, object] = {
    **CALL,
    "state": {
        "status": "completed",
        "input": {},
        "output": "",
        "title": "",
        "metadata": {},
        "time": {"start": 1, "end": 2},
    },
}
DAMAGED: dict[str, object] = {"type": "reasoning"}


@pytest.mark.parametrize(
    ("changes", "copied"),
    [
        pytest.param(
            (assistant(3, 1, mark=Mark.OPEN), part(4, 3, DAMAGED, mark=Mark.OPEN)),
            1,
            id="an open answer of texts",
        ),
        pytest.param(
            (
                assistant(3, 1),
                part(4, 3, RAN, mark=Mark.OPEN),  # A background process of the call runs.
                user(5),
                assistant(6, 5),
                part(7, 6, DAMAGED),
            ),
            4,
            id="a finished answer",
        ),
        pytest.param(
            (assistant(3, 1, mark=Mark.OPEN), Put(S1, "message", msg(4), b'{"role":"user"}')),
            2,
            id="a message behind an open answer",
        ),
    ],
)
async def test_what_is_damaged_elsewhere_is_copied_as_it_is(
    hf: Holdfast, changes: tuple[Put, ...], copied: int
) -> None:
    """A search for begun calls reads no more than what is open, and what cannot be read is no call."""
    await hf.store.commit(Batch((session(), user(1), *changes)))

    forked = await hf.sessions.fork(S1)

    assert len((await hf.store.messages(MessageQuery(forked.id))).messages) == copied


async def test_a_begun_call_in_a_damaged_answer_is_not_passed_over(hf: Holdfast) -> None:
    """Its record is named; a fork without the call would not know what it did."""
    open_answer = assistant(3, 1, mark=Mark.OPEN), part(4, 3, RUNS, mark=Mark.OPEN), part(5, 3, DAMAGED)
    await hf.store.commit(Batch((session(), user(1), *open_answer)))

    with pytest.raises(RecordCorrupt, match=prt(5)):
        await hf.sessions.fork(S1)
