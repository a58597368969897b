"""Asks a model for a summary: tried again within bounds, while those who listen see why it takes longer."""

import random

import anyio

from holdfast.provider.request.request import Request
from holdfast.runtime.answer import retry
from holdfast.runtime.answer.completion import Completion, said
from holdfast.runtime.engine import status_events
from holdfast.runtime.engine.run import Run
from holdfast.workspace.workspace import Workspace


async def ask(run: Run, workspace: Workspace, request: Request) -> Completion:
    """The model's text; a failure that does not pass is a `ProviderError`."""
    waited_ms = attempt = 0
    while True:
        attempt += 1
        heard = await said(run.provider(workspace), request)
        if isinstance(heard, Completion):
            return heard
        chance = random.random()  # noqa: S311 - a pause, not a secret
        wait_ms = retry.wait_ms(heard, attempt, waited_ms=waited_ms, random=chance, limits=run.engine.limits)
        if wait_ms is None:
            raise heard
        waited_ms += wait_ms
        status_events.retry(
            run.engine.feed,
            run.recorder.session,
            attempt=attempt,
            message=str(heard),
            next_ms=run.engine.clock.now_ms() + wait_ms,
        )
        await anyio.sleep(wait_ms / 1_000)
        status_events.busy(run.engine.feed, run.recorder.session)
