"""Follows a session until it rests, and lets Ctrl-C interrupt it: cleanly, or the second time at once."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from holdfast.cli.output import note
from holdfast.cli.running.printer import Printer
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.app import Holdfast

DONE, FAILED, DENIED, INTERRUPTED = 0, 1, 3, 130
LINGER_S = 0.3
"""What was told last may still be on its way when the session rests."""


async def follow(hf: "Holdfast", session: str, begin: Callable[[], Awaitable[object]], form: str) -> int:
    """Begin, show everything until the session is idle, and answer the exit code."""
    printer = Printer(silent=form == "json")
    cursor = await hf.store.head()
    await begin()
    stopped = False
    trouble: HoldfastError | None = None
    async with anyio.create_task_group() as group:

        async def rest() -> None:
            """End when nobody runs the session: `idle` is told by the process that ran it alone."""
            nonlocal trouble
            try:
                await hf.sessions.wait(session)
            except HoldfastError as error:
                trouble = error
            await anyio.sleep(LINGER_S)
            group.cancel_scope.cancel()

        async def interrupts() -> None:
            nonlocal stopped
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    if stopped:  # What is stored is stored; nobody has to wait for the rest.
                        os._exit(INTERRUPTED)
                    stopped = True
                    note("Interrupting; once more ends at once.")
                    group.start_soon(hf.sessions.interrupt, session)

        group.start_soon(interrupts)
        group.start_soon(rest)
        async for frames in hf.feed.follow(cursor, session=session):
            for frame in frames:
                if form == "json":
                    sys.stdout.buffer.write(frame.json() + b"\n")
                    sys.stdout.buffer.flush()
                printer.hear(frame)
            if any(frame.type == "session.idle" for frame in frames):
                break
        group.cancel_scope.cancel()
    if trouble is not None:
        raise trouble
    if stopped:
        note(f"Interrupted. `holdfast run --session {session} …` goes on.")
        return INTERRUPTED
    if printer.error is not None:
        note(printer.error)
        return FAILED
    return DENIED if printer.denied else DONE
