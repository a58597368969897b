"""A prompt becomes an answer, with tools, durably."""

import anyio
import pytest

from holdfast.provider.instructions import choose
from holdfast.provider.request.events import TextDelta, TextEnd, TextStart
from holdfast.provider.request.request import Assistant, Reasoning, Text
from holdfast.runtime.answer import processor
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import Part, TextPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.store.batch import Batch, Fence, Held, Receipt
from holdfast.testing.mock_provider.script import Call, Say, Think
from holdfast.testing.scripted_provider import Events, Item, Step, Wait, answered
from tests.prefixes import blocks, first_difference
from tests.stories.tools import STANDARD, Deed
from tests.stories.world import World, shape
from tests.until import until


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


async def test_a_turn_with_a_call_is_eight_commits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Admission, claim, opening (with the promotion), running, settled, close and open, the first text, close
    and release. What a commit costs is most of what the engine adds to a turn.
    """
    (world.project / "a.txt").write_text("first line\n")
    call = Call("read", {"filePath": "a.txt"})
    async with world.open(Step(Say("hello")), Step(call), Step(Say("done"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "Hi")
        await hf.sessions.rename(session, "A title")
        commit, claim, written = hf.store.commit, hf.store.claim, list[str]()

        async def noted(batch: Batch) -> Receipt:
            written.append(" ".join([*(each.kind for each in batch.changes), *["release"] * batch.release]))
            return await commit(batch)

        async def claimed(session: str, owner: str) -> Fence | Held:
            written.append("claim")
            return await claim(session, owner)

        monkeypatch.setattr(hf.store, "commit", noted)
        monkeypatch.setattr(hf.store, "claim", claimed)
        await hf.sessions.process(session, "Read it")

    assert written == [
        "session prompt message part",
        "claim",
        "prompt message message part",
        "part",
        "part",
        "part message message part session",
        "part",
        "part part message session release",
    ]


async def test_a_small_model_gets_a_brief_text_and_few_tools(world: World) -> None:
    """One without any sense for tools gets none."""
    models = {
        "m": {"limit": {"context": 8_192, "output": 2_048}},
        "plain": {"limit": {"context": 100_000, "output": 2_048}, "tool_call": False},
    }
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": models,
    }
    world.settings(provider={"scripted": entry}, permission={"act": "allow"})
    async with world.open(Step(Say("ok")), Step(Say("ok"))) as (hf, script):
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "small")
        await hf.sessions.process(session, "plain", model="scripted/plain")

    small, plain = script.requests
    assert [tool.name for tool in small.tools] == sorted(choose.BRIEF_TOOLS & set(STANDARD))
    assert len(small.system[0]) < 1_600
    assert plain.tools == ()


async def test_a_fork_of_a_fork_names_the_first_ones_prefix(world: World) -> None:
    """So that the provider's cache serves all three."""
    async with world.open(*(Step(Say("ok")) for _ in range(3))) as (hf, script):
        first = await world.session(hf)
        await hf.sessions.process(first, "one")
        second = (await hf.sessions.fork(first)).id
        third = (await hf.sessions.fork(second)).id
        for session in (second, third):
            await hf.sessions.process(session, "on")

    assert [request.cache_key for request in script.requests] == [first, first, first]


async def test_signed_thinking_goes_back_byte_for_byte(world: World) -> None:
    """With the blanks at its end: the signature is over them too. Text is trimmed."""
    thought = "hmm, let me think \n\n"
    world.settings(permission={"act": "allow"})
    call = Step(Think(thought, signature="SIG=="), Say("So: \n"), Call("act", {"what": "x"}, id="c"))
    async with world.open(call, Step(Say("done"))) as (hf, script):
        hf.tools.register(Deed().tool)
        await hf.sessions.process(await world.session(hf), "go")
    (made,) = [each for each in script.requests[1].messages if isinstance(each, Assistant)]
    assert made.content[:2] == (
        Reasoning(text=thought, metadata={"signature": "SIG=="}),
        Text(text="So:"),
    )


@pytest.mark.parametrize("behind", ["text", "text that was saved", "signed thinking"])
async def test_what_ends_behind_the_calls_is_in_the_next_request(
    world: World, monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    """Its last words are written with what follows them, and the model reads them whole all the same."""
    settled, saved = anyio.Event(), anyio.Event()
    half = TextStart(id="t"), TextDelta(id="t", text="Half, ")
    rest = TextDelta(id="t", text="and the rest."), TextEnd(id="t")
    items: dict[str, tuple[Item, ...]] = {
        "text": (Events((*half, *rest)),),
        "text that was saved": (Events(half), Wait(saved), Events(rest)),
        "signed thinking": (Think("Hm. ", signature="SIG"),),
    }
    if behind == "text that was saved":
        monkeypatch.setattr(processor, "CHECKPOINT_MS", 1)
    call = Step(Call("act", {"what": "x"}, id="c"), Wait(settled), *items[behind])
    async with world.open(call, Step(Say("Two.")), Step(Say("Three."))) as (hf, script):
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)

        async def parts() -> list[Part]:
            page = await hf.sessions.messages(session)
            return [part for message in page.messages for part in message.parts]

        async def is_settled() -> bool:
            return any(
                isinstance(each, ToolPart) and isinstance(each.state, ToolCompleted) for each in await parts()
            )

        async def is_saved() -> bool:
            return any(isinstance(each, TextPart) and each.text == "Half, " for each in await parts())

        await hf.sessions.prompt(session, "go")
        await until(is_settled)
        settled.set()
        if behind == "text that was saved":
            await until(is_saved)
            saved.set()
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "again")

    first, second, third = map(blocks, script.requests)
    assert first_difference(first, second) is None
    assert first_difference(second, third) is None
    (made,) = [each for each in script.requests[1].messages if isinstance(each, Assistant)]
    if behind == "signed thinking":
        assert Reasoning(text="Hm. ", metadata={"signature": "SIG"}) in made.content
    else:
        assert Text(text="Half, and the rest.") in made.content
