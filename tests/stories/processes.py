"""Real processes on one store, and a provider on loopback that they all ask."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import anyio

from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.part import ToolPart
from holdfast.sessions import read
from holdfast.sessions.access import StoreAccess
from holdfast.store.base import Store
from holdfast.store.open import open_store
from holdfast.store.query import MessageQuery
from holdfast.testing.mock_provider import MockProvider, Received

PATIENCE_S = 60.0
LEASE_MS = 60_000
"""No process loses it, however long the machine stalls."""
SHORT_LEASE_MS = 9_000
"""For stories that wait for its end: long enough that a stall before it does not end it."""


class Place:
    """A person's home, a project, a store, and the files by which tools are watched and held."""

    def __init__(self, tmp_path: Path, mock: MockProvider) -> None:
        self.home, self.project = tmp_path / "home", tmp_path / "project"
        self.log, self.gate = tmp_path / "log", tmp_path / "gate"
        self.url = f"sqlite://{tmp_path}/store.db"
        self.project.mkdir()
        self.log.touch()
        (self.home / ".config/holdfast").mkdir(parents=True)
        self._mock = mock
        self.settings()

    def settings(self, **more: Any) -> None:
        """One provider, no titles, every tool allowed; and what a story adds."""
        entry = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{self._mock.url}/v1", "apiKey": "sk-mock"},
            "models": {"m": {"limit": {"context": 1_000_000, "output": 8_000}}},
        }
        values = {
            "model": "acme/m",
            "provider": {"acme": entry},
            "agent": {"title": {"disable": True}},
            "permission": {"*": "allow"},
            **more,
        }
        (self.home / ".config/holdfast/holdfast.json").write_text(json.dumps({"snapshot": False, **values}))

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HOLDFAST_STORE": self.url,
            "HOLDFAST_FAKE_VCS": "git",
        }

    def lines(self, word: str) -> list[tuple[int, str]]:
        """What the tools wrote: process and what, of one word."""
        split = [line.split(" ", 2) for line in self.log.read_text().splitlines()]
        return [(int(pid), what) for pid, said, what in split if said == word]

    async def messages(self, session: str) -> tuple[MessageWithParts, ...]:
        """The session as it is on disk."""
        async with self.opened() as store:
            return await messages(store, session)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        """The store, only to look at it."""
        store = await open_store(self.url, create=False)
        try:
            yield store
        finally:
            await store.close()

    async def command(self, *arguments: str) -> tuple[int, str, str]:
        """Run `holdfast` to its end: code, output, errors."""
        process = await self.start(*arguments)
        with anyio.fail_after(PATIENCE_S):
            out, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """Run `holdfast`."""
        return await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("holdfast")),
            *arguments,
            cwd=self.project,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )


async def messages(store: Store, session: str) -> tuple[MessageWithParts, ...]:
    """The messages of a session."""
    room = StoreAccess(store, None, None, None)  # type: ignore[arg-type]
    return (await read.messages(room, MessageQuery(session))).messages


class Worker:
    """A process of ours that does what it is told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._number = 0
        self.pid = process.pid

    @classmethod
    async def start(cls, place: Place, *, lease_ms: int = 0) -> Self:
        """A new process on the store."""
        arguments = [place.url, place.log, place.gate, lease_ms]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.stories.worker"),
            *map(str, arguments),
            cwd=Path(__file__).parents[2],
            env=place.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return cls(process)

    async def do(self, what: str, **more: Any) -> Any:
        """Give an order and hear its answer; an error is an `AssertionError`."""
        answer = await self.ask(what, **more)
        assert "error" not in answer, answer
        return answer["ok"]

    async def ask(self, what: str, **more: Any) -> dict[str, Any]:
        """Give an order and hear its answer: `ok`, or `error`."""
        self._number += 1
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"number": self._number, "do": what, **more}).encode() + b"\n")
        with anyio.fail_after(PATIENCE_S):
            line = await self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line)
        assert answer["number"] == self._number
        return answer

    def signal(self, number: signal.Signals) -> None:
        """Stop, go on, or die."""
        self._process.send_signal(number)

    async def kill(self) -> None:
        """As by the out-of-memory killer."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def end(self) -> int:
        """Let it close in order; its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with anyio.fail_after(PATIENCE_S):
            return await self._process.wait()


def problems(request: Received) -> list[str]:
    """What a strict provider would refuse in a request: calls that are not paired with one answer each."""
    found: list[str] = []
    owed: list[str] = []
    spoken = [message for message in request.json["messages"] if message["role"] != "system"]
    if spoken and spoken[0]["role"] != "user":
        found.append("the first to speak is not the person")
    seen: set[str] = set()
    for message in spoken:
        if message["role"] == "tool":
            if message["tool_call_id"] not in owed:
                found.append(f"an answer to {message['tool_call_id']}, which nobody called")
            else:
                owed.remove(message["tool_call_id"])
            continue
        if owed:
            found.append(f"no answer to {owed}")
        owed = [call["id"] for call in message.get("tool_calls") or ()]
        if seen & set(owed):
            found.append(f"used twice: {seen & set(owed)}")
        seen |= set(owed)
    if owed:
        found.append(f"no answer to {owed}")
    return found


def calls(history: tuple[MessageWithParts, ...]) -> dict[str, ToolPart]:
    """The calls of a session, by their id."""
    return {part.call_id: part for each in history for part in each.parts if isinstance(part, ToolPart)}


def left_open(history: tuple[MessageWithParts, ...]) -> list[str]:
    """Messages, texts and calls that are not at their end."""
    found: list[str] = []
    for message in history:
        if isinstance(message.info, AssistantMessage) and message.info.time.completed is None:
            found.append(message.info.id)
        for part in message.parts:
            if isinstance(part, ToolPart):
                found += [part.id] if part.state.__struct_config__.tag in ("pending", "running") else []
            elif getattr(getattr(part, "time", None), "end", 0) is None:
                found.append(part.id)
    return found
