"""Streams from a local model: starts its server if need be, and says so plainly when it dies.

What `provider/wire/stream.py` is for every other endpoint; one that is not ours passes straight through.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from holdfast.clock import Clock
from holdfast.errors import HoldfastError, ProviderError
from holdfast.net.stream import Http
from holdfast.provider.local.server import LocalServers
from holdfast.provider.request.events import Failed, ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.provider.wire import stream as shell
from holdfast.provider.wire.wire import Adapter, Endpoint


async def stream(
    http: Http, adapter: Adapter, request: Request, endpoint: Endpoint, clock: Clock, *, servers: LocalServers
) -> AsyncGenerator[ProviderEvent, None]:
    """One request and what the model answers. Trouble is the event `Failed`, and nothing follows it."""
    try:
        endpoint = await servers.endpoint(request.model, endpoint)
    except ProviderError as error:
        yield Failed(error=error)
        return
    except HoldfastError as error:
        yield Failed(error=ProviderError(str(error), kind="unsupported"))
        return
    async with aclosing(shell.stream(http, adapter, request, endpoint, clock)) as events:
        async for event in events:
            if isinstance(event, Failed):
                yield Failed(error=await servers.explained(request.model, event.error))
                return
            yield event
