"""What a tool may do through its context beside asking and running: write, tell, and prompt a child."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.errors import InvalidInput, LeaseLost, NotFound, Refused
from holdfast.schema.permission import Rule
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure
from tests.stories import inside
from tests.stories.permissions import outcomes
from tests.stories.tools import Deed
from tests.stories.world import World, shape

TODOS = [Todo(content="write it", status="pending", priority="high")]


def does(work: Callable[[ToolContext], Awaitable[Any]]) -> Tool:
    """A tool called `do` that does this, and says what it was refused."""

    @tool(name="do")
    async def do(context: ToolContext) -> str:
        """Do something."""
        try:
            return str(await work(context))
        except (InvalidInput, NotFound, Refused, LeaseLost, ToolFailure) as error:
            return f"{type(error).__name__}: {error}"

    return do


async def said(world: World, work: Callable[[ToolContext], Awaitable[Any]]) -> tuple[str, list[Todo]]:
    """What the tool answered, and the todos of its session afterwards."""
    async with world.open(Step(Call("do", {}, id="c")), Step(Say("ok"))) as (hf, _):
        hf.tools.register(does(work))
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        ((_, answer),) = outcomes((await hf.sessions.messages(session)).messages)
        return answer, list(await hf.sessions.todos(session))


async def test_a_tool_writes_the_todos_of_its_session(world: World) -> None:
    """They are on disk, and told, before it goes on."""
    heard: list[Any] = []

    async def work(context: ToolContext) -> None:
        await context.commit("todo", TODOS)

    async with world.open(Step(Call("do", {}, id="c")), Step(Say("ok"))) as (hf, _):
        hf.tools.register(does(work))
        session = await world.session(hf)
        async for event in hf.sessions.turn(session, "go"):
            heard += [event.value()] if event.type == "todo.updated" else []
        assert await hf.sessions.todos(session) == TODOS
    expected = {"content": "write it", "status": "pending", "priority": "high"}
    assert heard == [{"sessionID": session, "todos": [expected]}]


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("todo", [5], "Expected `object`, got `int` - at `$[0]`"),
        ("todo", [{"content": "x"}], "missing required field"),
        ("todo", [Todo(content=None, status="", priority="")], "at `$[0].content`"),  # type: ignore[arg-type]
        ("diff", TODOS, "at `$[0].status`"),
        ("message", [], "a tool may write todo and diff of its session, not message"),
    ],
)
async def test_what_is_no_such_list_is_not_written(world: World, kind: Any, value: Any, words: str) -> None:
    """The tool hears why, and what was there stays."""

    async def work(context: ToolContext) -> None:
        await context.commit("todo", TODOS)
        await context.commit(kind, value)

    answer, todos = await said(world, work)
    assert answer.startswith("InvalidInput: ")
    assert words in answer
    assert todos == TODOS


async def test_a_tool_of_a_runner_that_lost_its_session_writes_nothing(world: World) -> None:
    """The write carries the fence: somebody else runs the session by now."""
    async with world.open(Step(Call("do", {}, id="c"))) as (hf, _):
        heard: list[str] = []

        async def work(context: ToolContext) -> None:
            entry = inside.running(hf, context.session_id)
            assert entry.run is not None
            await hf.store.release(entry.run.recorder.fence)
            try:
                await context.commit("todo", TODOS)
            except LeaseLost:
                heard.append("lost")
                raise

        hf.tools.register(does(work))
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60), pytest.raises(LeaseLost):
            await hf.sessions.wait(session)
        assert (heard, await hf.sessions.todos(session)) == (["lost"], [])


async def events(hf: Holdfast, session: str) -> list[tuple[str, Any]]:
    """What tools say during a turn."""
    return [
        (event.type, event.value())
        async for event in hf.sessions.turn(session, "go")
        if event.type.startswith("holdfast.tool.")
    ]


async def test_what_a_tool_publishes_is_heard_by_those_who_listen(world: World) -> None:
    """Under a name that cannot pass for an event of the bus, with the ids of its call, and stored nowhere."""

    async def work(context: ToolContext) -> None:
        context.publish("weather.changed", {"city": "Ulm", "callID": "another"})

    async with world.open(Step(Call("do", {}, id="c")), Step(Say("ok"))) as (hf, _):
        hf.tools.register(does(work))
        session = await world.session(hf)
        heard = await events(hf, session)
        message = (await hf.sessions.messages(session)).messages[1].info.id
    whose = {"sessionID": session, "messageID": message, "callID": "c"}
    assert heard == [("holdfast.tool.weather.changed", {"city": "Ulm", **whose})]


@pytest.mark.parametrize(
    ("name", "properties", "words"),
    [
        ('x","type":"session.idle', {}, "is no name of an event"),
        ("", {}, "is no name of an event"),
        ("x", {"y": object()}, "object has no JSON form"),
        ("x", [1], "Expected `object`, got `array`"),
        ("x", {"y": "z" * 65_536}, "at most 65536 are told"),
    ],
)
async def test_what_cannot_be_told_is_refused(world: World, name: str, properties: Any, words: str) -> None:
    """Nobody hears of it but the tool."""

    async def work(context: ToolContext) -> None:
        context.publish(name, properties)

    async with world.open(Step(Call("do", {}, id="c")), Step(Say("ok"), expect=answered("c", words))) as (
        hf,
        _,
    ):
        hf.tools.register(does(work))
        session = await world.session(hf)
        assert await events(hf, session) == []


async def test_a_tool_prompts_a_child_of_its_session(world: World) -> None:
    """Durably, once for each id, and the child answers; what the parent may not do, it may not either."""
    world.settings(permission={"act": "allow"})
    deed, children, admitted = Deed(), list[str](), list[str]()

    async def work(context: ToolContext) -> None:
        prompt = "msg_000000000001AAAAAAAAAAAAAA"
        admitted.extend([await context.admit(children[0], "act, child", id=prompt) for _ in range(2)])

    async with world.open() as (hf, script):
        hf.tools.register(does(work))
        hf.tools.register(deed.tool)
        rules = [Rule(permission="act", pattern="*", action="deny")]
        session = await world.session(hf, permission=rules)
        children.append(await world.session(hf, parent=session))
        script.add(
            Step(Call("do", {}, id="c"), session=session),
            Step(Say("asked"), session=session),
            Step(Say("no such tool here"), session=children[0]),
        )
        await hf.sessions.process(session, "go")
        with anyio.fail_after(60):
            await hf.sessions.wait(children[0])
        page = await hf.sessions.messages(children[0])
        assert [tool.name for request in script.requests for tool in request.tools].count("act") == 0
    assert admitted == ["msg_000000000001AAAAAAAAAAAAAA"] * 2
    assert shape(page.messages) == [
        ("user", [("text", "act, child")]),
        ("assistant", ["step-start", ("text", "no such tool here"), ("step-finish", "stop")]),
    ]
    assert deed.done == []


async def test_a_tool_prompts_no_session_but_a_child(world: World) -> None:
    """Not its own, not a stranger, not one that does not exist: another one's rules would hold there."""
    strangers: list[str] = []

    async def work(context: ToolContext) -> str:
        heard = []
        for session in (context.session_id, strangers[0], "ses_000000000001AAAAAAAAAAAAAA"):
            try:
                await context.admit(session, "do it for me")
            except (NotFound, Refused) as error:
                heard.append(str(error).replace(session, "S").replace(context.session_id, "S"))
        return " ".join(heard)

    async with world.open(Step(Call("do", {}, id="c")), Step(Say("ok"))) as (hf, _):
        hf.tools.register(does(work))
        session = await world.session(hf)
        strangers.append(await world.session(hf))
        await hf.sessions.process(session, "go")
        ((_, answer),) = outcomes((await hf.sessions.messages(session)).messages)
        assert (await hf.sessions.messages(strangers[0])).messages == ()
    refused = "session S is no child of S, and a tool prompts only children"
    assert answer == f"{refused} {refused} session S does not exist"


async def test_a_call_that_is_over_writes_tells_and_prompts_nothing(world: World) -> None:
    """Whatever it left running."""
    kept: list[ToolContext] = []

    async def work(context: ToolContext) -> None:
        kept.append(context)

    await said(world, work)
    (context,) = kept
    diff = FileDiff(file="a", additions=1, deletions=0)
    with pytest.raises(ToolFailure):
        await context.commit("diff", [diff])
    with pytest.raises(ToolFailure):
        context.publish("late", {})
    with pytest.raises(ToolFailure):
        await context.admit("ses_000000000001AAAAAAAAAAAAAA", "go")
