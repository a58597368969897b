"""The processes that run in the background of sessions, in this process of ours.

They belong to a session and outlive the call that started them, but not this process: the guard knows each.
What must stay true: each has a bound of output, and a session a bound of processes; once this process no
longer runs a session, its processes are ended; what became of each is there until the model was told.
"""

import asyncio
import contextlib
import os
import secrets
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import Process

from holdfast.clock import Clock
from holdfast.location.ending_processes import EndingProcesses
from holdfast.location.guard import Guard
from holdfast.runtime.engine import process_group
from holdfast.runtime.engine.call_box import CallBox
from holdfast.runtime.engine.process_group import Group
from holdfast.schema.part import ToolPart
from holdfast.store.host import Host
from holdfast.toolkit.output import ToolFailure
from holdfast.toolkit.processes import CommandOutput, ProcessInfo
from holdfast.tools.shell.run import follow

RUNNING_MAX: Final = 16
ENDED_MAX: Final = 32
FLUSH_S: Final = 1.0
END_S: Final = 5.0
CLAIMS_MAX: Final = 1_000


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """What the record of a call says of the process that it started."""

    info: ProcessInfo
    group: Group
    session: str


class BackgroundProcess:
    """One of them. `part` is the call that started it."""

    def __init__(
        self,
        part: ToolPart,
        command: str,
        process: Process,
        *,
        group: Group,
        output: CommandOutput,
        now_ms: int,
        box: CallBox,
        report: contextlib.ExitStack,
    ) -> None:
        self.box = box
        self._report = report
        self.id = f"proc_{secrets.token_hex(3)}"
        self.part = part
        self.command = command
        self.group = group
        self.output = output
        self.process = process
        self.start_ms = now_ms
        self.end_ms: int | None = None
        self.read_to = 0
        self.told = False
        """Whether the record of its call says how it ended."""
        self.done = anyio.Event()
        self.task: asyncio.Task[None] | None = None

    def take_report(self) -> None:
        """It has ended: read what the launcher of its box reports."""
        self._report.close()

    @property
    def info(self) -> ProcessInfo:
        """How it is now."""
        return ProcessInfo(
            id=self.id,
            command=self.command,
            pid=self.group.pgid,
            start=self.start_ms,
            end=self.end_ms,
            exit=None if self.end_ms is None else self.process.returncode,
            path=self.output.path,
            size=self.output.size,
        )

    def recorded(self) -> Recorded:
        """What the record of its call keeps of it."""
        return Recorded(info=self.info, group=self.group, session=self.part.session_id)


