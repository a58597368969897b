"""Makes a session of what OpenCode recorded of one, whatever version wrote it."""

import hashlib
from typing import Any

from holdfast.schema import slug
from holdfast.schema.project import Project
from holdfast.schema.session import Session
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.store.exchange.opencode import shape
from holdfast.store.exchange.opencode.shape import coax, fill, mapping, number, text, whole


def session(value: Any, *, id: str, project: str, now_ms: int, placement: str) -> tuple[Session, list[str]]:
    """The session, without its share, and the fields that had to be left out."""
    info = mapping(value)
    for name in ("share", "placement"):
        info.pop(name, None)
    time = mapping(info.get("time"))
    created = whole(time.get("created"), whole(time.get("updated"), now_ms))
    time |= {"created": created, "updated": whole(time.get("updated"), created)}
    if "compacting" in time:
        time["compacting"] = whole(time["compacting"], created)
    if time.get("archived") is not None:
        time["archived"] = number(time["archived"])
    info |= {"id": id, "projectID": project, "time": time, "placement": placement}
    fill(info, directory="", title="", version="")
    if not text(info.get("slug")):
        info["slug"] = slug.make(lambda count: hashlib.sha256(id.encode()).digest()[:count])
    if "cost" in info:
        info["cost"] = number(info["cost"])
    if "tokens" in info:
        info["tokens"] = {key: item for key, item in shape.tokens(info["tokens"]).items() if key != "total"}
    if isinstance(info.get("model"), dict):
        info["model"] = _model(info["model"])
    if isinstance(info.get("summary"), dict):
        info["summary"] = _summary(info["summary"])
    if isinstance(info.get("permission"), list):
        info["permission"] = [rule for rule in info["permission"] if _is_rule(rule)]
    return coax(Session, info)


def project(value: Any, *, id: str, now_ms: int) -> tuple[Project, list[str]]:
    """The project, and the fields that had to be left out."""
    info = mapping(value)
    time = mapping(info.get("time"))
    created = whole(time.get("created"), now_ms)
    time |= {"created": created, "updated": whole(time.get("updated"), created)}
    sandboxes = info.get("sandboxes")
    info |= {
        "id": id,
        "time": time,
        "worktree": text(info.get("worktree")) or "/",
        "sandboxes": [each for each in sandboxes if isinstance(each, str)]
        if isinstance(sandboxes, list)
        else [],
    }
    return coax(Project, info)


def todo(value: Any) -> Todo:
    """An entry of a todo list: content, status and priority are all needed."""
    made, _ = coax(Todo, mapping(value))
    assert isinstance(made, Todo)
    return made


def diff(value: Any) -> FileDiff:
    """What changed in a file. `path` and `diff` are older names; `before` and `after` are kept unread."""
    entry = mapping(value)
    for old, new in (("path", "file"), ("diff", "patch")):
        if new not in entry and isinstance(entry.get(old), str):
            entry[new] = entry.pop(old)
    entry |= {"additions": number(entry.get("additions")), "deletions": number(entry.get("deletions"))}
    made, _ = coax(FileDiff, entry)
    assert isinstance(made, FileDiff)
    return made


def _model(value: dict[str, Any]) -> dict[str, Any]:
    """A session names its model by `id`; some versions wrote `modelID`, as messages do."""
    made = dict(value)
    if "id" not in made and "modelID" in made:
        made["id"] = made.pop("modelID")
    return made


def _summary(value: dict[str, Any]) -> dict[str, Any]:
    """The counts; the diffs are a record of their own (OpenCode's second file migration)."""
    diffs = (
        [mapping(each) for each in value.get("diffs") or []] if isinstance(value.get("diffs"), list) else []
    )
    made = {key: item for key, item in value.items() if key != "diffs"}
    for name in ("additions", "deletions"):
        made[name] = number(value.get(name)) or sum(number(each.get(name)) for each in diffs)
    made["files"] = number(value.get("files")) or len(diffs)
    return made


def _is_rule(rule: Any) -> bool:
    return isinstance(rule, dict) and all(
        isinstance(rule.get(name), str) for name in ("permission", "pattern", "action")
    )
