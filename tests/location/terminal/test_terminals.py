"""Real programs on real terminals: started, typed at, read, and ended with what they started."""

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from holdfast import processes
from holdfast.errors import ContextError, InvalidInput, NotFound, Refused
from holdfast.location.guard import Guard
from holdfast.location.terminal import start, terminals
from holdfast.schema.terminal import Terminal
from holdfast.schema.terminal_event import (
    OfPty,
    PtyCreated,
    PtyDeleted,
    PtyExited,
    PtyExitProperties,
    PtyProperties,
    PtyUpdated,
)
from tests.location.terminal.desk import CTRL_C, CTRL_D, PROMPT, all_of, descriptors, desk, over, runs, shown
from tests.until import until


async def test_what_cannot_be_started_is_refused_in_one_line(tmp_path: Path) -> None:
    """And nothing is left of it: no terminal, no descriptor, no event."""
    (tmp_path / "plain").write_text("text")
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o700)
    async with desk(tmp_path) as here:
        before = descriptors()
        for new, why in (
            (here.new("nosuch"), "there is no program nosuch; give its path, or the name of one on the PATH"),
            (here.new("./plain"), "./plain cannot be run: Permission denied"),
            (
                here.new("./broken"),
                "there is no program ./broken; give its path, or the name of one on the PATH",
            ),
            (here.new(""), "a terminal needs a program; leave it out for the user's shell"),
            (here.new("a\0b"), "a\ufffdb cannot be run: its arguments are no text that the system takes"),
            (here.new("cat", ("x" * 3_000_000,)), "cat cannot be run: Argument list too long"),
            (here.new("cat", rows=0), "a terminal has 1 to 10,000 rows, not 0"),
            (here.new("cat", cols=10_001), "a terminal has 1 to 10,000 columns, not 10001"),
            (here.new("cat", title=" \n"), "a title has at least one character that can be seen"),
            (here.new("cat", title="x" * 201), "a title has at most 200 characters; this one has 201"),
        ):
            with pytest.raises(InvalidInput) as refused:
                await here.terminals.create(new)
            assert str(refused.value) == why
        left = descriptors()
        for call in (here.terminals.get, lambda id: here.terminals.rename(id, "x")):
            with pytest.raises(NotFound, match="terminal pty_none does not exist in this process"):
                call("pty_none")

    assert (here.terminals.of(), here.events) == ([], [])
    assert left <= before + 1, "the pipe to the guard is the only one"


async def test_a_shell_is_used_as_at_a_window(tmp_path: Path) -> None:
    """It prompts, takes input, Ctrl-C ends what it runs, Ctrl-D ends it; what happened is announced."""
    async with desk(tmp_path) as here:
        shell = await here.open("/bin/sh", ("-i",), title="one")
        at = await shown(shell, PROMPT)
        await shell.write(b"echo $((6*7)) > /dev/tty\n")
        at = await shown(shell, "42\r\n" + PROMPT, at)
        await shell.write(b"sh -c 'echo up; exec cat'\n")
        at = await shown(shell, "\nup", at)
        await shell.write(CTRL_C)
        at = await shown(shell, PROMPT, at)
        here.terminals.rename(shell.info.id, "two\nlines")
        await shell.write(b"(exit 7)\n" + CTRL_D)
        await over(shell)
        ended = shell.info
        await here.terminals.remove(ended.id)

        begun = Terminal(
            id=ended.id,
            title="one",
            command="/bin/sh",
            args=["-i"],
            cwd=str(tmp_path),
            status="running",
            pid=ended.pid,
        )
        assert ended == replace(begun, title="two lines", status="exited", exit_code=7)
        assert here.events == [
            (PtyCreated(properties=PtyProperties(info=begun)), str(tmp_path)),
            (PtyUpdated(properties=PtyProperties(info=replace(begun, title="two lines"))), str(tmp_path)),
            (PtyExited(properties=PtyExitProperties(id=ended.id, exit_code=7)), str(tmp_path)),
            (PtyDeleted(properties=OfPty(id=ended.id)), str(tmp_path)),
        ]


async def test_a_program_finds_what_it_was_given_and_nothing_else(tmp_path: Path) -> None:
    """Its environment but for the mark of the guard, three descriptors, no ignored signal, the size."""
    script = "env | grep -v ^HOLDFAST_GROUP=; ls -1 /proc/self/fd; grep SigIgn /proc/self/status; stty size; "
    script += "stty -a | grep -o '.iutf8'"
    async with desk(tmp_path) as here:
        for more in ({}, {"LC_CTYPE": "C"}):
            env = {"PATH": os.environ["PATH"], "PWD": str(tmp_path), "BASH_FUNC_f%%": "() { :; }", **more}
            made = await here.open("/bin/sh", ("-c", script), env=env, rows=33, cols=99)
            printed = (await all_of(made)).decode().split("\r\n")
            seen = dict(line.split("=", 1) for line in printed if "=" in line)

            # Shells add some of their own; this one may drop what it cannot name.
            assert {**seen, "BASH_FUNC_f%%": "() { :; }"}.items() >= env.items()
            assert set(seen) - set(env) <= {"SHLVL", "_", "OLDPWD"}
            assert [line for line in printed if "=" not in line] == [
                *("0", "1", "2", "3"),  # 3 is the folder that `ls` reads
                "SigIgn:\t0000000000000000",
                "33 99",
                " iutf8",
                "",
            ]


