"""One process group of a tool: how it is started, named so that it can be told from others, and ended."""

import contextlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import Process

from holdfast import processes
from holdfast.location.guard import Guard
from holdfast.runtime.engine.call_box import Launching
from holdfast.store.host import Host
from holdfast.toolkit.output import ToolFailure


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One process group, identified so that a reused id is not mistaken for it."""

    pgid: int
    began: str
    host: str
    boot: str
    namespace: str
    mark: str = ""
    """What the environment of its processes holds, so that one that leaves the group is known."""

    def is_here(self, host: Host) -> bool:
        """Whether it was started on this machine, since it last started."""
        return (self.host, self.boot, self.namespace) == (host.id, host.boot, host.pid_namespace)


async def start(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    mark: str = "",
    stdin: int = subprocess.DEVNULL,
    descriptors: Sequence[int] = (),
) -> Process:
    """Start a program in a group of its own: this is the one place where tools' programs are started."""
    # Who is cancelled meanwhile ends it in order, behind this: half started, its pipe would stay open.
    try:
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                list(command),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=marked(env, mark),
                start_new_session=True,
                pass_fds=descriptors,
            )
    except (OSError, ValueError) as error:  # ValueError: a NUL character in an argument
        why = error.strerror or error if isinstance(error, OSError) else error
        raise ToolFailure(f"{command[0]} could not be started: {why}.") from error
    return process


def marked(env: Mapping[str, str], mark: str) -> Mapping[str, str]:
    """Variables with the mark of a group, if it has one."""
    return {**env, processes.MARK: mark} if mark else env


async def start_boxed(launching: Launching, *, cwd: Path, stdin: int = subprocess.DEVNULL) -> Process:
    """Start the launcher of a box, which leads the group and becomes the command; or take the one that waits,
    which begins when `launching` says so.
    """
    if launching.waiting is not None:
        return launching.waiting
    process = await start(
        launching.command, cwd=cwd, env=launching.env, stdin=stdin, descriptors=launching.descriptors
    )
    launching.began()
    return process


def named(pgid: int, host: Host, mark: str = "") -> Group:
    """The group of a process that was just started on this host."""
    began = processes.started(pgid)
    return Group(
        pgid=pgid, began=began, host=host.id, boot=host.boot, namespace=host.pid_namespace, mark=mark
    )


@contextlib.contextmanager
def expected(guard: Guard, mark: str) -> Iterator[None]:
    """The guard knows the mark while a process is started, so that none is left if this process is killed."""
    if not mark:
        yield
        return
    with contextlib.suppress(OSError):  # No guard can be started: `watch` will say so.
        guard.expect(mark)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            guard.unexpect(mark)
        raise


async def end(group: Group) -> None:
    """End a group and wait until it is gone."""
    await anyio.to_thread.run_sync(lambda: processes.end_group(group.pgid, group.began, mark=group.mark))
