"""Programs that tools start: they end with their call, whoever ends the call."""

import os
import signal
from asyncio.base_subprocess import BaseSubprocessTransport
from pathlib import Path

import anyio
import pytest

from holdfast import processes
from holdfast.location.guard import Guard
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider import Call, MockProvider, Reply, Say
from holdfast.testing.scripted_provider import Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories import inside
from tests.stories.processes import SHORT_LEASE_MS, Place, Worker
from tests.stories.processes import calls as calls_of
from tests.stories.world import World
from tests.until import until


async def started(place: Place, mock: MockProvider, worker: Worker, what: str) -> tuple[str, int]:
    """A session whose tool runs a program, and the program's group."""
    mock.play(Reply((Call("program", {"what": what}, id="c1"),)))
    session = str(await worker.do("create", directory=str(place.project)))
    await worker.do("prompt", session=session, text="go")
    await until(lambda: len(place.lines("begin")) == 1)
    return session, int(place.lines("begin")[0][1])


async def gone(group: int) -> None:
    """Return when nothing of the group is left."""
    await until(lambda: not processes.is_group(group))


def guard_of(worker: Worker) -> int:
    """The guard process beside a worker."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if b"guard_process" in line and int(parent) == worker.pid:
                return int(entry.name)
    raise AssertionError("no guard was started")


async def test_a_program_that_cannot_be_started_is_told_to_the_model(world: World) -> None:
    """The call fails in words, and the turn goes on."""

    @tool()
    async def run(context: ToolContext) -> str:
        """Run a program that is not there."""
        async with context.spawn(["no-such-program"]):
            return "ran"

    async with world.open(Step(Call("run", {}, id="c1")), Step(Say("Not there."))) as (hf, script):
        hf.tools.register(run)
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go")
        messages = (await hf.sessions.messages(session)).messages
    state = calls_of(messages)["c1"].state
    assert isinstance(state, ToolError)
    assert state.error == "no-such-program could not be started: No such file or directory."
    assert answer.info.error is None
    assert len(script.requests) == 2


async def test_a_program_s_output_is_read_and_nothing_of_it_is_left(world: World) -> None:
    """Its output and errors come in one stream; the record of the call names no process afterwards."""
    groups: list[int] = []

    @tool()
    async def run(context: ToolContext) -> str:
        """Run a program."""
        async with context.spawn(["sh", "-c", "echo out; echo err >&2; sleep 300 & exit 0"]) as process:
            groups.append(process.pid)
            assert process.stdout is not None
            said = b""
            while said.count(b"\n") < 2:
                said += await process.stdout.receive()
            await process.wait()
        return said.decode()

    async with world.open(Step(Call("run", {}, id="c1")), Step(Say("Done."))) as (hf, _):
        hf.tools.register(run)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        messages = (await hf.sessions.messages(session)).messages
        await gone(groups[0])  # Also what it had left behind.
    state = calls_of(messages)["c1"].state
    assert isinstance(state, ToolCompleted)
    assert state.output == "out\nerr\n"
    assert "groups" not in state.metadata


async def test_without_a_guard_a_program_ends_with_its_call(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended from here, also when the call is interrupted."""
    groups: list[int] = []
    begun = anyio.Event()

    def none(self: Guard, *_: object) -> None:
        raise OSError("no guard can be started")

    @tool()
    async def run(context: ToolContext) -> str:
        """Run a program."""
        async with context.spawn(["sleep", "300"]) as process:
            groups.append(process.pid)
            begun.set()
            await anyio.sleep_forever()
        return "never"

    monkeypatch.setattr(Guard, "end", none)
    async with world.open(Step(Call("run", {}, id="c1"))) as (hf, _):
        hf.tools.register(run)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
            await hf.sessions.interrupt(session)
        await gone(groups[0])


