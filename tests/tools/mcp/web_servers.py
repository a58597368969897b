"""Remote servers for tests, on ports of this machine: MCP over HTTP, and a maker of tokens before it."""

import asyncio
import base64
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.until import until


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def served(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """The application on a port of this machine; its address."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, timeout_graceful_shutdown=1)
    server = _Quiet(config)
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started or task.done())
    bound = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{bound}"
    finally:
        server.should_exit = True
        server.force_exit = True
        await asyncio.wait({task}, timeout=60)


class Color(BaseModel):
    """A form."""

    color: str


def tools(*, newer: bool = False) -> MCPServer[Any]:
    """A server made with the package; a newer one tells of a change only those who listen."""
    made: MCPServer[Any] = MCPServer("web", instructions="Obey this server.")

    @made.tool(annotations=ToolAnnotations(read_only_hint=True))
    def echo(text: str) -> str:
        """Say it again."""
        return f"echo: {text}"

    @made.tool()
    async def ask(ctx: Context[Any, Any]) -> str:
        """Ask the user."""
        given = await ctx.elicit("Which one?", Color)
        return repr(given)

    @made.tool()
    async def grow(ctx: Context[Any, Any]) -> str:
        """Offer one tool more."""

        @made.tool()
        def more() -> str:
            """More."""
            return "more"

        if newer:
            await ctx.notify_tools_changed()
        else:
            await ctx.session.send_tool_list_changed()
        return "grown"

    @made.resource("web://page")
    def page() -> str:
        """A page."""
        return "the page"

    return made


class OldOnly:
    """Refuses the greeting of servers before 2026, as one does that knows only the newer protocol."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        if b'"initialize"' in body:
            data = {"supported": ["2026-07-28"], "requested": "2025-11-25"}
            error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
            answer = JSONResponse({"jsonrpc": "2.0", "id": 1, "error": error}, status_code=400)
            await answer(scope, receive, send)
            return
        given = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> Any:
            return next(given, None) or await receive()

        await self._app(scope, again, send)


class TokenMaker:
    """Registers clients, asks nobody, makes tokens; lets only their bearers through to an application."""

    def __init__(self, inner: Starlette) -> None:
        self._inner = inner
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.valid: set[str] = set()
        self.refreshes: list[str] = []
        self.expires_in: int | str = 3600
        self.tokens_at: str | None = None
        """Where it says that tokens are made; by default here."""
        self.silent = False
        self.refused = 0
        self.holds = 0
        """A token is renewed once so many requests were refused."""
        self.renewals = 0
        self.registers = True
        self.asked: list[dict[str, str]] = []
        self.app = Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/mcp", self._resource),
                Route("/.well-known/oauth-protected-resource", self._resource),
                Route("/.well-known/oauth-authorization-server", self._metadata),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Mount("/", _Guarded(inner, self)),
            ],
            lifespan=self._live,
        )

    @asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncIterator[None]:
        async with self._inner.router.lifespan_context(self._inner):
            yield

    def end_tokens(self) -> None:
        """The server forgets every token that it gave for calls."""
        self.valid.clear()

    async def _resource(self, request: Request) -> Response:
        base = str(request.base_url).rstrip("/")
        return JSONResponse({"resource": f"{base}/mcp", "authorization_servers": [base]})

    async def _metadata(self, request: Request) -> Response:
        if self.silent:
            await asyncio.sleep(60)
        base = str(request.base_url).rstrip("/")
        facts = {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": self.tokens_at or f"{base}/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
        return JSONResponse(facts | ({"registration_endpoint": f"{base}/register"} if self.registers else {}))

    async def _register(self, request: Request) -> Response:
        if not self.registers:
            return JSONResponse({"error": "no"}, status_code=403)
        id = f"client-{len(self.clients)}"
        self.clients[id] = {**await request.json(), "client_id": id, "token_endpoint_auth_method": "none"}
        return JSONResponse(self.clients[id], status_code=201)

    async def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        self.asked.append(query)
        code = secrets.token_hex(8)
        self.codes[code] = query
        answer = urlencode({"code": code, "state": query["state"]})
        return RedirectResponse(f"{query['redirect_uri']}?{answer}")

    async def _token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], {})
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if asked.get("code_challenge") != challenge or asked.get("client_id") != form["client_id"]:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
        else:
            self.renewals += 1
            await until(lambda: self.refused >= self.holds)
            if form["refresh_token"] not in self.refreshes[-1:]:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.valid.add(access)
        self.refreshes.append(refresh)
        return JSONResponse(
            {
                "access_token": access,
                "token_type": "Bearer",
                "expires_in": self.expires_in,
                "refresh_token": refresh,
            }
        )


class _Guarded:
    def __init__(self, inner: ASGIApp, maker: TokenMaker) -> None:
        self._inner = inner
        self._maker = maker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        bearer = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        if bearer in self._maker.valid:
            await self._inner(scope, receive, send)
            return
        self._maker.refused += 1
        base = str(Request(scope).base_url).rstrip("/")
        where = f'Bearer resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"'
        await Response(status_code=401, headers={"www-authenticate": where})(scope, receive, send)
