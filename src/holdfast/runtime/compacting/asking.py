"""Asks a model for a summary: tried again within bounds, while those who listen see why it takes longer."""

import random

import anyio

from holdfast.provider.request import Request
from holdfast.runtime import announcing, retrying
from holdfast.runtime.run import Run
from holdfast.runtime.saying import Said, said
from holdfast.runtime.surroundings import Surroundings


async def ask(run: Run, around: Surroundings, request: Request) -> Said:
    """The model's text; a failure that does not pass is a `ProviderError`."""
    waited_ms = attempt = 0
    while True:
        attempt += 1
        heard = await said(run.provider(around), request)
        if isinstance(heard, Said):
            return heard
        chance = random.random()  # noqa: S311 - a pause, not a secret
        wait_ms = retrying.wait_ms(
            heard, attempt, waited_ms=waited_ms, random=chance, limits=run.engine.limits
        )
        if wait_ms is None:
            raise heard
        waited_ms += wait_ms
        announcing.retry(
            run.engine.feed,
            run.recorder.session,
            attempt=attempt,
            message=str(heard),
            next_ms=run.engine.clock.now_ms() + wait_ms,
        )
        await anyio.sleep(wait_ms / 1_000)
        announcing.busy(run.engine.feed, run.recorder.session)
