"""A launcher that was started ahead builds the same box as one that starts with its command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process

from holdfast import processes
from holdfast.location.box import start, waiting_launcher
from holdfast.location.box.boxes import Boxes
from holdfast.location.box.host_level import HostLevel
from holdfast.location.box.policy import BoxPolicy
from holdfast.location.box.session_network import SessionNetwork
from holdfast.location.box.start import Errand, Report
from holdfast.location.box.waiting_launcher import WaitingLauncher
from holdfast.runtime.engine.call_box import CallBox
from tests.location.box.boxed import Ran, run
from tests.location.box.users import BASE, folder_of
from tests.until import until

pytestmark = pytest.mark.needs("box")

WAIT_S = 5
"""How long a launcher waits: more than this machine stalls."""
LOOK = """
import json, os, signal, socket
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
kept = ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "SigIgn", "SigBlk")
def fails(work, *args):
    try:
        work(*args)
    except OSError as error:
        return error.errno
print(json.dumps({
    "cwd": os.getcwd(),
    "env": dict(os.environ),
    "status": {name: status[name].strip() for name in kept},
    "open": sorted(os.listdir("/proc/self/fd")),
    "processes": sorted(filter(str.isdigit, os.listdir("/proc"))),
    "network": os.stat("/proc/self/ns/net").st_ino,
    "session": os.getsid(0),
    "alarm": signal.alarm(0),
    "inside": fails(open, "made", "w"),
    "outside": fails(open, "../outside", "w"),
    "hidden": fails(os.listdir, "../hidden"),
    "first": fails(open, "/proc/1/environ"),
    "reach": fails(socket.create_connection, ("192.0.2.1", 9), 5),
}))
"""


@pytest.fixture
def top() -> Iterator[Path]:
    """A project, and a secret beside it."""
    with folder_of(os.geteuid()) as root:
        (root / "work").mkdir()
        (root / "hidden").mkdir()
        yield root


def policy_of(top: Path) -> BoxPolicy:
    return BoxPolicy(mode="workspace", write=(str(top / "work"),), hidden=(str(top / "hidden"),))


async def output_of(process: Process) -> bytes:
    assert process.stdout is not None
    return b"".join([piece async for piece in process.stdout])


async def given(
    launcher: WaitingLauncher,
    policy: BoxPolicy,
    command: list[str],
    *,
    cwd: Path,
    env: dict[str, str],
    session: tuple[int, int] | None = None,
) -> Ran:
    """Give a command to a launcher, and wait for its end."""
    with start.prepared(policy, session=session) as box:
        launcher.give(box, Errand(command, cwd, {**env, **box.environment()}))
        box.began()
        with anyio.fail_after(60):
            out = await output_of(launcher.process)
            code = await launcher.process.wait()
        return Ran(code, out.decode(), "", box.report())


async def test_what_a_command_finds_is_the_same(top: Path) -> None:
    """Its folder, variables, privileges, descriptors, processes and network, and what it may not reach."""
    env = {"PATH": os.environ["PATH"], "HOME": str(top), "ODD": "\udcff=\n"}
    command = [BASE, "-I", "-S", "-c", LOOK]
    with SessionNetwork() as network:
        options = {"cwd": top / "work", "env": env, "session": network.descriptors}
        one = run(policy_of(top), command, **options)  # type: ignore[arg-type]
        other = await given(
            await WaitingLauncher.start(),
            policy_of(top),
            command,
            cwd=top / "work",
            env=env,
            session=network.descriptors,
        )
    assert json.loads(other.out) == json.loads(one.out)
    assert (other.code, other.report) == (0, Report(ready=True, unreachable=1)) == (one.code, one.report)
    found = json.loads(other.out)
    assert (found["inside"], found["outside"]) == (None, 30)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["/bin/sh", "-c", "exit 7"], 7, ""),
        (["/bin/sh", "-c", "kill -9 $$"], 137, ""),
        (["no-such-program"], 127, "no-such-program: not found\n"),
        (["/etc/passwd"], 126, "/etc/passwd: Permission denied\n"),
    ],
)
async def test_a_command_s_end_is_told(top: Path, command: list[str], code: int, said: str) -> None:
    """As a shell tells it."""
    launcher = await WaitingLauncher.start()
    env = {"PATH": os.environ["PATH"]}
    ran = await given(launcher, policy_of(top), command, cwd=top / "work", env=env)
    assert ran == Ran(code, said, "", Report(ready=True))


async def test_a_folder_that_is_gone_runs_nothing(top: Path) -> None:
    """It fails closed, with one line."""
    ran = await given(
        await WaitingLauncher.start(), policy_of(top), ["/bin/true"], cwd=top / "gone", env={"PATH": "/bin"}
    )
    assert ran == Ran(125, "box: No such file or directory\n", "", Report())


async def test_one_that_has_died_reports_nothing(top: Path) -> None:
    """What it was given did not run, and the report says so."""
    launcher = await WaitingLauncher.start()
    os.kill(launcher.process.pid, signal.SIGKILL)
    ran = await given(launcher, policy_of(top), ["/bin/true"], cwd=top / "work", env={"PATH": "/bin"})
    assert (ran.code, ran.report) == (-9, Report())
    assert not launcher.is_usable


async def test_it_has_none_of_the_user_s_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands beside the command, whose user may look at it."""
    monkeypatch.setenv("SOME_KEY", "secret")
    launcher = await WaitingLauncher.start()
    environ = Path(f"/proc/{launcher.process.pid}/environ")
    try:
        await until(environ.read_bytes)  # The kernel shows none until the program is in place.
        assert b"secret" not in environ.read_bytes()
        assert b"PATH=" in environ.read_bytes()
    finally:
        await launcher.close()
    assert launcher.process.returncode == -signal.SIGKILL


