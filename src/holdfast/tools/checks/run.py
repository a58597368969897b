"""Runs checks: those that rewrite files one after the other, then the others together.

What must stay true: each has its time and its room, and its processes end with it; nothing that a check does,
or fails to do, makes the change itself fail.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream, Process

from holdfast.config.checks import Check
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.output import ToolFailure
from holdfast.tools.checks.commands import Changed, commands, concerned
from holdfast.tools.checks.finding import Finding
from holdfast.tools.glob_pattern import BadGlob

TOGETHER_MAX: Final = 4
KEPT_BYTES: Final = 64 * 1024
"""Of each end of an output."""
LATER_S: Final = 0.3
"""How long output is waited for once the program has ended: a server that it left may hold the pipe open."""


async def run(context: ToolContext, checks: Sequence[Check], changed: Sequence[Changed]) -> list[Finding]:
    """Run what these changes call for. The findings come in the order of the checks."""
    wanted: list[tuple[Check, list[list[str]]]] = []
    found: dict[str, Finding] = {}
    for check in checks:
        try:
            runs = commands(check, concerned(check, changed))
        except BadGlob as error:
            why = f"A glob in its `files` cannot be used: {error}."
            found[check.name] = Finding(name=check.name, outcome="missing", output=why)
        else:
            wanted += [(check, runs)] if runs else []
    limit = anyio.CapacityLimiter(TOGETHER_MAX)

    async def one(check: Check, runs: list[list[str]]) -> None:
        async with limit:
            found[check.name] = await _run(context, check, runs)

    for check, runs in wanted:
        if check.formats:
            await one(check, runs)
    async with anyio.create_task_group() as together:
        for check, runs in wanted:
            if not check.formats:
                together.start_soon(one, check, runs)
    return [found[check.name] for check in checks if check.name in found]


async def _run(context: ToolContext, check: Check, runs: list[list[str]]) -> Finding:
    """One check, for all its files, within its time: the first that fails says what was found."""
    finding = Finding(name=check.name, outcome="passed")
    environment = {**await context.environment(context.directory), **check.environment}
    deadline = anyio.current_time() + check.timeout_ms / 1000
    for command in runs:
        kept = _Kept()
        if not _is_there(command[0], context.directory, environment.get("PATH")):
            why = f"{command[0]} could not be started: No such file or directory."
            return Finding(name=check.name, outcome="missing", output=why)
        try:
            # A test or a linter runs what the agent wrote, so it has the agent's box.
            box = await context.box(command, asks=False)
            async with context.spawn(command, env=environment, box=box) as process:
                exit = await _ended(process, kept, deadline)
        except ToolFailure as error:
            return Finding(name=check.name, outcome="missing", output=str(error))
        if box.failure is not None:
            return Finding(name=check.name, outcome="missing", output=f"{box.failure} {kept.text()}".strip())
        if exit is None:
            return Finding(name=check.name, outcome="late", output=kept.text())
        if exit != 0:
            stopped = await box.stopped(kept.text())
            said = f"\n(The box stopped {', '.join(stopped)}.)" if stopped else ""
            return Finding(name=check.name, outcome="found", exit=exit, output=kept.text() + said)
        finding = Finding(name=check.name, outcome="passed", exit=0, output=kept.text())
    return finding


def _is_there(program: str, directory: Path, path: str | None) -> bool:
    """Whether a program can be found: a box says so only by an exit code that a check may have too."""
    if "/" in program:
        return (directory / program).is_file()
    return shutil.which(program, path=path) is not None


async def _ended(process: Process, kept: "_Kept", deadline: float) -> int | None:
    """The exit code of a program, its output kept; None if it has not ended by the deadline."""
    assert process.stdout is not None, "it is started with a pipe"
    with anyio.CancelScope(deadline=deadline) as scope:
        async with anyio.create_task_group() as reading:
            reading.start_soon(_read, process.stdout, kept)
            await process.wait()
            reading.cancel_scope.deadline = anyio.current_time() + LATER_S
    return None if scope.cancelled_caught else process.returncode


async def _read(stream: ByteReceiveStream, kept: "_Kept") -> None:
    async for chunk in stream:
        kept.add(chunk)


class _Kept:
    """The beginning and the end of an output."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def add(self, chunk: bytes) -> None:
        room = KEPT_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room < len(chunk) else b""
        if len(self._tail) > 2 * KEPT_BYTES:
            self._cut += len(self._tail) - KEPT_BYTES
            del self._tail[:-KEPT_BYTES]

    def text(self) -> str:
        """The output, with a word on what was left out."""
        cut = f"\n[... {self._cut} bytes left out ...]\n".encode() if self._cut else b""
        return (bytes(self._head) + cut + bytes(self._tail)).decode("utf-8", "replace")
