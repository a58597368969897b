"""A prompt becomes an answer, with tools, durably."""

from holdfast.schema.message import AssistantMessage
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.testing.mock_provider.script import Call, Say, Think
from holdfast.testing.scripted_provider import Step, answered
from tests.stories.world import World, shape


async def test_a_prompt_is_answered_and_everything_is_stored(world: World) -> None:
    """Text, usage, cost, the reason of the end; and it is all there after a restart."""
    async with world.open(Step(Think("hm"), Say("Hello  "))) as (hf, script):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "Hi")

        assert isinstance(answer.info, AssistantMessage)
        assert (answer.info.finish, answer.info.error) == ("stop", None)
        assert answer.info.time.completed is not None
        assert answer.info.cost == 20e-6
        assert answer.info.tokens == Tokens(
            input=10, output=5, reasoning=0, cache=CacheTokens(read=0, write=0)
        )
        assert [each.model.id for each in script.requests] == ["m"]
    async with world.open() as (hf, _):
        page = await hf.sessions.messages(session)
        assert shape(page.messages) == [
            ("user", [("text", "Hi")]),
            (
                "assistant",
                ["step-start", ("reasoning", "hm"), ("text", "Hello"), ("step-finish", "stop")],
            ),
        ]
        stored = await hf.sessions.get(session)
        assert (stored.cost, stored.agent) == (20e-6, "build")


async def test_a_call_is_run_and_its_result_goes_back_to_the_model(world: World) -> None:
    """The next request extends the first one, and ends with the result."""
    (world.project / "a.txt").write_text("first line\n")
    async with world.open(
        Step(Say("Let me look."), Call("read", {"filePath": "a.txt"}, id="c1")),
        Step(Say("It says first line."), expect=answered("c1", "first line")),
    ) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "What is in a.txt?")
        page = await hf.sessions.messages(session)

    (_, call), (_, last) = [(each[0], each[1]) for each in shape(page.messages) if each[0] == "assistant"]
    assert call[0] == "step-start"
    assert call[2][:3] == ("tool", "read", "completed")
    assert last == ["step-start", ("text", "It says first line."), ("step-finish", "stop")]
    first, second = script.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert (second.tools, second.system) == (first.tools, first.system)
