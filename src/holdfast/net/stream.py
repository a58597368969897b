"""The one way out: a POST whose answer is a stream of bytes, and a small bounded GET.

Owns the HTTP client (`httpx2`, imported at the first request: it costs 100 ms) and the translation of its
errors into `ProviderError` of kind connection, stall, timeout or malformed-stream. TLS is verified, proxies
come from the environment as httpx2 reads them, redirects are never followed (a key must not travel to
another host) and cookies are not kept. Messages name the host alone: a path or query may hold a secret.

What must stay true: a burst does not starve the loop. httpx2 yields chunks that it already has without
suspending, so `chunks` gives way every 20 of them.
"""

import errno
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import msgspec

from holdfast.errors import ProviderError
from holdfast.version import __version__

if TYPE_CHECKING:
    import httpx2

CHUNKS_A_TURN = 20
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
CONNECT_TIMEOUT_S = 30.0
WRITE_TIMEOUT_S = 60.0
CONNECTIONS_MAX = 1_000
USER_AGENT = f"holdfast/{__version__}"

_LOGGERS = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))


class SmallAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole small response. Header names are in lower case; `etag` is what to ask with next time."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def etag(self) -> str | None:
        return self.headers.get("etag")


class Response:
    """A response whose body has yet to come. Header names are in lower case."""

    def __init__(self, inner: "httpx2.Response", host: str) -> None:
        self._inner = inner
        self._host = host
        self.status: int = inner.status_code
        self.headers: dict[str, str] = {name.lower(): value for name, value in inner.headers.items()}

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body, decoded, as it comes. Close it (`aclosing`) when leaving early."""
        count = 0
        with _translated(self._host, reading=True):
            async with aclosing(self._inner.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    yield chunk
                    count += 1
                    if count % CHUNKS_A_TURN == 0:
                        await anyio.lowlevel.checkpoint()

    async def body(self, bytes_max: int) -> tuple[bytes, bool]:
        """The first `bytes_max` bytes of the body, and whether there was more."""
        read = bytearray()
        async with aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                read += chunk
                if len(read) > bytes_max:
                    return bytes(read[:bytes_max]), True
        return bytes(read), False


class Http:
    """The HTTP client of a process, with its connections. `app.py` owns it and closes it."""

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

    async def aclose(self) -> None:
        """Drop every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def post(
        self,
        url: str,
        *,
        headers: dict[str, str],
        body: bytes,
        header_timeout_ms: int | None,
        stall_timeout_ms: int | None,
    ) -> AsyncIterator[Response]:
        """POST `body`. The answer's head must come within one bound, each read after it within the other.

        An answer is asked for without compression: a compressor holds deltas back.
        """
        head = {"accept-encoding": "identity", "user-agent": USER_AGENT, **headers}
        async with self._sent(
            "POST",
            url,
            headers=head,
            body=body,
            header_timeout_ms=header_timeout_ms,
            stall_timeout_ms=stall_timeout_ms,
        ) as response:
            yield response

    async def get(
        self,
        url: str,
        *,
        bytes_max: int,
        timeout_ms: int,
        headers: dict[str, str] | None = None,
        etag: str | None = None,
        pinned: str | None = None,
    ) -> SmallAnswer:
        """GET something small, whole, within `timeout_ms`; 304 when `etag` still holds.

        `pinned` is the address to connect to, already checked by `address_guard`: the name is not resolved
        again. A body of more than `bytes_max` is an error, never cut.
        """
        head = {"user-agent": USER_AGENT, **(headers or {})}
        if etag is not None:
            head["if-none-match"] = etag
        host = urlsplit(url).hostname or ""
        try:
            with anyio.fail_after(timeout_ms / 1000):
                async with self._sent("GET", url, headers=head, pinned=pinned) as response:
                    body, cut = await response.body(bytes_max)
        except TimeoutError as error:
            raise _timed_out(host, f"did not answer within {timeout_ms} ms") from error
        if cut:
            raise ProviderError(
                f"{host} answered with more than {bytes_max:,} bytes", kind="malformed-stream"
            )
        return SmallAnswer(status=response.status, headers=response.headers, body=body)

    @asynccontextmanager
    async def _sent(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        body: bytes = b"",
        header_timeout_ms: int | None = None,
        stall_timeout_ms: int | None = None,
        pinned: str | None = None,
    ) -> AsyncIterator[Response]:
        client = self._opened()
        host = urlsplit(url).hostname or ""
        # The transport reads this table when it begins to read a body, so the bound between two reads is put
        # into it after the head has come. One scope around the head, none around the body: a cancel scope
        # must not be open while a generator is suspended.
        timeouts: dict[str, float | None] = {
            "connect": CONNECT_TIMEOUT_S,
            "write": WRITE_TIMEOUT_S,
            "pool": CONNECT_TIMEOUT_S,
            "read": None,
        }
        extensions: dict[str, Any] = {"timeout": timeouts}
        with _translated(host, port=urlsplit(url).port):
            if pinned is not None:
                target = client.build_request(method, url).url
                # A connection is kept under its address: one of another name on it must not be used for this.
                headers = {"host": target.netloc.decode("ascii"), "connection": "close", **headers}
                extensions["sni_hostname"] = target.host
                url = str(target.copy_with(host=pinned))
            request = client.build_request(
                method, url, headers=headers, content=body or None, extensions=extensions
            )
            try:
                with anyio.fail_after(None if header_timeout_ms is None else header_timeout_ms / 1000):
                    response = await client.send(request, stream=True)
            except TimeoutError as error:
                raise _timed_out(host, f"did not answer within {header_timeout_ms} ms") from error
        timeouts["read"] = None if stall_timeout_ms is None else stall_timeout_ms / 1000
        try:
            yield Response(response, host)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    def _opened(self) -> "httpx2.AsyncClient":
        if self._client is None:
            from http.cookiejar import CookieJar, DefaultCookiePolicy

            import httpx2

            from holdfast.net import trusted

            silence()
            self._client = httpx2.AsyncClient(
                verify=trusted.tls(),
                follow_redirects=False,
                # What stays on this machine goes nowhere else, whatever proxy the environment names.
                mounts={f"all://{host}": None for host in LOOPBACK},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                limits=httpx2.Limits(
                    max_connections=CONNECTIONS_MAX, max_keepalive_connections=20, keepalive_expiry=30
                ),
            )
        return self._client


