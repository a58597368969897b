"""What tests about compaction share."""

from typing import Any

from holdfast.app import Holdfast
from holdfast.errors import ProviderError
from holdfast.provider.request.request import Assistant, Request, Text, User
from holdfast.testing.mock_provider.script import Usage
from tests.stories.world import World

SUMMARY = "## Goal\nEverything."


SILENT = Usage(input=0, output=0)


"""A provider that counts nothing: four characters are a token."""


BIG = Usage(input=95_000, output=100)


LONG = " ".join(["word"] * 400)


"""So much that a summary in its place is shorter."""


OVERFLOW = ProviderError("too long", kind="context-overflow")


def small(world: World, **more: Any) -> None:
    """A model with little room."""
    model = {"name": "M", "limit": {"context": 40_000, "output": 2_000}, "cost": {"input": 1, "output": 2}}
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": model, "large": {**model, "limit": {"context": 900_000, "output": 2_000}}},
    }
    world.settings(provider={"scripted": entry}, **more)


def texts(request: Request) -> list[str]:
    """What was said, by both, in order."""
    return [
        each.text
        for message in request.messages
        if isinstance(message, User | Assistant)
        for each in message.content
        if isinstance(each, Text)
    ]


async def shown(hf: Holdfast, session: str) -> list[Any]:
    return list((await hf.sessions.messages(session)).messages)
