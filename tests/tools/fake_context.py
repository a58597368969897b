"""A call's world for tests: it notes what is asked, and denies what it is told to."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from holdfast.schema.permission import Action
from holdfast.schema.request import Question
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.box import Box
from holdfast.toolkit.context import OwnKind
from holdfast.toolkit.file_edit import FileEdit
from holdfast.toolkit.output import ToolDenied


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One question to the person."""

    permission: str
    patterns: list[str]
    always: list[str]
    metadata: JsonMap
    aliases: list[str] = []
    unclear: list[str] = []


class FakeBox:
    """No box; a test says what one would have found."""

    def __init__(self) -> None:
        self.facts: JsonMap = {"level": "none"}
        self.may_leave = True
        self.failure: str | None = None
        self.stops: Sequence[str] = ()
        self.changes: Sequence[str] = ()

    async def stopped(self, output: str) -> list[str]:
        return list(self.stops)

    async def changed(self) -> list[str]:
        return list(self.changes)


class FakeContext:
    """A `ToolContext` over a real directory."""

    session_id = "ses_1"
    message_id = "msg_1"
    call_id = "call_1"
    agent = "build"
    cancelled = False
    processes: Any = None

    def __init__(self, directory: Path, worktree: Path | None = None, *, denies: Sequence[str] = ()) -> None:
        self.directory = directory
        self.worktree = worktree or directory
        self.denies = denies
        self.asked: list[Asked] = []
        self.unconfined: list[str | None] = []
        """The reasons with which boxes were asked for."""
        self.boxed = FakeBox()
        self.is_sealed = False
        self.verdicts: dict[str, Action] = {}
        self.known: dict[Path, str | None] = {}
        """What the session has seen of files."""
        self.edits: list[Path] = []
        self.kept: list[tuple[FileEdit, ...]] = []
        self.shown: list[tuple[str | None, JsonMap]] = []

    async def keep(self, *edits: FileEdit) -> None:
        self.kept.append(edits)

    def effect(self, *what: str, waits: bool = True) -> AbstractContextManager[None]:
        return nullcontext()

    async def seen(self, path: Path) -> str | None:
        return self.known.get(path)

    def edited(self, path: Path, digest: str | None) -> None:
        self.known[path] = digest
        self.edits.append(path)

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: JsonMap | None = None,
        aliases: Sequence[str] = (),
        unclear: Sequence[str] = (),
    ) -> None:
        self.asked.append(
            Asked(
                permission=permission,
                patterns=list(patterns),
                always=list(always),
                metadata=dict(metadata or {}),
                aliases=list(aliases),
                unclear=list(unclear),
            )
        )
        if permission in self.denies:
            raise ToolDenied(f"{permission} is denied")

    async def verdict(self, permission: str, patterns: Sequence[str]) -> Action:
        """What a test says of a pattern in `verdicts`; anything else is allowed."""
        if permission in self.denies:
            return "deny"
        return next((self.verdicts[each] for each in patterns if each in self.verdicts), "allow")

    async def question(self, questions: Sequence[Question]) -> list[list[str]]:
        raise ToolDenied("there is nobody")

    async def commit(self, kind: OwnKind, value: Sequence[Todo] | Sequence[FileDiff]) -> None:
        """Nothing is kept."""

    def publish(self, name: str, properties: JsonMap) -> None:
        """Nobody listens."""

    async def admit(self, session: str, text: str, *, id: str | None = None, agent: str | None = None) -> str:
        raise ToolDenied("there is no other session")

    async def progress(self, *, title: str | None = None, metadata: JsonMap | None = None) -> None:
        self.shown.append((title, metadata or {}))

    async def environment(self, cwd: Path) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "PWD": str(cwd)}

    async def sealed(self) -> bool:
        return self.is_sealed

    async def box(
        self,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: JsonMap | None = None,
        unconfined: str | None = None,
        asks: bool = True,
    ) -> Box:
        self.unconfined.append(unconfined)
        return self.boxed

    def spawn(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        strays: bool = False,
        noted: bool = True,
        box: Box | None = None,
    ) -> NoReturn:
        raise ToolDenied("there are no programs")
