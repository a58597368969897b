"""Random prompts, interrupts, resumes, kill -9 and SIGSTOP over several processes, and races without
them, on every engine.

CHAOS_S and CHAOS_SEED (the environment) choose how long, and which way. The seed and the figures are printed.
"""

import contextlib
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
import asyncpg
import pytest

from tests.crash.chaos import RACES, Chaos, Model
from tests.store.postgres.server import begin, restart
from tests.stories.processes import Place

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("CHAOS_S", "60"))
Trouble = Callable[[random.Random], Awaitable[str | None]]


@contextlib.asynccontextmanager
async def engine(name: str, tmp_path: Path) -> AsyncIterator[tuple[str, Trouble]]:
    """The URL of an empty store, and what may happen to its server."""

    async def none(_: random.Random) -> None:
        return None

    if name == "sqlite":
        yield f"sqlite://{tmp_path}/store.db", none
    elif name == "files":
        yield f"file://{tmp_path}/tree", none
    else:
        server = begin()
        try:
            yield f"{server.get_uri()}&schema=chaos", trouble_of(server)
        finally:
            server.cleanup()


def trouble_of(server: Any) -> Trouble:
    """Backends that are ended at random, and now and then a restart of the server."""

    async def trouble(chance: random.Random) -> str | None:
        if chance.random() < 0.15:
            mode = chance.choice(("fast", "immediate"))
            await anyio.to_thread.run_sync(restart, server, mode)
            return f"restart {mode}"
        other = await asyncpg.connect(server.get_uri())
        await other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'holdfast' AND random() < 0.4"
        )
        await other.close()
        return "terminate"

    return trouble


@pytest.mark.parametrize("name", ["sqlite", "files", "postgres"])
async def test_nothing_is_lost_doubled_or_left_open(name: str, tmp_path: Path) -> None:
    """What was acknowledged is there, every effect once, every call settled, followers equal to the store."""
    seed = int(os.environ.get("CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"chaos on {name}, seed {seed}, {SECONDS:.0f} s")  # noqa: T201 - a failure is repeated by it
    async with Model() as mock, engine(name, tmp_path) as (url, trouble):
        place = Place(tmp_path, mock)
        place.url = url
        chaos = Chaos(place, mock, seed)
        await chaos.run(SECONDS, trouble)
        await chaos.settle()
        print(await chaos.check())  # noqa: T201 - the figures


@pytest.mark.parametrize("name", ["sqlite", "files", "postgres"])
async def test_what_is_asked_for_side_by_side_is_done_or_refused(name: str, tmp_path: Path) -> None:
    """Prompts, notes, interrupts, forks, compactions and new names from three processes at once. Nothing but
    a plain refusal is answered, no other answer fails, and every law of the chaos holds.
    """
    seed = int(os.environ.get("CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"races on {name}, seed {seed}, {SECONDS:.0f} s")  # noqa: T201 - a failure is repeated by it
    async with Model() as mock, engine(name, tmp_path) as (url, trouble):
        place = Place(tmp_path, mock)
        place.url = url
        chaos = Chaos(place, mock, seed)
        await chaos.run(SECONDS, trouble, RACES)
        await chaos.rest()
        await chaos.settle()
        print(await chaos.check())  # noqa: T201 - the figures
        plain = "Refused:", "Conflict:", "InvalidInput: session ses_… has nothing to compact"
        assert [each for each in chaos.refused if not each.startswith(plain)] == []
        # Another compaction may have ended first: then there is nothing left to do for the second.
        ended = "MessageAbortedError", "would not make the request shorter", "nothing to summarise"
        assert [fault for fault in chaos.faults if not any(each in fault for each in ended)] == []


@pytest.mark.parametrize("name", ["sqlite", "files", "postgres"])
async def test_prompts_of_two_processes_into_one_session_are_all_answered(name: str, tmp_path: Path) -> None:
    """Fifty at once, each with a call: none is refused, no turn fails, every effect is there once."""
    async with Model() as mock, engine(name, tmp_path) as (url, _):
        place = Place(tmp_path, mock)
        place.url = url
        chaos = Chaos(place, mock, 0)
        await chaos.crowd(prompts=50)
        await chaos.settle()
        print(await chaos.check())  # noqa: T201 - the figures
        assert chaos.refused == {}
        assert chaos.faults == []
