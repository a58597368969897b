"""Answers that no provider should give: an id given twice, a block opened twice. Nothing of them is lost."""

import anyio
import pytest

from holdfast.provider.request.events import (
    ProviderEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCalled,
    ToolInputEnd,
    ToolInputStart,
    ToolResulted,
)
from holdfast.provider.request.request import Assistant, ToolCall
from holdfast.schema.part import TextPart, ToolPart
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Events, Step
from tests.stories.permissions import asked
from tests.stories.tools import Deed
from tests.stories.world import Attached, World, shape

BEGIN, END = ToolInputStart(id="x", name="act"), ToolInputEnd(id="x")


def called(what: str) -> ToolCalled:
    return ToolCalled(id="x", name="act", input={"what": what}, invalid=None)


@pytest.mark.parametrize(
    "events",
    [
        (BEGIN, END, called("first"), BEGIN, END, called("second")),
        (BEGIN, BEGIN, END, called("first"), END, called("second")),
        (called("first"), called("second")),
    ],
    ids=["one after the other", "interleaved", "without beginnings"],
)
async def test_two_calls_of_one_id_are_two_calls(world: World, events: tuple[ProviderEvent, ...]) -> None:
    """The second has an id of its own; each asks its own question, and is settled once."""
    world.settings(permission={"act": "ask"})
    deed = Deed()
    steps = Step(Events(events), reason="tool-calls"), Step(Say("ok"))
    async with world.open(*steps, presence=Attached()) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        first, second = await asked(hf, session, 2)
        await hf.sessions.reply(session, first.id, "once")
        watch = hf.store.watch()
        with anyio.fail_after(60):
            while not deed.done or len(await hf.sessions.requests(session)) != 1:
                await watch.wait()
        watch.close()
        assert [each.id for each in await hf.sessions.requests(session)] == [second.id]
        await hf.sessions.reply(session, second.id, "once")
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    parts = [part for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    assert [(part.call_id, part.state.__struct_config__.tag) for part in parts] == [
        ("x", "completed"),
        ("x-2", "completed"),
    ]
    assert sorted(deed.done) == ["first", "second"]
    sent = [each for each in script.requests[1].messages if isinstance(each, Assistant)]
    assert [call.id for call in sent[0].content if isinstance(call, ToolCall)] == ["x", "x-2"]


async def test_a_tool_at_the_provider_does_not_answer_for_one_of_ours(world: World) -> None:
    """They have one id: the call of ours is settled by us alone, the other one by what the provider says."""
    world.settings(permission={"*": "allow"})
    deed = Deed(ask=False)
    hosted = ToolCalled(id="x", name="search", input={}, invalid=None, hosted=True)
    resulted = ToolResulted(id="x", name="search", output={"hits": 3})
    events = called("first"), hosted, resulted
    async with world.open(Step(Events(events), reason="tool-calls"), Step(Say("ok"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        page = await hf.sessions.messages(session)
    parts = [part for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    assert [(part.call_id, part.tool, part.state.output) for part in parts] == [
        ("x", "act", "did first"),
        ("x-2", "search", ""),
    ]


async def test_a_block_that_is_opened_twice_loses_no_words(world: World) -> None:
    """The first text is closed with what was said in it, and the second is one of its own."""
    block = TextStart(id="0"), TextDelta(id="0", text="abc")
    async with world.open(Step(Events((*block, *block, TextEnd(id="0"))))) as (hf, _):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go")
    assert [part for part in shape((answer,))[0][1] if part[0] == "text"] == [("text", "abc")] * 2
    texts = [part for part in answer.parts if isinstance(part, TextPart)]
    assert all(part.time is not None and part.time.end is not None for part in texts)
