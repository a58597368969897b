"""The guard ends the tools of an owner that died, was paused or lost its lease; and nobody else's."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from holdfast import processes
from holdfast.location import guard_process
from holdfast.location.guard import Guard
from holdfast.location.guard_process import awake_ms, boot_ms

PLAIN = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {PLAIN}"
FAMILY = (
    "import subprocess,sys,time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    "print('up', flush=True); time.sleep(600)"
)
OWNER = """
import os, signal, subprocess, sys, time
from holdfast import processes
from holdfast.location.guard import Guard
from holdfast.location.guard_process import boot_ms
tool = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
guard = Guard()
guard.watch(tool.pid, processes.started(tool.pid))
print(tool.pid, flush=True)
if sys.argv[1] == "paused":
    sys.stdin.readline()
    guard.renew(boot_ms() + 500)
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(600)
"""


@pytest.fixture
def start() -> Iterator[Callable[[str], int]]:
    """Start a tool in a group of its own; whatever is left of it is ended."""
    begun: list[subprocess.Popen[bytes]] = []

    def made(program: str) -> int:
        tool = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
        )
        assert tool.stdout is not None
        assert tool.stdout.readline() == b"up\n"
        begun.append(tool)
        return tool.pid

    yield made
    for tool in begun:
        if tool.poll() is None:
            os.killpg(tool.pid, signal.SIGKILL)
        tool.communicate()


def gone(pgid: int) -> bool:
    """Whether the group ends in time."""
    give_up = time.monotonic() + 60.0
    while processes.is_group(pgid):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.ci
@pytest.mark.parametrize("program", [PLAIN, STUBBORN, FAMILY], ids=["plain", "stubborn", "family"])
def test_a_group_is_ended_whole(start: Callable[[str], int], program: str) -> None:
    """TERM first, KILL when it does not listen, its children too."""
    pgid = start(program)

    assert processes.end_group(pgid, processes.started(pgid), grace_s=0.2)
    assert gone(pgid)
    assert not processes.end_group(pgid, "whatever")


def test_a_group_whose_number_belongs_to_another_is_left_alone(start: Callable[[str], int]) -> None:
    """As is our own, and the first process of the system."""
    pgid = start(PLAIN)

    assert not processes.end_group(pgid, "another time")
    assert not processes.end_group(os.getpgrp(), processes.started(os.getpgrp()))
    assert not processes.end_group(1, processes.started(1))
    assert processes.is_group(pgid)


def owner(then: str) -> tuple["subprocess.Popen[bytes]", int]:
    """An owner with one tool; one that is to be paused stops itself at a word, just after it has renewed."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, then], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_an_owner_that_is_killed_takes_its_tools_along() -> None:
    """The guard hears that its input ended."""
    process, tool = owner("lives")
    try:
        assert processes.is_group(tool)
        process.kill()
        process.communicate()
        assert gone(tool)
    finally:
        process.kill()


@pytest.mark.ci
def test_the_tools_of_an_owner_that_is_paused_end_at_its_deadline() -> None:
    """Before anybody else may begin its own."""
    process, tool = owner("paused")
    try:
        assert processes.is_group(tool)
        assert process.stdin is not None
        process.stdin.write(b"now\n")
        process.stdin.flush()
        assert gone(tool)
    finally:
        process.kill()
        process.communicate()


def test_what_is_forgotten_lives(start: Callable[[str], int]) -> None:
    """Closing the guard ends only what it still watches."""
    kept, watched = start(PLAIN), start(PLAIN)
    guard = Guard()
    guard.renew(boot_ms() + 60_000)
    for pgid in (kept, watched):
        guard.watch(pgid, processes.started(pgid))
    guard.forget(kept)
    guard.close()

    assert gone(watched)
    assert processes.is_group(kept)


def test_one_group_can_be_ended_alone_and_a_dead_guard_is_replaced(start: Callable[[str], int]) -> None:
    """The new guard knows what the old one knew."""
    one, other = start(PLAIN), start(PLAIN)
    guard = Guard()
    guard.watch(one, processes.started(one))
    assert guard._process is not None
    guard._process.kill()
    guard._process.wait()
    guard.watch(other, processes.started(other))
    guard.end(one)

    assert gone(one)
    assert processes.is_group(other)
    guard.close()
    assert gone(other)


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_what_was_to_be_ended_is_ended_by_the_next_guard(start: Callable[[str], int], fate: int) -> None:
    """The order reached a guard that did not read it; the next one is given it, and only that."""
    ended, kept, guard = start(PLAIN), start(PLAIN), Guard()
    guard.watch(ended, processes.started(ended))
    guard.watch(kept, processes.started(kept))
    first = guard._process
    assert first is not None
    os.kill(first.pid, signal.SIGSTOP)
    guard.end(ended)
    os.kill(first.pid, fate)
    if fate == signal.SIGKILL:
        first.wait()
    for _ in range(10_000):
        guard.expect("one that is not started")
        if guard._process is not first:
            break

    assert gone(ended)
    assert processes.is_group(kept)
    guard.close()
    assert gone(kept)


