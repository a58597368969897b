"""Prompts are admitted durably, once, and join the work at a boundary."""

from typing import Any

import anyio
import pytest

from holdfast.errors import Conflict, HoldfastError, InvalidInput, NotFound, Refused
from holdfast.provider.request.request import Text, User
from holdfast.schema.prompt import (
    AgentPartInput,
    CompactionPartInput,
    FilePartInput,
    SubtaskPartInput,
    TextPartInput,
)
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, Wait
from tests.stories.tools import STANDARD
from tests.stories.world import World, shape

ASKS = [TextPartInput(text="What does it say?")]


def file(mime: str) -> FilePartInput:
    """A file in a prompt."""
    return FilePartInput(mime=mime, filename="notes.txt", url="data:text/plain,hello")


def said(request: object) -> list[str]:
    """What the person said in a request."""
    return [
        block.text
        for message in request.messages  # type: ignore[attr-defined]
        if isinstance(message, User)
        for block in message.content
        if isinstance(block, Text)
    ]


@pytest.mark.ci
async def test_the_same_prompt_twice_is_one_prompt(world: World) -> None:
    """Same id and content: the same receipt. Same id, other content: a conflict, and nothing is written."""
    async with world.open(Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        id = "msg_000000000001AAAAAAAAAAAAAA"
        first = await hf.sessions.prompt(session, "Hi", id=id)
        second = await hf.sessions.prompt(session, "Hi", id=id)
        with pytest.raises(Conflict, match="was admitted before with other content"):
            await hf.sessions.prompt(session, "Ho", id=id)
        await hf.sessions.wait(session)
        third = await hf.sessions.prompt(session, "Hi", id=id)
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)

    assert (first.fresh, second.fresh, third.fresh) == (True, False, False)
    assert (first.prompt.id, second.prompt.id) == (id, id)
    assert len(script.requests) == 1
    assert page.messages[0].info.id == id
    assert len(page.messages) == 2


async def test_what_is_wrong_with_a_prompt_is_said_before_anything_is_written(world: World) -> None:
    """No session, no parts, an unknown agent, an unknown model, an unknown variant, a bad id."""
    async with world.open() as (hf, _):
        session = await world.session(hf)
        refused: list[tuple[type[HoldfastError], str, dict[str, Any]]] = [
            (InvalidInput, "at least one part", {"parts": []}),
            (InvalidInput, "a text that is not empty", {"parts": [TextPartInput(text=" \n")]}),
            (InvalidInput, "a text that is not empty", {"parts": [TextPartInput(text="x", ignored=True)]}),
            (InvalidInput, "a text that is not empty", {"parts": [AgentPartInput(name="plan")]}),
            (InvalidInput, "notes.txt: text files and folders", {"parts": [*ASKS, file("text/plain")]}),
            (InvalidInput, "text files and folders", {"parts": [*ASKS, file("application/x-directory")]}),
            (
                InvalidInput,
                "a subtask in a prompt cannot be run yet",
                {"parts": [*ASKS, SubtaskPartInput(prompt="p", description="d", agent="general")]},
            ),
            (InvalidInput, "stands alone in its prompt", {"parts": [*ASKS, CompactionPartInput(auto=False)]}),
            (NotFound, "there is no agent 'nobody'", {"agent": "nobody"}),
            (NotFound, "has no model 'n'", {"model": "scripted/n"}),
            (NotFound, "has no variant 'huge'", {"variant": "huge"}),
            (InvalidInput, "does not start with msg_", {"id": "../x"}),
        ]
        for error, words, wishes in refused:
            with pytest.raises(error, match=words):
                await hf.sessions.prompt(session, **{"parts": "Hi", **wishes})
        with pytest.raises(NotFound):
            await hf.sessions.prompt("ses_000000000001AAAAAAAAAAAAAA", "Hi")
        assert (await hf.sessions.messages(session)).messages == ()


async def test_a_text_file_whose_words_stand_beside_it_is_taken(world: World) -> None:
    """As OpenCode's clients send it: the model reads the words, the file is for people."""
    words = TextPartInput(text="It says hello.", synthetic=True)
    async with world.open(Step(Say("ok"))) as (hf, script):
        await hf.sessions.process(await world.session(hf), [*ASKS, words, file("text/plain")])
    assert said(script.requests[0]) == ["What does it say?", "It says hello."]


