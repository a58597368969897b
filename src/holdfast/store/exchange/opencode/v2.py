"""Translates messages of OpenCode's second runtime (table `session_message`) into messages with parts.

Only sessions that the first runtime knows nothing of are read from here. A message of that runtime is one
record that holds its content; ids for the parts are derived from it.
"""

from collections.abc import Iterable
from typing import Any, Final

from holdfast.store.exchange.opencode import derive
from holdfast.store.exchange.opencode.mend_message import AGENT
from holdfast.store.exchange.opencode.shape import mapping, number, spelt, text, tokens, whole
from holdfast.store.exchange.opencode.source import RawMessage, RawRecord
from holdfast.store.exchange.portable.report import Tally

SWITCHES: Final = ("agent-switched", "model-switched")
COMPACTED: Final = "Earlier messages were compacted into this summary:"


class Translation:
    """Walks a session's messages in order, and remembers who was being talked to."""

    def __init__(self, agent: str, model: Any, tally: Tally) -> None:
        self._agent = agent or AGENT
        self._model = _model(model)
        self._asked = ""
        self._tally = tally

    def messages(self, rows: Iterable[tuple[RawRecord, str]]) -> list[RawMessage]:
        """The messages of all rows, given in order, each with its type."""
        return [message for row, type_ in rows for message in self._message(row, type_)]

    def _message(self, row: RawRecord, type_: str) -> list[RawMessage]:
        value = mapping(row.value)
        time = mapping(value.get("time"))
        created = whole(time.get("created"), row.created or 0)
        match type_:
            case "agent-switched":
                self._agent = text(value.get("agent")) or self._agent
                return []
            case "model-switched":
                self._model = _model(value.get("model")) or self._model
                return []
            case "user":
                return [
                    self._asking(
                        row, created, [{"type": "text", "text": text(value.get("text"))}, *_attached(value)]
                    )
                ]
            case "synthetic":
                return [self._asking(row, created, [_synthetic(text(value.get("text")))])]
            case "system":
                info = {"role": "system", "time": {"created": created}, "text": text(value.get("text"))}
                return [_with_parts(row, info, created, [])]
            case "shell":
                return self._shell(row, value, created)
            case "assistant":
                return [self._assistant(row, value, created)]
            case "compaction":
                reported = [COMPACTED, text(value.get("summary")), text(value.get("recent"))]
                return [self._asking(row, created, [_synthetic("\n\n".join(filter(None, reported)))])]
            case _:
                why = row.problem or f"there is no message of the type {type_[:40]!r}"
                self._tally.skip("message", f"message {row.id[:60]}", row.where, why)
                return []

    def _asking(self, row: RawRecord, created: int, parts: list[dict[str, Any]]) -> RawMessage:
        self._asked = row.id
        info = {"role": "user", "time": {"created": created}, "agent": self._agent, "model": self._model}
        return _with_parts(row, info, created, parts)

    def _answer(self, created: int, completed: Any) -> dict[str, Any]:
        model = self._model or {}
        return {
            "role": "assistant",
            "time": {"created": created, "completed": completed},
            "parentID": self._asked,
            "agent": self._agent,
            **{name: model.get(name) for name in ("providerID", "modelID", "variant")},
        }

    def _shell(self, row: RawRecord, value: dict[str, Any], created: int) -> list[RawMessage]:
        """A command that the user ran: as the first runtime records it, a note and a call of `bash`."""
        question = RawRecord(derive.question_id(row.id, created), row.where, row.value, created=created)
        note = self._asking(question, created, [_synthetic("The following tool was executed by the user")])
        completed = whole(mapping(value.get("time")).get("completed"), created)
        call = {
            "type": "tool",
            "callID": text(value.get("callID")) or row.id,
            "tool": "bash",
            "state": {
                "status": "completed",
                "input": {"command": text(value.get("command"))},
                "output": text(value.get("output")),
                "title": "",
                "metadata": {},
                "time": {"start": created, "end": completed},
            },
        }
        return [note, _with_parts(row, self._answer(created, completed), created, [call])]

    def _assistant(self, row: RawRecord, value: dict[str, Any], created: int) -> RawMessage:
        self._agent = text(value.get("agent")) or self._agent
        self._model = _model(value.get("model")) or self._model
        snapshot = mapping(value.get("snapshot"))
        info = self._answer(created, mapping(value.get("time")).get("completed"))
        info |= {"finish": value.get("finish"), "cost": value.get("cost"), "tokens": value.get("tokens")}
        if value.get("error") is not None:
            reported = spelt(mapping(value["error"]).get("message") or value["error"])
            info["error"] = {"name": "UnknownError", "data": {"message": reported}}
        parts: list[dict[str, Any]] = [{"type": "step-start", "snapshot": snapshot.get("start")}]
        content = value.get("content")
        for item in content if isinstance(content, list) else []:
            part = _content(mapping(item), created)
            if part is None:
                kind = str(mapping(item).get("type"))[:40]
                why = f"there is no content of the type {kind!r}"
                self._tally.skip("part", f"content of message {row.id}", row.where, why)
            else:
                parts.append(part)
        if value.get("finish") is not None:
            step = {"type": "step-finish", "reason": value["finish"], "snapshot": snapshot.get("end")}
            parts.append(step | {"cost": number(value.get("cost")), "tokens": tokens(value.get("tokens"))})
        return _with_parts(row, info, created, parts)


