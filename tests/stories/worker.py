"""A process that works on a store as it is told: `-m tests.stories.worker URL LOG GATE LEASE_MS`.

A line of JSON on standard input is an order, a line on standard output its answer. Its tools write to LOG
when they begin and end, and wait in between until GATE exists. LEASE_MS shortens the lease (0 leaves it).
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from holdfast.store import owner

URL, LOG, GATE, LEASE_MS = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
if LEASE_MS:  # Before anything else takes them by name.
    owner.LEASE_MS, owner.RENEW_MS = LEASE_MS, LEASE_MS // 3

import holdfast  # noqa: E402 - see above
from holdfast.app import Holdfast  # noqa: E402
from holdfast.schema.session import Session  # noqa: E402
from holdfast.store.batch import Batch, Fence  # noqa: E402
from holdfast.store.put import put  # noqa: E402
from holdfast.toolkit.context import ToolContext  # noqa: E402
from holdfast.toolkit.declare import Tool, tool  # noqa: E402
from tests.orders import serve  # noqa: E402
from tests.stories import inside  # noqa: E402


def log(word: str, what: str) -> None:
    """One whole line, on disk or not at all."""
    with LOG.open("a") as file:
        file.write(f"{os.getpid()} {word} {what}\n")


def slow(name: str, *, repeatable: bool) -> Tool:
    """A tool that can be caught while it runs."""

    @tool(name=name, repeatable=repeatable)
    async def run(context: ToolContext, what: str) -> str:
        """Do something slowly."""
        await context.ask(name, [what], always=["*"], metadata={})
        log("begin", what)
        while not GATE.exists():
            await asyncio.sleep(0.005)
        log("end", what)
        return f"did {what}"

    return run


@tool(name="program", repeatable=True)
async def program(context: ToolContext, what: str) -> str:
    """Run a program that does not end by itself; `stubborn` ones do not mind being asked to."""
    script = "trap '' TERM; sleep 300 & wait; wait" if what == "stubborn" else "sleep 300 & wait"
    async with context.spawn(["sh", "-c", script]) as process:
        log("begin", str(process.pid))
        await process.wait()
    return "it ended by itself"


class Attached:
    """A person sees every question."""

    def attached(self, session: Session) -> bool:
        return True


fences: dict[str, Fence] = {}
shells: list[asyncio.Task[Any]] = []


async def obey(hf: Holdfast, order: dict[str, Any]) -> Any:
    """Do what an order says."""
    session = order.get("session", "")
    match order["do"]:
        case "create":
            return (await hf.sessions.create(directory=order["directory"], title="A story")).id
        case "prompt":
            return (await hf.sessions.prompt(session, order["text"])).prompt.id
        case "resume":
            return await hf.sessions.resume(session)
        case "wait":
            return await hf.sessions.wait(session)
        case "interrupt":
            return await hf.sessions.interrupt(session)
        case "shell":  # It is not waited for.
            shells.append(asyncio.create_task(hf.sessions.shell(session, order["command"])))
            return None
        case "requests":
            return [each.id for each in await hf.sessions.requests(session)]
        case "reply":
            await hf.sessions.reply(session, order["request"], order["reply"])
            return None
        case "keep fence":
            entry = inside.running(hf, session)
            assert entry.run is not None
            fences[session] = entry.run.recorder.fence
            return None
        case "write late":
            value = await hf.sessions.get(session)
            await hf.store.commit(Batch((put(value),), fence=fences[session]))
            return None
        case "active":
            return inside.coordinator(hf).active()
        case "busy":
            record = await hf.store.session(session)
            return record is not None and record.busy
        case other:
            raise AssertionError(other)


async def main() -> None:
    """Obey until the input ends, and then until all is done."""
    async with holdfast.open(URL, presence=Attached()) as hf, asyncio.TaskGroup() as group:
        hf.tools.register(slow("slow", repeatable=False))
        hf.tools.register(slow("again", repeatable=True))
        hf.tools.register(program)
        await serve(lambda order: obey(hf, order), group.create_task)


asyncio.run(main())
