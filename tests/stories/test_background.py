"""Processes in the background of a session: what the model can do with them, and how they end."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from holdfast import processes
from holdfast.provider.request.request import Request
from holdfast.runtime.process import coordinator
from holdfast.schema.message import MessageWithParts, SystemMessage
from holdfast.schema.stored import BACKGROUND
from holdfast.testing.mock_provider import MockProvider, Reply
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from tests.stories import inside
from tests.stories.processes import SHORT_LEASE_MS, Place, Worker
from tests.stories.processes import calls as calls_of
from tests.stories.world import World
from tests.until import until

pytestmark = pytest.mark.needs("bash", "box")

SERVER = "echo ready; echo $$ > pid; while read line; do echo got $line; done; exit 4"


def bash(command: str = SERVER, id: str = "start") -> Call:
    """Starts a process."""
    return Call("bash", {"command": command, "background": True}, id=id)


def pid(project: Path) -> int:
    """The process that wrote its number."""
    path = project / "pid"
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else 0


def is_alive(number: int) -> bool:
    """Whether a process runs."""
    return processes.started(number) != ""


def record(messages: tuple[MessageWithParts, ...], call: str = "start") -> dict[str, Any]:
    """What the record of a call says of its process."""
    metadata = calls_of(messages)[call].state.metadata
    assert metadata is not None
    found: dict[str, Any] = metadata[BACKGROUND]["info"]
    return found


def notices(messages: tuple[MessageWithParts, ...]) -> list[str]:
    """What the model was told between its turns."""
    return [each.info.text for each in messages if isinstance(each.info, SystemMessage)]


async def story(world: World, session: str, hf: Any) -> tuple[MessageWithParts, ...]:
    """Everything of a session."""
    return tuple((await hf.sessions.messages(session, system=True)).messages)


@pytest.mark.ci
async def test_a_process_is_read_written_to_waited_for_and_told_of(world: World) -> None:
    """Its id comes at once; new output by cursor; its end stands in the call's record, and the model is told
    at the next turn, once.
    """
    world.settings(permission={"*": "allow"})
    told: list[str] = []

    def process(action: str, id: str, **more: Any) -> Call:
        return Call("process", {"action": action, "id": name[0], **more}, id=id)

    name: list[str] = []
    async with world.open(Step(bash()), Step(Say("It runs."))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "start it")
        (info,) = hf.sessions.processes(session)
        name.append(info.id)
        assert record(await story(world, session, hf)) == {
            "id": info.id, "command": SERVER, "pid": info.pid, "start": info.start, "end": None,
            "exit": None, "path": info.path, "size": 0,
        }  # fmt: skip
        await until(lambda: pid(world.project) > 0)

        def ended(request: Request) -> str | None:
            told.append(str(request.messages))
            return None

        script.add(
            Step(process("list", "p1"), process("write", "p2", text="one\n")),
            Step(process("wait", "p3", timeout=1)),
            Step(process("write", "p4", text="")),
            Step(process("wait", "p5", timeout=20_000)),
            Step(Say("Over."), expect=ended),
        )
        await hf.sessions.process(session, "talk to it")
        messages = await story(world, session, hf)
        script.add(Step(Say("Again.")))
        await hf.sessions.process(session, "once more")
        after = await story(world, session, hf)
    said = {id: getattr(part.state, "output", "") for id, part in calls_of(messages).items()}
    assert f"{info.id}: {SERVER} (runs, pid {info.pid}, " in said["p1"]
    printed = "".join(said[each].split("\n\n")[0] + "\n" for each in ("p2", "p3", "p4", "p5"))
    assert [line for line in printed.split("\n") if line and line[0] != "("] == ["ready", "got one"]
    assert f"({info.id}: ended with exit code 4; cursor 14.)" in said["p5"]
    line = f"The background process {info.id} (`{SERVER}`) has ended with exit code 4. What it printed is in"
    assert [text.startswith(line) for text in notices(messages)] == [True]
    assert line in told[0]
    assert (record(messages)["exit"], record(messages)["end"] is not None) == (4, True)
    assert notices(after) == notices(messages)
    assert Path(str(info.path)).read_text() == "ready\ngot one\n"


@pytest.mark.ci
async def test_a_process_outlives_an_interrupt_and_ends_with_the_application(world: World) -> None:
    """The next process that runs the session tells the model that it is gone."""
    world.settings(permission={"*": "allow"}, sandbox={"mode": "off"})  # In a box ids are others.
    async with world.open(Step(bash()), Step(Call("bash", {"command": "sleep 300"}, id="long"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "start it")
        await until(lambda: pid(world.project) > 0 and len(hf.sessions.processes(session)) == 1)

        async def waits() -> bool:
            return "long" in calls_of(await story(world, session, hf))

        await until(waits)
        await hf.sessions.interrupt(session)
        assert is_alive(pid(world.project))
        assert not await hf.sessions.interrupt(session), "a process in the background is no work"
        id = hf.sessions.processes(session)[0].id
    await until(lambda: not is_alive(pid(world.project)))
    async with world.open(Step(Say("A pity."))) as (hf, script):
        await hf.sessions.process(session, "go on")
        messages = await story(world, session, hf)
        assert "it ended with the program that ran this session" in str(script.requests[0].messages[-1])
    assert [text.startswith(f"The background process {id} (`") for text in notices(messages)] == [True]
    assert record(messages)["end"] is not None


@pytest.mark.ci
async def test_a_session_has_a_bound_of_processes_and_its_removal_ends_them(world: World) -> None:
    """The call over the bound fails in words that name those that run."""
    world.settings(permission={"*": "allow"})
    calls = [bash("sleep 300", f"c{number}") for number in range(17)]
    async with world.open(Step(*calls), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        failed = [
            part.state.error
            for part in calls_of(await story(world, session, hf)).values()
            if hasattr(part.state, "error")
        ]
        running = hf.sessions.processes(session)
        assert [each.exit for each in running if each.end is not None] == [], "none has ended by itself"
        assert (len(running), len(failed)) == (16, 1)
        assert failed[0].startswith("16 processes of this session run already. End one of them first")
        await hf.sessions.remove(session)
        await until(lambda: not any(is_alive(each.pid) for each in running))


async def test_a_fork_neither_has_nor_ends_the_processes_of_its_origin(world: World) -> None:
    """Its model is told that it has none."""
    world.settings(permission={"*": "allow"})
    async with world.open(Step(bash()), Step(Say("ok")), Step(Say("None here."))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "start it")
        await until(lambda: pid(world.project) > 0)
        fork = await hf.sessions.fork(session)
        await hf.sessions.process(fork.id, "and you?")
        assert "is gone" in str(script.requests[-1].messages[-1])
        assert is_alive(pid(world.project))
        assert hf.sessions.processes(fork.id) == []


@pytest.mark.ci
@pytest.mark.parametrize("how", ["erased", "taken", "lease"])
async def test_processes_of_a_session_that_this_process_lost_are_ended(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Another process has erased it, or has run it since; or the lease is lost."""
    monkeypatch.setattr(coordinator, "ENDED_S", 0.05)
    world.settings(permission={"*": "allow"})
    async with world.open(Step(bash()), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "start it")
        (info,) = hf.sessions.processes(session)
        match how:
            case "erased":
                await hf.store.erase(session)
            case "taken":
                inside.engine(hf).background.note_claim(session, 0)
            case _:
                monkeypatch.setattr(coordinator, "ENDED_S", 3600)
                inside.abandon_all(hf)
        await until(lambda: not is_alive(info.pid))


