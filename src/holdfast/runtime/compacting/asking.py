"""Asks a model for one text, beside the conversation: no tools, nothing of it live, retried within bounds."""

import random
from contextlib import aclosing

import anyio
import msgspec

from holdfast.errors import ProviderError
from holdfast.provider.events import Failed, FinishReason, StepFinish, TextDelta
from holdfast.provider.request import Request
from holdfast.runtime import announcing, retrying
from holdfast.runtime.run import Run
from holdfast.runtime.surroundings import Surroundings
from holdfast.schema import usage
from holdfast.schema.usage import Tokens


class Said(msgspec.Struct, frozen=True):
    """What the model said, why it ended, and what it took."""

    text: str
    tokens: Tokens
    reason: FinishReason


async def ask(run: Run, around: Surroundings, request: Request) -> Said:
    """The model's text; a failure that does not pass is a `ProviderError`."""
    waited_ms = attempt = 0
    while True:
        attempt += 1
        said = await _once(run, around, request)
        if isinstance(said, Said):
            return said
        chance = random.random()  # noqa: S311 - a pause, not a secret
        wait_ms = retrying.wait_ms(
            said, attempt, waited_ms=waited_ms, random=chance, limits=run.engine.limits
        )
        if wait_ms is None:
            raise said
        waited_ms += wait_ms
        announcing.retry(
            run.engine.feed,
            run.recorder.session,
            attempt=attempt,
            message=str(said),
            next_ms=run.engine.clock.now_ms() + wait_ms,
        )
        await anyio.sleep(wait_ms / 1_000)
        announcing.busy(run.engine.feed, run.recorder.session)


async def _once(run: Run, around: Surroundings, request: Request) -> Said | ProviderError:
    pieces: list[str] = []
    tokens = usage.ZERO
    reason: FinishReason = "unknown"
    async with aclosing(run.provider(around).stream(request)) as events:
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
    return Said("".join(pieces).strip(), tokens, reason)
