"""Places as OpenCode left them, made from the tables and trees of the specification."""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from holdfast.schema.ids import Mint
from holdfast.store.base import Store
from holdfast.store.exchange.opencode.import_sessions import import_opencode
from holdfast.store.exchange.portable.export import export_session
from holdfast.store.exchange.portable.report import ImportReport
from holdfast.testing.clock import FakeClock
from holdfast.testing.hosts import FakeHost

PARENT = "ses_e220ef30affejZ4kkNbvVuwkR5"
CHILD = "ses_e220ef30affejZ4kkNbvVuwkR6"
PROJECT = "5a8edc4d79cf00a2ed1acf5915932290ff82cdd8"
MADE_MS = 1_794_734_285_773
MINT = Mint(FakeClock())

TABLES = """
CREATE TABLE migration (id text PRIMARY KEY, time_completed integer NOT NULL);
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, icon_url text,
  icon_url_override text, icon_color text, time_created integer NOT NULL, time_updated integer NOT NULL,
  time_initialized integer, sandboxes text NOT NULL, commands text);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL REFERENCES project(id) ON DELETE CASCADE,
  workspace_id text, parent_id text, slug text NOT NULL, directory text NOT NULL, path text,
  title text NOT NULL, version text NOT NULL, share_url text, summary_additions integer,
  summary_deletions integer, summary_files integer, summary_diffs text, metadata text,
  cost real DEFAULT 0 NOT NULL,
  tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL,
  tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
  tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text, model text,
  time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer,
  time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL REFERENCES session(id) ON DELETE CASCADE,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL REFERENCES message(id) ON DELETE CASCADE,
  session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL, status text NOT NULL,
  priority text NOT NULL, position integer NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, PRIMARY KEY(session_id, position));
CREATE TABLE session_share (session_id text PRIMARY KEY, id text NOT NULL, secret text NOT NULL,
  url text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL,
  seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE session_input (id text PRIMARY KEY, session_id text NOT NULL, prompt text NOT NULL,
  delivery text NOT NULL, admitted_seq integer NOT NULL, promoted_seq integer, time_created integer NOT NULL);
CREATE TABLE permission (id text PRIMARY KEY, project_id text NOT NULL, action text NOT NULL,
  resource text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
"""


def msg(n: int) -> str:
    return f"msg_1ddf10d2{n:04x}FtzFVvi3oqsUwG"


def prt(n: int) -> str:
    return f"prt_1ddf10d2{n:04x}HHwMVX2nnRNWcv"


def user(n: int = 1, **more: Any) -> dict[str, Any]:
    """The `data` of a message row."""
    model = {"providerID": "mock", "modelID": "m"}
    return {"role": "user", "time": {"created": 1000 + n}, "agent": "build", "model": model, **more}


def assistant(n: int = 3, parent: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "time": {"created": 1000 + n, "completed": 1001 + n},
        "parentID": msg(parent),
        "modelID": "m",
        "providerID": "mock",
        "mode": "build",
        "agent": "build",
        "path": {"cwd": "/home/alice/demo", "root": "/home/alice/demo"},
        "cost": 0.25,
        "tokens": tokens(1, 2),
        **more,
    }


