"""What `--sanitize` takes out of an export, exactly as OpenCode does it: pure, over decoded JSON.

A text that is not blank becomes `[redacted:<kind>:<id>]`, a map that is not empty `{"redacted":
"<kind>:<id>"}`. Ids, times, tokens, costs, tool names and errors stay. The caller has dropped the fields
that is not known: what cannot be judged cannot be kept.
"""

from typing import Any

Json = dict[str, Any]


def session(info: Json) -> Json:
    """A session without what it is about and where it ran."""
    id = info["id"]
    made = {**info, **_texts(info, {"title": "session-title", "directory": "session-directory"}, id)}
    if "summary" in made and "diffs" in made["summary"]:
        made["summary"] = {**made["summary"], "diffs": _diffs(made["summary"]["diffs"], "session-diff")}
    if "revert" in made:
        revert = made["revert"]
        made["revert"] = {
            **{key: item for key, item in revert.items() if key not in ("files", "kept", "writes")},
            **_texts(revert, {"snapshot": "revert-snapshot", "diff": "revert-diff"}, id),
        }
    made.pop("reverted", None)
    return made


def message(info: Json) -> Json:
    """A message without the user's instructions, its summary and its paths."""
    id = info["id"]
    made = {**info, **_texts(info, {"system": "system"}, id)}
    if info["role"] == "user" and "summary" in info:
        summary = info["summary"]
        made["summary"] = {
            **summary,
            **_texts(summary, {"title": "summary-title", "body": "summary-body"}, id),
            "diffs": _diffs(summary["diffs"], "message-diff"),
        }
    if info["role"] == "assistant":
        made["path"] = {**info["path"], **_texts(info["path"], {"cwd": "cwd", "root": "root"}, id)}
    return made


def part(value: Json) -> Json:
    """A part without its content."""
    id = value["id"]
    match value["type"]:
        case "text":
            return {**value, **_texts(value, {"text": "text"}, id), **_maps(value, "text-metadata", id)}
        case "reasoning":
            texts = _texts(value, {"text": "reasoning"}, id)
            return {**value, **texts, **_maps(value, "reasoning-metadata", id)}
        case "file":
            return _file(value)
        case "tool":
            return {**value, "state": _state(value["state"], id), **_maps(value, "tool-metadata", id)}
        case "step-start" | "step-finish" | "snapshot":
            made = {**value, **_texts(value, {"snapshot": "snapshot"}, id)}
            made.pop("left", None)  # Ours: another snapshot.
            return made
        case "patch":
            files = [_text(file, "patch-file", f"{id}-{n}") for n, file in enumerate(value["files"])]
            made = {**value, "hash": _text(value["hash"], "patch", id), "files": files}
            made.pop("changes", None)  # Ours: paths, and digests by which contents are guessed.
            return made
        case "agent" if "source" in value:
            source = value["source"]
            return {**value, "source": {**source, **_texts(source, {"value": "agent-source"}, id)}}
        case "subtask":
            names = {name: f"subtask-{name}" for name in ("prompt", "description", "command")}
            return {**value, **_texts(value, names, id)}
        case _:
            return value


def _file(value: Json) -> Json:
    id = value["id"]
    made = {**value, **_texts(value, {"url": "file-url", "filename": "file-name"}, id)}
    made.pop("read", None)  # Ours: where the file lies, and a digest of it.
    if "source" in value:
        source = value["source"]
        names = {"path": "file-path", "name": "file-symbol", "clientName": "file-client", "uri": "file-uri"}
        text = {**source["text"], **_texts(source["text"], {"value": "file-text"}, id)}
        made["source"] = {**source, **_texts(source, names, id), "text": text}
    return made


def _state(state: Json, id: str) -> Json:
    names = {"raw": "tool-raw", "output": "tool-output", "title": "tool-title"}
    made = {**state, **_texts(state, names, id), **_maps(state, "tool-state-metadata", id)}
    made["input"] = _map(state["input"], "tool-input", id)
    if "attachments" in state:
        made["attachments"] = [_file(file) for file in state["attachments"]]
    return made


def _diffs(diffs: list[Json], kind: str) -> list[Json]:
    names = {"file": f"{kind}-file", "patch": f"{kind}-patch"}
    return [{**diff, **_texts(diff, names, str(n))} for n, diff in enumerate(diffs)]


def _texts(value: Json, kinds: dict[str, str], id: str) -> Json:
    return {name: _text(value[name], kind, id) for name, kind in kinds.items() if name in value}


def _maps(value: Json, kind: str, id: str) -> Json:
    return {"metadata": _map(value["metadata"], kind, id)} if "metadata" in value else {}


def _text(text: str, kind: str, id: str) -> str:
    return f"[redacted:{kind}:{id}]" if text.strip() else text


def _map(value: Json, kind: str, id: str) -> Json:
    return {"redacted": f"{kind}:{id}"} if value else value
