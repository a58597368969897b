"""Adds the user's token to the requests for one server, and renews it.

The provider of the package does not know when a stored token ends, nor where it is renewed, so this is ours;
the sign-in itself is the package's (`sign_in.py`). What must stay true: another process that renewed the
token first is not undone: what it wrote is used. A user who signs out is signed out: nothing is renewed then.
"""

import base64
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Final
from urllib.parse import quote

import anyio
import anyio.to_thread
import httpx2
import msgspec
from msgspec.structs import replace

from holdfast.clock import Clock, SystemClock
from holdfast.errors import HoldfastError
from holdfast.schema import typed
from holdfast.tools.mcp import accounts
from holdfast.tools.mcp.accounts import Account
from holdfast.tools.mcp.server import Server

_OK: Final = 200
_UNAUTHORIZED: Final = 401


class _Renewed(msgspec.Struct, frozen=True):
    """What a token's maker answers."""

    access_token: str
    refresh_token: str | None = None
    expires_in: float | str | None = None
    """In seconds; some write a text."""
    scope: str | None = None


class StoredToken(httpx2.Auth):
    """The token of one server."""

    def __init__(self, server: Server, account: Account, clock: Clock | None = None) -> None:
        self._server = server
        self._account = account
        self._clock = clock or SystemClock()
        self._lock = anyio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the token; where that is not taken, once more with a new one."""
        used = self._account
        if used.is_over(self._clock.now_ms()):
            async with self._lock, _alone():
                if (renewal := await self._renewal(used)) is not None:
                    await self._take(used, (yield renewal))
            used = self._account
        request.headers["authorization"] = f"Bearer {used.access}"
        response = yield request
        if response.status_code != _UNAUTHORIZED:
            return
        await response.aread()
        async with self._lock, _alone():
            if (renewal := await self._renewal(used)) is not None:
                await self._take(used, (yield renewal))
        if self._account.access != used.access:
            request.headers["authorization"] = f"Bearer {self._account.access}"
            yield request

    async def _renewal(self, used: Account) -> httpx2.Request | None:
        """The request for a new token; None where there is one already, or cannot be any."""
        if self._account.access != used.access:
            return None
        kept = await anyio.to_thread.run_sync(accounts.find, self._server)
        if kept is not None and kept.access != used.access:  # Another process was first.
            self._account = kept
            return None
        if kept is None or used.refresh is None:
            return None
        data = {"grant_type": "refresh_token", "refresh_token": used.refresh, "client_id": used.client_id}
        if used.resource is not None:
            data["resource"] = used.resource
        headers = {"accept": "application/json"}
        if used.client_secret is not None and used.client_auth == "client_secret_basic":
            pair = f"{quote(used.client_id, safe='')}:{quote(used.client_secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif used.client_secret is not None:
            data["client_secret"] = used.client_secret
        return httpx2.Request("POST", used.token_url, data=data, headers=headers)

    async def _take(self, used: Account, response: httpx2.Response) -> None:
        """Keep a new token. Where there is none the old one stays, and the server's own answer says so."""
        body = await response.aread()
        try:
            made = typed.decode(body, _Renewed) if response.status_code == _OK else None
        except msgspec.MsgspecError:
            made = None
        if made is None:
            return
        self._account = replace(
            used,
            access=made.access_token,
            refresh=made.refresh_token or used.refresh,
            expires_ms=_end_ms(made.expires_in, self._clock),
            scope=made.scope or used.scope,
        )
        try:
            await anyio.to_thread.run_sync(accounts.renew, self._server.name, used, self._account)
        except HoldfastError:
            return  # It is used as long as this process lives.


def _end_ms(expires_in: float | str | None, clock: Clock) -> int | None:
    try:
        return None if expires_in is None else clock.now_ms() + int(float(expires_in) * 1_000)
    except (ValueError, OverflowError):
        return None


@asynccontextmanager
async def _alone() -> AsyncIterator[None]:
    """No other process renews a token meanwhile; where it takes too long, this one goes on."""
    with ExitStack() as held:
        with contextlib.suppress(HoldfastError):
            await anyio.to_thread.run_sync(held.enter_context, accounts.renewing())
        yield