def test_a_guard_that_is_dead_when_it_is_told_to_end_a_group(start: Callable[[str], int]) -> None:
    """The one that takes its place is told."""
    tool, guard = start(PLAIN), Guard()
    guard.watch(tool, processes.started(tool))
    assert guard._process is not None
    guard._process.kill()
    guard._process.wait()
    guard.end(tool)

    assert gone(tool)
    guard.close()


EXPECTING = """
import subprocess, sys, time
from holdfast.location.guard import Guard
guard = Guard()
guard.expect("dropped")
guard.unexpect("dropped")
guard.expect("kept")
tools = [
    subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        env={"HOLDFAST_GROUP": mark, "PATH": "/bin"},
    )
    for mark in ("kept", "dropped")
]
print(*(tool.pid for tool in tools), flush=True)
time.sleep(600)
"""


def test_a_guard_that_reads_no_more_is_replaced(start: Callable[[str], int]) -> None:
    """Whoever starts a process is not held up by it, and it ends nothing when it goes on."""
    tool, guard = start(PLAIN), Guard()
    guard.watch(tool, processes.started(tool))
    stopped = guard._process
    assert stopped is not None
    os.kill(stopped.pid, signal.SIGSTOP)
    try:
        for pgid in range(5_000):
            guard.watch(1_000_000_000 + pgid, "0")
            guard.forget(1_000_000_000 + pgid)
            if guard._process is not stopped:
                break
        assert guard._process is not stopped
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(stopped.pid, signal.SIGCONT)
    assert stopped.wait(60) == -signal.SIGKILL
    assert processes.is_group(tool)

    guard.close()
    assert gone(tool)


