"""What a session holds: messages, parts, todos, diffs; and forks of it."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from holdfast.app import Holdfast
from holdfast.errors import InvalidInput, NotFound, Refused
from holdfast.schema import usage
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import CompactionPart
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.schema.tool_state import ToolCompleted, ToolPending, ToolRunning
from tests.sessions.filling import STEP, answer, ask, call, compact, finish, say


async def test_a_tool_call_moves_only_along_its_legal_states(hf: Holdfast, folder: Path) -> None:
    """Pending, running, completed; a settled call does not run again, and nothing is written when refused."""
    session = (await hf.sessions.create(directory=folder)).id
    asked = await ask(hf, session, "run it")
    part = await call(hf, session, asked.id, ToolPending(input={}, raw=""))
    await hf.sessions.add_part(part)
    running = replace(part, state=_running())
    assert await hf.sessions.update_part(session, part.id, lambda _: running) == running
    done = replace(part, state=_completed())
    await hf.sessions.update_part(session, part.id, lambda _: done)

    with pytest.raises(InvalidInput):
        await hf.sessions.update_part(session, part.id, lambda _: running)
    with pytest.raises(InvalidInput):
        await hf.sessions.update_part(session, part.id, lambda _: part)
    kept = (await hf.sessions.message(session, asked.id)).parts[-1]
    assert kept == done


def _running() -> ToolRunning:
    from holdfast.schema.wire import decode

    return decode(ToolRunning, b'{"status":"running","input":{"command":"ls"},"time":{"start":1}}')


def _completed() -> ToolCompleted:
    from holdfast.schema.wire import decode

    return decode(
        ToolCompleted,
        b'{"status":"completed","input":{"command":"ls"},"output":"a","title":"ls","metadata":{},'
        b'"time":{"start":1,"end":2}}',
    )


async def test_a_part_keeps_its_type_and_its_message(hf: Holdfast, folder: Path) -> None:
    """Text does not become a tool call, and a part does not move to another message."""
    session = (await hf.sessions.create(directory=folder)).id
    one, two = await ask(hf, session, "one"), await ask(hf, session, "two")
    text = await say(hf, session, one.id, "words")
    called = await call(hf, session, one.id, _running())
    with pytest.raises(InvalidInput):
        await hf.sessions.update_part(session, text.id, lambda _: replace(called, id=text.id))
    with pytest.raises(InvalidInput):
        await hf.sessions.update_part(session, text.id, lambda old: replace(old, message_id=two.id))
    with pytest.raises(NotFound):
        await hf.sessions.update_part(session, "prt_none", lambda old: old)
    with pytest.raises(NotFound):
        await hf.sessions.add_part(replace(text, id="prt_new", message_id="msg_none"))
    assert (await hf.sessions.message(session, one.id)).parts[-1] == text


async def test_a_message_keeps_its_role_and_its_id(hf: Holdfast, folder: Path) -> None:
    """A prompt does not become an answer; what is there already is changed, not added."""
    session = (await hf.sessions.create(directory=folder)).id
    asked = await ask(hf, session, "one")
    said = await answer(hf, session, asked.id, "two")
    with pytest.raises(InvalidInput, match="its role"):
        await hf.sessions.update_message(session, asked.id, lambda _: replace(said, id=asked.id))
    with pytest.raises(Refused, match="exists already; change it with update_message"):
        await hf.sessions.add_message(replace(asked, agent="plan"))
    with pytest.raises(Refused, match="exists already; change it with update_part"):
        await hf.sessions.add_part((await hf.sessions.message(session, asked.id)).parts[0])
    assert (await hf.sessions.message(session, asked.id)).info == asked


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda old: replace(old, text=5), "part .* is not valid"),
        (lambda old: replace(old, text=None), "part .* is not valid"),
        (lambda _: None, "its type cannot change"),
    ],
)
async def test_a_part_that_could_not_be_read_back_is_refused(
    hf: Holdfast, folder: Path, edit: Any, words: str
) -> None:
    """One wrong edit must not make a session unreadable; nothing is written."""
    session = (await hf.sessions.create(directory=folder)).id
    asked = await ask(hf, session, "one")
    part = (await hf.sessions.message(session, asked.id)).parts[0]
    with pytest.raises(InvalidInput, match=words):
        await hf.sessions.update_part(session, part.id, edit)
    with pytest.raises(InvalidInput, match="the part is not valid"):
        await hf.sessions.add_part(replace(part, id="prt_new", text=7))
    assert (await hf.sessions.message(session, asked.id)).parts == (part,)


async def test_a_message_that_could_not_be_read_back_is_refused(hf: Holdfast, folder: Path) -> None:
    """Neither changed nor added."""
    session = (await hf.sessions.create(directory=folder)).id
    asked = await ask(hf, session, "one")
    edits: list[Any] = [lambda old: replace(old, model=None), lambda _: None]
    for edit in edits:
        with pytest.raises(InvalidInput):
            await hf.sessions.update_message(session, asked.id, edit)
    with pytest.raises(InvalidInput, match="the message is not valid"):
        await hf.sessions.add_message(replace(asked, id="msg_new", time="now"))
    assert (await hf.sessions.message(session, asked.id)).info == asked


async def test_two_callers_who_change_one_message_lose_nothing(hf: Holdfast, folder: Path) -> None:
    """The one who comes second edits what the first has written, of a message as of a part."""
    session = (await hf.sessions.create(directory=folder)).id
    asked = await ask(hf, session, "one")
    part = (await hf.sessions.message(session, asked.id)).parts[0]

    async def edit_part(number: int) -> None:
        def noted(old: Any) -> Any:
            return replace(old, metadata={**(old.metadata or {}), str(number): True})

        await hf.sessions.update_part(session, part.id, noted)

    async def edit_message(number: int) -> None:
        await hf.sessions.update_message(
            session, asked.id, lambda old: replace(old, agent=f"{old.agent}{number}")
        )

    for edit in (edit_part, edit_message):  # Each for itself: otherwise the first keeps the others apart.
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(edit, number)

    kept = await hf.sessions.message(session, asked.id)
    assert kept.parts == (replace(part, metadata={str(number): True for number in range(5)}),)
    assert sorted(kept.info.agent.removeprefix("build")) == list("01234")


async def test_totals_are_the_sum_of_the_steps(hf: Holdfast, folder: Path) -> None:
    """They rise with a step, change with it, and fall when it is removed, by part or by message."""
    session = (await hf.sessions.create(directory=folder)).id
    asked = await ask(hf, session, "go")
    first = await answer(hf, session, asked.id, "done", cost=0.25)
    step = await finish(hf, session, first.id, cost=0.5)
    made = await hf.sessions.get(session)
    assert (made.cost, made.tokens) == (0.75, usage.add(STEP, STEP))

    await hf.sessions.update_part(session, step.id, lambda old: replace(old, cost=1.5))
    assert (await hf.sessions.get(session)).cost == 1.75
    await hf.sessions.remove_part(session, step.id)
    made = await hf.sessions.get(session)
    assert (made.cost, made.tokens) == (0.25, STEP)
    await hf.sessions.remove_message(session, first.id)
    made = await hf.sessions.get(session)
    assert (made.cost, made.tokens) == (0, usage.ZERO)


async def test_messages_come_in_pages_with_their_parts(hf: Holdfast, folder: Path) -> None:
    """The newest page first, its cursor leads to the older one; everything without a limit."""
    session = (await hf.sessions.create(directory=folder)).id
    asked = [await ask(hf, session, f"number {n}") for n in range(5)]
    page = await hf.sessions.messages(session, limit=2)
    assert [message.info for message in page.messages] == asked[3:]
    older = await hf.sessions.messages(session, limit=2, before=page.older)
    assert [message.info for message in older.messages] == asked[1:3]
    everything = await hf.sessions.messages(session)
    assert [message.parts[0].text for message in everything.messages] == [f"number {n}" for n in range(5)]
    with pytest.raises(InvalidInput):
        await hf.sessions.messages(session, limit=2, before="nonsense")
    with pytest.raises(NotFound):
        await hf.sessions.messages("ses_none")
    with pytest.raises(NotFound):
        await hf.sessions.message(session, "msg_none")


async def test_todos_and_diffs_are_kept_whole(hf: Holdfast, folder: Path) -> None:
    """They are replaced as one list, in order."""
    session = (await hf.sessions.create(directory=folder)).id
    assert await hf.sessions.todos(session) == []
    todos = [Todo(content=str(n), status="pending", priority="high") for n in range(3)]
    diffs = [FileDiff(file="a.py", patch="+x", additions=1, deletions=0, status="modified")]
    await hf.sessions.set_todos(session, todos)
    await hf.sessions.set_diffs(session, diffs)
    assert await hf.sessions.todos(session) == todos
    assert await hf.sessions.diffs(session) == diffs
    with pytest.raises(NotFound):
        await hf.sessions.set_todos("ses_none", todos)


async def test_a_fork_cuts_before_the_message_and_names_everything_anew(hf: Holdfast, folder: Path) -> None:
    """New ids, answers point to the new questions, the metadata tells the origin, totals are the copy's."""
    source = await hf.sessions.create(directory=folder, title="Work", metadata={"ticket": 1})
    one = await ask(hf, source.id, "one")
    first = await answer(hf, source.id, one.id, "answer one")
    two = await ask(hf, source.id, "two")
    await compact(hf, source.id, two.id, one.id)
    await answer(hf, source.id, two.id, "answer two")
    three = await ask(hf, source.id, "three")

    forked = await hf.sessions.fork(source.id, three.id)
    copied = (await hf.sessions.messages(forked.id)).messages
    original = (await hf.sessions.messages(source.id)).messages

    assert forked.title == "Work (fork #1)"
    assert forked.parent_id is None
    assert forked.metadata == {"ticket": 1, "fork": {"sessionID": source.id, "messageID": three.id}}
    assert forked.cost == 0.5
    assert len(copied) == 4
    ids = {old.info.id: new.info.id for old, new in zip(original, copied, strict=False)}
    assert set(ids.values()) & set(ids) == set()
    for old, new in zip(original, copied, strict=False):
        expected = replace(old.info, id=ids[old.info.id], session_id=forked.id)
        if isinstance(expected, AssistantMessage):
            expected = replace(expected, parent_id=ids[expected.parent_id])
        assert new.info == expected
        for old_part, new_part in zip(old.parts, new.parts, strict=True):
            part = replace(old_part, id=new_part.id, session_id=forked.id, message_id=new.info.id)
            if isinstance(part, CompactionPart):
                part = replace(part, tail_start_id=ids[one.id])
            assert new_part == part
    assert first.id not in ids.values()
    assert sorted(new.info.id for new in copied) == [new.info.id for new in copied]

    again = await hf.sessions.fork(forked.id)
    assert again.title == "Work (fork #2)"
    assert (await hf.sessions.messages(source.id)).messages == original
    with pytest.raises(NotFound):
        await hf.sessions.fork(source.id, "msg_none")
    with pytest.raises(NotFound):
        await hf.sessions.fork("ses_none")
