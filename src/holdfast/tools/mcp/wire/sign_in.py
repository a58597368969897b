"""Signs the user in to a remote server: by their browser, with an answer on a port of this machine.

The flow is the package's: discovery, registration of a client, PKCE, tokens. What must stay true: only an
answer with the state of this sign-in is taken; nothing waits longer than `WAIT_S`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import SplitResult, parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from holdfast.clock import Clock
from holdfast.errors import ContextError, InvalidInput
from holdfast.schema.program_entry import McpOAuth
from holdfast.text import one_line
from holdfast.tools.mcp.accounts import Account
from holdfast.tools.mcp.server import Server
from holdfast.tools.mcp.wire import remote
from holdfast.tools.mcp.wire.reason import reason
from holdfast.tools.mcp.wire.remote import Traffic

WAIT_S: Final = 300.0
"""How long the user may take in the browser."""
ANSWER_S: Final = 30.0
"""How long the server may take before that, and once more after it."""
_HEAD_BYTES_MAX: Final = 16_384
_PATH: Final = "/callback"
_PAGE: Final = b"<!doctype html><title>Holdfast</title><p>%s You can close this window.</p>"
_GREETING: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "holdfast", "version": "1"},
    },
}

Show = Callable[[str], Awaitable[None]]
"""Shows the user the address that they are to open."""


class NeedsRegistration(ContextError):
    """The server registers no clients by itself."""


class _Callback:
    """Waits on a port of this machine for the browser's answer."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.state = ""
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of the browser."""
        try:
            with anyio.fail_after(10):
                line = (await reader.readline())[:_HEAD_BYTES_MAX].decode("latin-1").split()
                while (await reader.readline()).strip():
                    pass
            target = urlsplit(line[1] if len(line) > 1 else "")
            given = {name: values[0] for name, values in parse_qs(target.query).items()}
            ours = target.path == self._path and self.state != "" and given.get("state") == self.state
            if ours and not self._answer.done():
                self._answer.set_result(given)
            words = b"You are signed in." if ours and "code" in given else b"That did not work."
            body = _PAGE % words
            head = f"HTTP/1.1 {200 if ours else 404} x\r\ncontent-type: text/html\r\nconnection: close\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        except (OSError, ValueError, TimeoutError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()

    async def answer(self) -> AuthorizationCodeResult:
        """What the browser brought."""
        try:
            with anyio.fail_after(WAIT_S):
                given = await self._answer
        except TimeoutError:
            raise ContextError(f"nobody signed in within {WAIT_S:g} s; try again") from None
        if "code" not in given:
            why = given.get("error_description") or given.get("error") or "no code"
            raise ContextError(f"the sign-in was refused: {one_line(why, 200)}")
        return AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))


class _Memory:
    """What the flow keeps while it lasts; a client that the settings name is there from the beginning."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self._client = client
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


async def sign_in(server: Server, show: Show, clock: Clock) -> Account:
    """Sign in; the account is the caller's to keep. `ContextError` says why that failed."""
    _check_private(server)
    settings = server.entry.oauth if isinstance(server.entry.oauth, McpOAuth) else McpOAuth()
    own = _own_redirect(server, settings)
    callback = _Callback(_PATH if own is None else own.path or "/")
    port = settings.callback_port or (own.port if own is not None and own.port else 0)
    try:
        listening = await asyncio.start_server(callback.take, "127.0.0.1", port, limit=_HEAD_BYTES_MAX)
    except OSError as error:
        raise ContextError(f"port {port} of this machine cannot be used: {error.strerror}") from error
    async with listening:
        bound = listening.sockets[0].getsockname()[1]
        redirect = settings.redirect_uri or f"http://127.0.0.1:{bound}{_PATH}"
        limit = anyio.CancelScope(deadline=anyio.current_time() + ANSWER_S)

        async def shown(url: str) -> None:
            limit.deadline = anyio.current_time() + WAIT_S + ANSWER_S
            await show(url)

        provider = _provider(server, settings, redirect, callback, shown)
        await _visit(server, provider, limit)
    return _account(server, provider, clock)


def _own_redirect(server: Server, settings: McpOAuth) -> SplitResult | None:
    """The address that the settings name for the browser's answer, if they name one."""
    if not settings.redirect_uri:
        return None
    try:
        AnyUrl(settings.redirect_uri)
        made = urlsplit(settings.redirect_uri)
        made.port  # noqa: B018 - it is judged when it is asked for
    except ValueError:
        raise InvalidInput(f"`oauth.redirectUri` of {server.name} is no address") from None
    return made


