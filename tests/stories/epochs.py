"""What tests about epochs share."""

from typing import Any

from holdfast.app import Holdfast
from holdfast.clock import SystemClock
from holdfast.context.source import Codec, ContextSource, Missing
from holdfast.context.system_context import SystemContext
from holdfast.provider.request.request import Request, SystemUpdate
from holdfast.schema.epoch import ContextEpoch
from holdfast.schema.message import SystemMessage
from holdfast.schema.part import StepPrefix, StepStartPart
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step
from tests import prefixes

DAY_MS = 86_400_000


LONG = " ".join(["word"] * 400)


"""So much that a summary in its place is shorter."""


class Calendar(SystemClock):
    """A clock whose date can be changed."""

    def __init__(self) -> None:
        super().__init__()
        self.days = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.days * DAY_MS


class Fact:
    """A source that says what it is told to."""

    def __init__(self, value: str | Missing = "one") -> None:
        self.value = value

    def source(self) -> ContextSource[str]:
        async def load() -> str | Missing:
            return self.value

        return ContextSource(
            key="story/fact",
            codec=Codec(str),
            load=load,
            baseline=lambda now: f"The fact is {now}.",
            update=lambda _, now: f"The fact is now {now}.",
            removal=lambda _: "There is no fact any more.",
        )

    def register(self, hf: Holdfast) -> Any:
        return hf.context.register("story/fact", lambda: SystemContext.make(self.source()))


async def epochs(hf: Holdfast, session: str) -> list[ContextEpoch]:
    return [record.value() for record in await hf.store.select("epoch", session=session)]


async def steps(hf: Holdfast, session: str) -> list[StepPrefix]:
    """What each request kept of the one before it."""
    page = await hf.sessions.messages(session, system=True)
    found = [part for message in page.messages for part in message.parts if isinstance(part, StepStartPart)]
    return [part.prefix for part in found if part.prefix is not None]


async def told(hf: Holdfast, session: str) -> list[str]:
    """The Mid-Conversation System Messages."""
    page = await hf.sessions.messages(session, system=True)
    return [each.info.text for each in page.messages if isinstance(each.info, SystemMessage)]


def updates(request: Request) -> list[str]:
    return [each.text for each in request.messages if isinstance(each, SystemUpdate)]


def extends(before: Request, after: Request) -> bool:
    return prefixes.first_difference(prefixes.blocks(before), prefixes.blocks(after)) is None


def says(*texts: str) -> list[Step]:
    return [Step(Say(text)) for text in texts]


async def compacted(hf: Holdfast, session: str) -> None:
    """Compact what was said, and wait for it."""
    assert await hf.sessions.compact(session, force=True) == "admitted"
    await hf.sessions.wait(session)