def tokens(input: int, output: int) -> dict[str, Any]:
    return {"input": input, "output": output, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def text(words: str = "hello", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def step(cost: float = 0.25, input: int = 1, output: int = 2) -> dict[str, Any]:
    return {"type": "step-finish", "reason": "stop", "cost": cost, "tokens": tokens(input, output)}


class Db:
    """A database of OpenCode's, and the rows to put into it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(TABLES)
            db.commit()
        self.insert("migration", id="20260127222353_first", time_completed=MADE_MS)
        self.insert(
            "project",
            id=PROJECT,
            worktree="/home/alice/demo",
            vcs="git",
            sandboxes='["/home/alice/other"]',
            time_created=5,
            time_updated=6,
            commands='{"start":"make"}',
            icon_color="red",
        )

    def insert(self, table: str, **row: Any) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        values = [json.dumps(item) if isinstance(item, (dict, list)) else item for item in row.values()]
        with closing(sqlite3.connect(self.path)) as db:
            db.execute(f"INSERT OR REPLACE INTO {table}({names}) VALUES ({marks})", values)
            db.commit()

    def session(self, id: str = PARENT, **more: Any) -> None:
        row: dict[str, Any] = {
            "id": id,
            "project_id": PROJECT,
            "slug": "brave-lagoon",
            "directory": "/home/alice/demo",
            "path": "",
        }
        row |= {"title": "Mock", "version": "1.18.33", "time_created": 1000, "time_updated": 2000}
        self.insert("session", **{**row, **more})

    def message(self, n: int, data: Any, session: str = PARENT, *, created: int | None = None) -> None:
        at = 1000 + n if created is None else created
        self.insert("message", id=msg(n), session_id=session, time_created=at, time_updated=at, data=data)

    def part(self, n: int, message: int, data: Any, session: str = PARENT) -> None:
        at = {"time_created": 1000 + n, "time_updated": 1000 + n}
        self.insert("part", id=prt(n), message_id=msg(message), session_id=session, data=data, **at)

    def exchange(self, n: int = 1, session: str = PARENT) -> None:
        """A question and its answer: messages n and n+2, each with a part, and a step."""
        self.message(n, user(n), session)
        self.part(n + 1, n, text(), session)
        self.message(n + 2, assistant(n + 2, n), session)
        self.part(n + 3, n + 2, text("hi"), session)
        self.part(n + 4, n + 2, step(), session)


def tree(root: Path, files: dict[str, Any]) -> Path:
    """JSON files, by their path below a root; a text is written as it is."""
    for name, value in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2), encoding="utf-8")
    return root


def session_file(id: str = PARENT, **more: Any) -> dict[str, Any]:
    time = {"created": 1000, "updated": 2000}
    made = {"id": id, "slug": "s", "projectID": PROJECT, "directory": "/home/alice/demo", "title": "Mock"}
    return {**made, "version": "0.9", "time": time, **more}


def generation_b(root: Path, **more: Any) -> Path:
    """A small tree of generation B; more files are given by their names."""
    return tree(
        root,
        {
            f"project/{PROJECT}.json": {"id": PROJECT, "worktree": "/home/alice/demo", "vcs": "git"},
            f"session/{PROJECT}/{PARENT}.json": session_file(),
            f"message/{PARENT}/{msg(1)}.json": {"id": msg(1), "sessionID": PARENT, **user()},
            f"message/{PARENT}/{msg(3)}.json": {"id": msg(3), "sessionID": PARENT, **assistant()},
            f"part/{msg(1)}/{prt(2)}.json": {"id": prt(2), **text()},
            f"part/{msg(3)}/{prt(4)}.json": {"id": prt(4), **text("hi")},
            f"part/{msg(3)}/{prt(5)}.json": {"id": prt(5), **step()},
            "migration": "2",
            **more,
        },
    )


async def brought(store: Store, path: Path, **more: Any) -> ImportReport:
    clock = more.pop("clock", None) or FakeClock()
    return await import_opencode(store, path, mint=MINT, clock=clock, host=FakeHost(), **more)


async def held(store: Store, session: str = PARENT) -> dict[str, Any]:
    """A session as our own export tells it."""
    data = b"".join([piece async for piece in export_session(store, session)])
    made: dict[str, Any] = msgspec.json.decode(data)["sessions"][0]
    return made


def parts_of(session: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for message in session["messages"] for part in message["parts"]]


def fingerprint(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file below a folder with its bytes and its time of change, folders included."""
    made = {}
    for path in sorted([folder, *folder.rglob("*")]):
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        made[str(path)] = (digest, path.stat().st_mtime_ns)
    return made
