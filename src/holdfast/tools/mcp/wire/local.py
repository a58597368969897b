"""The connection to a local server: a program of its own, spoken to by its standard input and output.

What must stay true: the program leads a process group that the guard knows before it is spoken to, and that
ends with the connection, whatever it does; what it prints as errors is kept within a bound.
"""

import contextlib
import secrets
import subprocess
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.abc import Process
from mcp.shared.message import SessionMessage

from holdfast import processes
from holdfast.errors import ContextError, HoldfastError
from holdfast.location.guard import Guard
from holdfast.tools.mcp.launch import Launching
from holdfast.tools.mcp.wire.link import Streams
from holdfast.tools.mcp.wire.message_lines import messages

GRACE_S: Final = 0.5
"""How long a server may take to end by itself, once its input has ended."""
WAIT_S: Final = 4.0
"""How long its end is waited for: the guard kills it after 3 s."""
_LINES_MAX: Final = 20
_LINE_CHARS_MAX: Final = 500


class LastLines:
    """The last lines of what a server printed as errors."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_LINES_MAX)
        self._open = ""
        self.bytes = 0

    def take(self, data: bytes) -> None:
        """Keep what is new."""
        self.bytes += len(data)
        *whole, rest = (self._open + data.decode("utf-8", "replace")).split("\n")
        self._lines.extend(line[:_LINE_CHARS_MAX] for line in whole if line.strip())
        self._open = rest[:_LINE_CHARS_MAX]

    def __str__(self) -> str:
        last = [self._open] if self._open.strip() else []
        return "\n".join([*self._lines, *last])


@asynccontextmanager
async def connected(
    launching: Launching, guard: Guard, errors: LastLines, broke: Callable[[str], None]
) -> AsyncIterator[Streams]:
    """The streams of messages to and from a program that this starts. `broke` gets why they ended."""
    mark = secrets.token_hex(8)
    process = await _started(launching, guard, mark)
    inward, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outward = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        assert process.stdout is not None
        why = "its program ended"
        try:
            async with contextlib.aclosing(messages(process.stdout)) as found:
                async for message in found:
                    await inward.send(SessionMessage(message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # The session is over.
        except HoldfastError as error:
            why = str(error)
        broke(why)  # First, so that whoever waits for an answer learns why there is none.
        inward.close()

    async def send() -> None:
        assert process.stdin is not None
        try:
            async with outward:
                async for each in outward:
                    text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await process.stdin.send(f"{text}\n".encode())
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            broke("its program ended")
            inward.close()

    async def note() -> None:
        assert process.stderr is not None
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for data in process.stderr:
                errors.take(data)

    try:
        async with anyio.create_task_group() as group:
            for each in (receive, send, note):
                group.start_soon(each)
            try:
                yield read, write
            finally:
                group.cancel_scope.cancel()
    finally:
        for stream in (inward, read, write, outward):
            stream.close()
        with anyio.CancelScope(shield=True):
            await _ended(process, guard)


async def _started(launching: Launching, guard: Guard, mark: str) -> Process:
    name = launching.command[0]
    with contextlib.suppress(OSError):  # No guard can be started: `watch` says so.
        guard.expect(mark)
    try:
        process = await anyio.open_process(
            launching.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=launching.cwd,
            env={**launching.env, processes.MARK: mark},
            start_new_session=True,
            pass_fds=launching.descriptors,
        )
    except BaseException as error:
        with contextlib.suppress(OSError):
            guard.unexpect(mark)
        if isinstance(error, OSError | ValueError):
            why = error.strerror if isinstance(error, OSError) else "it holds a NUL character"
            raise ContextError(f"{name} could not be started: {why}") from error
        raise
    launching.began()
    try:
        guard.watch(process.pid, processes.started(process.pid), mark)
    except OSError as error:
        process.kill()
        raise ContextError(f"{name} was not started: it could not be watched over") from error
    return process


async def _ended(process: Process, guard: Guard) -> None:
    """End the program: first by the end of its input, then by the guard."""
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        assert process.stdin is not None
        await process.stdin.aclose()
    await _wait(process, GRACE_S)
    try:
        guard.end(process.pid)  # Also what it started, and what has left its group.
    except OSError:
        await anyio.to_thread.run_sync(processes.end_group, process.pid, "")
    await _wait(process, WAIT_S)
    with contextlib.suppress(OSError, ProcessLookupError):
        await process.aclose()


async def _wait(process: Process, wait_s: float) -> None:
    """Wait for the program itself: `process.wait` also waits for those that have its output open."""
    with anyio.move_on_after(wait_s):
        while process.returncode is None:  # noqa: ASYNC110 - no event announces it
            await anyio.sleep(0.01)