async def test_a_program_blocks_no_signal_that_this_process_blocks(tmp_path: Path) -> None:
    """It could not be ended by it."""
    async with desk(tmp_path) as here:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        try:
            made = await here.open("grep", ("SigBlk", "/proc/self/status"))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

        assert await all_of(made) == b"SigBlk:\t0000000000000000\r\n"


async def test_a_program_that_was_killed_has_the_exit_code_of_its_signal(tmp_path: Path) -> None:
    """As shells count."""
    async with desk(tmp_path) as here:
        made = await here.sh("kill -9 $$")
        await over(made)

        assert made.info.exit_code == 137


@pytest.mark.parametrize("how", ["exit", "remove", "close"])
async def test_whatever_a_terminal_has_started_ends_with_it(tmp_path: Path, how: str) -> None:
    """Jobs in groups of their own, one that ignores a hang-up, a session of its own, an empty environment."""
    job = "sh -c 'echo $$ >> pids; exec sleep 1000'"
    async with desk(tmp_path) as here:
        shell = await here.open("/bin/sh", ("-i",))
        await shown(shell, PROMPT)
        for kind in ("", "nohup", "setsid", "env -i"):
            await shell.write(f"{kind} {job} &\n".encode())
        await until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text().count("\n") == 4)
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert all(map(runs, pids))
        if how == "exit":
            await shell.write(b"exit\n")
            await over(shell)
        elif how == "remove":
            await here.terminals.remove(shell.info.id)
            assert not runs(shell.info.pid)
        if how != "close":
            await until(lambda: not any(map(runs, pids)))

    assert not any(map(runs, (*pids, shell.info.pid)))


@pytest.mark.ci
async def test_a_program_that_will_not_go_is_killed(tmp_path: Path) -> None:
    """After the time that it had for going; its followers' streams end."""
    async with desk(tmp_path) as here:
        made = await here.sh("trap '' HUP TERM INT; echo up; while :; do sleep 1000; done")
        await shown(made, "up")
        await here.terminals.remove(made.info.id)

        assert (runs(made.info.pid), made.info.exit_code) == (False, 137)
        assert await all_of(made) == b"up\r\n"
        assert here.terminals.of() == []


async def test_one_that_has_ended_makes_room_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest of them is forgotten; those that run never are."""
    monkeypatch.setattr(terminals, "TERMINALS_MAX", 2)
    async with desk(tmp_path) as here:
        one = await here.open("cat")
        two = await here.open("true")
        await over(two)
        three = await here.open("cat")

        assert here.terminals.of() == [one.info, three.info]
        assert here.events[-2:] == [
            (PtyDeleted(properties=OfPty(id=two.info.id)), str(tmp_path)),
            (PtyCreated(properties=PtyProperties(info=three.info)), str(tmp_path)),
        ]
        with pytest.raises(Refused, match="2 terminals are open; remove one of them first"):
            await here.open("cat")
        assert here.terminals.of(str(tmp_path / "elsewhere")) == []

    with pytest.raises(Refused, match="this runtime is closed"):
        await here.open("cat")


async def test_a_cancelled_creation_is_whole(tmp_path: Path) -> None:
    """A caller that gives up leaves a terminal that is listed, and ends with the others."""
    async with desk(tmp_path) as here:
        with anyio.CancelScope() as scope:
            scope.cancel()
            with contextlib.suppress(anyio.get_cancelled_exc_class()):
                await here.terminals.create(here.new("cat"))
        await until(here.terminals.of)
        (made,) = here.terminals.of()
        assert runs(made.pid)

    assert not runs(made.pid)


async def test_the_guard_knows_a_program_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And, before that, until when this process lives, by the clock that does not count sleep."""
    orders: list[dict[str, Any]] = []
    write = Guard._write

    def record(guard: Guard, order: dict[str, Any]) -> None:
        orders.append(order)
        write(guard, order)

    monkeypatch.setattr(Guard, "_write", record)
    async with desk(tmp_path) as here:
        made = await here.open("cat")

        assert [set(order) for order in orders[:3]] == [{"deadline", "awake"}, {"expect"}, {"watch"}]
        assert orders[2]["watch"] == [
            made.info.pid,
            processes.started(made.info.pid),
            orders[1]["expect"],
        ]


async def test_a_program_that_does_not_begin_in_time_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller does not wait for ever."""
    monkeypatch.setattr(start, "START_S", 0)
    async with desk(tmp_path) as here:
        before = descriptors()
        with pytest.raises(ContextError, match="cat did not begin within 0 s"):
            await here.open("cat")

        assert (here.terminals.of(), descriptors() <= before + 1) == ([], True)


async def test_without_a_guard_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be watched over is ended."""
    started: list[int] = []

    def watch(pid: int, *_: object) -> None:
        started.append(pid)
        raise OSError(12, "Cannot allocate memory")

    async with desk(tmp_path) as here:
        monkeypatch.setattr(here.terminals._guard, "watch", watch)
        with pytest.raises(ContextError, match="Cannot allocate memory: the terminal was not started"):
            await here.open("cat")

        assert (here.terminals.of(), here.events) == ([], [])
        await until(lambda: not runs(started[0]))
