"""The shell around every adapter: sends the request, watches the clock, feeds the decoder.

`stream` yields provider events and never raises for trouble of a provider's: trouble is the event `Failed`,
and nothing follows it. Cancellation passes through, and closes the connection on its way. No cancel scope is
open while the generator is suspended, so it may be left at any event; wrap it in `aclosing`.

Bounds (`Endpoint`): the head of the answer, the silence between two reads, and the whole. The whole is looked
at whenever something comes, so a silent stream may exceed it by the silence that is allowed. Bytes that say
nothing (comments, pings) break a silence, not the whole. The body of a refusal has a bound of its own.

What must stay true: every error leaves through the request's `Redactor`; an answer whose stop reason has come
is kept, whatever then befalls its connection: to ask again would pay for it twice.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import anyio
import msgspec

from holdfast.clock import Clock
from holdfast.errors import ProviderError
from holdfast.net.event_stream import EventStreamParser, ServerEvent
from holdfast.net.stream import Http, Response
from holdfast.provider.request import size
from holdfast.provider.request.events import Failed, Finish, ProviderEvent, Start
from holdfast.provider.request.request import Request
from holdfast.provider.wire import classify, redact
from holdfast.provider.wire.retry_after import retry_after_ms
from holdfast.provider.wire.wire import Adapter, Decoder, Endpoint

ERROR_BYTES_MAX = 64 * 1024
ERROR_BODY_MS_MAX = 30_000
_FRAME_SHOWN_MAX = 300
_DRAIN_S = 0.2


async def stream(
    http: Http, adapter: Adapter, request: Request, endpoint: Endpoint, clock: Clock
) -> AsyncGenerator[ProviderEvent, None]:
    """One request and the provider's answer."""
    sent = adapter.encode(request, endpoint)
    if (error := size.too_large(request, sent.body)) is not None:
        yield Failed(error=error)
        return
    redactor = redact.of_request(endpoint.key, sent.url, sent.headers)
    provider = request.model.provider_id
    began_ms = clock.boot_ms()
    total_ms = endpoint.total_timeout_ms
    try:
        async with http.post(
            sent.url,
            headers=sent.headers,
            body=sent.body,
            header_timeout_ms=_least(endpoint.header_timeout_ms, total_ms),
            stall_timeout_ms=_least(endpoint.stall_timeout_ms, total_ms),
        ) as response:
            left_ms = None if total_ms is None else max(0, total_ms - (clock.boot_ms() - began_ms))
            if (refused := await _refused(response, provider, clock, left_ms)) is not None:
                raise refused
            yield Start()
            reading = _Reading(adapter.decoder(request), provider)
            try:
                async with aclosing(response.chunks()) as chunks:
                    async for chunk in chunks:
                        if total_ms is not None and clock.boot_ms() - began_ms >= total_ms:
                            raise _overdue(provider, total_ms)
                        for event in reading.feed(chunk):
                            if isinstance(event, Failed):
                                raise event.error
                            yield event
                        if reading.finished:
                            await _drain(chunks)
                            return
            except ProviderError:
                if not (last := reading.rescued()):
                    raise
            else:
                last = reading.close()
            for event in last:
                if isinstance(event, Failed):
                    raise event.error
                yield event
    except ProviderError as failure:
        error = failure
        if failure.kind == "stall" and total_ms is not None and clock.boot_ms() - began_ms >= total_ms:
            error = _overdue(provider, total_ms)
        yield Failed(error=redactor.error(error))


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read the end of the body, which is mostly there already: only then can the connection be used again."""
    with anyio.move_on_after(_DRAIN_S):
        async for _ in chunks:
            pass


class _Reading:
    """One response: bytes in, provider events out."""

    def __init__(self, decoder: Decoder, provider: str) -> None:
        self._parser = EventStreamParser()
        self._decoder = decoder
        self._provider = provider
        self._silent = True
        self.finished = False

    def feed(self, chunk: bytes) -> Sequence[ProviderEvent]:
        return self._decoded(self._parser.feed(chunk))

    def close(self) -> Sequence[ProviderEvent]:
        """The end of the body: what the parser still had, then what the decoder concludes.

        A last line without its end counts where it can be decoded; where it cannot, it was cut.
        """
        unended = self._parser.unended
        events = self._decoded(self._parser.close(whole=True), cut=unended)
        if self.finished or (events and isinstance(events[-1], Failed)):
            return events
        if self._silent:
            raise ProviderError(
                f"{self._provider} ended its answer without a word; look at the provider's address",
                kind="no-finish",
                retryable=True,
            )
        return [*events, *self._decoder.close()]

    def rescued(self) -> Sequence[ProviderEvent]:
        """The end of an answer whose stop reason came before its stream broke; nothing if it had not."""
        try:
            events = () if self.finished else self.close()
        except ProviderError:
            return ()
        return events if events and isinstance(events[-1], Finish) else ()

    def _decoded(self, frames: list[ServerEvent], *, cut: bool = False) -> Sequence[ProviderEvent]:
        decoded: list[ProviderEvent] = []
        for frame in frames:
            self._silent = False
            try:
                decoded += self._decoder.feed(frame)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                if not cut:
                    decoded += self._broken(frame, error)
            if decoded and isinstance(decoded[-1], Failed | Finish):
                self.finished = True
                break
        return decoded

    def _broken(self, frame: ServerEvent, error: Exception) -> Sequence[ProviderEvent]:
        """A frame that cannot be read: the failure of an answer, unless the answer was over."""
        last = self._decoder.close()
        over = bool(last) and isinstance(last[-1], Finish)
        return last if over else [Failed(error=self._malformed(frame, error))]

    def _malformed(self, frame: ServerEvent, error: Exception) -> ProviderError:
        return ProviderError(
            f"{self._provider} sent a frame that its format does not know: {error}",
            kind="malformed-stream",
            retryable=True,
            body=frame.data[:_FRAME_SHOWN_MAX].decode("utf-8", "replace"),
        )


async def _refused(
    response: Response, provider: str, clock: Clock, left_ms: int | None
) -> ProviderError | None:
    """Why this response is no stream, if it is none. Some gateways answer 200 and mean an error."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    good = 200 <= response.status < 300
    if good and kind not in {"text/html", "application/json", "application/problem+json"}:
        return None
    bound_ms = _least(left_ms, ERROR_BODY_MS_MAX)
    try:
        with anyio.fail_after(None if bound_ms is None else bound_ms / 1000):
            body, _ = await response.body(ERROR_BYTES_MAX)
    except TimeoutError:
        return ProviderError(
            f"{provider} answered with HTTP {response.status} and did not end its words within {bound_ms} ms",
            kind="timeout",
            retryable=True,
            retry_after_ms=retry_after_ms(response.headers, clock.now_ms()),
            status=response.status,
            headers=response.headers,
        )
    if good and body.strip() and not _says_error(body):
        return ProviderError(
            f"{provider} answered with {kind} where a stream was expected; look at the provider's address",
            kind="malformed-stream",
            status=response.status,
            headers=response.headers,
            body=body.decode("utf-8", "replace"),
        )
    if good and not body.strip():
        return ProviderError(
            f"{provider} answered with an empty body",
            kind="no-finish",
            retryable=True,
            status=response.status,
        )
    return classify.of_response(
        response.status, response.headers, body, provider=provider, now_ms=clock.now_ms()
    )


def _says_error(body: bytes) -> bool:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return classify.is_error(decoded[0] if isinstance(decoded, list) and decoded else decoded)


def _least(one: int | None, other: int | None) -> int | None:
    return min((bound for bound in (one, other) if bound is not None), default=None)


def _overdue(provider: str, total_ms: int) -> ProviderError:
    return ProviderError(
        f"{provider} did not end its answer within {total_ms} ms", kind="timeout", retryable=True
    )
