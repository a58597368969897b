"""Makes a part of what OpenCode recorded of one, whatever version wrote it."""

from typing import Any, Final

from holdfast.errors import InvalidInput
from holdfast.schema import part as parts
from holdfast.schema.file_part import FilePart
from holdfast.schema.part import Part
from holdfast.store.exchange.opencode import derive, shape
from holdfast.store.exchange.opencode.shape import coax, fill, mapping, number, spelt, text, whole

_TYPES: Final[dict[str, Any]] = {
    "text": parts.TextPart,
    "reasoning": parts.ReasoningPart,
    "file": FilePart,
    "tool": parts.ToolPart,
    "step-start": parts.StepStartPart,
    "step-finish": parts.StepFinishPart,
    "snapshot": parts.SnapshotPart,
    "patch": parts.PatchPart,
    "agent": parts.AgentPart,
    "retry": parts.RetryPart,
    "compaction": parts.CompactionPart,
    "subtask": parts.SubtaskPart,
}


def part(value: Any, *, id: str, session: str, message: str, created: int) -> tuple[Part, list[str]]:
    """The part, and the fields that had to be left out; `InvalidInput` if it is none."""
    if not isinstance(value, dict):
        raise InvalidInput("it is no JSON object")
    type_ = value.get("type")
    if not isinstance(type_, str) or type_ not in _TYPES:
        raise InvalidInput(f"there is no part of the type {str(type_)[:40]!r}")
    made = {**value, "id": id, "sessionID": session, "messageID": message}
    match type_:
        case "text" if "time" in made:
            made["time"] = _span(made["time"], created)
        case "reasoning":
            made["time"] = _span(made.get("time"), created)
        case "file":
            fill(made, mime="application/octet-stream")
        case "tool":
            fill(made, callID=id)
            made["state"] = _state(made.get("state"), id, session, message, created)
        case "step-finish":
            fill(made, reason="unknown")
            made |= {"cost": number(made.get("cost")), "tokens": shape.tokens(made.get("tokens"))}
        case "patch":
            fill(made, files=[])
            made["files"] = [file for file in made["files"] if isinstance(file, str)]
        case "retry":
            time = mapping(made.get("time"))
            made["time"] = {**time, "created": whole(time.get("created"), created)}
        case "compaction":
            fill(made, auto=False)
        case "subtask":
            fill(made, prompt="", description="", agent="general")
        case _:
            pass
    return coax(_TYPES[type_], made)


def _span(value: Any, created: int) -> dict[str, Any]:
    time = mapping(value)
    time["start"] = whole(time.get("start"), created)
    if time.get("end") is not None:
        time["end"] = whole(time["end"], time["start"])
    return time


def _state(value: Any, id: str, session: str, message: str, created: int) -> dict[str, Any]:
    state = mapping(value)
    given = state.get("input")
    state["input"] = given if isinstance(given, dict) else {} if given is None else {"value": given}
    status = state.get("status")
    if status not in ("pending", "running", "completed", "error"):
        raise InvalidInput(f"there is no tool call in the state {str(status)[:40]!r}")
    if status == "pending":
        fill(state, raw="")
        return state
    if state.get("metadata") is not None or status == "completed":
        fill(state, metadata={})
    time = _span(state.get("time"), created)
    if status == "running":
        time.pop("end", None)
    else:
        time["end"] = whole(time.get("end"), time["start"])
    if "compacted" in time:
        time["compacted"] = whole(time["compacted"], time["end"] if "end" in time else time["start"])
    state["time"] = time
    if status == "completed":
        state["output"] = spelt(state.get("output"))
        fill(state, title="")
        if state.get("attachments") is not None:
            state["attachments"] = _attachments(state["attachments"], id, session, message, created)
    if status == "error":
        state["error"] = spelt(state.get("error"))
    return state


def _attachments(value: Any, id: str, session: str, message: str, created: int) -> list[dict[str, Any]]:
    """The files of a call. Some versions gave them no ids, or left out whose they are."""
    made = []
    for index, each in enumerate(value if isinstance(value, list) else []):
        file = mapping(each)
        if not isinstance(file.get("url"), str):
            continue
        file |= {"type": "file", "sessionID": session, "messageID": message}
        file["id"] = text(file.get("id")) or derive.part_id(id, index, created)
        fill(file, mime="application/octet-stream")
        made.append(file)
    return made