def _check_private(server: Server) -> None:
    """`ContextError` for an address at which others could read the token."""
    url = urlsplit(server.entry.url or "")
    if url.scheme != "https" and not _is_of_this_machine(url):
        raise ContextError(f"{server.name} is not reached by https: no token is sent there")


def _check_way(server: Server, address: str) -> None:
    """`ContextError` where a server sends a sign-in to an address at which others could read it.

    Nor does a server elsewhere send it to this machine, or to a service beside it that trusts whoever calls.
    """
    url = urlsplit(address)
    if url.scheme != "https" and not (
        _is_of_this_machine(url) and _is_of_this_machine(urlsplit(server.entry.url or ""))
    ):
        shown = one_line(f"{url.scheme}://{url.hostname}", 100)
        raise ContextError(f"{server.name} sends the sign-in to {shown}, which is not reached by https")


def _is_of_this_machine(url: SplitResult) -> bool:
    return url.scheme == "http" and url.hostname in ("127.0.0.1", "localhost", "::1")


def _provider(
    server: Server, settings: McpOAuth, redirect: str, callback: _Callback, show: Show
) -> OAuthClientProvider:
    async def open_browser(url: str) -> None:
        _check_way(server, url)
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        if settings.scope is not None:
            query["scope"] = settings.scope
        callback.state = query.get("state", "")
        await show(urlunsplit(parts._replace(query=urlencode(query))))

    client = None
    if settings.client_id is not None:
        client = OAuthClientInformationFull(
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            redirect_uris=[AnyUrl(redirect)],
            token_endpoint_auth_method="none" if settings.client_secret is None else "client_secret_post",
        )
    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect)], client_name="Holdfast", scope=settings.scope
    )
    return OAuthClientProvider(
        server.entry.url or "", metadata, _Memory(client), open_browser, callback.answer
    )


async def _visit(server: Server, provider: OAuthClientProvider, limit: anyio.CancelScope) -> None:
    """Greet the server, which makes it ask for the sign-in."""
    traffic = Traffic(server)

    async def check(request: httpx2.Request) -> None:
        _check_way(server, str(request.url))

    try:
        with limit:
            async with remote.client(server, traffic, provider) as http:
                http.event_hooks = {**http.event_hooks, "request": [check]}
                headers = {"accept": "application/json, text/event-stream"}
                url = server.entry.url or ""
                async with http.stream("POST", url, json=_GREETING, headers=headers):
                    pass
    except OAuthRegistrationError as error:
        raise NeedsRegistration(
            f"{server.name} registers no client by itself ({one_line(str(error), 200)}); register one with "
            "it, and set `oauth.clientId`"
        ) from None
    except (OAuthFlowError, httpx2.HTTPError) as error:
        # An error of the transport may hold a header.
        why = str(error) if isinstance(error, OAuthFlowError) else reason(error)
        raise ContextError(
            f"{server.name} did not let you sign in: {one_line(server.hidden(why), 200)}"
        ) from None
    if limit.cancelled_caught:
        raise ContextError(f"{server.name} did not let you sign in: it did not answer in time")


def _account(server: Server, provider: OAuthClientProvider, clock: Clock) -> Account:
    context = provider.context
    tokens, client = context.current_tokens, context.client_info
    if tokens is None or client is None:
        raise ContextError(f"{server.name} did not ask for a sign-in, so there is nothing to keep")
    metadata = context.oauth_metadata
    origin = urlsplit(server.entry.url or "")
    token_url = (
        f"{origin.scheme}://{origin.netloc}/token" if metadata is None else str(metadata.token_endpoint)
    )
    expires_ms = None if tokens.expires_in is None else clock.now_ms() + tokens.expires_in * 1_000
    wants_resource = context.should_include_resource_param(context.protocol_version)
    return Account(
        url=server.entry.url or "",
        access=tokens.access_token,
        refresh=tokens.refresh_token,
        expires_ms=expires_ms,
        scope=tokens.scope,
        token_url=token_url,
        resource=context.get_resource_url() if wants_resource else None,
        client_id=client.client_id,
        client_secret=client.client_secret,
        client_auth=client.token_endpoint_auth_method,
    )