def test_what_was_about_to_be_started_is_ended_by_its_mark() -> None:
    """An owner that dies between the start of a process and `watch` leaves nothing that was expected."""
    owner = subprocess.Popen([sys.executable, "-c", EXPECTING], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    kept, dropped = map(int, owner.stdout.readline().split())
    try:
        owner.kill()
        owner.communicate()
        assert gone(kept)
        assert processes.is_group(dropped)
    finally:
        os.killpg(dropped, signal.SIGKILL)


def marked(mark: str) -> "subprocess.Popen[bytes]":
    """A program that carries the mark, in a group that no guard watches."""
    return subprocess.Popen(
        [sys.executable, "-c", PLAIN],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        env={processes.MARK: mark, "PATH": "/bin"},
    )


def test_what_was_expected_is_ended_by_the_next_guard_too() -> None:
    """The one that was told of it is gone when the owner ends."""
    guard = Guard()
    guard.expect("expected")
    assert guard._process is not None
    guard._process.kill()
    guard._process.wait()
    guard.expect("another")
    guard.unexpect("another")
    tool = marked("expected")
    try:
        guard.close()
        assert gone_by_itself(tool)
    finally:
        tool.kill()
        tool.wait()


def gone_by_itself(tool: "subprocess.Popen[bytes]") -> bool:
    """Whether the program is ended in time, by another process."""
    try:
        return tool.wait(60) != 0
    except subprocess.TimeoutExpired:
        return False


@pytest.mark.parametrize("replaced", [False, True], ids=["the same guard", "the next guard"])
def test_what_is_watched_is_expected_no_more(*, replaced: bool) -> None:
    """Once its group is forgotten, its mark brings no end to a program that still carries it."""
    guard = Guard()
    guard.expect("mark")
    tool = marked("mark")
    try:
        guard.watch(tool.pid, processes.started(tool.pid), "mark")
        guard.forget(tool.pid)
        if replaced:
            assert guard._process is not None
            guard._process.kill()
            guard._process.wait()
            guard.expect("another")
            guard.unexpect("another")
        guard.close(wait_s=60.0)
        assert processes.is_group(tool.pid)
    finally:
        tool.kill()
        tool.wait()


def test_what_was_expected_is_ended_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard whose owner is late rests behind that until the next order."""
    ended: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(guard_process, "_end_started", ended.put)
    watched = guard_process.Watched()
    watched.deadline_ms = 0
    watched.obey(b'{"expect": "mark"}')
    watched.end_all()
    watched.end_all()

    assert ended.get(timeout=60) == "mark"
    assert watched.wait_s() is None
    assert ended.empty()


@pytest.mark.ci
def test_a_deadline_by_the_clock_that_does_not_count_sleep(start: Callable[[str], int]) -> None:
    """It ends what is watched, as the other does; a later one takes its place."""
    pgid = start(PLAIN)
    guard = Guard(sleep_counts=False)
    guard.renew(awake_ms() + 60_000)
    guard.watch(pgid, processes.started(pgid))
    guard.renew(awake_ms() + 200)

    assert gone(pgid)
    guard.close()


def test_a_deadline_that_is_renewed_is_the_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is watched lives on behind the first one, and until the second."""
    now_ms = [1_000]
    monkeypatch.setattr(guard_process, "boot_ms", lambda: now_ms[0])
    watched = guard_process.Watched()
    for deadline_ms in (3_000, 61_000):
        watched.obey(json.dumps({"deadline": deadline_ms}).encode())
    now_ms[0] = 3_500
    assert not watched.is_late()
    now_ms[0] = 61_000
    assert watched.is_late()


def test_a_renewal_that_waits_is_read_before_an_owner_is_called_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard was held up past the deadline, and its owner has renewed in time; then the owner ends."""
    monkeypatch.setattr(guard_process, "boot_ms", lambda: 3_500)
    watched = guard_process.Watched()
    watched.groups[1] = ("", "")
    watched.deadline_ms = 3_000
    ended: list[int | None] = []
    monkeypatch.setattr(watched, "end_all", lambda: ended.append(watched.deadline_ms))
    orders, owner = os.pipe()
    os.write(owner, b'{"deadline": 61000}\n')
    os.close(owner)

    guard_process.guard(orders, watched)

    os.close(orders)
    assert ended == [61_000]


def test_a_wait_that_ends_before_the_deadline_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard looks again; what it watches ends with the owner."""
    monkeypatch.setattr(guard_process, "boot_ms", lambda: 2_900)
    watched = guard_process.Watched()
    watched.groups[1] = ("", "")
    watched.deadline_ms = 3_000
    told: list[str] = []
    orders, owner = os.pipe()

    def wait_s() -> float:
        told.append("looks")
        if len(told) == 3:
            os.close(owner)
        return 0.0

    monkeypatch.setattr(watched, "wait_s", wait_s)
    monkeypatch.setattr(watched, "end_all", lambda: told.append("ends"))

    guard_process.guard(orders, watched)

    os.close(orders)
    assert told == ["looks", "looks", "looks", "ends"]


@pytest.mark.parametrize(("order", "late"), [({"awake": True}, False), ({}, True)])
def test_the_guard_compares_a_deadline_with_its_own_clock(
    monkeypatch: pytest.MonkeyPatch, order: dict[str, bool], late: bool
) -> None:
    """A machine that slept for a day: one clock has counted it, the other has not."""
    monkeypatch.setattr(guard_process, "boot_ms", lambda: 86_401_000)
    monkeypatch.setattr(guard_process, "awake_ms", lambda: 1_000)
    watched = guard_process.Watched()
    watched.obey(json.dumps({"deadline": 60_000, **order}).encode())

    assert watched.is_late() is late


JOB = """
import subprocess, time
print(subprocess.Popen(["sleep", "600"], env={}, process_group=0, stdout=subprocess.DEVNULL).pid, flush=True)
time.sleep(600)
"""


def test_what_left_a_group_but_not_its_session_is_ended_with_a_mark() -> None:
    """As a job of a shell, which has a group of its own; with no environment by which it would be known."""
    mark = "a mark of this test"
    leader = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", JOB],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={"PATH": os.environ["PATH"], processes.MARK: mark},
    )
    assert leader.stdout is not None
    job = int(leader.stdout.readline())
    try:
        assert (os.getpgid(job), os.getsid(job)) == (job, leader.pid)
        assert processes.end_group(leader.pid, processes.started(leader.pid), mark=mark)
        assert not processes.started(job)
    finally:
        leader.kill()
        leader.communicate()
