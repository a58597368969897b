"""What the long story is played with: tools whose answers never change, and thinking that is signed."""

from holdfast.provider.request.events import ReasoningDelta, ReasoningEnd, ReasoningStart
from holdfast.testing.scripted_provider import Events
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure


def thought(words: str) -> Events:
    """Thinking, signed as on the Anthropic wire."""
    signed = {"anthropic": {"signature": f"signed {len(words)}"}}
    return Events(
        (
            ReasoningStart(id="thought"),
            ReasoningDelta(id="thought", text=words),
            ReasoningEnd(id="thought", metadata=signed),
        )
    )


def find_tool(description: str = "Find the places where words occur in the project.") -> Tool:
    """A tool that always finds something."""

    @tool(name="find", description=description, repeatable=True)
    async def find(context: ToolContext, words: str) -> str:
        return "\n".join(f"src/{words}_{n}.py:{n * 7}: {words} = settle({n})" for n in range(1, 13))

    return find


def check_tool() -> Tool:
    """A tool that fails when it is asked for the impossible."""

    @tool(name="check", repeatable=True)
    async def check(context: ToolContext, part: str) -> str:
        """Run the tests of one part of the project."""
        if part == "nothing":
            raise ToolFailure("There are no tests called nothing.")
        return f"{part}: " + "\n".join(f"test_{part}_{n} passed" for n in range(20))

    return check


def measure_tool() -> Tool:
    """A tool that comes late."""

    @tool(name="measure", repeatable=True)
    async def measure(context: ToolContext, what: str) -> str:
        """Measure how long a part of the project takes."""
        return f"{what}: 12 ms"

    return measure
