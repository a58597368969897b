"""What goes wrong is bounded, named, stored before the one idle, and leaves a session that goes on."""

import asyncio
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.app import Holdfast
from holdfast.errors import ProviderError
from holdfast.provider.request.request import Assistant, Request, Results, SystemUpdate, Text, User
from holdfast.runtime.answer import ending, retry
from holdfast.schema.fault import APIFault, ContentFilterFault, ProviderAuthFault, UnknownFault
from holdfast.schema.message import AssistantMessage
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Fail, ScriptFailed, Step, Wait, answered
from tests.stories.tools import STANDARD, Deed
from tests.stories.world import World, shape


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries wait for a moment only."""
    monkeypatch.setattr(retry, "BASE_MS", 1)


def error(kind: Any, *, retryable: bool = False) -> ProviderError:
    """A failure of that kind."""
    return ProviderError(f"it failed: {kind}", kind=kind, retryable=retryable)


async def events_of(hf: Holdfast, session: str, work: Any) -> list[tuple[str, Any]]:
    """What listeners hear while `work` goes on, up to the first idle."""
    heard: list[tuple[str, Any]] = []
    ready = anyio.Event()

    async def listen() -> None:
        async for frames in hf.feed.follow(session=session):
            for frame in frames:
                heard.append((frame.type, frame.value()))
                if frame.type == "session.idle":
                    return

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        for _ in range(20):
            await checkpoint()
        ready.set()
        with anyio.fail_after(60):
            await work()
    return heard


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("auth", ProviderAuthFault),
        ("quota", APIFault),
        ("other", APIFault),
        ("content-filter", ContentFilterFault),
    ],
)
async def test_a_failure_that_cannot_pass_is_stored_and_told_once(
    world: World, kind: str, fault: type
) -> None:
    """One request; the error is in the message before the one idle."""
    async with world.open(Step(Fail(error(kind)))) as (hf, script):
        session = await world.session(hf)
        heard = await events_of(hf, session, lambda: hf.sessions.process(session, "Hi", check=False))
        answer = (await hf.sessions.messages(session)).messages[-1]

    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, fault)
    assert answer.info.time.completed is not None
    assert len(script.requests) == 1
    kinds = [kind for kind, _ in heard]
    assert kinds.count("session.idle") == 1
    assert kinds.count("session.error") == 1
    stored = [
        index
        for index, (kind, value) in enumerate(heard)
        if kind == "message.updated" and value["info"].get("error")
    ]
    assert stored
    assert stored[0] < kinds.index("session.idle")


async def test_a_failure_before_the_first_word_is_tried_again(world: World) -> None:
    """Listeners are told when; the answer is one message."""
    steps = [Step(Fail(error("overloaded", retryable=True))), Step(Fail(error("rate-limit", retryable=True)))]
    async with world.open(*steps, Step(Say("at last"))) as (hf, script):
        session = await world.session(hf)
        heard = await events_of(hf, session, lambda: hf.sessions.process(session, "Hi"))
        page = await hf.sessions.messages(session)

    assert len(script.requests) == 3
    assert shape(page.messages)[1] == (
        "assistant",
        ["step-start", "retry", "retry", ("text", "at last"), ("step-finish", "stop")],
    )
    waits = [
        value["status"]
        for kind, value in heard
        if kind == "session.status" and value["status"]["type"] == "retry"
    ]
    assert [wait["attempt"] for wait in waits] == [1, 2]


async def test_retries_end(world: World) -> None:
    """After five, with the error of the last one."""
    steps = [Step(Fail(error("overloaded", retryable=True))) for _ in range(6)]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "Hi", check=False)

    assert len(script.requests) == 6
    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, APIFault)


async def test_a_stream_that_breaks_after_its_first_word_is_gone_on_with(world: World) -> None:
    """What arrived is kept and shown to the model, which is told what happened."""

    def expect(request: Request) -> str | None:
        return None if isinstance(request.messages[-1], SystemUpdate) else "no word about the break"

    async with world.open(
        Step(Say("half a sen"), Fail(error("connection", retryable=True))),
        Step(Say("tence."), expect=expect),
    ) as (hf, script):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "Hi")
        page = await hf.sessions.messages(session)

    assert [each for each in shape(page.messages) if each[0] == "assistant"] == [
        ("assistant", ["step-start", ("text", "half a sen")]),
        ("assistant", ["step-start", ("text", "tence."), ("step-finish", "stop")]),
    ]
    first, second = script.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is None


async def test_a_stream_that_breaks_behind_a_call_is_gone_on_with_by_its_result(world: World) -> None:
    """The model view ends with the result, which is not the model's own text: nothing more is said."""
    world.settings(permission={"*": "allow"})
    deed = Deed("act", ask=False)
    async with world.open(
        Step(Say("half"), Call("act", {"what": "x"}, id="c"), Fail(error("connection", retryable=True))),
        Step(Say("whole")),
    ) as (hf, script):
        hf.tools.register(deed.tool)
        await hf.sessions.process(await world.session(hf), "Hi")

    assert [type(each) for each in script.requests[1].messages] == [User, Assistant, Results]
    assert deed.done == ["x"]