async def test_it_ends_with_the_process_that_started_it() -> None:
    """Also when that one is killed."""
    owner = (
        "import anyio\n"
        "from holdfast.location.box.waiting_launcher import WaitingLauncher\n"
        "async def main():\n"
        "    launcher = await WaitingLauncher.start()\n"
        "    print(launcher.process.pid, flush=True)\n"
        "    await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert processes.is_group(pid)
        process.kill()
    await until(lambda: not processes.is_group(pid))


@pytest.mark.ci
async def test_it_ends_after_its_time_but_not_with_a_command(top: Path) -> None:
    """The time is for waiting: a command takes as long as it takes."""
    used, idle = await WaitingLauncher.start(WAIT_S), await WaitingLauncher.start(WAIT_S)
    work = top / "work"
    command = ["/bin/sh", "-c", "until [ -e go ]; do sleep 0.1; done; echo done"]
    ran: list[Ran] = []

    async def run() -> None:
        ran.append(await given(used, policy_of(top), command, cwd=work, env={"PATH": os.environ["PATH"]}))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        with anyio.fail_after(60):
            assert await idle.process.wait() == -signal.SIGALRM
        (work / "go").touch()
    assert ran == [Ran(0, "done\n", "", Report(ready=True))]
    assert not idle.is_usable
    await idle.close()


async def test_a_command_that_was_never_given_leaves_no_launcher(top: Path) -> None:
    """What goes wrong before it begins ends the one that was taken for it."""
    boxes = Boxes()
    await boxes.start_launcher()
    box = CallBox(
        HostLevel("full"), policy_of(top), home=top, worktree=top, directory=top / "work", boxes=boxes
    )
    with box.launched(["/bin/true"], top / "work", {}, ahead=True) as launching:
        taken = launching.waiting
    assert taken is not None
    with anyio.fail_after(60):
        await taken.wait()
    assert box.failure is not None
    assert boxes.launcher() is None


@pytest.mark.parametrize("policy", [None, "workspace"])
async def test_none_is_made_ready_where_there_is_no_box(top: Path, policy: str | None) -> None:
    """A command with the user's own rights has none, and so has the next."""
    boxes = Boxes()
    box = CallBox(
        HostLevel("full"),
        None if policy is None else policy_of(top),
        home=top,
        worktree=top,
        directory=top / "work",
        boxes=boxes,
    )
    await box.make_ready()
    made = boxes.launcher()
    assert (made is None) == (policy is None)
    if made is not None:
        await made.close()


async def test_one_waits_at_a_time_and_none_when_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made ready once, taken once, too old a one is not taken, and closing ends the last."""
    boxes = Boxes()
    assert boxes.launcher() is None
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(boxes.start_launcher)
    first = boxes.launcher()
    assert first is not None
    assert boxes.launcher() is None
    await first.close()

    monkeypatch.setattr(waiting_launcher, "LAST_S", waiting_launcher.WAIT_S)
    await boxes.start_launcher()
    assert boxes.launcher() is None
    monkeypatch.undo()

    await boxes.start_launcher()
    last = boxes._waiting
    await boxes.close()
    assert last is not None
    assert last.process.returncode is not None
    await boxes.start_launcher()
    assert boxes.launcher() is None