class BackgroundProcesses:
    """Those of all sessions of this process."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, BackgroundProcess]] = {}
        self._guard: Guard | None = None
        self._claims: dict[str, int] = {}
        self._starting: Counter[str] = Counter()

    def note_claim(self, session: str, number: int) -> None:
        """The session is run here under this claim."""
        self._claims.pop(session, None)
        self._claims[session] = number
        for each in list(self._claims)[: max(0, len(self._claims) - CLAIMS_MAX)]:
            if each not in self._of:
                del self._claims[each]

    def was_taken(self, session: str, claim: int) -> bool:
        """Whether another process has run the session since, by the number of its last claim."""
        return claim != self._claims.get(session, claim)

    def sessions(self) -> list[str]:
        """The sessions of which a process runs."""
        return [
            session for session, each in self._of.items() if any(one.end_ms is None for one in each.values())
        ]

    def of(self, session: str) -> list[BackgroundProcess]:
        """The processes of a session, the first started first."""
        return list(self._of.get(session, {}).values())

    def find(self, session: str, id: str) -> BackgroundProcess:
        """One of them; `ToolFailure` names those that there are."""
        found = self._of.get(session, {}).get(id)
        if found is None:
            known = ", ".join(self._of.get(session, {})) or "none"
            raise ToolFailure(f"There is no process {id[:40]} in this session. There are: {known}.")
        return found

    async def start(
        self,
        part: ToolPart,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        command: str,
        output: CommandOutput,
        box: CallBox,
        guard: Guard,
        host: Host,
        clock: Clock,
    ) -> BackgroundProcess:
        """Start one; the guard knows it before this returns."""
        session = part.session_id
        running = [each.id for each in self.of(session) if each.end_ms is None]
        if len(running) + self._starting[session] >= RUNNING_MAX:
            raise ToolFailure(
                f"{RUNNING_MAX} processes of this session run already. End one of them first"
                f"{''.join(f', {each}' for each in running)}."
            )
        self._starting[session] += 1
        try:
            made = await self._start(
                part,
                argv,
                cwd=cwd,
                env=env,
                command=command,
                output=output,
                box=box,
                guard=guard,
                host=host,
                clock=clock,
            )
        finally:
            self._starting[session] -= 1
        self._guard = guard
        try:
            guard.watch(made.group.pgid, made.group.began, made.group.mark)
        except OSError as error:
            del self._of[session][made.id]
            await process_group.end(made.group)
            made.take_report()
            raise ToolFailure(f"{command[:80]} was not started: it could not be watched over.") from error
        made.task = asyncio.create_task(self._follow(made, clock), name=f"holdfast-{made.id}")
        self._forget_old(session)
        return made

    async def _start(
        self,
        part: ToolPart,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        command: str,
        output: CommandOutput,
        box: CallBox,
        guard: Guard,
        host: Host,
        clock: Clock,
    ) -> BackgroundProcess:
        await output.write()  # Makes its file.
        mark = secrets.token_hex(8)
        with contextlib.ExitStack() as stack:
            launching = stack.enter_context(box.launched(argv, cwd, process_group.marked(env, mark)))
            with process_group.expected(guard, mark):
                process = await process_group.start_boxed(launching, cwd=cwd, stdin=subprocess.PIPE)
            report = stack.pop_all()
        group = process_group.named(process.pid, host, mark)
        made = BackgroundProcess(
            part,
            command,
            process,
            group=group,
            output=output,
            now_ms=clock.now_ms(),
            box=box,
            report=report,
        )
        self._of.setdefault(part.session_id, {})[made.id] = made
        return made

    async def _follow(self, made: BackgroundProcess, clock: Clock) -> None:
        try:
            await follow(made.process, made.output, made.output.write, every_s=FLUSH_S)
        finally:
            self._end_group(made)
            made.take_report()
            made.end_ms = clock.now_ms()
            made.done.set()
            with anyio.CancelScope(shield=True):
                for stream in (made.process.stdin, made.process.stdout):
                    if stream is not None:
                        with contextlib.suppress(OSError, anyio.BrokenResourceError):
                            await stream.aclose()
                await made.output.finish()

    def _end_group(self, made: BackgroundProcess) -> None:
        if self._guard is not None:
            with contextlib.suppress(OSError):
                self._guard.end(made.group.pgid)

    def _forget_old(self, session: str) -> None:
        """Drop the oldest that have ended, if the model was told of them."""
        ended = [each for each in self.of(session) if each.end_ms is not None and each.told]
        for each in ended[: max(0, len(ended) - ENDED_MAX)]:
            del self._of[session][each.id]

    async def end(self, made: BackgroundProcess) -> None:
        """End one, and wait until it has."""
        self._end_group(made)
        with anyio.move_on_after(END_S):
            await made.done.wait()

    def end_all(self, session: str | None = None) -> list[BackgroundProcess]:
        """Let the guard end those of a session, or all; which ones ran."""
        sessions = list(self._of) if session is None else [session]
        running = [made for each in sessions for made in self.of(each) if made.end_ms is None]
        for made in running:
            self._end_group(made)
        return running

    async def close(self, ending: EndingProcesses) -> None:
        """End all of them, and what follows them here; their end is waited for elsewhere."""
        for made in self.end_all():
            ending.add(made.process)
        tasks = [made.task for each in self._of.values() for made in each.values() if made.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._of.clear()

    async def read(self, made: BackgroundProcess, cursor: int | None, bytes_max: int) -> tuple[bytes, int]:
        """What it printed from the cursor on, or since the last reading."""
        await made.output.write()
        start = made.read_to if cursor is None else cursor
        path = made.output.path
        data = b"" if path is None else await anyio.to_thread.run_sync(_read, path, start, bytes_max)
        made.read_to = start + len(data)
        return data, made.read_to


def _read(path: str, start: int, size: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, size, max(0, start))
    finally:
        os.close(fd)
