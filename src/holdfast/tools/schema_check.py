"""Judges schemas of others, and values by them, off the event loop and in bounds.

What must stay true: a thread judges only what is known to be little work, since nothing can end it; all else
is judged by a process with a bound of processor time. No more processes at once than there are processors.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from holdfast.schema import typed
from holdfast.schema.wire import JsonMap
from holdfast.tools import schema_rules
from holdfast.tools.schema_rules import Task

WAIT_S: Final = 60.0
"""How long a check may take by the clock, with its turn in the queue."""
_SMALL: Final = 10_000_000
"""What a thread may judge: bytes of the schema times bytes of the value."""
_SCHEMAS_BYTES_MAX: Final = 32 * 1024
"""What a thread may judge of schemas alone: a second or so if they are made for it, else some hundredths."""

_slots: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("slots")


class Unjudged(Exception):
    """The check came to no end within its bounds: nothing is known of what was checked."""


async def value_problems(schema: JsonMap, value: Any, *, cpu_s: int) -> list[str]:
    """Where a value does not fit, the first few."""
    task = _task(schema, value, judges="value", cpu_s=cpu_s)
    size = len(msgspec.json.encode(schema)) * len(msgspec.json.encode(value))
    return await _judged(task, is_small=size <= _SMALL and schema_rules.is_plain(schema))


async def schema_problems(schema: JsonMap, *, cpu_s: int) -> list[str]:
    """Why it is no schema."""
    (found,) = await schemas_problems([schema], cpu_s=cpu_s)
    return [found] if found else []


async def schemas_problems(schemas: Sequence[JsonMap], *, cpu_s: int) -> list[str]:
    """Why each is no schema; empty for one that is. All of them together have the bound."""
    if not schemas:
        return []
    is_small = await anyio.to_thread.run_sync(_are_small, schemas)
    return await _judged(_task(list(schemas), None, judges="schemas", cpu_s=cpu_s), is_small=is_small)


def _are_small(schemas: Sequence[JsonMap]) -> bool:
    size = sum(len(msgspec.json.encode(schema)) for schema in schemas)
    return size <= _SCHEMAS_BYTES_MAX and all(map(schema_rules.is_quick, schemas))


def _task(schema: Any, value: Any, *, judges: schema_rules.Judges, cpu_s: int) -> Task:
    # Modules are found as here, but not in the current directory: that is the project's, not ours.
    places = [place for place in sys.path if place.startswith("/")]
    return Task(schema=schema, value=value, judges=judges, path=places, cpu_s=cpu_s)


async def _judged(task: Task, *, is_small: bool) -> list[str]:
    if is_small:
        return await anyio.to_thread.run_sync(schema_rules.problems, task)
    try:
        with anyio.fail_after(WAIT_S):
            async with _slot():
                done = await anyio.run_process(
                    [sys.executable, "-I", str(Path(schema_rules.__file__))],
                    input=msgspec.json.encode(task),
                    check=False,
                )
    except TimeoutError:
        raise Unjudged(f"the check took longer than {WAIT_S:.0f} s") from None
    except OSError as error:
        raise Unjudged(f"no process for the check could be started ({error.strerror})") from None
    if done.returncode:
        raise Unjudged(f"the check takes more than {task['cpu_s']} s, or too much memory")
    return typed.decode(done.stdout, list[str])


def _slot() -> anyio.CapacityLimiter:
    try:
        return _slots.get()
    except LookupError:
        made = anyio.CapacityLimiter(os.cpu_count() or 1)
        _slots.set(made)
        return made
