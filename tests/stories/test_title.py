"""A session is named after its first prompt, beside the work and without harm to it."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager

import anyio
import pytest

import holdfast
from holdfast.app import Holdfast
from holdfast.errors import ProviderError
from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.runtime.side_calls.side_call import first_line
from holdfast.schema import title
from holdfast.schema.message import UserSummary
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step, Wait
from tests.stories.world import World
from tests.until import until


async def unnamed(world: World, hf: Holdfast) -> str:
    """A session with the default title."""
    return (await hf.sessions.create(directory=world.project)).id


async def named(hf: Holdfast, session: str) -> str:
    """The title, once it is no longer the default."""
    watch = hf.store.watch()
    try:
        with anyio.fail_after(60):
            while title.is_default((found := await hf.sessions.get(session)).title):
                await watch.wait()
            return found.title
    finally:
        watch.close()


class ByKind:
    """Answers requests for a title apart from the others, in whatever order they come."""

    def __init__(self, answers: Step, *titles: Step) -> None:
        self.answers, self.titles = ScriptedProvider(answers), ScriptedProvider(*titles)

    def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """By whether tools are shown."""
        return (self.answers if request.tools else self.titles).stream(request)


async def test_the_first_prompt_names_the_session(world: World) -> None:
    """Thoughts and quotes are left out, a long one is cut."""
    provider = ByKind(Step(Say("ok")), Step(Say('<think>hm</think>\n\n"Fix the tests"\nmore')))
    async with open_with(world, provider) as hf:
        session = await unnamed(world, hf)
        await hf.sessions.process(session, "please fix the tests")
        assert await named(hf, session) == "Fix the tests"
    provider.answers.check()
    provider.titles.check()


def open_with(world: World, provider: ByKind) -> AbstractAsyncContextManager[Holdfast]:
    """The runtime with such a provider."""
    return holdfast.open(world.store, provider=provider)


@pytest.mark.parametrize(
    "titles",
    [Step(Fail(ProviderError("no"))), Step(Wait(anyio.Event())), Step(Say("\n"))],
    ids=["fails", "hangs", "says nothing"],
)
async def test_a_title_that_does_not_come_harms_nothing(world: World, titles: Step) -> None:
    """The answer is there, the default title stays, and closing does not wait."""
    provider = ByKind(Step(Say("ok")), titles)
    with anyio.fail_after(60):
        async with open_with(world, provider) as hf:
            session = await unnamed(world, hf)
            await hf.sessions.process(session, "x")
            assert title.is_default((await hf.sessions.get(session)).title)


@pytest.mark.parametrize(
    ("said", "made"),
    [
        ("", ""),
        ("  \n\n Title \nmore", "Title"),
        ("**Bold**", "Bold"),
        ("x" * 101, "x" * 97 + "..."),
        ("\x1b[31mred\x07", "[31mred"),
    ],
)
def test_a_title_is_one_clean_line(said: str, made: str) -> None:
    """Whatever the model said."""
    assert first_line(said, 100) == made


async def test_a_prompt_is_summarised_where_a_person_wants_it(world: World) -> None:
    """A title of few words and a body, on the user message, after the answer and without harm to it."""
    world.settings(experimental={"message_summary": True})
    provider = ByKind(
        Step(Say("done")), Step(Say("<think>hm</think>Fix the parser")), Step(Say("I fixed the parser."))
    )
    async with open_with(world, provider) as hf:
        session = await world.session(hf)
        await hf.sessions.process(session, "please fix the parser")

        async def summary() -> object:
            return (await hf.sessions.messages(session)).messages[0].info.summary

        found = await until(summary, store=hf.store)
    assert found == UserSummary(title="Fix the parser", body="I fixed the parser.", diffs=[])
    for request in provider.titles.requests:
        assert request.tools == ()
    assert [each.controls.max_output_tokens for each in provider.titles.requests] == [20, 200]


async def test_a_summary_that_does_not_come_harms_nothing(world: World) -> None:
    """The answer is there, and the message is what it was."""
    world.settings(experimental={"message_summary": True})
    failing = Step(Fail(ProviderError("no")))
    async with open_with(world, ByKind(Step(Say("ok")), failing, failing)) as hf:
        session = await world.session(hf)
        await hf.sessions.process(session, "x")
        assert (await hf.sessions.messages(session)).messages[0].info.summary is None
