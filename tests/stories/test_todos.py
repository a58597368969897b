"""A session's todo list, written and read by the model."""

import json

from holdfast.schema.part import ToolPart
from holdfast.schema.session_lists import Todo
from holdfast.schema.tool_state import ToolCompleted
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from tests.stories.world import World

ONE = {"content": "one", "status": "completed", "priority": "low"}
TWO = {"content": "two", "status": "in_progress"}


async def test_a_list_is_replaced_read_and_kept(world: World) -> None:
    """What the model wrote is the session's record; the title counts what is left to do."""
    async with world.open(
        Step(Call("todowrite", {"todos": [ONE]}, id="a")),
        Step(Call("todowrite", {"todos": [ONE, TWO]}, id="b")),
        Step(Call("todoread", {}, id="c")),
        Step(Say("ok"), expect=answered("c", '"content": "two"')),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (record,) = await hf.store.select("todo", session=session)
        page = await hf.sessions.messages(session)

    assert record.value() == [
        Todo(content="one", status="completed", priority="low"),
        Todo(content="two", status="in_progress", priority="medium"),
    ]
    parts = [part for message in page.messages for part in message.parts if isinstance(part, ToolPart)]
    states = [part.state for part in parts if isinstance(part.state, ToolCompleted)]
    assert [state.title for state in states] == ["0 todos", "1 todos", "1 todos"]
    assert json.loads(states[1].output) == states[1].metadata["todos"] == [ONE, {**TWO, "priority": "medium"}]
    assert states[2].output == states[1].output


async def test_a_list_that_is_none_changes_nothing(world: World) -> None:
    """The model is answered what is wrong, and where."""
    async with world.open(
        Step(
            Call("todowrite", {"todos": [{"content": "x", "status": "odd"}]}, id="a"),
            Call("todowrite", {"todos": [{"content": "", "status": "pending"}]}, id="b"),
            Call("todowrite", {"todos": [TWO] * 201}, id="c"),
        ),
        Step(Say("ok"), expect=answered("a", "$.todos[0].status")),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        assert await hf.store.select("todo", session=session) == []


async def test_a_rule_against_it_holds(world: World) -> None:
    """A list that may not be written stays as it was."""
    world.settings(permission={"todowrite": {"*": "ask"}})
    async with world.open(
        Step(Call("todowrite", {"todos": [ONE]}, id="a")),
        Step(Say("ok"), expect=answered("a", "needs the user's consent")),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        assert await hf.store.select("todo", session=session) == []
