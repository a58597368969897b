"""What a tool at the provider answered: kept exactly, never bounded, and given back as it was."""

from typing import Any

from holdfast.provider.request.events import ToolCalled, ToolFailed, ToolResulted
from holdfast.provider.request.request import Assistant, HostedResult, Request, ToolCall
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Events, Step
from tests.stories.compaction import LONG, SUMMARY
from tests.stories.world import World

FOUND = [{"type": "web_search_result", "title": "long", "encrypted": "x" * 200_000}]
"""Far beyond what the model sees of a tool of ours."""
QUERY = {"query": "weather"}


def searched(id: str, words: str = "Sunny.", found: Any = FOUND) -> Step:
    """An answer for which the provider searched by itself."""
    called = ToolCalled(id=id, name="web_search", input=QUERY, hosted=True, metadata={"block": id})
    result = ToolResulted(id=id, name="web_search", output=found, metadata={"result": id})
    return Step(Events((called, result)), Say(words))


def hosted(request: Request) -> list[Any]:
    """The calls and results at the provider, in their order."""
    return [
        block
        for message in request.messages
        if isinstance(message, Assistant)
        for block in message.content
        if isinstance(block, (ToolCall, HostedResult))
    ]


def given_back(id: str, found: Any = FOUND) -> list[Any]:
    metadata = {"block": id, "providerExecuted": True}
    return [
        ToolCall(id=id, name="web_search", input=QUERY, hosted=True, metadata={**metadata, "result": id}),
        HostedResult(id=id, name="web_search", output=found, metadata={**metadata, "result": id}),
    ]


async def test_a_result_goes_through_record_replay_fork_and_restart_unchanged(world: World) -> None:
    """Nothing of it is cut or written to a file; nothing of ours runs; the provider gets it back whole."""
    async with world.open(searched("s"), Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "How is the weather?")
        await hf.sessions.process(session, "And tomorrow?")
        fork = (await hf.sessions.fork(session)).id
    (call,) = [part for part in answer.parts if isinstance(part, ToolPart)]
    assert isinstance(call.state, ToolCompleted)
    assert (call.state.input, call.state.output, call.state.metadata) == (QUERY, "", {"hosted": FOUND})
    assert hosted(script.requests[1]) == given_back("s")
    assert not (world.home / ".local/share/holdfast/tool-output").exists()

    async with world.open(Step(Say("here")), Step(Say("there"))) as (hf, script):
        await hf.sessions.process(session, "In a new process?")
        await hf.sessions.process(fork, "In a fork?")
    assert [hosted(request) for request in script.requests] == [given_back("s")] * 2


async def test_a_failure_at_the_provider_is_given_back_too(world: World) -> None:
    """As the provider said it."""
    called = ToolCalled(id="s", name="web_search", input=QUERY, hosted=True)
    failed = ToolFailed(id="s", name="web_search", error="quota", output={"error_code": "quota"})
    async with world.open(Step(Events((called, failed)), Say("Sorry.")), Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go")
        await hf.sessions.process(session, "again")
    (call,) = [part for part in answer.parts if isinstance(part, ToolPart)]
    assert isinstance(call.state, ToolError)
    assert (call.state.error, call.state.metadata) == (
        "quota",
        {"hosted": {"error_code": "quota"}, "outcome": "failed"},
    )
    assert hosted(script.requests[1])[1].output == {"error_code": "quota"}


async def test_a_result_in_the_kept_tail_of_a_compaction_stays_whole(world: World) -> None:
    """What the summary takes the place of is gone from the request; the transcript has both."""
    world.settings(compaction={"tail_turns": 1})
    small = [{"type": "web_search_result", "title": "short"}]
    steps = [searched("one", LONG), searched("two", found=small), Step(Say(SUMMARY)), Step(Say("after"))]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "first")
        await hf.sessions.process(session, "second")
        assert await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "third")
        page = await hf.sessions.messages(session)
    assert hosted(script.requests[-1]) == given_back("two", small)
    kept = [part for message in page.messages for part in message.parts if isinstance(part, ToolPart)]
    assert [part.call_id for part in kept] == ["one", "two"]