async def test_a_prompt_that_steers_joins_at_the_next_boundary(world: World) -> None:
    """It shows at once as a message, and the model sees it after the result of the call that ran."""
    (world.project / "a.txt").write_text("x")
    gate, begun = anyio.Event(), anyio.Event()

    def expect(request: object) -> str | None:
        begun.set()
        return None

    async with world.open(
        Step(Wait(gate), Call("read", {"filePath": "a.txt"}), expect=expect), Step(Say("ok"))
    ) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "one")
        await begun.wait()
        await hf.sessions.prompt(session, "two")
        shown = shape((await hf.sessions.messages(session)).messages)
        gate.set()
        await hf.sessions.wait(session)

    assert ("user", [("text", "two")]) in shown
    assert said(script.requests[0]) == ["one"]
    assert said(script.requests[1]) == ["one", "two"]
    kinds = [type(message).__name__ for message in script.requests[1].messages]
    assert kinds == ["User", "Assistant", "Results", "User"]


async def test_a_prompt_that_queues_waits_until_the_session_would_go_idle(world: World) -> None:
    """One at a time, in the order of their admission."""
    gate, begun = anyio.Event(), anyio.Event()

    def expect(request: object) -> str | None:
        begun.set()
        return None

    async with world.open(Step(Wait(gate), Say("1"), expect=expect), Step(Say("2")), Step(Say("3"))) as (
        hf,
        script,
    ):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "one")
        await begun.wait()
        await hf.sessions.prompt(session, "two", delivery="queue")
        await hf.sessions.prompt(session, "three", delivery="queue")
        gate.set()
        await hf.sessions.wait(session)

    assert [said(request) for request in script.requests] == [
        ["one"],
        ["one", "two"],
        ["one", "two", "three"],
    ]


async def test_a_prompt_that_wants_no_reply_is_history_at_once(world: World) -> None:
    """The model hears it with the next prompt; it is never backlog."""
    async with world.open(Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "for later", no_reply=True)
        await hf.sessions.wait(session)
        assert script.requests == []
        await hf.sessions.process(session, "now")

    assert said(script.requests[0]) == ["for later", "now"]


async def test_a_full_inbox_refuses_and_says_so(world: World) -> None:
    """What was admitted stays."""
    async with world.open() as (hf, _):
        session = await world.session(hf)
        for number in range(64):
            await hf.sessions.prompt(session, f"{number}", resume=False)
        with pytest.raises(Refused, match="has 64 prompts waiting already"):
            await hf.sessions.prompt(session, "one more", resume=False)
        assert len((await hf.sessions.messages(session)).messages) == 64


async def test_the_system_text_of_a_prompt_stands_where_it_was_said(world: World) -> None:
    """It changes no earlier block."""
    async with world.open(Step(Say("1")), Step(Say("2"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two", system="Answer in rhyme.")

    first, second = script.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert second.system == first.system
    assert [type(each).__name__ for each in second.messages] == [
        "User",
        "Assistant",
        "User",
        "SystemUpdate",
    ]


async def test_a_tool_that_a_prompt_closes_is_shown_and_refused(world: World) -> None:
    """The request does not change; the call is denied."""
    (world.project / "a.txt").write_text("x")
    async with world.open(Step(Call("read", {"filePath": "a.txt"})), Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "look", tools={"read": False})
        page = await hf.sessions.messages(session)

    tools = [part for message in shape(page.messages) for part in message[1] if part[0] == "tool"]
    assert tools == [("tool", "read", "error", "The tool read is closed for this prompt.")]
    assert [tool.name for tool in script.requests[0].tools] == STANDARD


async def test_parts_of_every_kind_are_kept_as_they_were_given(world: World) -> None:
    """Ignored text is shown and not sent."""
    async with world.open(Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        parts = [TextPartInput(text="hidden", ignored=True), TextPartInput(text="seen", synthetic=True)]
        await hf.sessions.process(session, parts)

    assert said(script.requests[0]) == ["seen"]


async def test_a_prompt_that_comes_while_it_is_looked_for_is_the_same_prompt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process, or a commit whose answer was lost, admits it between two looks: one prompt, one
    receipt, no conflict.
    """
    async with world.open() as (hf, _), world.open() as (other, _):
        session = await world.session(hf)
        id, real = hf.mint.ascending("msg"), hf.store.get

        async def late(of: str, kind: Any, name: str) -> Any:
            found = await real(of, kind, name)
            if kind == "prompt" and found is None:
                await other.sessions.prompt(session, "go", id=id, resume=False)
            return found

        monkeypatch.setattr(hf.store, "get", late)
        admitted = await hf.sessions.prompt(session, "go", id=id, resume=False)
        page = await hf.sessions.messages(session)

    assert (admitted.prompt.id, admitted.fresh) == (id, False)
    assert [each.info.id for each in page.messages] == [id]
