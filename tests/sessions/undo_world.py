"""A project, a user and an agent without a model: its edits are recorded as the tools record them."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.app import Holdfast
from holdfast.location.shadow import place
from holdfast.location.shadow.repository import Shadow
from holdfast.person import directories
from holdfast.runtime.history.file_changes import FILES
from holdfast.schema.file_change import FileChange
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.part import PatchPart, ToolPart
from holdfast.schema.tool_state import Completed, ToolCompleted
from holdfast.sessions.undo.result import Undo
from holdfast.testing.clock import FakeClock
from tests.sessions.filling import answer, ask, say

LINES = "".join(f"line {number}\n" for number in range(1, 21)).encode()


def edited(*changes: tuple[int, str], lines: bytes = LINES) -> bytes:
    """The lines with some of them replaced, by number."""
    found = lines.splitlines(keepends=True)
    for number, line in changes:
        found[number - 1] = line.encode()
    return b"".join(found)


class UndoWorld:
    """One project with one session, or more."""

    def __init__(self, hf: Holdfast, clock: FakeClock, top: Path) -> None:
        self.hf = hf
        self.clock = clock
        self.top = top
        self.session = ""

    async def begin(self) -> "UndoWorld":
        self.session = await self.new_session()
        return self

    async def new_session(self, parent: str | None = None) -> str:
        return (await self.hf.sessions.create(directory=self.top, title="Undo", parent=parent)).id

    async def shadow(self) -> Shadow:
        record = await self.hf.sessions.get(self.session)
        return Shadow(place.git_dir(directories.data(), record.project_id, self.top), self.top)

    def put(self, name: str, data: bytes | None) -> None:
        """Write a file as any program would; None deletes it."""
        path = self.top / name
        if data is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def get(self, name: str) -> bytes | None:
        path = self.top / name
        return path.read_bytes() if path.is_file() else None

    def files(self) -> dict[str, bytes]:
        """Everything in the project, without git's own."""
        return {
            str(path.relative_to(self.top)): path.read_bytes()
            for path in sorted(self.top.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.top).parts
        }

    async def prompt(self, words: str = "go", session: str | None = None) -> str:
        """A prompt of the user."""
        self.clock.advance(10)
        return (await ask(self.hf, session or self.session, words)).id

    async def agent(
        self,
        files: Mapping[str, bytes | None],
        *,
        session: str | None = None,
        observed: bool = False,
        **more: Any,
    ) -> str:
        """An answer whose call changes files; `observed`: by a command, seen in the trees around it."""
        session = session or self.session
        self.clock.advance(10)
        changes = [
            await self._change(session, name, data, observed=observed, **more) for name, data in files.items()
        ]
        asked = (await self.hf.sessions.messages(session)).messages[-1]
        said = await answer(self.hf, session, asked.info.id, "done")
        await self._record(session, said.id, changes, observed=observed)
        return said.id

    async def _change(
        self, session: str, name: str, data: bytes | None, *, observed: bool, **more: Any
    ) -> FileChange:
        path, before = self.top / name, self.get(name)
        contents = [each for each in (before, data) if each is not None]
        ids = iter((await self.shadow()).keep_contents(place.folder_of(session), contents))
        mode = path.stat().st_mode if before is not None else None
        change = FileChange(
            path=str(path),
            before=None if before is None else next(ids),
            after=None if data is None else next(ids),
            before_mode=mode,
            after_mode=None if data is None else mode,
            observed=observed,
        )
        self.put(name, data)
        return msgspec.structs.replace(change, **more)

    async def _record(self, session: str, message: str, changes: list[FileChange], *, observed: bool) -> None:
        head: dict[str, Any] = {
            "id": PartID(await self.hf.sessions.new_id(session, "prt")),
            "session_id": SessionID(session),
            "message_id": MessageID(message),
        }
        now_ms = self.clock.now_ms()
        state = ToolCompleted(
            input={},
            output="",
            title="",
            metadata={} if observed else {FILES: msgspec.to_builtins(changes)},
            time=Completed(start=now_ms, end=now_ms),
        )
        await self.hf.sessions.add_part(ToolPart(**head, call_id="c", tool="edit", state=state))
        if observed:
            head["id"] = PartID(await self.hf.sessions.new_id(session, "prt"))
            patch = PatchPart(**head, hash="0" * 40, files=[each.path for each in changes], changes=changes)
            await self.hf.sessions.add_part(patch)

    async def revert(self, message: str | None = None, **more: Any) -> dict[str, str]:
        """Revert the session: what became of each file."""
        return outcomes(await self.hf.sessions.revert(self.session, message, **more))

    async def unrevert(self, **more: Any) -> dict[str, str]:
        return outcomes(await self.hf.sessions.unrevert(self.session, **more))

    async def said(self, *, reverted: bool = False) -> list[str]:
        """The ids of the messages."""
        page = await self.hf.sessions.messages(self.session, reverted=reverted)
        return [each.info.id for each in page.messages]

    async def add_text(self, message: str, words: str) -> str:
        return (await say(self.hf, self.session, message, words)).id

    def git(self, *arguments: str) -> bytes:
        """The user's own git."""
        identity = ("-c", "user.name=u", "-c", "user.email=u@h")
        return subprocess.run(
            ["git", *identity, *arguments], cwd=self.top, check=True, capture_output=True
        ).stdout


def outcomes(undo: Undo) -> dict[str, str]:
    """What became of each file."""
    return {each.path: each.outcome for each in undo.files}


def configure(home: Path, *, models: Sequence[str] = ("m",), **more: Any) -> None:
    """The settings of a user, so that a session can be prompted."""
    folder = home / ".config" / "holdfast"
    folder.mkdir(parents=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {model: {} for model in models},
    }
    settings = {"model": f"scripted/{models[0]}", "provider": {"scripted": provider}, **more}
    (folder / "holdfast.json").write_text(json.dumps(settings))
