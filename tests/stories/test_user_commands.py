"""`sessions.shell`: a command of the user's own, recorded as the model will see it."""

import anyio
import pytest

from holdfast import processes
from holdfast.errors import InvalidInput, NotFound, Refused
from holdfast.provider.request.request import Request
from holdfast.schema.message import AssistantMessage, UserMessage
from holdfast.schema.part import TextPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider import MockProvider, Reply
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step, Wait
from tests.prefixes import blocks, first_difference
from tests.stories.processes import Place, Worker
from tests.stories.processes import calls as calls_of
from tests.stories.world import World
from tests.until import until

pytestmark = pytest.mark.needs("bash")


async def test_what_cannot_be_run_is_refused(world: World) -> None:
    """Nothing is recorded: no command, no session, one that works."""
    gate = anyio.Event()
    async with world.open(Step(Wait(gate), Say("ok"))) as (hf, _):
        session = await world.session(hf)
        for command in ("", " \n", "a\0b"):
            with pytest.raises(InvalidInput):
                await hf.sessions.shell(session, command)
        with pytest.raises(NotFound):
            await hf.sessions.shell("ses_none", "ls")
        await hf.sessions.prompt(session, "go")
        with pytest.raises(Refused, match="is working"):
            await hf.sessions.shell(session, "ls")
        gate.set()
        await hf.sessions.wait(session)
        assert len((await hf.sessions.messages(session)).messages) == 2


async def test_it_is_recorded_and_the_model_sees_it_with_the_next_prompt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No rule is asked, no turn follows; the prefix extends; keys are not in its environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    world.settings(permission={"*": "deny"}, shell="bash")
    (world.home / ".bashrc").write_text("alias greet='echo hello from'\n")
    command = "greet $(basename $PWD); echo [$OPENAI_API_KEY]; exit 3"

    def expect(request: Request) -> str | None:
        kinds = [type(each).__name__ for each in request.messages]
        return None if kinds == ["User", "Assistant", "User", "Assistant", "Results", "User"] else str(kinds)

    async with world.open(Step(Say("Hi.")), Step(Say("I see."), expect=expect)) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "hello")
        answer = await hf.sessions.shell(session, command)
        assert len(script.requests) == 1
        assert not (await hf.sessions.state(session)).busy
        await hf.sessions.process(session, "what was that?")
        first, second = map(blocks, script.requests)
        messages = (await hf.sessions.messages(session)).messages
    assert first_difference(first, second) is None
    user, shown = messages[2:4]
    assert isinstance(user.info, UserMessage)
    assert user.info.no_reply is True
    assert [part.text for part in user.parts if isinstance(part, TextPart) and part.synthetic] == [
        "The following tool was executed by the user"
    ]
    assert shown == answer
    assert isinstance(answer.info, AssistantMessage)
    (part,) = answer.parts
    assert isinstance(part, ToolPart)
    assert isinstance(part.state, ToolCompleted)
    text = "hello from project\n[]\n\n(Exit code 3.)"
    assert (part.tool, part.state.input, part.state.title) == ("bash", {"command": command}, "")
    assert (part.state.output, part.state.metadata) == (text, {"output": text, "exit": 3, "truncated": False})


async def test_an_interrupt_ends_it_and_keeps_what_it_printed(world: World) -> None:
    """The session rests then, and nothing of the command is left."""
    async with world.open() as (hf, _):
        session = await world.session(hf)
        async with anyio.create_task_group() as group:
            found = []

            async def run() -> None:
                found.append(await hf.sessions.shell(session, "echo $$ > pid; echo begun; sleep 300"))

            group.start_soon(run)
            pid = world.project / "pid"
            await until(lambda: pid.exists() and pid.read_text().endswith("\n"))

            async def shown() -> bool:
                return (await hf.sessions.state(session)).busy

            await until(shown)
            with anyio.fail_after(20):
                assert await hf.sessions.interrupt(session)
        state = found[0].parts[0].state
        assert isinstance(state, ToolCompleted)
        assert state.output.endswith("(The user ended the command.)")
        assert state.metadata["exit"] is None
        await until(lambda: processes.started(int(pid.read_text())) == "")
        assert not (await hf.sessions.state(session)).busy


async def test_a_prompt_that_comes_meanwhile_is_answered_afterwards(world: World) -> None:
    """It waits for the command, and the model sees both."""
    gate = world.project / "gate"
    async with world.open(Step(Say("Both."))) as (hf, script):
        session = await world.session(hf)
        async with anyio.create_task_group() as group:
            group.start_soon(hf.sessions.shell, session, "until [ -e gate ]; do sleep 0.02; done; echo went")

            async def busy() -> bool:
                return (await hf.sessions.state(session)).busy

            await until(busy)
            await hf.sessions.prompt(session, "and then?")
            gate.touch()
        await hf.sessions.wait(session)
        assert "went" in str(script.requests[0].messages)


@pytest.mark.ci
async def test_a_process_that_dies_leaves_it_unknown(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """The command ends with it, and the model is told with the next prompt."""
    one, two = workers
    session = str(await one.do("create", directory=str(place.project)))
    await one.do("shell", session=session, command="echo $$ > pid; sleep 300")
    pid = place.project / "pid"
    await until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    await one.kill()
    await until(lambda: processes.started(int(pid.read_text())) == "")
    mock.play(Reply((Say("I see."),)))
    await two.do("prompt", session=session, text="go on")

    async def answered() -> bool:
        return "I see." in str(await place.messages(session))

    await until(answered)
    (part,) = calls_of(await place.messages(session)).values()
    assert isinstance(part.state, ToolError)
    assert (part.state.metadata or {})["outcome"] == "unknown"
    assert "Whether it took effect is unknown" in str(mock.requests[-1].json)