def silence() -> None:
    """The client logs each URL and each answer's headers, and both may hold a key."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _is_warning not in logger.filters:
            logger.addFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


@contextmanager
def _translated(host: str, *, port: int | None = None, reading: bool = False) -> Iterator[None]:
    """Errors of httpx2 as ours, with `raise … from None`: their text and their request may hold a URL."""
    import httpx2

    try:
        yield
    except httpx2.ReadTimeout:
        raise ProviderError(f"{host} fell silent in its answer", kind="stall", retryable=True) from None
    except httpx2.TimeoutException:
        raise _timed_out(host, "could not be reached in time") from None
    except httpx2.DecodingError:
        raise ProviderError(
            f"{host} sent a body that cannot be decompressed", kind="malformed-stream", retryable=True
        ) from None
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL, httpx2.LocalProtocolError):
        raise ProviderError(
            f"the address or the headers of {host or 'the provider'} are not valid; correct its settings"
        ) from None
    except httpx2.TransportError as error:
        if not reading and _is_local(host) and errno.ECONNREFUSED in _numbers(error):
            where = host if port is None else f"{host}:{port}"
            raise ProviderError(
                f"nothing listens at {where}; is the server running?", kind="connection"
            ) from None
        doing = "broke the connection during its answer" if reading else "cannot be reached"
        why = _why(error)
        raise ProviderError(f"{host} {doing}: {why}", kind="connection", retryable=True) from None


def _is_local(host: str) -> bool:
    """Whether a host is this machine: who refuses there will go on refusing."""
    return host in ("localhost", "::1") or host.startswith("127.")


def _numbers(error: BaseException | None) -> set[int]:
    """The error numbers of the operating system behind an error; a name may have several addresses."""
    found: set[int] = set()
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            found.add(error.errno)
        if isinstance(error, BaseExceptionGroup):
            return found.union(*map(_numbers, error.exceptions))
        error = error.__cause__ or error.__context__
    return found


def _why(error: BaseException) -> str:
    """The operating system's words where there are some: they hold no address of ours."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def _timed_out(host: str, what: str) -> ProviderError:
    return ProviderError(f"{host} {what}", kind="timeout", retryable=True)
