"""A process of the chaos tests: `-m tests.crash.chaos_worker URL LOG LEASE_MS`.

A line of JSON on standard input is an order, a line on standard output its answer; orders are worked on side
by side. Its tool writes a whole line to LOG before it does anything: an effect, which must be there once.
"""

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any

from holdfast.store import owner

URL, LOG, LEASE_MS = sys.argv[1], sys.argv[2], int(sys.argv[3])
owner.LEASE_MS, owner.RENEW_MS = LEASE_MS, LEASE_MS // 3  # Before anything else takes them by name.

import holdfast  # noqa: E402 - see above
from holdfast.app import Holdfast  # noqa: E402
from holdfast.errors import StoreBusy  # noqa: E402
from holdfast.store.open import open_store  # noqa: E402
from holdfast.toolkit.context import ToolContext  # noqa: E402
from holdfast.toolkit.declare import tool  # noqa: E402
from tests.orders import serve  # noqa: E402


@tool(name="bump")
async def bump(context: ToolContext, what: str, ms: int) -> str:
    """Have an effect."""
    log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"{what}\n".encode())
    os.close(log)
    await asyncio.sleep(ms / 1_000)
    return f"bumped {what}"


async def obey(hf: Holdfast, order: dict[str, Any]) -> Any:
    """Do what an order says."""
    session = order["session"]
    match order["do"]:
        case "prompt":
            admitted = await hf.sessions.prompt(session, order["text"], delivery=order["delivery"])
            return admitted.prompt.id
        case "note":
            return (await hf.sessions.prompt(session, order["text"], no_reply=True)).prompt.id
        case "fork":
            return (await hf.sessions.fork(session)).id
        case "compact":
            return await hf.sessions.compact(session, force=True)
        case "rename":
            return (await hf.sessions.rename(session, order["text"])).title
        case "resume":
            await hf.sessions.resume(session)
            return await hf.sessions.wait(session)
        case "interrupt":
            return await hf.sessions.interrupt(session)
        case _:
            raise AssertionError(order)


async def opened() -> Any:
    """The store can be opened; its server may be away for a while."""
    while True:
        try:
            await (await open_store(URL)).close()
        except StoreBusy:
            await asyncio.sleep(0.2)
        else:
            return holdfast.open(URL)


async def main() -> None:
    """Obey until the input ends; what is under way then ends with the process."""
    tasks: set[asyncio.Task[None]] = set()

    def start(work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async with await opened() as hf:
        hf.tools.register(bump)
        await serve(lambda order: obey(hf, order), start)


asyncio.run(main())