async def test_streams_that_keep_breaking_end_the_work(world: World) -> None:
    """The third in a row; the error has a name."""
    steps = [Step(Say("x"), Fail(error("no-finish", retryable=True))) for _ in range(3)]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "Hi", check=False)

    assert len(script.requests) == 3
    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, UnknownFault)
    assert "broke off 3 times" in answer.info.error.data.message


async def test_the_model_is_not_referred_to_text_that_it_is_not_shown(world: World) -> None:
    """The last of the answers that broke off is left out of the next request, and so is what was said of it;
    what had been sent stays as it was.
    """
    steps = [Step(Say(text), Fail(error("no-finish", retryable=True))) for text in ("one", "two", "three")]
    async with world.open(*steps, Step(Say("whole"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "Hi", check=False)
        await hf.sessions.process(session, "again")

    third, fourth = script.requests[2:]
    assert [each for each in third.messages if isinstance(each, SystemUpdate)] == [
        SystemUpdate(text=ending.BROKEN, native=True),
        SystemUpdate(text=ending.BROKEN, native=True),
    ]
    assert fourth.messages == (*third.messages, User(content=(Text(text="again"),)))


async def test_what_a_model_gets_wrong_comes_back_in_words_it_can_act_on(world: World) -> None:
    """An unknown tool, arguments that are no JSON, arguments that do not fit."""
    async with world.open(
        Step(
            Call("wread", {}, id="c1"),
            Call("read", id="c2", raw='{"file'),
            Call("read", {"path": 7}, id="c3"),
        ),
        Step(
            Say("sorry"),
            expect=answered("c1", f"There is no tool called wread. The tools are: {', '.join(STANDARD)}."),
        ),
    ) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "Hi")

    assert answered("c2", "are no JSON object")(script.requests[1]) is None
    assert answered("c3", "The arguments of read are not valid")(script.requests[1]) is None


async def test_an_error_of_ours_ends_the_work_with_a_name(world: World) -> None:
    """The session is left in order and can be prompted again."""
    async with world.open() as (hf, script):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "Hi", check=False)
        assert isinstance(answer.info, AssistantMessage)
        assert isinstance(answer.info.error, UnknownFault)
        assert "was not expected" in answer.info.error.data.message
        script.add(Step(Say("better")))
        again = await hf.sessions.process(session, "Again")
        assert shape((again,))[0][1][1] == ("text", "better")
        with pytest.raises(ScriptFailed):
            script.check()
        script.problems.clear()


async def test_the_same_call_three_times_in_a_row_is_asked_about(world: World) -> None:
    """Nobody is there, so it is not run a third time, and the model is told."""
    (world.project / "a.txt").write_text("x")
    call = {"filePath": "a.txt"}
    async with world.open(
        Step(Call("read", call, id="c1")),
        Step(Call("read", call, id="c2")),
        Step(Call("read", call, id="c3")),
        Step(Say("stuck"), expect=answered("c3", "3 times in a row")),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "Hi")


async def test_the_last_step_is_text_only(world: World) -> None:
    """Tools stay in the request and may not be called; the model is told why, durably."""
    (world.project / "a.txt").write_text("x")
    world.settings(agent={"build": {"steps": 2}})
    async with world.open(Step(Call("read", {"filePath": "a.txt"})), Step(Say("that is all"))) as (
        hf,
        script,
    ):
        session = await world.session(hf)
        await hf.sessions.process(session, "Hi")

    first, last = script.requests
    assert (first.tool_choice, last.tool_choice) == ("auto", "none")
    assert last.tools == first.tools
    assert isinstance(last.messages[-1], SystemUpdate)
    assert "all the steps" in last.messages[-1].text


class Panic(BaseException):
    """As an extension that is written in another language raises."""


@pytest.mark.parametrize("raised", [Panic("badly"), asyncio.CancelledError("by itself")])
async def test_an_error_that_is_no_exception_ends_the_work_of_its_session_only(
    world: World, raised: BaseException
) -> None:
    """Here the provider's code raises it: it has a name, the session is at rest, and others go on."""

    def expect(request: Request) -> str | None:
        raise raised

    gate = anyio.Event()
    async with world.open() as (hf, script):
        one, two = await world.session(hf), await world.session(hf)
        script.add(
            Step(Say("never"), session=one, expect=expect),
            Step(Say("half"), Wait(gate), Say("whole"), session=two),
            Step(Say("better"), session=one),
        )
        await hf.sessions.prompt(two, "go")
        with anyio.fail_after(60):
            broken = await hf.sessions.process(one, "go", check=False)
            gate.set()
            await hf.sessions.wait(two)
            again = await hf.sessions.process(one, "again")
        page = await hf.sessions.messages(two)

    assert isinstance(broken.info, AssistantMessage)
    assert isinstance(broken.info.error, UnknownFault)
    assert broken.info.error.data.message.startswith(type(raised).__name__)
    assert ("text", "whole") in shape(page.messages)[1][1]
    assert ("text", "better") in shape((again,))[0][1]
