"""Reads generation C: OpenCode's SQLite database. Tables and columns that a version lacks count as empty."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from holdfast.errors import InvalidInput
from holdfast.store.exchange.opencode.database import ReadOnly
from holdfast.store.exchange.opencode.shape import mapping, text, whole
from holdfast.store.exchange.opencode.source import RawApproval, RawMessage, RawRecord, RawSession, Stub
from holdfast.store.exchange.opencode.tree import Tree
from holdfast.store.exchange.opencode.v2 import SWITCHES, Translation
from holdfast.store.exchange.portable.report import Tally

Row = dict[str, Any]

_JSON: Final = ("summary_diffs", "metadata", "revert", "permission", "model", "sandboxes", "commands")


TABLES: Final = (
    *("session", "message", "part", "project", "todo", "session_message", "session_input"),
    *("permission", "session_share", "migration"),
)


class Rows:
    """One database. The diffs of its sessions still stand in the JSON tree beside it."""

    is_database = True

    def __init__(self, path: Path, diffs: Tree | None = None) -> None:
        self._db = ReadOnly(path)
        self._path = path
        self._diffs = diffs
        try:
            with self._db:
                self._columns = {table: self._db.columns(table) for table in TABLES}
                self.made_ms = self._made()
        except apsw.Error as error:
            self._db.close()
            raise InvalidInput(f"{path} cannot be read: {error}") from error
        if not self._columns["session"]:
            self._db.close()
            raise InvalidInput(f"{path} is not an OpenCode database: it has no sessions")

    @property
    def name(self) -> str:
        return f"database {self._path}"

    def projects(self, tally: Tally) -> Iterator[RawRecord]:
        for row in self._select("project"):
            icon = {"url": row.get("icon_url"), "override": row.get("icon_url_override")}
            icon = {key: item for key, item in {**icon, "color": row.get("icon_color")}.items() if item}
            times = {name: row.get(f"time_{name}") for name in ("created", "updated", "initialized")}
            value = {
                **{name: row.get(name) for name in ("worktree", "vcs", "name", "sandboxes", "commands")},
                "icon": icon or None,
                "time": {key: item for key, item in times.items() if item is not None},
            }
            yield RawRecord(text(row.get("id")), self._at("project", row), value)

    def approvals(self, tally: Tally) -> Iterator[RawApproval]:
        for row in self._select("permission"):
            where = self._at("permission", row)
            project = text(row.get("project_id"))
            if "data" in row:  # one row of rules for a project, as the JSON tree had it
                value, problem = _decoded(row["data"])
                yield from Tree.rules(project, value, problem, where, tally)
            else:
                created = row.get("time_created")
                action, resource = text(row.get("action")), text(row.get("resource"))
                yield RawApproval(project, action, resource, whole(created, 0) or None, where)

    def stubs(self, tally: Tally) -> list[Stub]:
        names = [name for name in ("id", "parent_id", "time_created") if name in self._columns["session"]]
        made = []
        with self._db:
            for row in self._select("session", columns=names):
                created = whole(row.get("time_created"), 0)
                parent = text(row.get("parent_id")) or None
                made.append(Stub(text(row.get("id")), parent, created, self._at("session", row)))
        return made

    def load(self, stub: Stub, tally: Tally) -> RawSession | None:
        with self._db:
            found = list(self._select("session", "id=?", stub.id))
            if not found:
                return None
            row = found[0]
            messages = self._messages(stub.id)
            raw = RawSession(
                RawRecord(stub.id, stub.where, _session(row)), text(row.get("project_id")), messages
            )
            if not messages:
                raw.messages = self._second(stub.id, row, tally)
                raw.ordered = True
            raw.todos = self._todos(stub.id)
            shares = self._select("session_share", "session_id=?", stub.id, columns=["session_id"])
            raw.shared = bool(row.get("share_url")) or any(True for _ in shares)
        if self._diffs is not None:
            raw.diffs = self._diffs.diffs(stub.id)
        return raw

    def leftovers(self, tally: Tally) -> None:
        """Nothing: the database's own keys leave no orphans."""

    def close(self) -> None:
        self._db.close()

    def _made(self) -> int | None:
        if "time_completed" not in self._columns["migration"]:
            return None
        times = [whole(row[0], 0) for row in self._db.rows("SELECT time_completed FROM migration")]
        return min((time for time in times if time), default=None)

    def _messages(self, session: str) -> list[RawMessage]:
        made: dict[str, RawMessage] = {}
        for row in self._select("message", "session_id=? ORDER BY time_created, id", session):
            record = self._record("message", row)
            made[record.id] = RawMessage(record, [])
        for row in self._select("part", "session_id=? ORDER BY id", session):
            owner = made.get(text(row.get("message_id")))
            if owner is not None:
                owner.parts.append(self._record("part", row))
        return list(made.values())

    def _second(self, session: str, row: Row, tally: Tally) -> list[RawMessage]:
        """The messages of the second runtime, for a session that has none of the first."""
        for waiting in self._select("session_input", "session_id=? AND promoted_seq IS NULL", session):
            where = self._at("session_input", waiting)
            why = "the prompt was never shown to the model; send it again"
            tally.skip("prompt", f"prompt {text(waiting.get('id'))[:60]}", where, why)
        rows = list(self._select("session_message", "session_id=? ORDER BY seq", session))
        if all(text(each.get("type")) in SWITCHES for each in rows):
            return []
        walk = Translation(text(row.get("agent")), row.get("model"), tally)
        return walk.messages((self._record("session_message", each), text(each.get("type"))) for each in rows)

    def _todos(self, session: str) -> RawRecord | None:
        rows = list(self._select("todo", "session_id=? ORDER BY position", session))
        if not rows:
            return None
        entries = [{name: row.get(name) for name in ("content", "status", "priority")} for row in rows]
        return RawRecord(session, f"{self._path} table todo, session {session}", entries)

    def _record(self, table: str, row: Row) -> RawRecord:
        value, problem = _decoded(row.get("data"))
        created, updated = whole(row.get("time_created"), 0), whole(row.get("time_updated"), 0)
        return RawRecord(text(row.get("id")), self._at(table, row), value, problem, created, updated or None)

    def _at(self, table: str, row: Row) -> str:
        return f"{self._path} table {table}, row {text(row.get('id'))[:60]!r}"

    def _select(
        self, table: str, where: str = "1", *bindings: object, columns: Sequence[str] | None = None
    ) -> Iterator[Row]:
        """Rows as mappings. Text is read as bytes: one letter that is not UTF-8 must not cost a row."""
        names = columns or self._columns[table]
        if not self._columns[table]:
            return
        listed = ", ".join(
            f'CASE typeof("{name}") WHEN \'text\' THEN CAST("{name}" AS BLOB) ELSE "{name}" END'
            for name in names
        )
        for row in self._db.rows(f'SELECT {listed} FROM "{table}" WHERE {where}', *bindings):
            made = {name: _text(name, item) for name, item in zip(names, row, strict=True)}
            yield {name: _decoded(item)[0] if name in _JSON else item for name, item in made.items()}


