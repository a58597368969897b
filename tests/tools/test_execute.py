"""One call, carried out: whatever happens becomes a settlement, in words that the model can act on."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from holdfast.toolkit.output import Attachment, ToolDenied, ToolFailure, ToolOutput, ToolParked
from holdfast.tools import execute
from holdfast.tools.bound import OutputLimits
from holdfast.tools.execute import Settlement
from holdfast.tools.registry import Registry
from tests.tools.fake_context import FakeContext

ran: list[str] = []


@tool()
async def work(context: ToolContext, how: str = "text") -> ToolOutput | str:
    """Do one of several things."""
    ran.append(how)
    match how:
        case "text":
            return "done"
        case "long":
            return "x" * 1000
        case "output":
            return ToolOutput(
                text="shown",
                title="A title",
                metadata={"a": 1, "truncated": True},
                attachments=(Attachment(mime="image/png", url="https://x.example/a.png"),),
            )
        case "fail at length":
            raise ToolFailure("x" * 1000, metadata={"level": 3})
        case "fail":
            raise ToolFailure("It is full. Empty it.", metadata={"level": 3})
        case "deny":
            raise ToolDenied("The person said no: use another file.")
        case "stop":
            raise ToolDenied("The person said no.", stops=True)
        case "odd name":
            raise FileNotFoundError(os.fsdecode(b"caf\xe9"))
        case "park":
            raise ToolParked
        case "wait":
            await anyio.sleep_forever()
            return "never"
        case "nothing":
            return None  # type: ignore[return-value]
        case _:
            raise RuntimeError("broken\n  badly " + "x" * 1000)


async def settled(input: JsonMap, name: str = "work", **options: Any) -> Settlement:
    """What becomes of a call."""
    registry = options.pop("registry", None) or Registry()
    registration = registry.register(work)
    toolset = registry.materialise()
    options.pop("before", lambda _: None)(registration)
    ran.clear()

    async def keep(text: str) -> str | None:
        return "/kept"

    settings: dict[str, Any] = {"limits": OutputLimits(), "keep": keep, **options}
    return await execute.execute(toolset, name, input, FakeContext(Path("/")), **settings)


async def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    """A long name is cut; without any tool it says so."""
    assert await settled({}, "wrok") == Settlement(
        output="There is no tool called wrok. The tools are: work.", outcome="failed"
    )
    assert "called " + "y" * 80 + "." in (await settled({}, "y" * 500)).output

    async def keep(text: str) -> None:
        return None

    nothing = Registry().materialise()
    assert await execute.execute(
        nothing, "a", {}, FakeContext(Path("/")), limits=OutputLimits(), keep=keep
    ) == Settlement(output="There is no tool called a. The tools are: none.", outcome="failed")


async def test_a_replaced_tool_is_not_run() -> None:
    """The model was shown another definition."""
    settlement = await settled({}, before=lambda registration: registration.close())
    assert settlement == Settlement(
        output="Stale tool call: work was replaced meanwhile. Look at its definition, and call it again.",
        outcome="failed",
    )
    assert ran == []


async def test_a_closed_tool_is_not_run() -> None:
    """That counts as denied."""
    assert await settled({}, closed=lambda name: name == "work") == Settlement(
        output="The tool work is closed for this prompt.", outcome="denied"
    )
    assert ran == []


async def test_what_is_no_json_is_given_back() -> None:
    """Cut, since a model can write much."""
    settlement = await settled({}, invalid='{"how": ' + "z" * 500)
    assert settlement == Settlement(
        output='The arguments of work are no JSON object: {"how": '
        + "z" * 192
        + ". Write them again as JSON "
        "that fits its schema.",
        outcome="failed",
    )
    assert ran == []


async def test_wrong_arguments_are_told_before_the_tool_runs() -> None:
    """With the place of the mistake."""
    assert await settled({"how": 1}) == Settlement(
        output="The arguments of work are not valid: Expected `str`, got `int` - at `$.how`. Call it again "
        "with arguments that fit its schema.",
        outcome="failed",
    )
    assert ran == []


@pytest.mark.parametrize(
    ("how", "settlement"),
    [
        ("fail", Settlement(output="It is full. Empty it.", metadata={"level": 3}, outcome="failed")),
        ("deny", Settlement(output="The person said no: use another file.", outcome="denied")),
        (
            "stop",
            Settlement(
                output="The person said no.", metadata={"stopped": True}, outcome="denied", stops=True
            ),
        ),
        (
            "odd name",
            Settlement(output="The tool work broke: FileNotFoundError: caf?", outcome="failed"),
        ),
        (
            "nothing",
            Settlement(
                output="The tool work broke: it answered NoneType, which is no text.", outcome="failed"
            ),
        ),
        (
            "break",
            Settlement(
                output="The tool work broke: RuntimeError: broken badly " + "x" * 473, outcome="failed"
            ),
        ),
    ],
)
async def test_a_tool_that_does_not_succeed_is_settled(how: str, settlement: Settlement) -> None:
    """It failed, was denied, was denied for good, answered nothing, or raised anything at all."""
    assert await settled({"how": how}) == settlement
    assert ran == [how]


async def test_text_is_recorded_under_the_tools_name() -> None:
    """The plainest success; a name in another case is forgiven."""
    assert await settled({}, "Work") == Settlement(output="done", title="work", metadata={"truncated": False})


async def test_an_output_keeps_its_title_metadata_and_attachments() -> None:
    """What the tool says about there being more stands."""
    assert await settled({"how": "output"}) == Settlement(
        output="shown",
        title="A title",
        metadata={"a": 1, "truncated": True},
        attachments=(Attachment(mime="image/png", url="https://x.example/a.png"),),
    )


async def test_a_long_output_is_bounded_before_anybody_sees_it() -> None:
    """With the path of its whole."""
    settlement = await settled({"how": "long"}, limits=OutputLimits(bytes_max=300))
    assert len(settlement.output) <= 300
    assert settlement.outcome is None
    assert settlement.metadata == {"truncated": True, "outputPath": "/kept", "outputPaths": ["/kept"]}


async def test_a_long_failure_is_bounded_too() -> None:
    """One settlement has one limit, however it ends."""
    settlement = await settled({"how": "fail at length"}, limits=OutputLimits(bytes_max=300))
    assert len(settlement.output) <= 300
    assert settlement.outcome == "failed"
    assert settlement.metadata == {
        "level": 3,
        "truncated": True,
        "outputPath": "/kept",
        "outputPaths": ["/kept"],
    }


async def test_a_call_that_waits_for_a_person_is_not_settled() -> None:
    """It passes through to whoever runs the session."""
    with pytest.raises(ToolParked):
        await settled({"how": "park"})


async def test_cancellation_passes_through() -> None:
    """Whoever interrupted settles the call."""
    with anyio.move_on_after(0) as scope:
        await settled({"how": "wait"})
    assert scope.cancelled_caught
