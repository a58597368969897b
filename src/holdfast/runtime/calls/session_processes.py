"""The background processes of a call's session: fills `toolkit.processes.Processes`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio
import msgspec

from holdfast.runtime.calls.process_groups import GROUPS
from holdfast.runtime.engine.background_processes import BackgroundProcess
from holdfast.runtime.engine.call_box import CallBox
from holdfast.runtime.engine.engine import Engine
from holdfast.schema.part import ToolPart
from holdfast.schema.stored import BACKGROUND
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.box import Box
from holdfast.toolkit.output import ToolDenied, ToolFailure
from holdfast.toolkit.processes import CommandOutput, ProcessInfo

WRITE_S = 10.0


class SessionProcesses:
    """`part` is the call; `note` stores metadata of it; `only_reads`: the agent changes nothing."""

    def __init__(
        self,
        engine: Engine,
        part: ToolPart,
        note: Callable[[JsonMap], Awaitable[None]],
        *,
        only_reads: bool,
    ) -> None:
        self._only_reads = only_reads
        self._engine = engine
        self._all = engine.background
        self._part = part
        self._note = note

    async def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        command: str,
        output: CommandOutput,
        box: Box,
    ) -> ProcessInfo:
        """Start one and return."""
        assert isinstance(box, CallBox)
        made = await self._all.start(
            self._part,
            argv,
            cwd=cwd,
            env=env,
            command=command,
            output=output,
            box=box,
            guard=self._engine.guard,
            host=self._engine.host,
            clock=self._engine.clock,
        )
        kept = made.recorded()
        await self._note({GROUPS: [msgspec.to_builtins(kept.group)], BACKGROUND: msgspec.to_builtins(kept)})
        return made.info

    def list(self) -> list[ProcessInfo]:
        """Those that run, and the last that have ended."""
        return [each.info for each in self._all.of(self._part.session_id)]

    async def read(self, id: str, cursor: int | None, bytes_max: int) -> tuple[bytes, int]:
        """What it printed from a cursor on, or since the last reading."""
        return await self._all.read(self._find(id), cursor, bytes_max)

    async def stopped(self, id: str, text: str) -> Sequence[str]:
        """What its box stopped, by what it printed and, once it has ended, by the kernel's count."""
        return await self._find(id).box.stopped(text)

    async def wait(self, id: str, timeout_ms: int) -> ProcessInfo:
        """Wait until it ends, or for so long."""
        made = self._find(id)
        with anyio.move_on_after(timeout_ms / 1_000):
            await made.done.wait()
        return made.info

    async def write(self, id: str, text: str) -> None:
        """Write to its input; an empty text ends the input."""
        made = self._find(id)
        if self._only_reads and made.box.facts["mode"] != "read-only":
            raise ToolDenied(
                f"{id} may change files, and this agent only reads: it writes to no such process."
            )
        stdin = made.process.stdin
        try:
            assert stdin is not None, "it was started with one"
            with anyio.fail_after(WRITE_S):
                await (stdin.send(text.encode("utf-8", "replace")) if text else stdin.aclose())
        except TimeoutError:
            raise ToolFailure(f"{id} does not read its input.") from None
        except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise ToolFailure(f"{id} takes no input any more.") from error

    async def end(self, id: str) -> ProcessInfo:
        """End it."""
        made = self._find(id)
        await self._all.end(made)
        return made.info

    def _find(self, id: str) -> BackgroundProcess:
        return self._all.find(self._part.session_id, id)
