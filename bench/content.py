"""Messages like real ones: an answer's info, a text of 500 bytes, a tool call with 2 KB of output."""

import inspect
import random
import textwrap

import msgspec

from holdfast.clock import SystemClock
from holdfast.schema.ids import Mint
from holdfast.schema.stored import HEADS
from holdfast.store.batch import Put

MINT = Mint(SystemClock())
SOURCE = inspect.getsource(textwrap) + inspect.getsource(random)


def session_put(id: str, n: int = 0, title: str = "A bench session") -> Put:
    """A session; `n` moves its time."""
    info = {
        "slug": "calm-otter",
        "projectID": f"project{n % 20}",
        "directory": f"/work/app{n % 20}",
        "path": "",
        "cost": 0,
        "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        "title": title,
        "version": "0.1.0",
        "time": {"created": 1_780_000_000_000 + n, "updated": 1_780_000_000_000 + n},
    }
    return Put(id, "session", id, msgspec.json.encode(info))


def message_puts(
    session: str, n: int, chance: random.Random, *, varied: bool = False
) -> tuple[Put, Put, Put]:
    """One message with a text and a tool part, cut from real source code."""
    id = MINT.ascending("msg")
    text_size = int(chance.lognormvariate(6.0, 0.8)) if varied else 500
    tool_size = int(chance.lognormvariate(7.2, 1.0)) if varied else 2000
    info = {
        "role": "assistant",
        "time": {"created": 1_780_000_000_000 + n, "completed": 1_780_000_000_100 + n},
        "parentID": id,
        "modelID": "claude-sonnet",
        "providerID": "anthropic",
        "mode": "build",
        "agent": "build",
        "path": {"cwd": "/work/app", "root": "/work/app"},
        "cost": 0.0123,
        "tokens": {"input": 12, "output": 345, "reasoning": 0, "cache": {"read": 6789, "write": 10}},
        "finish": "tool-calls",
    }
    text = {"type": "text", "text": _cut(chance, text_size), "time": {"start": 1, "end": 2}}
    tool = {
        "type": "tool",
        "callID": f"toolu_{n:020d}",
        "tool": "read",
        "state": {
            "status": "completed",
            "input": {"filePath": f"/work/app/src/module_{n}.py"},
            "output": _cut(chance, tool_size),
            "title": f"src/module_{n}.py",
            "metadata": {"preview": ""},
            "time": {"start": 1, "end": 2},
        },
    }
    encode = msgspec.json.encode
    return (
        Put(session, "message", id, encode(info)),
        Put(session, "part", MINT.ascending("prt"), encode(text), id),
        Put(session, "part", MINT.ascending("prt"), encode(tool), id),
    )


def wire_bytes(put: Put) -> int:
    """The size of a record's wire JSON, ids included: what counts as content."""
    return len(put.data) + sum(len(f'"{name}":"",') + 30 for name in HEADS[put.kind])


def _cut(chance: random.Random, size: int) -> str:
    start = chance.randrange(len(SOURCE))
    return (SOURCE[start:] + SOURCE * (1 + size // len(SOURCE)))[:size]
