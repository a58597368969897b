"""Records for the contract tests, as small as they may be, with their JSON written out."""

from typing import Any

import msgspec

from holdfast.schema.stored import Kind, Mark
from holdfast.store.batch import Put
from holdfast.store.record import StoredRecord

TAIL = "A" * 14
S1 = f"ses_{1:012x}{TAIL}"
S2 = f"ses_{2:012x}{TAIL}"
S3 = f"ses_{3:012x}{TAIL}"
NONE = f"ses_{0xDEAD:012x}{TAIL}"
"""A session that no test creates."""


def ses(n: int) -> str:
    """A session id."""
    return f"ses_{n:012x}{TAIL}"


def msg(n: int) -> str:
    """A message id; a greater number is a greater id."""
    return f"msg_{n:012x}{TAIL}"


def prt(n: int) -> str:
    """A part id, comparable with message ids by its body."""
    return f"prt_{n:012x}{TAIL}"


def body(n: int) -> str:
    """The body of `msg(n)` and `prt(n)`."""
    return f"{n:012x}{TAIL}"


def encode(value: object) -> bytes:
    return msgspec.json.encode(value)


def session(
    id: str = S1,
    *,
    title: str = "A session",
    project: str = "global",
    directory: str = "/work/app",
    path: str | None = None,
    parent: str | None = None,
    slug: str = "calm-otter",
    placement: str | None = "here",
    updated: int = 1000,
    archived: float | None = None,
    **more: Any,
) -> Put:
    """Create or replace a session."""
    time: dict[str, object] = {"created": 1000, "updated": updated}
    if archived is not None:
        time["archived"] = archived
    info: dict[str, object] = {
        "slug": slug,
        "projectID": project,
        "directory": directory,
        "title": title,
        "version": "1",
        "time": time,
        **more,
    }
    optional = {"path": path, "parentID": parent, "placement": placement}
    info |= {name: value for name, value in optional.items() if value is not None}
    return Put(id, "session", id, encode(info))


def user(
    n: int, *, session: str = S1, agent: str = "build", mark: Mark = Mark.NONE, placed: bool = False
) -> Put:
    """A user's message."""
    info = {
        "role": "user",
        "time": {"created": 1000},
        "agent": agent,
        "model": {"providerID": "scripted", "modelID": "m"},
    }
    return Put(session, "message", msg(n), encode(info), mark=mark, placed=placed)


def assistant(
    n: int, parent: int, *, session: str = S1, mark: Mark = Mark.NONE, summary: bool = False
) -> Put:
    """A model's message; a finished compaction's summary carries its mark."""
    info: dict[str, object] = {
        "role": "assistant",
        "time": {"created": 1000},
        "parentID": msg(parent),
        "modelID": "m",
        "providerID": "scripted",
        "mode": "build",
        "agent": "build",
        "path": {"cwd": "/work/app", "root": "/work/app"},
        "cost": 0,
        "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    }
    if summary:
        info["summary"] = True
        mark = Mark.SUMMARY
    return Put(session, "message", msg(n), encode(info), mark=mark)


def part(n: int, message: int, data: dict[str, object], *, session: str = S1, mark: Mark = Mark.NONE) -> Put:
    """A part of any kind."""
    return Put(session, "part", prt(n), encode(data), msg(message), mark)


def text(n: int, message: int, words: str = "hello", *, session: str = S1, mark: Mark = Mark.NONE) -> Put:
    """A text part."""
    return part(n, message, {"type": "text", "text": words}, session=session, mark=mark)


def tool(n: int, message: int, *, input: dict[str, object], output: str = "", title: str = "") -> Put:
    """A completed tool call."""
    state = {
        "status": "completed",
        "input": input,
        "output": output,
        "title": title,
        "metadata": {},
        "time": {"start": 1, "end": 2},
    }
    return part(n, message, {"type": "tool", "callID": f"call{n}", "tool": "bash", "state": state})


def compaction(n: int, message: int, *, tail: int | None = None) -> Put:
    """The part that asks for a compaction, naming the message from which the tail was kept."""
    data: dict[str, object] = {"type": "compaction", "auto": False}
    if tail is not None:
        data["tail_start_id"] = msg(tail)
    return part(n, message, data)


def record(
    session: str, kind: Kind, id: str, value: object, *, mark: Mark = Mark.NONE, parent: str | None = None
) -> Put:
    """A record of any kind with any JSON."""
    return Put(session, kind, id, encode(value), parent, mark)


def prompt(n: int, *, session: str = S1, waiting: bool = True) -> Put:
    """A prompt in the inbox; `waiting` until it is promoted."""
    value = {"text": f"prompt {n}"}
    return record(session, "prompt", msg(n), value, mark=Mark.OPEN if waiting else Mark.NONE)


def shown(stored: StoredRecord | None) -> dict[str, object] | None:
    """A record as a value to be compared, whole; its JSON by content, since backends format it."""
    if stored is None:
        return None
    fields = {name: getattr(stored, name) for name in stored.__struct_fields__}
    return fields | {"data": msgspec.json.decode(stored.data) if stored.data else None}


def expected(
    put: Put, *, position: int, seq: int | None = None, place: int | None = None
) -> dict[str, object]:
    """What `shown` must return for a record that was put."""
    return {
        "session": put.session,
        "kind": put.kind,
        "id": put.id,
        "parent": put.parent,
        "position": position,
        "seq": position if seq is None else seq,
        "place": position if place is None else place,
        "mark": put.mark,
        "data": msgspec.json.decode(put.data),
    }
