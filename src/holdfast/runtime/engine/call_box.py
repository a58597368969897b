"""The box of one command of a call, from its policy to what it stopped."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio.to_thread
from anyio.abc import Process
from msgspec.structs import replace

from holdfast.location.box import changed_files, denial, start
from holdfast.location.box.boxes import Boxes
from holdfast.location.box.changed_files import Marks
from holdfast.location.box.host_level import HostLevel
from holdfast.location.box.policy import BoxPolicy
from holdfast.location.box.session_network import SessionNetwork
from holdfast.location.box.start import Errand, Report
from holdfast.location.box.waiting_launcher import WaitingLauncher
from holdfast.schema.wire import JsonMap


class CallBox:
    """Fills `toolkit.box.Box`. Without a policy the command runs with the user's own rights."""

    def __init__(
        self,
        level: HostLevel,
        policy: BoxPolicy | None,
        *,
        home: Path,
        worktree: Path,
        directory: Path,
        boxes: Boxes | None = None,
        network: SessionNetwork | None = None,
        may_leave: bool = True,
    ) -> None:
        self.may_leave = may_leave
        self._level = level
        self._policy = policy
        self._home = home
        self._worktree = worktree
        self._directory = directory
        self._boxes = boxes
        self._network = network
        self._cwd = directory
        self._report: Report | None = None
        self._before: Marks = {}
        self._stopped: list[str] = []

    @property
    def facts(self) -> JsonMap:
        """For the metadata of the call."""
        policy = self._policy
        return {
            "level": self._level.level,
            "mode": "off" if policy is None else policy.mode,
            "network": policy is None or policy.network,
            "stopped": list(self._stopped),
        }

    @property
    def failure(self) -> str | None:
        """Why the command never ran."""
        if self._policy is None or self._report is None or self._report.ready:
            return None
        return "The box around the command could not be built, so it did not run; `holdfast doctor` says why."

    async def prepare(self) -> None:
        """Note the files that steer the next run as they are now."""
        self._before = await anyio.to_thread.run_sync(changed_files.marks, self._worktree, self._directory)

    @contextlib.contextmanager
    def launched(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], *, ahead: bool = False
    ) -> Iterator["Launching"]:
        """The launch of a command; its report is kept when the block ends. `ahead`: by the launcher that
        waits, if there is one.
        """
        self._cwd = cwd
        if self._policy is None:
            yield Launching(list(command), dict(env), cwd)
            return
        session = None if self._network is None else self._network.descriptors
        whole = self._level.level == "full"
        with start.prepared(_seeing(self._policy, cwd), namespaces=whole, session=session) as box:
            waiting = self._boxes.launcher() if ahead and self._boxes is not None else None
            launching = Launching(list(command), {**env, **box.environment()}, cwd, box, waiting)
            try:
                yield launching
            finally:
                launching.end()
                self._report = box.report()

    async def make_ready(self) -> None:
        """Have a launcher wait for the next command."""
        if self._boxes is not None and self._policy is not None:
            await self._boxes.start_launcher()

    async def stopped(self, output: str) -> list[str]:
        """What the box stopped, in words."""
        policy = self._policy
        if policy is None:
            return []
        unreachable = 0 if self._report is None else self._report.unreachable

        def find() -> list[str]:
            cwd, home = str(self._cwd), str(self._home)
            found = denial.stops(output, policy, cwd=cwd, home=home, unreachable=unreachable)
            return [str(stop) for stop in found]

        self._stopped = await anyio.to_thread.run_sync(find)
        return self._stopped

    async def changed(self) -> list[str]:
        """Files that steer the next run and are not as they were before the command."""
        after = await anyio.to_thread.run_sync(changed_files.marks, self._worktree, self._directory)
        return changed_files.changed(self._before, after)


def _seeing(policy: BoxPolicy, cwd: Path) -> BoxPolicy:
    """The policy with the working directory in view: it may lie in /tmp, which is covered."""
    here = os.path.realpath(cwd)
    return replace(policy, revealed=(*policy.revealed, here)) if policy.access(here) == "read" else policy


class Launching:
    """How the group of a command is started: as it is, or by a launcher that builds its box."""

    def __init__(
        self,
        command: list[str],
        env: dict[str, str],
        cwd: Path,
        box: start.Start | None = None,
        waiting: WaitingLauncher | None = None,
    ) -> None:
        self.command = command if box is None else box.command(command)
        self.env = env
        self.descriptors = () if box is None else box.descriptors
        self._box = box
        self._waiting = waiting
        self._errand = Errand(command, cwd, env)

    @property
    def waiting(self) -> Process | None:
        """The process that waits for the command, if it was started ahead."""
        return None if self._waiting is None else self._waiting.process

    def began(self) -> None:
        """The process runs, with the orders; one that was started ahead is given them with `go`."""
        if self._box is not None and self._waiting is None:
            self._box.began()

    def go(self) -> None:
        """Let a launcher that was started ahead begin."""
        if self._box is not None and self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.give(self._box, self._errand)
            self._box.began()

    def end(self) -> None:
        """The launch is over: one that was given nothing ends."""
        if self._waiting is not None:
            self._waiting.discard()
