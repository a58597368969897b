"""What the runtime sees of a provider: a request goes in, events come out. Real and scripted ones fill it."""

from collections.abc import AsyncGenerator
from typing import Protocol

from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.request import Request


class Provider(Protocol):
    """Answers requests."""

    def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """The answer to a request. Trouble is the event `Failed`, and nothing follows it.

        Close the generator (`aclosing`) when leaving early: that ends the connection.
        """
