"""A stage on which an answer can be ended in every way, and what is looked at afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio

from holdfast.app import Holdfast
from holdfast.context.source import Codec, ContextSource
from holdfast.context.system_context import SystemContext
from holdfast.provider.request.request import Assistant, Request, Results, SystemUpdate, Text, ToolCall, User
from holdfast.schema.budget import Budget
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import ToolPart
from holdfast.schema.stored import Kind, Mark
from holdfast.schema.tool_state import ToolError
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Item, ScriptedProvider, Step, Wait
from tests.stories import inside
from tests.stories.tools import Deed
from tests.stories.world import World
from tests.until import until

LONG = " ".join(["word"] * 400)
"""So much that a summary in its place is shorter."""
PLENTY = Budget(tokens=10_000_000, time_ms=3_600_000)


class Hold:
    """A gate that says when somebody has come to it."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.opened = anyio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.opened.wait()

    def step(self) -> Wait:
        """The stream stops here."""
        return Wait(self)  # type: ignore[arg-type]


class Stage:
    """One session whose work can be held: in its text, in its tool, at the boundary, in a compaction."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.text, self.boundary, self.compaction = Hold(), Hold(), Hold()
        self.deed = Deed(ask=False)
        self.holds_boundary = False
        self.session = ""
        self.frames: list[tuple[str, str | None]] = []
        world.settings(permission={"*": "allow"}, compaction={"tail_turns": 0})

    def steps(self, where: str, *then: Item, **more: Any) -> list[Step]:
        """A script that comes to a place; `then` is what the step says there."""
        act = Call("act", {"what": "x"}, id="c")
        match where:
            case "text":
                return [Step(Say("half"), *(then or (self.text.step(),)), **more)]
            case "tool":
                return [Step(Say("half"), act, *then, **more)]
            case "boundary":
                return [Step(Say("half"), act), *([Step(*then, **more)] if then or more else [])]
            case _:
                said = Step(Say(LONG), act, usage=Usage(input=95_000, output=100))
                return [said, Step(*(then or (self.compaction.step(),)), **more)]

    def prepare(self, hf: Holdfast, where: str) -> None:
        """Register the tool, and what the boundary waits for."""
        self.holds_boundary = where == "boundary"
        hf.tools.register(self.deed.tool)

        async def load() -> str:
            if self.deed.done and self.holds_boundary:
                await self.boundary.wait()
            return "as it was"

        source = ContextSource(
            key="story/slow",
            codec=Codec(str),
            load=load,
            baseline=lambda now: f"The fact is {now}.",
            update=lambda _, now: f"The fact is now {now}.",
            removal=lambda _: "There is no fact.",
        )
        hf.context.register("story/slow", lambda: SystemContext.make(source))

    async def reach(self, where: str) -> None:
        """Wait until the work is held there."""
        places = {
            "text": self.text.reached,
            "tool": self.deed.begun,
            "boundary": self.boundary.reached,
            "compaction": self.compaction.reached,
        }
        with anyio.fail_after(60):
            await places[where].wait()

    @asynccontextmanager
    async def watched(self, hf: Holdfast) -> AsyncIterator[None]:
        """Remember what is told about answers and the end, in its order."""
        ready = anyio.Event()

        async def listen() -> None:
            cursor = await hf.store.head()
            ready.set()
            async for frames in hf.feed.follow(cursor, session=self.session):
                for frame in frames:
                    if frame.type == "session.idle":
                        self.frames.append(("idle", None))
                    elif frame.type == "message.updated" and frame.value()["info"]["role"] == "assistant":
                        error = frame.value()["info"].get("error")
                        self.frames.append(("answer", None if error is None else error["name"]))
                    elif frame.type == "session.error":
                        self.frames.append(("error", frame.value()["error"]["name"]))

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await ready.wait()
            await anyio.sleep(0)
            yield
            await hf.feed.caught_up()
            await until(lambda: ("idle", None) in self.frames)
            group.cancel_scope.cancel()


class Ending(NamedTuple):
    """How an answer ended, as far as anybody can see."""

    answers: list[tuple[str | None, str | None]]
    """Finish and error of each."""
    calls: list[str]
    """How each call ended: completed, or its outcome."""
    told: tuple[str | None, int]
    """The error that was told last before the first `session.idle`, and how many of those there were."""
    next: list[str]
    """What the next request holds, in short."""


async def left_open(hf: Holdfast, session: str) -> list[str]:
    """What is not at its end: records, reservations, a compaction."""
    kinds: tuple[Kind, ...] = ("message", "part", "request", "prompt")
    found = [
        f"{kind} {record.id}"
        for kind in kinds
        for record in await hf.store.select(kind, session=session, mark=Mark.OPEN)
    ]
    value = (await hf.sessions.get(session)) if session else None
    if value is not None and value.spent is not None and value.spent.reserved:
        found.append(f"reserved {value.spent.reserved}")
    if value is not None and value.time.compacting is not None:
        found.append("compacting")
    record = await hf.store.session(session)
    return [*found, "busy"] if record is not None and record.busy else found


async def looked_at(stage: Stage, hf: Holdfast, script: ScriptedProvider) -> Ending:
    """The ending of a session that rests; a bare wake and the next prompt are part of the look."""
    assert await left_open(hf, stage.session) == []
    count = len(script.requests)
    await inside.wake(hf, stage.session)
    await hf.sessions.wait(stage.session)
    assert len(script.requests) == count, "it went on by itself"
    page = await hf.sessions.messages(stage.session)
    answers = [each.info for each in page.messages if isinstance(each.info, AssistantMessage)]
    parts = [part for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    await hf.sessions.set_budget(stage.session, PLENTY)
    script.add(Step(Say("and so on")))
    await hf.sessions.process(stage.session, "Next")
    ended = stage.frames.index(("idle", None)) if ("idle", None) in stage.frames else len(stage.frames)
    last = [error for kind, error in stage.frames[:ended] if kind == "answer"]
    published = [error for kind, error in stage.frames if kind == "error"]
    assert published == [error for error in last[-1:] if error is not None], "each error is published once"
    return Ending(
        answers=[
            (info.finish, None if info.error is None else info.error.__struct_config__.tag)  # type: ignore[misc]
            for info in answers
        ],
        calls=[
            str((part.state.metadata or {})["outcome"])
            if isinstance(part.state, ToolError)
            else part.state.__struct_config__.tag  # type: ignore[misc]
            for part in parts
        ],
        told=(last[-1] if last else None, stage.frames.count(("idle", None))),
        next=shortly(script.requests[-1]),
    )


def shortly(request: Request) -> list[str]:
    """The messages of a request, a few words each."""
    return [_shortly(message) for message in request.messages]


def _shortly(message: Any) -> str:
    match message:
        case User(content=content):
            return "user " + _words(content)
        case Assistant(content=content):
            calls = [f"call {each.name}" for each in content if isinstance(each, ToolCall)]
            return " ".join(["model", *filter(None, [_words(content)]), *calls])
        case Results(content=results):
            return "result " + " ".join(_words(each.content) for each in results)
        case SystemUpdate(text=text):
            return "system " + " ".join(text.split()[:3])
        case _:
            raise AssertionError(message)


def _words(content: Any) -> str:
    said = " ".join(each.text for each in content if isinstance(each, Text))
    return " ".join(said.split()[:3])
