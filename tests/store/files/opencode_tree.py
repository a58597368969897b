"""Trees as OpenCode writes them: for tests of adoption and of the seeds' migrations."""

import json
import subprocess
from pathlib import Path

S_OLD = "ses_old"
S_NEW = "ses_new"
S_CHILD = "ses_child"


def write(path: Path, value: object) -> None:
    """A file in the layout of `JSON.stringify(value, null, 2)`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")


def info(id: str, created: int, **more: object) -> dict[str, object]:
    """A session as OpenCode has it, with a field that Holdfast does not know."""
    return {
        "id": id,
        "slug": "calm-otter",
        "version": "1.0.0",
        "projectID": "p1",
        "directory": "/work",
        "title": f"Session {id}",
        "time": {"created": created, "updated": created + 5},
        "novelty": {"kept": [1, 2.50]},
        **more,
    }


def message(id: str, session: str, created: int) -> dict[str, object]:
    return {
        "id": id,
        "sessionID": session,
        "role": "user",
        "time": {"created": created},
        "agent": "build",
        "model": {"providerID": "p", "modelID": "m"},
        "novelty": True,
    }


def text(id: str, message: str, session: str, words: str) -> dict[str, object]:
    return {"id": id, "sessionID": session, "messageID": message, "type": "text", "text": words}


def make(root: Path, *, marker: str | None = "2") -> None:
    """A tree with three sessions; ids and clocks disagree, so that only (created, id) tells the order."""
    project = {
        "id": "p1",
        "worktree": "/work",
        "vcs": "git",
        "time": {"created": 1, "updated": 1},
        "sandboxes": [],
    }
    write(root / "project/p1.json", project)
    write(root / f"session/p1/{S_OLD}.json", info(S_OLD, 100))
    write(root / f"session/p1/{S_CHILD}.json", info(S_CHILD, 50, parentID=S_NEW))
    write(root / f"session/p1/{S_NEW}.json", info(S_NEW, 200))
    for id, created in (("msg_c", 1), ("msg_a", 2), ("msg_b", 2)):
        write(root / f"message/{S_OLD}/{id}.json", message(id, S_OLD, created))
    for id in ("prt_2", "prt_1"):
        write(root / f"part/msg_a/{id}.json", text(id, "msg_a", S_OLD, f"words of {id}"))
    write(root / f"todo/{S_OLD}.json", [{"content": "c", "status": "pending", "priority": "low", "id": "1"}])
    write(root / f"session_diff/{S_OLD}.json", [{"file": "a", "additions": 1, "deletions": 0, "before": "x"}])
    write(root / f"session_share/{S_OLD}.json", {"id": "sh", "secret": "s", "url": "https://example.invalid"})
    write(root / "permission/p1.json", [{"permission": "bash", "pattern": "*", "action": "allow"}])
    if marker is not None:
        (root / "migration").write_text(marker)


def make_first_layout(data: Path, worktree: Path) -> str:
    """A tree of the first layout beside `data/storage`; the id of its project."""
    worktree.mkdir(parents=True)
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *command], cwd=worktree, check=True, capture_output=True)
    asked = subprocess.run(
        ["git", "rev-list", "--max-parents=0", "--all"], cwd=worktree, check=True, capture_output=True
    )
    storage = data / "project" / "work-app" / "storage" / "session"
    old = info(S_OLD, 100)
    del old["projectID"], old["directory"]
    diffs = [{"file": "a", "additions": 2, "deletions": 1}, {"file": "b", "additions": 3, "deletions": 0}]
    write(storage / f"info/{S_OLD}.json", {**old, "summary": {"diffs": diffs}})
    answer = {"path": {"cwd": str(worktree), "root": str(worktree)}}
    write(storage / f"message/{S_OLD}/msg_a.json", {**message("msg_a", S_OLD, 1), **answer})
    write(storage / f"part/{S_OLD}/msg_a/prt_1.json", text("prt_1", "msg_a", S_OLD, "words"))
    write(data / "project" / "global" / "storage" / "session" / "info" / "ses_g.json", info("ses_g", 1))
    return asked.stdout.decode().split()[0]
