"""Hears one text from a model, beside the conversation: no tools, and nothing of it is live."""

from contextlib import aclosing

import msgspec

from holdfast.errors import ProviderError
from holdfast.provider.port import Provider
from holdfast.provider.request.events import Failed, FinishReason, StepFinish, TextDelta
from holdfast.provider.request.request import Request
from holdfast.schema import usage
from holdfast.schema.usage import Tokens


class Completion(msgspec.Struct, frozen=True):
    """What the model said, why it ended, and what it took."""

    text: str
    tokens: Tokens
    reason: FinishReason


async def said(provider: Provider, request: Request) -> Completion | ProviderError:
    """What the model says to the end, or why it could not."""
    pieces: list[str] = []
    tokens = usage.ZERO
    reason: FinishReason = "unknown"
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text=text):
                    pieces.append(text)
                case StepFinish():
                    tokens = usage.add(tokens, event.tokens)
                    reason = event.reason
                case Failed(error=error):
                    return error
                case _:
                    pass
    return Completion("".join(pieces).strip(), tokens, reason)