def _with_parts(row: RawRecord, info: Any, created: int, parts: list[dict[str, Any]]) -> RawMessage:
    made = RawRecord(row.id, row.where, info, row.problem, created, row.touched)
    ids = (derive.part_id(row.id, index, created) for index in range(len(parts)))
    return RawMessage(made, [RawRecord(id, row.where, part) for id, part in zip(ids, parts, strict=True)])


def _synthetic(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "synthetic": True}


def _attached(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The files and agents that a prompt names."""
    parts: list[dict[str, Any]] = []
    for each in value.get("files") or []:
        file, source = mapping(each), mapping(mapping(each).get("source"))
        part = {
            "type": "file",
            "mime": file.get("mime"),
            "url": file.get("uri"),
            "filename": file.get("name"),
        }
        if source:
            span = {"value": text(source.get("text")), "start": source.get("start"), "end": source.get("end")}
            part["source"] = {"type": "file", "path": text(file.get("name")), "text": span}
        parts.append(part)
    for each in value.get("agents") or []:
        agent, source = mapping(each), mapping(mapping(each).get("source"))
        span = {"value": text(source.get("text")), "start": source.get("start"), "end": source.get("end")}
        parts.append({"type": "agent", "name": agent.get("name"), "source": span if source else None})
    return parts


def _content(item: dict[str, Any], created: int) -> dict[str, Any] | None:
    time = mapping(item.get("time"))
    start = whole(time.get("created"), created)
    match item.get("type"):
        case "text":
            return {"type": "text", "text": text(item.get("text"))}
        case "reasoning":
            span = {"start": start, "end": whole(time.get("completed"), start)}
            metadata = item.get("providerMetadata")
            return {"type": "reasoning", "text": text(item.get("text")), "time": span, "metadata": metadata}
        case "tool":
            return _tool(item, start, whole(time.get("completed"), start), time.get("pruned"))
        case _:
            return None


def _tool(item: dict[str, Any], start: int, end: int, pruned: Any) -> dict[str, Any]:
    given, provider = mapping(item.get("state")), mapping(item.get("provider"))
    status = given.get("status")
    output, files = _output(given)
    time: dict[str, Any] = {"start": start, "end": end}
    if pruned is not None:
        time["compacted"] = whole(pruned, end)
    state: dict[str, Any] = {"status": status, "input": given.get("input"), "time": time}
    match status:
        case "pending":
            state |= {"input": {}, "raw": spelt(given.get("input"))}
        case "completed":
            state |= {
                "output": output,
                "metadata": mapping(given.get("structured")),
                "attachments": files or None,
            }
        case "error":
            state["error"] = spelt(mapping(given.get("error")).get("message"))
            state["metadata"] = {**mapping(given.get("structured")), **({"output": output} if output else {})}
        case _:
            state["metadata"] = mapping(given.get("structured"))
    part = {"type": "tool", "callID": item.get("id"), "tool": item.get("name"), "state": state}
    metadata = mapping(provider.get("metadata"))
    if provider.get("executed") is True:
        metadata["providerExecuted"] = True
    return part | {"metadata": metadata} if metadata else part


def _output(state: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """What a tool gave back: its text, and its files."""
    content = state.get("content")
    items = [mapping(each) for each in content] if isinstance(content, list) else []
    words = [text(item.get("text")) for item in items if item.get("type") == "text"]
    files = [
        {"mime": item.get("mime"), "url": item.get("uri"), "filename": item.get("name")}
        for item in items
        if item.get("type") == "file"
    ]
    return "\n".join(words), files


def _model(value: Any) -> dict[str, Any] | None:
    """A model as messages name it."""
    model = mapping(value)
    name = model.get("id") or model.get("modelID")
    if not isinstance(name, str):
        return None
    made = {"providerID": text(model.get("providerID"), "unknown"), "modelID": name}
    variant = model.get("variant")
    return made | {"variant": variant} if isinstance(variant, str) and variant != "default" else made
