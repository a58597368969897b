"""Makes a message of what OpenCode recorded of one, whatever version wrote it."""

from typing import Any, Final

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import fault, wire
from holdfast.schema.message import AssistantMessage, Message, SystemMessage, UserMessage
from holdfast.store.exchange.opencode import shape
from holdfast.store.exchange.opencode.shape import coax, fill, mapping, number, spelt, text, whole

UNKNOWN: Final = "unknown"
"""Who answered, where nothing says so."""

AGENT: Final = "build"
"""Who was asked, where nothing says so: OpenCode's first agent."""


class Around(msgspec.Struct):
    """What the messages around one, and its session, say about it."""

    session: str
    directory: str
    asked: str = ""
    """The last message of the user before it."""
    model: dict[str, Any] | None = None
    """The model of the answer after it, as a message names one."""


def message(value: Any, *, id: str, created: int, around: Around) -> tuple[Message, list[str]]:
    """The message, and the fields that had to be left out; `InvalidInput` if it is none."""
    if not isinstance(value, dict):
        raise InvalidInput("it is no JSON object")
    info = dict(value)
    time = mapping(info.get("time"))
    time["created"] = whole(time.get("created"), created)
    info |= {"id": id, "sessionID": around.session, "time": time}
    match info.get("role"):
        case "user":
            _user(info, around)
            return coax(UserMessage, info)
        case "assistant":
            _assistant(info, time, around)
            return coax(AssistantMessage, info)
        case "system":
            return coax(SystemMessage, info)
        case other:
            raise InvalidInput(f"there is no message with the role {str(other)[:40]!r}")


def _user(info: dict[str, Any], around: Around) -> None:
    info["agent"] = text(info.get("agent")) or text(info.get("mode")) or AGENT
    model = mapping(info.get("model") or around.model)
    fill(model, providerID=UNKNOWN, modelID=UNKNOWN)
    variant = info.pop("variant", None)  # some versions wrote it beside the model
    if isinstance(variant, str):
        model.setdefault("variant", variant)
    info["model"] = model
    if isinstance(info.get("summary"), dict):
        summary = info["summary"] = dict(info["summary"])
        diffs = summary.get("diffs")
        known = [mapping(each) for each in diffs] if isinstance(diffs, list) else []
        summary["diffs"] = [
            {**each, "additions": number(each.get("additions")), "deletions": number(each.get("deletions"))}
            for each in known
        ]


def _assistant(info: dict[str, Any], time: dict[str, Any], around: Around) -> None:
    if time.get("completed") is not None:
        time["completed"] = whole(time["completed"], time["created"])
    agent = text(info.get("agent")) or text(info.get("mode")) or AGENT
    info |= {"agent": agent, "mode": text(info.get("mode")) or agent}
    fill(info, parentID=around.asked, modelID=UNKNOWN, providerID=UNKNOWN)
    path = mapping(info.get("path"))
    cwd = text(path.get("cwd")) or around.directory
    info["path"] = {**path, "cwd": cwd, "root": text(path.get("root")) or cwd}
    info |= {"cost": number(info.get("cost")), "tokens": shape.tokens(info.get("tokens"))}
    if info.get("error") is not None:
        info["error"] = _error(info["error"])


def _error(value: Any) -> Any:
    """A named error; one that we do not know becomes an unknown one that says what it was."""
    try:
        wire.convert(fault.Fault, value)
    except InvalidInput:
        given = mapping(value)
        reported = spelt(mapping(given.get("data")).get("message") or given.get("message") or value)
        name = text(given.get("name"))
        return {"name": "UnknownError", "data": {"message": f"{name}: {reported}" if name else reported}}
    return value