async def start(place: Place, mock: MockProvider, worker: Worker) -> tuple[str, int]:
    """A session with a process, in another process of ours; the session is idle."""
    mock.play(Reply((bash(),)), Reply((Say("It runs."),)))
    place.settings(sandbox={"mode": "off"})  # In a box ids are others.
    session = str(await worker.do("create", directory=str(place.project)))
    await worker.do("prompt", session=session, text="start it")
    await until(lambda: pid(place.project) > 0)

    async def rests() -> bool:
        return "It runs." in str(await place.messages(session)) and not await worker.do(
            "busy", session=session
        )

    await until(rests)
    return session, pid(place.project)


async def gone_and_told(place: Place, mock: MockProvider, worker: Worker, session: str, number: int) -> None:
    """Another process goes on: nothing is left, and the model is told."""
    mock.play(Reply((Say("A pity."),)))
    await worker.do("prompt", session=session, text="go on")

    async def told() -> bool:
        return "A pity." in str(await place.messages(session))

    await until(told)
    assert not is_alive(number)
    assert "it ended with the program that ran this session" in json.dumps(mock.requests[-1].json)


@pytest.mark.ci
async def test_a_killed_owner_s_processes_end(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """The guard ends them; whoever goes on tells the model."""
    one, two = workers
    session, number = await start(place, mock, one)
    await one.kill()
    await until(lambda: not is_alive(number))
    await gone_and_told(place, mock, two, session, number)


@pytest.mark.ci
async def test_a_session_taken_over_loses_its_processes_with_a_word(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """The other process ends them before its first turn, though their owner lives."""
    one, two = workers
    session, number = await start(place, mock, one)
    await gone_and_told(place, mock, two, session, number)


@pytest.mark.ci
@pytest.mark.parametrize("workers", [SHORT_LEASE_MS], indirect=True)
async def test_a_paused_owner_s_processes_end_with_its_lease(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """Its guard ends them; when it goes on, the process that has taken over has told the model."""
    one, two = workers
    session, number = await start(place, mock, one)
    one.signal(signal.SIGSTOP)
    await until(lambda: not is_alive(number))
    await gone_and_told(place, mock, two, session, number)
    one.signal(signal.SIGCONT)
    mock.play(Reply((Say("Fine."),)))
    await one.do("prompt", session=session, text="and you?")

    async def told() -> bool:
        return "Fine." in str(await place.messages(session))

    await until(told)
    assert len([each for each in mock.requests[-1].json["messages"] if "is gone" in str(each)]) == 1


@pytest.mark.ci
async def test_run_names_what_it_ended(place: Place, mock: MockProvider) -> None:
    """At its end, on the error stream."""
    mock.play(Reply((bash("sleep 300"),)), Reply((Say("It runs."),)))
    code, out, err = await place.command("run", "start it")
    assert (code, "It runs." in out) == (0, True)
    assert "Ended with this command: proc_" in err
    assert "(sleep 300)." in err


async def test_an_agent_that_only_reads_writes_to_no_process_that_may_change_files(world: World) -> None:
    """What another agent of the session started is no way around its own box."""
    world.settings(permission={"*": "allow"})
    async with world.open(Step(bash("bash")), Step(Say("It runs."))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "start it")
        (info,) = hf.sessions.processes(session)
        write = {"action": "write", "id": info.id, "text": "touch made\n"}
        script.add(
            Step(Call("process", write, id="w")), Step(Say("done"), expect=answered("w", "only reads"))
        )
        await hf.sessions.process(session, "go", agent="plan")
    assert not (world.project / "made").exists()
