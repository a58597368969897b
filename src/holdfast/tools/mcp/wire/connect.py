"""Opens the connection to a server, local or remote."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import anyio.to_thread
import httpx2
import msgspec

from holdfast.errors import ContextError
from holdfast.location.guard import Guard
from holdfast.tools.mcp import accounts
from holdfast.tools.mcp.launch import Launch
from holdfast.tools.mcp.server import Server
from holdfast.tools.mcp.wire import local, remote
from holdfast.tools.mcp.wire.link import Link, Streams
from holdfast.tools.mcp.wire.local import LastLines
from holdfast.tools.mcp.wire.remote import Traffic
from holdfast.tools.mcp.wire.stored_token import StoredToken

_REFUSED: Final = (400, 404, 405, 406, 415)
"""How a server that speaks only SSE answers to a post at its address."""
_ERROR: Final = 400


Transport = Callable[[Server, Traffic, httpx2.Auth | None], AbstractAsyncContextManager[Streams]]


class NeedsSignIn(ContextError):
    """The server lets only users in that it knows."""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection needs of the process: how programs are started and watched over, and the project."""

    launch: Launch
    guard: Guard
    worktree: Path


@asynccontextmanager
async def connected(server: Server, world: World, errors: LastLines) -> AsyncIterator[Link]:
    """A link to the server until the block ends. The caller sets the bound of time."""
    link = Link(server, world.worktree)
    if server.entry.type == "local":
        with await world.launch(server) as launching:
            async with (
                local.connected(launching, world.guard, errors, link.break_) as streams,
                link.over(streams),
            ):
                yield link
        return
    async with _remote(server, link):
        yield link


@asynccontextmanager
async def _remote(server: Server, link: Link) -> AsyncIterator[Link]:
    """By streamable HTTP, else by SSE."""
    account = None if server.entry.oauth is False else await anyio.to_thread.run_sync(accounts.find, server)
    auth = None if account is None else StoredToken(server, account)
    traffic = Traffic(server)
    link.is_unauthorized = lambda: traffic.unauthorized
    link.http_status = lambda: traffic.status

    async def opened(transport: Transport) -> AsyncExitStack:
        async with AsyncExitStack() as trial:
            streams = await trial.enter_async_context(transport(server, traffic, auth))
            await trial.enter_async_context(link.over(streams))
            return trial.pop_all()
        raise AssertionError("an error of the block is raised")

    try:
        connection = await opened(remote.streamable)
    except Exception as first:
        _check_sign_in(server, traffic)
        if traffic.status not in _REFUSED:
            if (traffic.status or 0) >= _ERROR:
                raise ContextError(f"it answers HTTP {traffic.status}") from None
            raise
        try:
            connection = await opened(remote.events)
        except Exception:  # noqa: BLE001 - whatever it is, the first error says more
            _check_sign_in(server, traffic)
            raise first from None
    async with connection:
        yield link


def _check_sign_in(server: Server, traffic: Traffic) -> None:
    """`NeedsSignIn` where the server does not know the user."""
    if traffic.unauthorized and server.entry.oauth is False:
        raise ContextError("it answers 401, and `oauth` is off for it; set the header that it wants")
    if traffic.unauthorized:
        raise NeedsSignIn(f"`holdfast mcp auth {server.name}` signs you in")
