"""Orders to a process of a test: lines of JSON on its standard input, and an answer to each on its output."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from holdfast.errors import HoldfastError


async def serve(
    obey: Callable[[dict[str, Any]], Awaitable[Any]], start: Callable[[Coroutine[Any, Any, None]], object]
) -> None:
    """Until the input ends; orders are worked on side by side, each in a task that `start` begins."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def work(order: dict[str, Any]) -> None:
        try:
            answer = {"ok": await obey(order)}
        except HoldfastError as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps({"number": order["number"], **answer}) + "\n")
        sys.stdout.flush()

    while line := await reader.readline():
        start(work(json.loads(line)))
