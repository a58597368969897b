"""The seeds' storage by key, on every engine: the same records as the library's, with the same checks."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import holdfast
from holdfast import Conflict, Holdfast, InvalidInput, NotFound, Refused
from holdfast.sessions import storage
from holdfast.store.host import this_process
from holdfast.store.record import Changes
from holdfast.testing import FakeClock
from tests.sessions.engines import ENGINES, store_url
from tests.sessions.filling import answer, ask
from tests.store.files import opencode_tree

SES, MSG, PRT = "ses_1", "msg_1", "prt_1"
SESSION, MESSAGE, PART = ["session", "p1", SES], ["message", SES, MSG], ["part", MSG, PRT]
INFO = opencode_tree.info(SES, 1)
SAID = opencode_tree.message(MSG, SES, 1)
TEXT = {"id": PRT, "sessionID": SES, "messageID": MSG, "type": "text", "text": "hello"}
TODO = [{"content": "c", "status": "pending", "priority": "low", "note": "kept"}]
WRITES: list[tuple[list[str], Any]] = [
    (["project", "p1"], {"id": "p1", "worktree": "/", "time": {"created": 1, "updated": 1}, "sandboxes": []}),
    (SESSION, {**INFO, "unknown": {"kept": True}}),
    (MESSAGE, SAID),
    (PART, TEXT),
    (["todo", SES], TODO),
    (["session_diff", SES], [{"file": "a", "additions": 1, "deletions": 0}]),
    (["share", SES], {"id": "x", "secret": "s", "url": "u"}),
]


@pytest.fixture(params=ENGINES)
async def hf(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Holdfast]:
    """The library on each engine."""
    async with holdfast.open(store_url(request.param, tmp_path), clock=clock) as opened:
        yield opened


def _instead(value: Any, _: Any) -> Any:
    return value


async def fill(hf: Holdfast) -> None:
    for key, value in WRITES:
        await hf.storage.write(key, value)


async def test_what_is_written_is_read_listed_and_removed(hf: Holdfast) -> None:
    """Every kind of key; fields that we do not know are kept; what is below goes with what is above."""
    await fill(hf)
    for key, value in WRITES:
        assert await hf.storage.read(key) == value
        assert await hf.storage.list(key) == []
    assert await hf.storage.list() == sorted(key for key, _ in WRITES)
    assert await hf.storage.list(["part", MSG]) == await hf.storage.list(["part"]) == [PART]
    assert await hf.storage.list(["message", SES]) == [MESSAGE]
    assert await hf.storage.list(["session", "p2"]) == await hf.storage.list(["part", "msg_2"]) == []

    await hf.storage.remove(PART)
    assert await hf.storage.list(["part"]) == []
    await hf.storage.remove(["todo", SES])
    with pytest.raises(Refused, match="project p1 has sessions"):
        await hf.storage.remove(["project", "p1"])
    await hf.storage.remove(SESSION)
    assert await hf.storage.list() == [["project", "p1"]]
    await hf.storage.remove(["project", "p1"])
    await hf.storage.remove(SESSION)
    assert await hf.storage.list() == []


async def test_keys_name_the_records_of_the_library(hf: Holdfast, folder: Path) -> None:
    """What one side writes the other reads; a key takes what the value leaves out of its ids."""
    made = await hf.sessions.create(directory=folder, title="A story")
    asked = await ask(hf, made.id, "Why?")
    reply = await answer(hf, made.id, asked.id, "Because.")
    page = await hf.sessions.messages(made.id)
    parts = [part for message in page.messages for part in message.parts]

    assert (await hf.storage.read(["session", made.project_id, made.id]))["title"] == "A story"
    assert await hf.storage.list(["message", made.id]) == sorted(
        ["message", made.id, each] for each in (asked.id, reply.id)
    )
    assert await hf.storage.list(["part"]) == sorted(["part", each.message_id, each.id] for each in parts)
    new = await hf.sessions.new_id(made.id, "prt")
    await hf.storage.write(["part", asked.id, new], {"type": "text", "text": "Really?"})
    assert (await hf.sessions.message(made.id, asked.id)).text == "Why?\n\nReally?"
    head = await hf.store.head()
    await hf.storage.write(["todo", made.id], TODO)
    assert [each.content for each in await hf.sessions.todos(made.id)] == ["c"]
    changes = await hf.store.changes(head)
    assert isinstance(changes, Changes)
    assert [each.record.kind for each in changes.records] == ["todo"]


async def test_what_is_absent_is_not_found(hf: Holdfast) -> None:
    """For a read and an update; to remove it is no error; a list is empty."""
    for key, _ in WRITES:
        with pytest.raises(NotFound, match="/".join(key)):
            await hf.storage.read(key)
        with pytest.raises(NotFound, match="/".join(key)):
            await hf.storage.update(key, lambda value: value)
        await hf.storage.remove(key)
        assert await hf.storage.list(key[:-1]) == []


async def test_a_session_stands_under_its_own_project(hf: Holdfast) -> None:
    """Under another there is none, and none can be written."""
    await fill(hf)
    with pytest.raises(NotFound, match="session/p2"):
        await hf.storage.read(["session", "p2", SES])
    with pytest.raises(Conflict, match="belongs to project p1"):
        await hf.storage.write(["session", "p2", SES], {**INFO, "projectID": "p2"})
    await hf.storage.remove(["session", "p2", SES])
    assert await hf.storage.list(["session"]) == [SESSION]


WRONG: list[tuple[list[str], Any, str]] = [
    (SESSION, {**INFO, "id": "ses_2"}, "its id is not ses_1"),
    (SESSION, {**INFO, "projectID": "p2"}, "its projectID is not p1"),
    (SESSION, {"title": "x"}, "is not valid"),
    (SESSION, [], "is not valid"),
    (SESSION, None, "is not valid"),
    (["session", "p1", "msg_2"], {**INFO, "id": "msg_2"}, "ses"),
    (MESSAGE, {**SAID, "sessionID": "ses_2"}, "its sessionID is not ses_1"),
    (MESSAGE, {**SAID, "role": "nobody"}, "is not valid"),
    (MESSAGE, {**SAID, "time": {"created": float("nan")}}, "is not valid"),
    (["message", SES, "prt_9"], {**SAID, "id": "prt_9"}, "msg"),
    (PART, {**TEXT, "messageID": "msg_2"}, "its messageID is not msg_1"),
    (PART, {**TEXT, "text": 5}, "is not valid"),
    (["todo", SES], {"content": "c"}, "is not valid"),
    (["session_diff", SES], [{"file": 5}], "is not valid"),
]


async def test_a_write_is_checked_like_any_commit(hf: Holdfast) -> None:
    """The schema, the ids, and their agreement with the key; nothing is changed."""
    await fill(hf)
    head = await hf.store.head()
    for key, value, wrong in WRONG:
        with pytest.raises(InvalidInput, match=wrong):
            await hf.storage.write(key, value)

    changes = await hf.store.changes(head)
    assert isinstance(changes, Changes)
    assert changes.records == ()


async def test_what_belongs_to_nothing_is_not_found(hf: Holdfast) -> None:
    """A message without its session, a part without its message, a list without its session."""
    for key, value in WRITES[2:]:
        with pytest.raises(NotFound):
            await hf.storage.write(key, value)
    await hf.storage.write(SESSION, INFO)
    with pytest.raises(NotFound, match="message msg_1 does not exist"):
        await hf.storage.write(PART, TEXT)
    with pytest.raises(NotFound):
        await hf.storage.write(["session", "p1", "ses_2"], {**INFO, "id": "ses_2", "parentID": "ses_9"})


async def test_an_update_edits_in_place_or_replaces(hf: Holdfast) -> None:
    """The new value is returned and read back; what an edit may not change, it may not change here."""
    await fill(hf)

    def rename(value: Any) -> None:
        value["title"] = "New"

    assert (await hf.storage.update(SESSION, rename))["title"] == "New"
    assert await hf.storage.update(["todo", SES], lambda todos: [*todos, TODO[0]]) == TODO * 2
    assert (await hf.storage.update(PART, lambda part: {**part, "text": "bye"}))["text"] == "bye"
    assert await hf.storage.read(PART) == {**TEXT, "text": "bye"}
    assert (await hf.storage.update(MESSAGE, lambda said: {**said, "agent": "plan"}))["agent"] == "plan"
    share = await hf.storage.update(["share", SES], lambda share: {**share, "url": "v"})
    assert share == await hf.storage.read(["share", SES]) == {"id": "x", "secret": "s", "url": "v"}
    with pytest.raises(InvalidInput, match="its type cannot change"):
        await hf.storage.update(PART, lambda _: {"type": "patch", "hash": "h", "files": []})
    with pytest.raises(InvalidInput, match="its id is not msg_1"):
        await hf.storage.update(MESSAGE, lambda said: {**said, "id": "msg_2"})
    with pytest.raises(ZeroDivisionError):
        await hf.storage.update(SESSION, lambda _: 1 / 0)
    assert (await hf.storage.read(SESSION))["title"] == "New"


async def test_updates_side_by_side_lose_nothing(hf: Holdfast) -> None:
    """Each begins again when another was quicker."""
    await fill(hf)

    async def add(number: int) -> None:
        await hf.storage.update(["todo", SES], lambda todos: [*todos, {**TODO[0], "content": str(number)}])
        await hf.storage.update(SESSION, lambda value: {**value, f"n{number}": number})

    await asyncio.gather(*(add(number) for number in range(8)))
    todos = await hf.storage.read(["todo", SES])
    session = await hf.storage.read(SESSION)

    assert sorted(each["content"] for each in todos) == sorted(["c", *map(str, range(8))])
    assert {name: value for name, value in session.items() if name[1:].isdigit()} == {
        f"n{number}": number for number in range(8)
    }


async def test_two_first_writes_are_one_write_after_the_other(hf: Holdfast) -> None:
    """Neither is an error, and the value is one of them."""
    await hf.storage.write(SESSION, INFO)
    texts = [{**SAID, "agent": f"agent{number}"} for number in range(4)]
    await asyncio.gather(*(hf.storage.write(MESSAGE, value) for value in texts))

    assert await hf.storage.read(MESSAGE) in texts


async def test_a_session_that_two_make_in_two_projects_is_that_of_the_first(hf: Holdfast) -> None:
    """The other is refused: an id names one session."""
    values = {project: {**INFO, "projectID": project} for project in ("p1", "p2")}
    ends = await asyncio.gather(
        *(hf.storage.write(["session", project, SES], value) for project, value in values.items()),
        return_exceptions=True,
    )
    (key,) = await hf.storage.list()

    assert sorted(type(each).__name__ for each in ends) == ["Conflict", "NoneType"]
    assert await hf.storage.read(key) == values[key[1]]


async def test_an_update_that_never_comes_first_gives_up(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a bounded number of tries, with the store's own word."""
    await fill(hf)
    tries: list[int] = []

    async def late(work: Any) -> Any:
        tries.append(1)
        raise Conflict("changed meanwhile")

    monkeypatch.setattr(storage, "on_conflict", late)
    with anyio.fail_after(60), pytest.raises(Conflict, match="changed meanwhile"):
        await hf.storage.update(["todo", SES], lambda todos: todos)
    assert tries == [1]


