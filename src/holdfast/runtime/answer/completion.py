"""One plain-text completion outside the conversation: no tools, nothing streamed to clients."""

import random
from contextlib import aclosing

import anyio
import msgspec

from holdfast.errors import ProviderError
from holdfast.provider.port import Provider
from holdfast.provider.request.events import Failed, FinishReason, StepFinish, TextDelta
from holdfast.provider.request.request import Request
from holdfast.runtime.answer import retry
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.run import Run
from holdfast.schema import usage
from holdfast.schema.usage import Tokens
from holdfast.workspace.workspace import Workspace


class Completion(msgspec.Struct, frozen=True):
    """The model's text, why it ended, and the tokens it took."""

    text: str
    tokens: Tokens
    reason: FinishReason


async def complete(provider: Provider, request: Request) -> Completion | ProviderError:
    """Ask the model once: its whole text, or why there is none."""
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


async def complete_with_retries(run: Run, workspace: Workspace, request: Request) -> Completion:
    """Ask until the model answers, within the bounds of `retry`; then raise the `ProviderError`.

    Clients are shown each wait as a retry of the session.
    """
    waited_ms = attempt = 0
    while True:
        attempt += 1
        result = await complete(run.provider(workspace), request)
        if isinstance(result, Completion):
            return result
        chance = random.random()  # noqa: S311 - a pause, not a secret
        wait_ms = retry.wait_ms(result, attempt, waited_ms=waited_ms, random=chance, limits=run.engine.limits)
        if wait_ms is None:
            raise result
        waited_ms += wait_ms
        status_events.retry(
            run.engine.feed,
            run.recorder.session,
            attempt=attempt,
            message=str(result),
            next_ms=run.engine.clock.now_ms() + wait_ms,
        )
        await anyio.sleep(wait_ms / 1_000)
        status_events.busy(run.engine.feed, run.recorder.session)
