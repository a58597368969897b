"""One connection to a server: what can be asked of it, and what it may ask in turn.

What must stay true: every request has a bound; a form that a server sends goes to the user of the call that
it belongs to, and to nobody where that cannot be known.
"""

import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import mcp_types as types
import msgspec
import pydantic
from mcp.client import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPError

from holdfast.log import event
from holdfast.schema.wire import JsonMap
from holdfast.text import one_line
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.mcp.elicitation import Elicitation, ElicitationAnswer
from holdfast.tools.mcp.listed_tool import DESCRIPTION_CHARS_MAX, ListedTool
from holdfast.tools.mcp.server import Server
from holdfast.tools.mcp.wire import result
from holdfast.tools.mcp.wire.call_under_way import Ask, CallUnderWay, Progress
from holdfast.tools.mcp.wire.open_requests import OpenRequests
from holdfast.tools.mcp.wire.reason import Lost, Refused, Unclear
from holdfast.version import __version__

LISTED_MAX: Final = 2_000
LISTED_BYTES_MAX: Final = 4 << 20
"""What is kept of a list, in all: far more than is ever offered."""
PAGES_MAX: Final = 100
ROUNDS_MAX: Final = 10
"""How often a call may be answered by a wish for more input."""
ENDED: Final = "the connection ended"
_ENDS: Final = ("Connection closed", "SSE stream")
"""How the package's own words for that begin."""
_UNREADABLE: Final = ("Server returned an error response", "Failed to parse", "Unexpected content type")
"""And those for an answer over HTTP that is none."""

Streams = tuple[Any, Any]
R = TypeVar("R", bound=pydantic.BaseModel)
Entry = TypeVar("Entry", ListedTool, JsonMap)

for _name in ("mcp.client", "mcp.shared"):  # They log messages with their content.
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False
# The session of the package uses a name that may be another program's: only its own records are dropped.
logging.getLogger("client").addFilter(lambda record: "/mcp/client/" not in record.pathname)


