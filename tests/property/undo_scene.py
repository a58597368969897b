"""A project in which the user, the agents of two sessions and of a child, and crashes do things to files."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import holdfast
from holdfast.app import Holdfast
from holdfast.errors import NotFound, Refused, UndoConflict
from holdfast.location import write_path
from holdfast.location.shadow.repository import Shadow
from holdfast.sessions.undo.contents import contents
from holdfast.testing.clock import FakeClock
from tests.sessions.undo_world import UndoWorld, outcomes

FILES = ("a", "b", "d/c")
SESSIONS = ("one", "two", "child")
FAMILY = {"one": {"one", "child"}, "two": {"two"}, "child": {"child"}}
LINES = [f"line {number}" for number in range(12)]
_TOKEN = re.compile(r"\b(user|one|two|child)-\d+\b")

Files = dict[str, bytes]


class Killed(BaseException):
    """The process ends here."""


class Scene:
    """Every line that somebody writes is unique and names its author, so that none can go unnoticed."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.top = place / "project"
        self.clock = FakeClock()
        self.count = 0
        self.left = -1
        """Steps until the process is killed."""
        self.kill_after = -1
        """In how many steps of the next undo."""
        self.prompts: dict[str, list[tuple[str, Files | None]]] = {each: [] for each in SESSIONS}
        """Of each session, and what the files held then; None once another author has changed them."""
        self.staged: dict[str, Files | None] = {}
        """What `unrevert` has to bring back exactly, as long as nobody else changes files."""
        self.ids: dict[str, str] = {}
        self.hf: Holdfast
        self.world: UndoWorld

    async def open(self) -> None:
        """A new process."""
        self._opened = holdfast.open(f"sqlite://{self.place}/store.db", clock=self.clock)
        self.hf = await self._opened.__aenter__()
        store = self.hf.sessions.access.store
        commit = store.commit

        async def counted(batch: Any) -> Any:
            self.step()
            return await commit(batch)

        store.commit = counted  # type: ignore[method-assign]
        self.world = UndoWorld(self.hf, self.clock, self.top)
        self.world.session = self.ids.get("one", "")

    async def close(self) -> None:
        await self._opened.__aexit__(None, None, None)

    async def begin(self) -> None:
        """The user's repository with a file in it, and three sessions."""
        self.top.mkdir()
        await self.open()
        self.world.git("init", "-q", ".")
        self.world.put("a", text(LINES))
        self.world.put("readme", b"of the user\n")
        self.world.git("add", "-A")
        self.world.git("commit", "-qm", "first")
        self.ids["one"] = self.world.session = await self.world.new_session()
        self.ids["two"] = await self.world.new_session()
        self.ids["child"] = await self.world.new_session(self.ids["one"])
        for name in SESSIONS:
            await self.prompt(name)

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed

    def counted(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            self.step()
            return work(*given, **named)

        return wrapped

    def token(self, author: str) -> str:
        self.count += 1
        return f"{author}-{self.count}"

    def others_changed(self, author: str) -> None:
        """What is not the session's own work any more."""
        for name in SESSIONS:
            if author not in FAMILY[name]:
                self.prompts[name] = [(id, None) for id, _ in self.prompts[name]]
        self.staged = dict.fromkeys(self.staged)

    def changed(self, author: str, name: str, how: str, at: int) -> bytes | None:
        """What an author makes of a file."""
        lines = (self.world.get(name) or b"").decode().splitlines()
        match how:
            case "insert":
                lines.insert(at % (len(lines) + 1), self.token(author))
            case "replace" if lines:
                lines[at % len(lines)] = self.token(author)
            case "rewrite":
                lines = [self.token(author) for _ in range(3)]
            case "delete":
                return None
            case _:
                lines.append(self.token(author))
        return text(lines)

    def user(self, name: str, how: str, at: int) -> None:
        """The user edits a file."""
        self.world.put(name, self.changed("user", name, how, at))
        self.others_changed("user")

    def git(self, how: str) -> None:
        """The user works with git."""
        if how == "commit":
            self.world.git("add", "-A")
            self.world.git("commit", "-qm", "more", "--allow-empty")
        elif how == "checkout":
            self.world.git("checkout", "-q", "HEAD", "--", ".")
            self.others_changed("user")
        else:
            self.world.git("reset", "-q", "--hard", "HEAD")
            self.others_changed("user")

    async def agent(self, session: str, name: str, how: str, at: int, *, observed: bool) -> None:
        """The agent of a session edits a file, unless its work is taken back at the moment."""
        if (await self.hf.sessions.get(self.ids[session])).revert is not None:
            return
        data = self.changed(session, name, how, at)
        if data is None and self.world.get(name) is None:
            return
        await self.world.agent({name: data}, session=self.ids[session], observed=observed)
        self.others_changed(session)

    async def prompt(self, session: str) -> None:
        """A prompt; it commits a staged revert."""
        before, id = self.world.files(), self.ids[session]
        if (await self.hf.sessions.get(id)).revert is None:
            made = await self.world.prompt(session=id)
        else:
            self.clock.advance(10)
            admitted = await self.hf.sessions.prompt(id, "on", no_reply=True)
            made = admitted.prompt.id
            self.staged.pop(session, None)
            left = {each.info.id for each in (await self.hf.sessions.messages(id, reverted=True)).messages}
            self.prompts[session] = [each for each in self.prompts[session] if each[0] in left]
            before = self.world.files()
        self.prompts[session].append((made, before))

    async def revert(self, session: str, which: int) -> None:
        """Back to one of the prompts."""
        id, then = self.prompts[session][which % len(self.prompts[session])]
        before, was = self.world.files(), self.staged.get(session)
        again = session in self.staged
        work = lambda: self.hf.sessions.revert(self.ids[session], id)  # noqa: E731 - it is short
        if await self.undo(session, work, strict=not again):
            if then is not None and not again:
                assert self.world.files() == then, "the agent's files come back exactly"
            self.others_changed(session)
            self.staged[session] = was if again else before

    async def unrevert(self, session: str, *, committed: bool) -> None:
        exact = None if committed else self.staged.get(session)
        id = self.ids[session]
        if await self.undo(session, lambda: self.hf.sessions.unrevert(id, committed=committed)):
            self.others_changed("undo" if committed else session)
            if not committed:
                if exact is not None:
                    assert self.world.files() == exact, "what was staged comes back exactly"
                self.staged.pop(session, None)

    async def undo(self, session: str, work: Callable[[], Awaitable[Any]], *, strict: bool = False) -> bool:
        """An undo of any kind: whether it was done.

        No line of another author goes out of the files, when it is a revert (`strict`); when what the agent
        had done is done again, with the lines that the agent had removed, they are still kept.
        """
        before, beside = self.world.files(), self.beside()
        self.left, self.kill_after = self.kill_after, -1
        try:
            undo = await work()
        except UndoConflict:
            assert self.world.files() == before
            return False
        except (NotFound, Refused):  # There is no such revert, or another one is staged.
            return False
        except Killed:
            await self.close()
            await self.open()
            undo = None
        finally:
            self.left = -1
            lost = protected(before, session) - protected(self.world.files(), session)
            assert not lost or not (strict or lost - await self.kept())
            assert self.beside() == beside
        if undo is None:
            self.others_changed("undo")
            self.staged = {
                name: None
                for name, id in self.ids.items()
                if (await self.hf.sessions.get(id)).revert is not None
            }
            return False
        assert set(outcomes(undo).values()) <= {"restored", "merged", "deleted", "unchanged"}
        return True

    async def kept(self) -> set[str]:
        """The lines in everything that is kept under a name."""
        shadow = await self.world.shadow()
        ids = [each.id for each in shadow.kept()]
        return {
            match[0] for data in contents(shadow, ids).values() for match in _TOKEN.finditer(data.decode())
        }

    def beside(self) -> dict[str, bytes]:
        """What no undo may touch: git's own files, and what lies beside the project."""
        names = (".git/HEAD", ".git/index", ".git/config", ".git/refs/heads/master", ".git/refs/heads/main")
        found = {name: (self.top / name).read_bytes() for name in names if (self.top / name).exists()}
        return found | {"outside": (self.place / "outside").read_bytes()}

    def count_writes(self, patch: Any) -> None:
        """Let writes of files and of kept contents count as steps."""
        for holder, name in ((write_path, "write"), (write_path, "remove"), (Shadow, "keep_contents")):
            patch.setattr(holder, name, self.counted(getattr(holder, name)))


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def protected(files: Files, session: str) -> set[str]:
    """The lines of others, wherever they stand."""
    found = {match[0] for data in files.values() for match in _TOKEN.finditer(data.decode())}
    return {token for token in found if token.split("-")[0] not in FAMILY[session]}
