"""Keeps one server connected: tries, tries again after growing pauses, and has its calls carried out.

What must stay true: a server that is away keeps the tools that it last had, and a call of one fails with its
server's name; nothing here waits for a server longer than its bounds; an error of a server ends no other.
"""

import asyncio
import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

import anyio
import anyio.to_thread

from holdfast.log import event
from holdfast.schema.mcp_status import McpStatus
from holdfast.schema.wire import JsonMap
from holdfast.text import one_line
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.output import ToolDenied, ToolFailure, ToolOutput, ToolParked
from holdfast.tools.mcp import elicitation
from holdfast.tools.mcp.elicitation import Elicitation, ElicitationAnswer
from holdfast.tools.mcp.listed_tool import ListedTool, OfferedTool
from holdfast.tools.mcp.server import Server

if TYPE_CHECKING:  # The package costs half a second and 38 MB: it is loaded with the first server.
    from holdfast.tools.mcp.wire.call_under_way import Ask
    from holdfast.tools.mcp.wire.connect import World
    from holdfast.tools.mcp.wire.link import Link
    from holdfast.tools.mcp.wire.local import LastLines

PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 60.0
STEADY_S: Final = 30.0
"""A connection that has held so long was a good one: the next pause is short again."""
LEAVE_S: Final = 5.0
"""How long it may take to leave a server: a remote one is asked to end its session."""
SIGN_IN_S: Final = 15.0
"""How often a server is tried that the user has to sign in to, which they do in another process."""
LATE_S: Final = 30.0
"""What an attempt may take beside its own bound: loading the package, starting a program, ending one."""
PROGRESS_S: Final = 0.1
"""The least time between two reports of progress that are shown."""
SETTLE_S: Final = 0.05
"""How long further changes of the tools are waited for."""
RELIST_S: Final = 1.0
"""The least time between two lists, however often a server says that its tools changed."""


Change = Literal["status", "tools"]
"""What of a server is not as it was."""


