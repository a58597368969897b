"""A tool is somebody's program: whatever it raises or answers ends its own call, and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from holdfast.schema.part import ToolPart
from holdfast.schema.request import PermissionAnswer, PermissionRequest
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, Wait, answered
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import Attachment, ToolDenied, ToolFailure, ToolOutput, ToolParked
from tests.stories.permissions import outcomes
from tests.stories.world import Attached, World, shape
from tests.until import until

Work = Callable[[ToolContext], Awaitable[Any]]


class Panic(BaseException):
    """As an extension that is written in another language raises."""


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def odd(work: Work) -> Tool:
    """A tool called `odd` that does this."""

    @tool(name="odd")
    async def made(context: ToolContext) -> Any:
        """Do something odd."""
        return await work(context)

    return made


def answers(value: Any) -> Work:
    async def work(_: ToolContext) -> Any:
        return value

    return work


def raises(error: BaseException) -> Work:
    async def work(_: ToolContext) -> Any:
        raise error

    return work


def does(name: str, *arguments: Any, **named: Any) -> Work:
    async def work(context: ToolContext) -> Any:
        await getattr(context, name)(*arguments, **named)
        return "done"

    return work


async def cancels_itself(_: ToolContext) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await anyio.sleep_forever()


async def calls(world: World, work: Work, **options: Any) -> list[tuple[str, str]]:
    """How the odd call and the one beside it end; the session, and another one, go on afterwards."""
    world.settings(permission={"*": "allow", **options.pop("rules", {})})
    over = anyio.Event()

    @tool()
    async def beside(context: ToolContext) -> str:
        """Take longer."""
        with anyio.move_on_after(10):
            await over.wait()
        return "well"

    async def work_first(context: ToolContext) -> Any:
        try:
            return await work(context)
        finally:
            over.set()

    async with world.open(
        Step(Call("odd", {}, id="c1"), Call("beside", {}, id="c2")),
        *(Step(Say(word)) for word in ("one", "two", "three")),
        **options,
    ) as (hf, _):
        hf.tools.register(odd(work_first))
        hf.tools.register(beside)
        session, other = await world.session(hf), await world.session(hf)
        with anyio.fail_after(60):
            for word, where in (("one", session), ("two", session), ("three", other)):
                answer = await hf.sessions.process(where, "go")
                assert shape((answer,))[0][1][1] == ("text", word)
        return outcomes((await hf.sessions.messages(session)).messages)


BROKE = "The tool odd broke: "
UNFIT = BROKE + "what it answered cannot be recorded"


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (raises(Panic("badly")), BROKE + "Panic: badly"),
        (raises(SystemExit(2)), BROKE + "SystemExit: 2"),
        (raises(KeyboardInterrupt()), BROKE + "KeyboardInterrupt"),
        (raises(GeneratorExit()), BROKE + "GeneratorExit"),
        (
            raises(BaseExceptionGroup("two", [Panic("a")])),
            BROKE + "BaseExceptionGroup: two (1 sub-exception)",
        ),
        (raises(asyncio.CancelledError()), BROKE + "CancelledError"),
        (cancels_itself, BROKE + "CancelledError"),
        (raises(Mute()), BROKE + "Mute"),
        (raises(ToolParked("by itself")), BROKE + "ToolParked: by itself"),
    ],
    ids=["panic", "exit", "interrupt", "generator", "group", "cancelled", "cancels", "mute", "parked"],
)
async def test_whatever_a_tool_raises_ends_its_own_call_only(world: World, work: Work, said: str) -> None:
    """The call beside it succeeds, and so do this session and another one afterwards."""
    assert await calls(world, work) == [("error", said), ("completed", "well")]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (ToolOutput(text=None), "its text is NoneType, not str"),  # type: ignore[arg-type]
        (ToolOutput(text=b"abc"), "its text is bytes, not str"),  # type: ignore[arg-type]
        (ToolOutput(text="ok", title=5), "its title is int, not str"),  # type: ignore[arg-type]
        (ToolOutput(text="ok", metadata={"x": object()}), "object has no JSON form"),
        (ToolOutput(text="ok", metadata={"x": float("nan")}), "nan is not a finite number"),
        (ToolOutput(text="ok", metadata=None), "Expected `object`, got `null` - at `$.metadata`"),  # type: ignore[arg-type]
        (ToolOutput(text="ok", attachments=(Attachment(mime=None, url="a"),)), "at `$.attachments[0].mime`"),  # type: ignore[arg-type]
        (ToolOutput(text="ok", attachments=(5,)), "at `$.attachments[0]`"),  # type: ignore[arg-type]
        (ToolOutput(structured={"x": object()}), "object has no JSON form"),
        (ToolOutput(structured=[1]), "at `$.structured`"),  # type: ignore[arg-type]
        (ToolOutput(text="ok", structured={"x": "\ud800"}), "surrogates not allowed"),
    ],
)
async def test_an_answer_that_no_record_can_hold_fails_its_own_call_only(
    world: World, value: ToolOutput, said: str
) -> None:
    """The model hears what was wrong with it, and that the tool has done its work; the session is whole."""
    (first, second) = await calls(world, answers(value))
    assert first[0] == "error"
    assert first[1].startswith(UNFIT)
    assert said in first[1]
    assert second == ("completed", "well")


async def test_metadata_that_is_nested_without_end_is_refused(world: World) -> None:
    """What is written must be read again, however deep the reader stands by then."""
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}
    (first, second) = await calls(world, answers(ToolOutput(text="ok", metadata={"deep": deep})))
    assert first == ("error", UNFIT + ": it is nested too deeply. What it did has happened.")
    assert second == ("completed", "well")


async def test_names_that_are_no_unicode_do_not_fail_a_call(world: World) -> None:
    """A file may have such a name: what no record can hold of it is replaced."""
    output = ToolOutput(text="a\udce9", title="b\udce9", metadata={"c\udce9": ["d\udce9", ("e\udce9", 1)]})
    assert await calls(world, answers(output)) == [
        ("completed", "a\N{REPLACEMENT CHARACTER}"),
        ("completed", "well"),
    ]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ToolDenied("no \ud800"), "no \N{REPLACEMENT CHARACTER}"),
        (ToolFailure("no \ud800"), "no \N{REPLACEMENT CHARACTER}"),
        (ToolFailure("It is full.", metadata={"x": object()}), "It is full."),
        (ToolFailure("It is full.", metadata=[1]), "It is full."),  # type: ignore[arg-type]
        (ToolFailure(Mute()), BROKE + "ToolFailure"),  # type: ignore[arg-type]
    ],
)
async def test_the_words_of_a_tool_that_gives_up_are_kept(world: World, error: Exception, said: str) -> None:
    """Whatever is wrong with what comes beside them."""
    assert await calls(world, raises(error)) == [("error", said), ("completed", "well")]


@pytest.mark.parametrize(
    "work",
    [
        does("progress", title=5),
        does("progress", metadata={"x": object()}),
        does("progress", metadata=[1]),
        does("ask", "odd", [5]),
        does("ask", 5, ["x"]),
        does("ask", "odd", ["x"], always=[5]),
        does("ask", "odd", ["x"], metadata={"x": object()}),
    ],
)
async def test_what_cannot_be_shown_or_asked_is_an_error_for_the_tool(world: World, work: Work) -> None:
    """Nothing of it is kept, so that what was shown before and what comes after can be read."""

    async def yes(_: PermissionRequest) -> PermissionAnswer:
        return PermissionAnswer(reply="once")

    (first, second) = await calls(world, work, rules={"odd": "ask"}, on_ask=yes)
    assert first[0] == "error"
    assert first[1].startswith(BROKE)
    assert second == ("completed", "well")


async def test_a_session_in_the_middle_of_its_work_does_not_notice_another_ones_tool(world: World) -> None:
    """It goes on with the very answer that it was hearing."""
    gate, ready = anyio.Event(), anyio.Event()

    async def work(_: ToolContext) -> str:
        await ready.wait()
        raise SystemExit("out of the way")

    async with world.open() as (hf, script):
        hf.tools.register(odd(work))
        one, two = await world.session(hf), await world.session(hf)
        script.add(
            Step(Call("odd", {}, id="c1"), session=one),
            Step(Say("ok"), session=one, expect=answered("c1", "SystemExit: out of the way")),
            Step(Say("half"), Wait(gate), Say("whole"), session=two),
        )
        await hf.sessions.prompt(two, "go")
        await hf.sessions.prompt(one, "go")
        ready.set()
        with anyio.fail_after(60):
            await hf.sessions.wait(one)
            gate.set()
            await hf.sessions.wait(two)
        page = await hf.sessions.messages(two)
    assert [part for part in shape(page.messages)[1][1] if part[0] == "text"] == [
        ("text", "half"),
        ("text", "whole"),
    ]


async def test_the_structured_value_is_kept_unchanged_beside_its_bounded_text(world: World) -> None:
    """In the metadata of the completed call, with and without a text for the model."""
    big = {"rows": [{"number": number, "text": "x" * 50} for number in range(3_000)]}
    small = {"rows": [1, 2.5, None, {"deep": ["ü"]}]}

    @tool()
    async def query(context: ToolContext, large: bool) -> ToolOutput:
        """Find rows."""
        return ToolOutput(structured=big) if large else ToolOutput(text="four rows", structured=small)

    async with world.open(
        Step(Call("query", {"large": True}, id="c1"), Call("query", {"large": False}, id="c2")),
        Step(Say("ok"), expect=answered("c2", "four rows")),
    ) as (hf, _):
        hf.tools.register(query)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        messages = (await hf.sessions.messages(session)).messages
    one, two = [part.state for part in messages[1].parts if isinstance(part, ToolPart)]
    assert isinstance(one, ToolCompleted)
    assert isinstance(two, ToolCompleted)
    assert one.metadata["structured"] == big
    assert one.metadata["truncated"] is True
    assert len(one.output.encode()) <= 51_200
    assert (two.output, two.metadata) == ("four rows", {"truncated": False, "structured": small})


async def test_a_tool_that_is_being_stopped_can_see_it(world: World) -> None:
    """From the first moment at which it could notice; and nothing it does from then on is allowed."""
    begun, seen = anyio.Event(), []

    async def work(context: ToolContext) -> str:
        seen.append(context.cancelled)
        begun.set()
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            seen.append(context.cancelled)
            raise
        return "never"

    async with world.open(Step(Call("odd", {}, id="c1"))) as (hf, _):
        hf.tools.register(odd(work))
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
            await hf.sessions.interrupt(session)
    assert seen == [False, True]


@pytest.mark.ci
async def test_a_call_that_is_over_may_do_nothing_more(world: World) -> None:
    """A tool that did not hear its interruption is refused questions and programs."""
    begun, gate, refused = anyio.Event(), anyio.Event(), list[str]()

    async def work(context: ToolContext) -> str:
        begun.set()
        with anyio.CancelScope(shield=True):
            await gate.wait()
            for late in (
                lambda: context.ask("odd", ["x"]),
                lambda: context.spawn(["true"]).__aenter__(),
            ):
                try:
                    await late()
                except ToolFailure as failure:
                    refused.append(str(failure))
        return "never"

    async with world.open(Step(Call("odd", {}, id="c1")), presence=Attached()) as (hf, _):
        hf.tools.register(odd(work))
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
            await hf.sessions.interrupt(session)
            gate.set()
            await until(lambda: len(refused) >= 2)
        (part,) = [
            each
            for each in (await hf.sessions.messages(session)).messages[1].parts
            if isinstance(each, ToolPart)
        ]
    assert refused == ["The call is over; nothing more can be done for it."] * 2
    assert isinstance(part.state, ToolError)
    assert part.state.metadata == {"outcome": "interrupted", "interrupted": True}
