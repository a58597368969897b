"""A process that works for long stays as it was: memory, files, sockets, threads and tasks."""

import asyncio
import gc
from pathlib import Path

import anyio
import msgspec
import psutil
import pytest

import holdfast
from holdfast.app import Holdfast
from holdfast.testing.mock_provider import Call, MockProvider, Received, Reply, Say
from tests.stories.processes import Place

pytestmark = pytest.mark.long

SESSIONS, TURNS, BLOCK = 20, 1_000, 200
MEMORY_MAX_BYTES = 4 * 1024 * 1024
"""800 turns more may cost this much: pages of SQLite's caches and the allocator's, not 5 KB a turn."""


class Held(msgspec.Struct, frozen=True):
    """What a process holds."""

    memory_bytes: int
    files: int
    sockets: int
    threads: int
    tasks: int


def held() -> Held:
    """What this process holds now."""
    gc.collect()
    process = psutil.Process()
    return Held(
        process.memory_info().rss,
        process.num_fds(),
        len(process.net_connections()),
        process.num_threads(),
        len(asyncio.all_tasks()),
    )


async def work(hf: Holdfast, mock: MockProvider, place: Place, turns: int) -> int:
    """Prompt 20 new sessions in turn, five at a time; how many messages that made.

    New ones, so that what a longer history costs is not taken for a leak. Each prompt takes a step with a
    call and one without.
    """
    sessions = [
        (await hf.sessions.create(directory=place.project, title="A story")).id for _ in range(SESSIONS)
    ]
    for first in range(0, turns, 5):
        async with anyio.create_task_group() as group:
            for number in range(first, first + 5):
                group.start_soon(hf.sessions.process, sessions[number % SESSIONS], f"prompt {number}")
        mock.requests.clear()
    return sum([len((await hf.sessions.messages(each)).messages) for each in sessions])


class Alternating(MockProvider):
    """Calls a tool when it hears a person, and ends when it hears the tool."""

    async def _answer(
        self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        heard_tool = received.json["messages"][-1]["role"] == "tool"
        number = len(received.json["messages"])
        call = Call("read", {"filePath": "a.txt"}, id=f"call_{number}")
        self.play(Reply((Say("Done."),)) if heard_tool else Reply((call,)))
        return await super()._answer(received, reader, writer)


async def test_a_thousand_turns_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over real HTTP, on 20 sessions at a time: after 1,000 turns it holds what it held after 200."""
    async with Alternating() as mock:
        place = Place(tmp_path, mock)
        (place.project / "a.txt").write_text("text of a\n")
        monkeypatch.setenv("HOME", str(place.home))
        async with holdfast.open(place.url) as hf:
            said = await work(hf, mock, place, BLOCK)
            warm = held()
            for _ in range(TURNS // BLOCK - 1):
                said += await work(hf, mock, place, BLOCK)
            done = held()
        assert mock.unexpected == []

    assert said == 3 * TURNS
    assert done.memory_bytes - warm.memory_bytes < MEMORY_MAX_BYTES, (warm, done)
    # Connections come and go: a few more or fewer are in the pool at any moment.
    assert done.sockets <= warm.sockets + 4, (warm, done)
    assert done.files <= warm.files + 4, (warm, done)
    assert done.threads <= warm.threads + 2, (warm, done)
    assert done.tasks <= warm.tasks + 4, (warm, done)
