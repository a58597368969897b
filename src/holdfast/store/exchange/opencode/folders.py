"""Reads the oldest layout: a folder for each session, `<id>/{meta.json, message/*.json, todo.json}`.

Its messages hold their content as a list: text, calls of tools, and, in messages of the role `tool`, their
results. Here a result settles the call that it answers; the outcome of a call without one is unknown.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from holdfast.store.exchange.opencode import derive
from holdfast.store.exchange.opencode.json_file import names, read_json
from holdfast.store.exchange.opencode.shape import mapping, number, spelt, text, whole
from holdfast.store.exchange.opencode.source import RawApproval, RawMessage, RawRecord, RawSession, Stub
from holdfast.store.exchange.portable.report import Tally

FINISH: Final = {"tool_use": "tool-calls", "end_turn": "stop", "max_tokens": "length"}
GLOBAL: Final = "global"


class Folders:
    """One `session` folder."""

    is_database = False
    made_ms: int | None = None

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def name(self) -> str:
        return f"session folders {self._root} (meta.json)"

    def projects(self, tally: Tally) -> Iterator[RawRecord]:
        return iter(())

    def approvals(self, tally: Tally) -> Iterator[RawApproval]:
        return iter(())

    def stubs(self, tally: Tally) -> list[Stub]:
        made = []
        for id in names(self._root):
            file = self._root / id / "meta.json"
            if not file.is_file():
                continue
            info = mapping(read_json(file).value)
            created = whole(mapping(info.get("time")).get("created"), 0) or None
            made.append(Stub(id, text(info.get("parentID")) or None, created, str(file)))
        return made

    def load(self, stub: Stub, tally: Tally) -> RawSession | None:
        folder = self._root / stub.id
        info = read_json(folder / "meta.json")
        info.id = stub.id
        snapshots = names(folder / "snapshot", ".json")
        if snapshots:
            what = f"{len(snapshots)} snapshots of session {stub.id}"
            why = "copies of files; snapshots are git trees here"
            tally.skip("snapshot", what, str(folder / "snapshot"), why)
        records = [read_json(folder / "message" / f"{id}.json") for id in names(folder / "message", ".json")]
        todo = folder / "todo.json"
        return RawSession(
            info,
            text(mapping(info.value).get("projectID")) or GLOBAL,
            _messages(records, tally),
            todos=read_json(todo) if todo.is_file() else None,
            ordered=True,
        )

    def leftovers(self, tally: Tally) -> None:
        """Nothing: everything stands in the folder of its session."""

    def close(self) -> None:
        """Nothing is open."""


def _messages(records: list[RawRecord], tally: Tally) -> list[RawMessage]:
    """The messages in order, the results put to their calls."""
    made: list[RawMessage] = []
    calls: dict[str, dict[str, Any]] = {}
    for record in sorted(records, key=_when):
        created = _when(record)[0]
        value = mapping(record.value)
        content = value.pop("content", None)
        items = (
            content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        )
        if value.get("role") == "tool":
            for item in items:
                _settle(mapping(item), calls, created, record, tally)
            continue
        parts: list[RawRecord] = []
        for index, item in enumerate(items):
            part = _part(mapping(item), created, calls)
            parts.append(RawRecord(derive.part_id(record.id, index, created), record.where, part))
        if record.problem is None:
            record.value = _info(value, created)
        record.created = created
        made.append(RawMessage(record, parts))
    return made


def _info(value: dict[str, Any], created: int) -> dict[str, Any]:
    """A message without its content, in the names of today."""
    if value.get("role") != "assistant":
        return value
    used = mapping(value.pop("usage", None))
    value.setdefault(
        "tokens", {"input": number(used.get("promptTokens")), "output": number(used.get("completionTokens"))}
    )
    reason = value.pop("finish_reason", None)
    if isinstance(reason, str):
        value.setdefault("finish", FINISH.get(reason, reason))
    # This layout had no mark for an answer that is done: what is recorded is done.
    time = mapping(value.get("time"))
    value["time"] = {**time, "completed": whole(time.get("completed"), created)}
    return value


def _part(item: dict[str, Any], created: int, calls: dict[str, dict[str, Any]]) -> dict[str, Any]:
    match item.get("type"):
        case "thinking" | "reasoning":
            span = {"start": created, "end": created}
            thought = text(item.get("text")) or text(item.get("thinking"))
            return {"type": "reasoning", "text": thought, "time": span}
        case "tool_use":
            state = {"status": "running", "input": item.get("input"), "time": {"start": created}}
            part = {"type": "tool", "callID": item.get("id"), "tool": item.get("name"), "state": state}
            if isinstance(item.get("id"), str):
                calls[item["id"]] = part
            return part
        case _:
            return item


def _settle(
    item: dict[str, Any], calls: dict[str, dict[str, Any]], at: int, record: RawRecord, tally: Tally
) -> None:
    """Put a result to its call. The part is the one that the message holds, so it changes there."""
    name = text(item.get("toolUseId")) or text(item.get("tool_use_id"))
    call = calls.get(name)
    if item.get("type") != "tool_result" or call is None or call["state"]["status"] != "running":
        why = f"no open call {name[:40]!r} stands before it"
        tally.skip("part", f"a result in message {record.id}", record.where, why)
        return
    state = call["state"]
    state["time"] = {"start": state["time"]["start"], "end": at}
    result = spelt(item.get("result", item.get("content")))
    if item.get("isError") is True or item.get("is_error") is True:
        state |= {"status": "error", "error": result}
    else:
        state |= {"status": "completed", "output": result, "title": "", "metadata": {}}


def _when(record: RawRecord) -> tuple[int, str]:
    return whole(mapping(mapping(record.value).get("time")).get("created"), 0), record.id
