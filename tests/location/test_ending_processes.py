"""Programs that were let go, and are waited for at the end."""

import subprocess
from typing import Any

import anyio

from holdfast.location.ending_processes import EndingProcesses


async def program(*command: str) -> Any:
    return await anyio.open_process(command, stdin=subprocess.DEVNULL)


async def test_closing_waits_for_each_end() -> None:
    """Also for that of a program which ends only while it is waited for."""
    ending = EndingProcesses()
    first, second = await program("true"), await program("sleep", "600")
    ending.add(first)
    ending.add(second)
    async with anyio.create_task_group() as group:
        group.start_soon(ending.close)
        await first.wait()
        second.kill()

    assert (first.returncode, second.returncode) == (0, -9)


async def test_who_has_ended_is_forgotten() -> None:
    """A process that lives for weeks has let thousands go."""
    ending = EndingProcesses()
    for _ in range(3):
        each = await program("true")
        ending.add(each)
        await each.wait()
    lasting = await program("sleep", "600")
    ending.add(lasting)

    assert ending._running == [lasting]
    lasting.kill()
    await ending.close()