class Link:
    """A connected server."""

    def __init__(self, server: Server, worktree: Path) -> None:
        self.server = server
        self._worktree = worktree
        self._session: ClientSession | None = None
        self._calls: list[CallUnderWay] = []
        self.changed = anyio.Event()
        """Set when the server says that its tools are others now."""
        self.broken = anyio.Event()
        self.why = ENDED
        self.is_unauthorized: Callable[[], bool] = lambda: False
        """Whether a remote server has just answered that it does not know the user."""
        self.http_status: Callable[[], int | None] = lambda: None
        """What a remote server has just answered by HTTP."""

    def break_(self, why: str) -> None:
        """The connection is of no more use."""
        if not self.broken.is_set():
            self.why = why
            self.broken.set()

    @asynccontextmanager
    async def over(self, streams: Streams) -> AsyncIterator["Link"]:
        """The link, once the server has answered the first greeting."""
        session = ClientSession(
            *OpenRequests(self.break_).streams(*streams),
            elicitation_callback=self._elicit,
            list_roots_callback=self._roots,
            message_handler=self._take,
            client_info=types.Implementation(name="holdfast", version=__version__),
        )
        async with session:
            try:
                await _greet(session)
            except MCPError as error:
                if _is_end(error):
                    raise Lost(self.why) from None
                raise
            self._session = session
            yield self

    @property
    def session(self) -> ClientSession:
        """The session of the protocol."""
        assert self._session is not None, "it is set before anybody has the link"
        return self._session

    @property
    def has_resources(self) -> bool:
        """Whether the server says that it has resources."""
        capabilities = self.session.server_capabilities
        return capabilities is not None and capabilities.resources is not None

    @property
    def has_tools(self) -> bool:
        """Whether the server says that it has tools."""
        capabilities = self.session.server_capabilities
        return capabilities is not None and capabilities.tools is not None

    async def follow(self) -> None:
        """Follow the changes of a server that reports them only to those who ask (2026-07-28 and later)."""
        if self.session.discover_result is None:
            return
        with contextlib.suppress(Exception):  # It need not offer them: its tools are as they were listed.
            async with listen(self.session, tools_list_changed=True) as changes:
                async for _ in changes:
                    self.changed.set()

    async def tools(self) -> list[ListedTool]:
        """The tools that the server lists, the first few thousand."""
        if not self.has_tools:
            return []
        return await self._listed(types.ListToolsRequest, types.ListToolsResult, "tools", _tool)

    async def call(
        self, tool: str, arguments: JsonMap, *, session: str, ask: Ask, show: Progress, title: str
    ) -> ToolOutput:
        """Call a tool. `ToolFailure` with what the server says is wrong; `TimeoutError` when it is silent."""
        with anyio.CancelScope() as limit:
            call = CallUnderWay(session, ask, limit, self.server.call_s)
            call.extend()

            async def report(progress: float, total: float | None, message: str | None) -> None:
                call.extend()
                await show(progress, total, message)

            self._calls.append(call)
            try:
                given = await self._answered(tool, arguments, call, report)
            finally:
                self._calls.remove(call)
                call.end()
        if limit.cancelled_caught:
            raise TimeoutError
        made = result.output(given, title)
        if given.is_error:
            raise ToolFailure(made.text or "The tool failed, and does not say why.")
        return made

    async def _answered(
        self, tool: str, arguments: JsonMap, call: CallUnderWay, report: Progress
    ) -> types.CallToolResult:
        responses: types.InputResponses | None = None
        state: str | None = None
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(
            types.CallToolResult | types.InputRequiredResult
        )
        for _ in range(ROUNDS_MAX):
            params = types.CallToolRequestParams(
                name=tool, arguments=arguments, input_responses=responses, request_state=state
            )
            request = types.CallToolRequest(params=params)
            answer = await self._sent(request, adapter, progress=report)
            if isinstance(answer, types.CallToolResult):
                return answer
            assert isinstance(answer, types.InputRequiredResult)
            responses, state = await self._inputs(answer, call), answer.request_state
        raise Refused("it asked for more input again and again")

    async def _inputs(self, wanted: types.InputRequiredResult, call: CallUnderWay) -> types.InputResponses:
        responses: types.InputResponses = {}
        for key, request in (wanted.input_requests or {}).items():
            if isinstance(request, types.ElicitRequest):
                responses[key] = _result(await call.ask(self._elicitation(request.params)))
            elif isinstance(request, types.ListRootsRequest):
                responses[key] = self._own_roots()
            else:
                raise Refused("it wants a completion of the model, which is not offered")
        return responses

    async def resources(self) -> list[JsonMap]:
        """The resources that the server lists."""
        kinds = types.ListResourcesRequest, types.ListResourcesResult
        return await self._listed(*kinds, "resources", result.plain)

    async def templates(self) -> list[JsonMap]:
        """The templates of addresses that the server lists."""
        kinds = types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult
        return await self._listed(*kinds, "resource_templates", result.plain)

    async def _listed(
        self, request: Any, kind: type[R], field: str, made: Callable[[Any], Entry]
    ) -> list[Entry]:
        """A list, page by page; what has no room is left out."""
        found: list[Entry] = []
        left_out, room, cursor = 0, LISTED_BYTES_MAX, None
        for _ in range(PAGES_MAX):
            params = types.PaginatedRequestParams(cursor=cursor)
            page = await self._sent(request(params=params), kind)
            for entry in map(made, getattr(page, field)):
                size = len(msgspec.json.encode(entry))
                if size > room or len(found) == LISTED_MAX:
                    left_out += 1
                else:
                    room -= size
                    found.append(entry)
            cursor = getattr(page, "next_cursor", None)
            if cursor is None or len(found) == LISTED_MAX:
                break
        if left_out:
            event.warn("mcp", "list.cut", server=self.server.name, kept=len(found), left_out=left_out)
        return found

    async def read(self, uri: str, title: str) -> ToolOutput:
        """What a resource holds."""
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
        return result.contents((await self._sent(request, types.ReadResourceResult)).contents, title)

    async def _sent(
        self, request: Any, kind: type[R] | pydantic.TypeAdapter[R], *, progress: Progress | None = None
    ) -> R:
        """Send a request. Its caller sets the bound, but for lists, which have that of a call.

        The package's own bound begins when the request is written: a server that reads nothing has none.
        """
        wait_s = math.inf if progress is not None else self.server.call_s
        try:
            with anyio.fail_after(wait_s):
                return await self.session.send_request(request, kind, progress_callback=progress)
        except MCPError as error:
            if _is_end(error):
                self.break_(self.why)
                raise Lost(self.why) from None
            if self.is_unauthorized():
                self.break_("it does not know the user any more")
                raise Refused(f"it wants a sign-in: `holdfast mcp auth {self.server.name}`") from None
            if error.message == "Session terminated":
                self.break_("the server has ended the session")
            said = one_line(self.server.hidden(error.message), 1_000)
            if error.message.startswith(_UNREADABLE):
                raise Unclear(f"{said} (HTTP {self.http_status()})") from None
            raise Refused(said) from None
        except pydantic.ValidationError as error:
            raise Unclear(f"its answer is none of the protocol ({error.error_count()} faults)") from None

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """A form of the server's: for the user of its latest call, unless calls of several sessions run."""
        if len({call.session for call in self._calls}) != 1:
            return types.ElicitResult(action="cancel")
        return _result(await self._calls[-1].ask(self._elicitation(params)))

    def _elicitation(self, params: types.ElicitRequestParams) -> Elicitation:
        name = self.server.name
        if isinstance(params, types.ElicitRequestURLParams):
            return Elicitation(server=name, message=params.message, url=params.url)
        form: Any = params.requested_schema
        form = form if isinstance(form, dict) else result.plain(form)
        return Elicitation(server=name, message=params.message, form=form)

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        return self._own_roots()

    def _own_roots(self) -> types.ListRootsResult:
        uri = pydantic.FileUrl(self._worktree.as_uri())
        return types.ListRootsResult(roots=[types.Root(uri=uri, name=self._worktree.name or "/")])

    async def _take(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()


async def _greet(session: ClientSession) -> None:
    """Agree on a version: by the greeting that every server knows, else by that of those which do not."""
    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND):
            raise
        await session.discover()


def _is_end(error: MCPError) -> bool:
    """Whether the package says that no answer can come. Servers use its number for errors of their own."""
    return error.code == types.CONNECTION_CLOSED and error.message.startswith(_ENDS)


def _result(given: ElicitationAnswer) -> types.ElicitResult:
    return types.ElicitResult(action=given.action, content=given.content)


def _tool(tool: types.Tool) -> ListedTool:
    hints = tool.annotations
    title = tool.title or (None if hints is None else hints.title)
    return ListedTool(
        name=tool.name,
        description=(tool.description or title or "")[: 2 * DESCRIPTION_CHARS_MAX + 1],
        schema=tool.input_schema,
        read_only=hints is not None and hints.read_only_hint is True,
        idempotent=hints is not None and hints.idempotent_hint is True,
        needs_task=tool.execution is not None and tool.execution.task_support == "required",
    )
