"""Reads generations A and B: trees of JSON files. Ids come from the names of files and folders.

B keeps everything under one `storage` folder. A had a `storage` folder for each project, without an id for
the project: that is found through the directory in which its messages say that they were written.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from holdfast.store.exchange.opencode.json_file import names, read_json
from holdfast.store.exchange.opencode.shape import mapping, text, whole
from holdfast.store.exchange.opencode.source import RawApproval, RawMessage, RawRecord, RawSession, Stub
from holdfast.store.exchange.portable.report import Tally

GLOBAL = "global"
SHARES = ("share", "session_share", "session/share")

ProjectOf = Callable[[str], str | None]
"""Which project a directory belongs to, if that is known."""


class Tree:
    """One `storage` folder."""

    is_database = False
    made_ms: int | None = None

    def __init__(
        self, root: Path, generation: Literal["A", "B"] = "B", project_of: ProjectOf | None = None
    ) -> None:
        self._root = root
        self._generation = generation
        self._project_of = project_of
        self._sessions: set[str] = set()
        self._messages: set[str] = set()

    @property
    def name(self) -> str:
        return f"JSON tree {self._root} (generation {self._generation})"

    def projects(self, tally: Tally) -> Iterator[RawRecord]:
        if self._generation == "B":
            for id in names(self._root / "project", ".json"):
                yield read_json(self._root / "project" / f"{id}.json")

    def approvals(self, tally: Tally) -> Iterator[RawApproval]:
        if self._generation == "B":
            for project in names(self._root / "permission", ".json"):
                record = read_json(self._root / "permission" / f"{project}.json")
                yield from self.rules(project, record.value, record.problem, record.where, tally)

    @staticmethod
    def rules(
        project: str, value: Any, problem: str | None, where: str, tally: Tally
    ) -> Iterator[RawApproval]:
        """The rules of a project that allow something; an "always" never was anything else."""
        if not isinstance(value, list):
            why = problem or "it is no JSON array"
            tally.skip("approval", f"approvals of project {project[:60]}", where, why)
            return
        for each in value:
            rule = mapping(each)
            permission, pattern = text(rule.get("permission")), text(rule.get("pattern"))
            if rule.get("action") == "allow" and permission and pattern:
                yield RawApproval(project, permission, pattern, None, where)
            else:
                what = f"a rule of project {project[:60]}"
                tally.skip("approval", what, where, "only a rule that allows something can be an approval")

    def stubs(self, tally: Tally) -> list[Stub]:
        made = []
        for project, id in self._found():
            file = self._file(project, id)
            record = read_json(file)
            info = mapping(record.value)
            created = whole(mapping(info.get("time")).get("created"), 0) or None
            made.append(Stub(id, text(info.get("parentID")) or None, created, str(file), (project,)))
            self._sessions.add(id)
        return made

    def load(self, stub: Stub, tally: Tally) -> RawSession | None:
        record = read_json(Path(stub.where))
        messages = [
            RawMessage(read_json(self._message_folder(stub.id) / f"{id}.json"), self._parts(stub.id, id))
            for id in names(self._message_folder(stub.id), ".json")
        ]
        self._messages.update(message.info.id for message in messages)
        project = stub.key[0]
        if self._generation == "A":
            project = self._settle(record, messages)
        return RawSession(
            record,
            project,
            messages,
            todos=self._list("todo", stub.id),
            diffs=self._list("session_diff", stub.id),
            shared=any((self._root / name / f"{stub.id}.json").is_file() for name in SHARES),
        )

    def diffs(self, session: str) -> RawRecord | None:
        """The diffs of a session, which the tree keeps even where a database has the rest."""
        return self._list("session_diff", session)

    def leftovers(self, tally: Tally) -> None:
        if self._generation == "A":
            return
        for id in names(self._root / "message"):
            if id not in self._sessions:
                why = "their session is not there"
                tally.skip("message", f"messages of session {id[:60]}", str(self._root / "message" / id), why)
        for id in names(self._root / "part"):
            if id not in self._messages:
                why = "their message is not there"
                tally.skip("part", f"parts of message {id[:60]}", str(self._root / "part" / id), why)

    def close(self) -> None:
        """Nothing is open."""

    def _found(self) -> Iterator[tuple[str, str]]:
        folder = self._root / "session"
        if self._generation == "A":
            yield from (("", id) for id in names(folder / "info", ".json"))
        else:
            yield from ((project, id) for project in names(folder) for id in names(folder / project, ".json"))

    def _file(self, project: str, id: str) -> Path:
        return self._root / "session" / (project or "info") / f"{id}.json"

    def _message_folder(self, session: str) -> Path:
        if self._generation == "A":
            return self._root / "session" / "message" / session
        return self._root / "message" / session

    def _parts(self, session: str, message: str) -> list[RawRecord]:
        folder = self._root / "part" / message
        if self._generation == "A":
            folder = self._root / "session" / "part" / session / message
        return [read_json(folder / f"{id}.json") for id in names(folder, ".json")]

    def _list(self, kind: str, session: str) -> RawRecord | None:
        file = self._root / kind / f"{session}.json"
        return read_json(file) if file.is_file() else None

    def _settle(self, record: RawRecord, messages: list[RawMessage]) -> str:
        """Generation A: find the worktree in the messages, and the project through it."""
        paths = [mapping(mapping(message.info.value).get("path")) for message in messages]
        root = next((text(path.get("root")) for path in paths if text(path.get("root"))), "")
        cwd = next((text(path.get("cwd")) for path in paths if text(path.get("cwd"))), root)
        if isinstance(record.value, dict) and not text(record.value.get("directory")):
            record.value["directory"] = cwd
        known = self._project_of(root) if self._project_of is not None and root else None
        return known or GLOBAL
