"""What tests about pruning share."""

from typing import Any

from holdfast.app import Holdfast
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories.world import World


@tool(name="flood", repeatable=True)
async def flood(context: ToolContext, number: int) -> str:
    """Say a lot."""
    return f"{number} " + "x" * 47_000


async def flooded(world: World, hf: Holdfast, count: int) -> str:
    """A session whose every prompt brought much output."""
    hf.tools.register(flood)
    session = await world.session(hf)
    for _ in range(count):
        await hf.sessions.process(session, "more")
    return session


def script(count: int) -> list[Step]:
    pairs = [(Step(Call("flood", {"number": n}, id=f"c{n}")), Step(Say("ok"))) for n in range(count)]
    return [step for pair in pairs for step in pair]


def settings(world: World, **compaction: Any) -> None:
    model = {"name": "M", "limit": {"context": 2_000_000, "output": 8_000}, "cost": {"input": 1, "output": 2}}
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": model},
    }
    world.settings(provider={"scripted": entry}, permission={"*": "allow"}, compaction=compaction)