class Keeper:
    """The connection to one server, as long as it is kept."""

    def __init__(
        self, server: Server, world: "Callable[[], World]", changed: Callable[[Change], None]
    ) -> None:
        self.server = server
        self.status = McpStatus(status="connecting" if server.enabled else "disabled")
        self.listed: tuple[ListedTool, ...] = ()
        self.has_resources = False
        self.tried = anyio.Event()
        """The first attempt is over, however it ended, or the first one after a loss."""
        self._world = world
        self._changed = changed
        self._link: Link | None = None
        self._again = anyio.Event()
        self._task: asyncio.Task[None] | None = None
        self._scope = anyio.CancelScope()
        self._is_lost = False
        self._errors: LastLines | None = None
        self.version: str | None = None
        """The version of the protocol that was agreed on."""
        self.calls = 0
        """How many calls are under way."""

    def start(self) -> None:
        """Connect, and keep connected."""
        if self.server.enabled and self._task is None:
            self._task = asyncio.create_task(self._keep(), name=f"holdfast-mcp-{self.server.name}")
        elif not self.server.enabled:
            self.tried.set()

    def retry(self) -> None:
        """Try again now."""
        self._again.set()

    def restore(self) -> None:
        """If the connection was lost, make it again now; `wait` waits for that, once for each loss."""
        if self._is_lost or (self._link is not None and self._link.broken.is_set()):
            self._is_lost = False
            self.tried = anyio.Event()
            self.retry()

    async def wait(self) -> None:
        """Wait until the first attempt is over, or the one after a loss."""
        with anyio.move_on_after(self.server.connect_s + LATE_S):
            await self.tried.wait()

    async def close(self) -> None:
        """End the connection, and what was started for it."""
        task, self._task = self._task, None
        if task is None:
            return
        self.tried.set()
        # Never by `task.cancel`: no shield holds against that, and the end of a program would be left undone.
        if self._link is not None:
            self._link.break_("it was let go")
        else:
            self._scope.cancel()
        await asyncio.wait({task})

    async def _keep(self) -> None:
        pause_s = PAUSE_S
        with self._scope:
            while True:
                begun_s = anyio.current_time()
                status = await self._attempt()
                if self._task is None:  # It was let go.
                    return
                pause_s = await self._pause(status, pause_s, begun_s)

    async def _pause(self, status: McpStatus, pause_s: float, begun_s: float) -> float:
        """Wait before the next attempt; how long the next pause may be."""
        pause_s = PAUSE_S if anyio.current_time() - begun_s > STEADY_S else pause_s
        event.warn(
            "mcp",
            "server.away",
            server=self.server.name,
            state=status.status,
            again_s=pause_s,
            printed=0 if self._errors is None else self._errors.bytes,
        )
        self._settle(status)
        with anyio.move_on_after(SIGN_IN_S if status.status == "needs_auth" else pause_s):
            await self._again.wait()
        self._again = anyio.Event()
        return min(2 * pause_s, PAUSE_S_MAX)

    def _settle(self, status: McpStatus) -> None:
        """An attempt is over, for those who wait for it."""
        self._set(status)
        if not self._again.is_set():  # Else the next attempt is the one that is waited for.
            self.tried.set()

    async def _attempt(self) -> McpStatus:
        """One connection, from its beginning to its end; how it ended."""
        await anyio.to_thread.run_sync(importlib.import_module, "holdfast.tools.mcp.wire.connect")
        from holdfast.tools.mcp.wire import reason
        from holdfast.tools.mcp.wire.connect import NeedsSignIn
        from holdfast.tools.mcp.wire.local import LastLines

        errors = self._errors = LastLines()
        limit = anyio.CancelScope(deadline=anyio.current_time() + self.server.connect_s)
        why = f"it did not answer within {self.server.connect_s:g} s"

        def late() -> None:  # Ending a program that does not want to end takes longer than anybody waits.
            if self._link is None:
                self._settle(McpStatus(status="failed", error=self._with_last_line(why, str(errors))))

        timer = asyncio.get_running_loop().call_later(self.server.connect_s, late)
        try:
            with limit:
                await self._connected(limit, errors)
            why = why if self._link is None else self._link.why
        except Exception as error:  # noqa: BLE001 - a server may fail in any way
            found = reason.first(error)
            if isinstance(found, NeedsSignIn):
                return McpStatus(status="needs_auth", error=str(found))
            why = self.server.hidden(reason.reason(found))
        finally:
            timer.cancel()
            self._is_lost = self._link is not None
            self._link = None
        return McpStatus(status="failed", error=self._with_last_line(why, str(errors)))

    async def _connected(self, limit: anyio.CancelScope, errors: "LastLines") -> None:
        """Connect and serve until the connection ends."""
        from holdfast.tools.mcp.wire.connect import connected

        async with connected(self.server, self._world(), errors) as link:
            listed = tuple(await link.tools())
            limit.deadline = math.inf
            self._link = link
            self._is_lost = False
            self.version = link.session.protocol_version
            self._take(listed, has_resources=link.has_resources)
            event.info("mcp", "server.connected", server=self.server.name, tools=len(self.listed))
            self._set(McpStatus(status="connected"))
            self.tried.set()
            async with anyio.create_task_group() as group:
                group.start_soon(link.follow)
                group.start_soon(self._relist, link)
                await link.broken.wait()
                group.cancel_scope.cancel()
            limit.deadline = anyio.current_time() + LEAVE_S

    async def _relist(self, link: "Link") -> None:
        """List the tools again whenever the server says that they changed."""
        from holdfast.tools.mcp.wire.reason import Lost, Refused

        while True:
            await link.changed.wait()
            await anyio.sleep(SETTLE_S)
            link.changed = anyio.Event()
            try:
                listed = tuple(await link.tools())
            except (Lost, Refused, TimeoutError):
                continue  # It has the tools that it last had.
            self._take(listed, has_resources=link.has_resources)
            await anyio.sleep(RELIST_S)

    def _take(self, listed: tuple[ListedTool, ...], *, has_resources: bool) -> None:
        if (listed, has_resources) != (self.listed, self.has_resources):
            self.listed, self.has_resources = listed, has_resources
            event.info("mcp", "tools.changed", server=self.server.name, tools=len(listed))
            self._changed("tools")

    def _set(self, status: McpStatus) -> None:
        if status != self.status:
            self.status = status
            self._changed("status")

    def _with_last_line(self, why: str, errors: str) -> str:
        """A reason with the last line that the program printed, without known secrets."""
        last = one_line(self.server.hidden(errors.rpartition("\n")[2]), 200)
        return f"{why} (it last said: {last})" if last else why

    def printed(self) -> list[str]:
        """The last lines that its program printed as errors, without known secrets."""
        return [one_line(self.server.hidden(line), 500) for line in str(self._errors or "").splitlines()]

    def away(self, tool: str) -> str:
        """Why a tool of the server cannot be called now, for the model."""
        broken = self._link is not None and self._link.broken.is_set()
        why = self._link.why if broken and self._link is not None else self.status.error or self.status.status
        return (
            f"The MCP server {self.server.name} is not connected ({one_line(why, 300)}), so {tool} was not "
            "called. Go on without it, or tell the user."
        )

    def link(self, tool: str) -> "Link":
        """The connection; `ToolFailure` while there is none."""
        if self._link is None or self._link.broken.is_set():
            raise ToolFailure(self.away(tool))
        return self._link

    async def call(self, tool: OfferedTool, arguments: JsonMap, context: ToolContext) -> ToolOutput:
        """Carry out a call of a tool, which was permitted."""
        from holdfast.tools.mcp.wire.reason import Lost, Refused, Unclear

        link = self.link(tool.name)
        unknown = "" if tool.repeatable else " Whether it took effect is unknown: look before you repeat it."
        self.calls += 1
        try:
            return await link.call(
                tool.tool,
                arguments,
                session=context.session_id,
                ask=_asking(context),
                show=_Progress(context),
                title=tool.name,
            )
        except Lost as error:
            raise ToolFailure(
                f"The MCP server {self.server.name} left during the call: {error}.{unknown}"
            ) from None
        except Unclear as error:
            raise ToolFailure(
                f"What the MCP server {self.server.name} answered cannot be read: {error}.{unknown}"
            ) from None
        except Refused as error:
            raise ToolFailure(f"The MCP server {self.server.name} refused the call: {error}.") from None
        except TimeoutError:
            raise ToolFailure(
                f"The MCP server {self.server.name} did not answer within {self.server.call_s:g} s, and the "
                f"call was cancelled.{unknown}"
            ) from None
        finally:
            self.calls -= 1


class _Progress:
    """Shows how far a call has come, not more often than is of use."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._shown_s = -PROGRESS_S

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now_s = anyio.current_time()
        if now_s - self._shown_s < PROGRESS_S:
            return
        self._shown_s = now_s
        facts: JsonMap = {
            "progress": progress,
            "total": total,
            "message": one_line(message or "", 300) or None,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        await self._context.progress(metadata={"progress": known})


def _asking(context: ToolContext) -> "Ask":
    """Puts a server's form to the user of the call."""

    async def ask(asked: Elicitation) -> ElicitationAnswer:
        wanted = elicitation.questions(asked)
        if wanted is None:
            return ElicitationAnswer(action="cancel")
        try:
            chosen = await context.question(wanted)
        except ToolDenied:
            return ElicitationAnswer(action="decline")
        # The user is not there, or does not answer: a call that has begun is not run again for an answer.
        except (ToolFailure, ToolParked):
            return ElicitationAnswer(action="cancel")
        return elicitation.answer(asked, chosen)

    return ask