@pytest.mark.ci
async def test_an_interrupt_does_not_wait_for_a_stubborn_program(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """The call is settled and the session idle at once; the program is killed later, even when the process
    that ran it is gone by then.
    """
    one, _ = workers
    session, group = await started(place, mock, one, "stubborn")
    guard = guard_of(one)
    os.kill(guard, signal.SIGSTOP)  # Its time does not run out, however slow the machine is.
    with anyio.fail_after(60):
        await one.do("interrupt", session=session)
    assert not await one.do("busy", session=session)
    assert processes.is_group(group), "it has time to end by itself"
    os.kill(guard, signal.SIGCONT)
    await one.kill()

    await gone(group)
    state = calls_of(await place.messages(session))["c1"].state
    assert isinstance(state, ToolError)
    assert (state.metadata or {})["outcome"] == "interrupted"
    assert "groups" not in (state.metadata or {})


@pytest.mark.ci
async def test_the_programs_of_a_killed_process_end(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """The guard beside it sees that it is gone, and ends them."""
    one, _ = workers
    _, group = await started(place, mock, one, "plain")
    await one.kill()
    await gone(group)


@pytest.mark.ci
@pytest.mark.parametrize("workers", [SHORT_LEASE_MS], indirect=True)
async def test_the_programs_of_a_paused_process_end_with_its_lease(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """Whoever takes the session over starts the call again when nothing of the first one is left."""
    one, two = workers
    session, group = await started(place, mock, one, "plain")
    one.signal(signal.SIGSTOP)

    async def taken() -> bool:
        await two.do("resume", session=session)
        return len(place.lines("begin")) == 2

    await until(taken)
    assert not processes.is_group(group)
    one.signal(signal.SIGCONT)
    await two.do("interrupt", session=session)
    assert [pid for pid, _ in place.lines("begin")] == [one.pid, two.pid]


@pytest.mark.ci
async def test_recovery_ends_what_a_dead_process_and_its_dead_guard_left(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """The running part names the group: it is ended before the call is run again."""
    one, two = workers
    session, group = await started(place, mock, one, "stubborn")
    os.kill(guard_of(one), signal.SIGKILL)
    await one.kill()
    assert processes.is_group(group)

    await two.do("resume", session=session)
    await until(lambda: len(place.lines("begin")) == 2)
    assert not processes.is_group(group)
    await two.do("interrupt", session=session)


async def test_a_group_whose_number_was_given_out_again_is_left_alone(tmp_path: Path) -> None:
    """The start time of the leader tells: one that began at another time is somebody else's."""
    process = await anyio.open_process(["sleep", "60"], start_new_session=True)
    try:
        assert not processes.end_group(process.pid, "1")
        assert processes.is_group(process.pid)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.ci
async def test_closing_does_not_hold_the_loop_while_a_stubborn_program_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else the process does goes on: here it is what lets the guard, which is waited for, go on."""
    world.settings(permission={"run": "allow"})
    groups: list[int] = []
    begun, went_on = anyio.Event(), anyio.Event()
    close, closed = Guard.close, []

    def closing(self: Guard, *, wait_s: float) -> None:
        close(self, wait_s=wait_s)
        closed.append(went_on.is_set())

    monkeypatch.setattr(Guard, "close", closing)

    @tool()
    async def run(context: ToolContext) -> str:
        """Run a program."""
        async with context.spawn(["sh", "-c", "trap '' TERM; sleep 300 & wait; wait"]) as process:
            groups.append(process.pid)
            begun.set()
            await anyio.sleep_forever()
        return "never"

    async def lets_go(guard: Guard, pid: int) -> None:
        await until(lambda: guard._process is None)
        went_on.set()
        os.kill(pid, signal.SIGCONT)

    async with anyio.create_task_group() as beside, world.open(Step(Call("run", {}, id="c1"))) as (hf, _):
        hf.tools.register(run)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
        guard = inside.engine(hf).guard
        assert guard._process is not None
        os.kill(guard._process.pid, signal.SIGSTOP)
        beside.start_soon(lets_go, guard, guard._process.pid)
    assert closed == [True]
    await gone(groups[0])


@pytest.mark.ci
@pytest.mark.needs("bash", "box")
@pytest.mark.parametrize("background", [False, True])
async def test_closing_waits_until_the_loop_has_heard_of_the_end_of_every_program(
    world: World, monkeypatch: pytest.MonkeyPatch, *, background: bool
) -> None:
    """A loop that closes before leaves a program that nobody buries, and the pipe of its output."""
    world.settings(permission={"*": "allow"})
    running: list[BaseSubprocessTransport] = []
    heard: list[BaseSubprocessTransport] = []
    exited = BaseSubprocessTransport._process_exited

    def late(self: BaseSubprocessTransport, status: int) -> None:
        def hear() -> None:
            heard.append(self)
            exited(self, status)

        running.append(self)
        self._loop.call_later(0.3, hear)

    monkeypatch.setattr(BaseSubprocessTransport, "_process_exited", late)
    call = Call("bash", {"command": "touch began; sleep 300", "background": background}, id="c1")
    steps = (Step(call), Step(Say("It runs."))) if background else (Step(call),)
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        await (hf.sessions.process if background else hf.sessions.prompt)(session, "go")
        await until((world.project / "began").exists)
    assert (len(heard) > 0, heard) == (True, running)