def _text(name: str, item: Any) -> Any:
    return item if name == "data" or not isinstance(item, bytes) else item.decode("utf-8", "replace")


def _decoded(data: Any) -> tuple[Any, str | None]:
    """JSON of a column, or why it is none."""
    if data is None:
        return None, "it is empty"
    try:
        return msgspec.json.decode(data), None
    except (msgspec.DecodeError, UnicodeError, TypeError) as error:
        return None, f"it is not JSON: {error}"
    except RecursionError:
        return None, "its JSON is nested too deeply"


def _session(row: Row) -> dict[str, Any]:
    """A row as the session that OpenCode shows."""
    time = {name: row.get(f"time_{name}") for name in ("created", "updated", "compacting", "archived")}
    direct = (
        "slug",
        "directory",
        "path",
        "title",
        "version",
        "metadata",
        "revert",
        "permission",
        "agent",
        "model",
    )
    value = {name: row.get(name) for name in direct}
    value["time"] = {key: item for key, item in time.items() if item is not None}
    value |= {"workspaceID": row.get("workspace_id"), "parentID": row.get("parent_id") or None}
    counts = {name: row.get(f"summary_{name}") for name in ("additions", "deletions", "files")}
    if any(item is not None for item in counts.values()):
        value["summary"] = {**counts, "diffs": row.get("summary_diffs")}
    if "cost" in row:
        value["cost"] = row["cost"]
    if "tokens_input" in row:
        cache = {name: row.get(f"tokens_cache_{name}") for name in ("read", "write")}
        used = {name: row.get(f"tokens_{name}") for name in ("input", "output", "reasoning")}
        value["tokens"] = {**used, "cache": cache}
    return {key: item for key, item in mapping(value).items() if item is not None}