async def test_a_session_that_runs_is_left_alone(hf: Holdfast) -> None:
    """Its messages and parts are not changed under its runner, and it is not removed; its todos may be."""
    await fill(hf)
    owner = this_process(hf.host, id="own_1", placements=(hf.host.id,))
    await hf.store.register(owner)
    await hf.store.claim(SES, owner.id)
    for key, value in ((MESSAGE, {**SAID, "agent": "plan"}), (PART, {**TEXT, "text": "bye"})):
        with pytest.raises(Refused, match="busy"):
            await hf.storage.write(key, value)
        with pytest.raises(Refused, match="busy"):
            await hf.storage.update(key, partial(_instead, value))
    with pytest.raises(Refused, match="busy"):
        await hf.storage.write(["message", SES, "msg_2"], {**SAID, "id": "msg_2"})
    for key in (SESSION, MESSAGE, PART):
        with pytest.raises(Refused):
            await hf.storage.remove(key)
    await hf.storage.write(["todo", SES], [])

    assert (await hf.storage.read(PART), await hf.storage.read(["todo", SES])) == (TEXT, [])


async def test_of_two_sessions_with_one_message_id_the_first_counts(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are names within a session; a part says itself where it belongs, and what is gone is not found."""
    monkeypatch.setattr(storage, "HOMES_MAX", 1)
    await fill(hf)
    other = {**INFO, "id": "ses_2"}
    await hf.storage.write(["session", "p1", "ses_2"], other)
    await hf.storage.write(["message", "ses_2", MSG], {**SAID, "sessionID": "ses_2"})
    second = {**TEXT, "id": "prt_2", "sessionID": "ses_2", "text": "second"}
    await hf.storage.write(["part", MSG, "prt_2"], second)
    await hf.storage.write(["message", "ses_2", "msg_2"], {**SAID, "id": "msg_2", "sessionID": "ses_2"})
    third = {"type": "text", "text": "third"}
    await hf.storage.write(["part", "msg_2", "prt_3"], third)

    for _ in range(2):
        assert await hf.storage.read(PART) == TEXT
        assert await hf.storage.read(["part", MSG, "prt_2"]) == second
        assert (await hf.storage.read(["part", "msg_2", "prt_3"]))["sessionID"] == "ses_2"
    assert await hf.storage.list(["part", MSG]) == [PART]
    assert await hf.storage.list(["part"]) == [PART, ["part", MSG, "prt_2"], ["part", "msg_2", "prt_3"]]
    await hf.storage.remove(SESSION)
    assert await hf.storage.list(["part", MSG]) == [["part", MSG, "prt_2"]]
    with pytest.raises(NotFound):
        await hf.storage.read(PART)
