"""A project in which the user, the agents of two sessions and of a child, and crashes do things to files.

Edits of agents are records beside real files (`agent`), or made by the real application: a model that calls
tools (`turn`), while the user or another session does something too.
"""

import os
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec

from holdfast.clock import SystemClock
from holdfast.errors import HoldfastError, NotFound, Refused, UndoConflict
from holdfast.location import write_path
from holdfast.location.shadow.repository import Shadow
from holdfast.sessions.undo import write_files
from holdfast.sessions.undo.contents import contents
from holdfast.testing.clock import FakeClock
from holdfast.testing.scripted_provider import Step
from tests.property import undo_agents
from tests.property.undo_agents import MOVED, Model, lines_of
from tests.sessions.undo_world import UndoWorld, outcomes
from tests.stories.crashing import Dead, Machine, life
from tests.until import until

FILES = ("a", "b", "d/c")
SESSIONS = ("one", "two", "child")
FAMILY = {"one": {"one", "child"}, "two": {"two"}, "child": {"child"}}
LINES = [f"line {number}" for number in range(12)]
_TOKEN = re.compile(r"\b(user|one|two|child)-\d+\b")
_WRITES = (
    *((write_path, name) for name in ("put", "remove")),
    *((Shadow, name) for name in ("take", "keep_contents", "keep", "drop", "make_tree")),
    (write_files, "_set_mode"),
)

Files = dict[str, bytes]
Edit = tuple[str, str, str, int, Any]
"""A tool, the name of a file, how, where, and what happens meanwhile."""


class Then(msgspec.Struct, frozen=True):
    """What the files held at some moment, and how many changes there had been."""

    files: Files
    changes: int


class State(msgspec.Struct):
    """What is known of the scene, whichever process plays it."""

    ids: dict[str, str] = {}
    count: int = 0
    authors: list[str] = []
    """Who changed files, the first first."""
    prompts: dict[str, list[tuple[str, Then | None]]] = {}
    """Of each session, and what the files held then."""
    staged: dict[str, Then | None] = {}
    """What `unrevert` has to bring back exactly, as long as nobody else changes files."""
    meanwhile: set[str] = set()
    """Lines that came in while a command ran: they count as the command's."""


class Scene:
    """Every line that is written is unique and names its author, so that none can go unnoticed."""

    def __init__(self, place: Path, *, real: bool, state: State | None = None) -> None:
        self.place = place
        self.top = place / "project"
        self.real = real
        self.clock: Any = SystemClock() if real else FakeClock()
        self.state = state or State(prompts={each: [] for each in SESSIONS})
        self.kill: tuple[int, bool] | None = None
        """At which write of what happens next the process is killed; and whether after that write."""
        self.machine = Machine()
        self.model = Model()
        self.world: UndoWorld

    async def open(self) -> None:
        """A new process."""
        self._life = life(
            f"sqlite://{self.place}/store.db", self.machine, clock=self.clock, provider=self.model
        )
        self.hf, self.mortal = await self._life.__aenter__()
        self.world = UndoWorld(self.hf, self.clock, self.top)
        self.world.session = self.state.ids.get("one", "")

    async def close(self) -> None:
        await self._life.__aexit__(None, None, None)

    async def begin(self) -> None:
        """The user's repository with a file in it, and three sessions."""
        self.top.mkdir()
        await self.open()
        self.world.git("init", "-q", ".")
        self.world.put("a", text(LINES))
        self.world.put("readme", b"of the user\n")
        self.world.git("add", "-A")
        self.world.git("commit", "-qm", "first")
        ids = self.state.ids
        ids["one"] = self.world.session = await self.world.new_session()
        ids["two"] = await self.world.new_session()
        ids["child"] = await self.world.new_session(ids["one"])
        for name in SESSIONS:
            await self.prompt(name)

    def count_writes(self, patch: Any) -> None:
        """Let writes of files and of kept contents count, beside those of the store."""
        for holder, name in _WRITES:
            plain = getattr(holder, name)
            patch.setattr(holder, name, lambda *given, _=plain, **named: self.written(_, *given, **named))

    def written(self, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """A write that is none of the store's."""
        return self.mortal.around(work)(*given, **named)

    async def act(self, what: str, *given: Any) -> None:
        """One thing that happens; if the process dies of it, another takes over."""
        files, beside = self.files(), self.beside()
        kill, self.kill = self.kill, None
        if kill is not None:
            self.mortal.kill_at(kill[0], after=kill[1])
        try:
            await self.do(what, *given)
        except Dead:
            await self.close()
            await self.open()
            await self.died(files, beside, what, *given)
        finally:
            self.mortal.kill_at(1 << 30, after=False)

    async def do(self, what: str, *given: Any) -> None:
        """One thing that happens."""
        match what:
            case "agent":
                await self.agent(*given)
            case "turn":
                await self.turn(*given)
            case "user":
                self.user(*given)
            case "git":
                self.git(*given)
            case "prompt":
                await self.prompt(*given)
            case "revert":
                await self.revert(*given)
            case "unrevert":
                await self.unrevert(*given)
            case "restart":
                await self.close()
                await self.open()
            case other:
                raise AssertionError(other)

    async def died(self, files: Files, beside: Files, what: str, *given: Any) -> None:
        """Another process goes on where one was killed."""
        if what in ("revert", "unrevert"):
            is_strict = what == "revert" and given[0] not in self.state.staged
            await self.check(files, beside, given[0], strict=is_strict)
            if self.state.count % 3 == 1:
                await self.do(what, *given)  # What was cut off is finished exactly.
            elif self.state.count % 3 == 2 and is_strict:
                await self.go_on(files, *given)
            self.changed_by("undo")
        elif what == "agent" and self.files() != files:
            self.changed_by("command")  # The file was written, and its record may not have been.
        elif what == "turn":
            # What a command did is not known then; what tools noted is.
            has_command = any(runs_command(given[1], edit) for edit in given[2])
            self.changed_by("command" if has_command else given[0])
        await self.gone()
        self.model.steps.clear()
        for id in self.state.ids.values() if self.real else ():
            if self.state.count % 2:
                await self.hf.sessions.interrupt(id)
            with suppress(Refused):  # A revert is staged.
                await self.hf.sessions.resume(id)
            await self.hf.sessions.wait(id)
        await self.look()

    async def go_on(self, before: Files, session: str, which: int) -> None:
        """A prompt after a revert that was cut off: it is finished first, or had not begun."""
        prompts = self.state.prompts[session]
        then = self.exact(prompts[which % len(prompts)][1], FAMILY[session]) if prompts else None
        is_staged = (await self.hf.sessions.get(self.state.ids[session])).revert is not None
        await self.prompt(session)
        if then is not None:
            assert self.files() == (then if is_staged else before), "a prompt finds it done, or not begun"

    async def gone(self) -> None:
        """Wait until no command of a dead process runs any more."""
        for gate in (self.place / "gates").glob("*"):
            (gate / "go").touch()
            if (gate / "pid").exists() and (pid := (gate / "pid").read_text().strip()):
                await until(partial(_is_gone, pid))

    async def look(self) -> None:
        """Read again what is staged, and which prompts there are."""
        for name, id in self.state.ids.items():
            is_staged = (await self.hf.sessions.get(id)).revert is not None
            self.state.staged.pop(name, None)
            if is_staged:
                self.state.staged[name] = None
            page = await self.hf.sessions.messages(id, reverted=True)
            left = {each.info.id for each in page.messages}
            self.state.prompts[name] = [each for each in self.state.prompts[name] if each[0] in left]

    def token(self, author: str) -> str:
        self.state.count += 1
        return f"{author}-{self.state.count}"

    def changed_by(self, author: str) -> None:
        """What is not the session's own work any more."""
        self.state.authors.append(author)

    def now(self) -> Then:
        return Then(self.files(), len(self.state.authors))

    def exact(self, then: Then | None, authors: set[str]) -> Files | None:
        """What the files have to be again, if nobody else has changed any since."""
        if then is None or set(self.state.authors[then.changes :]) - authors:
            return None
        return then.files

    def files(self) -> Files:
        """Everything in the project that is not git's, nor ours; a file that can be run has a star."""
        return {
            f"{name}*" if os.access(self.top / name, os.X_OK) else name: data
            for name, data in self.world.files().items()
            if write_path.TEMPORARY not in name
        }

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
        self.changed_by("user")

    def git(self, how: str) -> None:
        """The user works with git."""
        if how == "commit":
            self.world.git("add", "-A")
            self.world.git("commit", "-qm", "more", "--allow-empty")
        elif how == "checkout":
            self.world.git("checkout", "-q", "HEAD", "--", ".")
            self.changed_by("user")
        else:
            self.world.git("reset", "-q", "--hard", "HEAD")
            self.changed_by("user")

    async def agent(self, session: str, name: str, how: str, at: int, observed: bool) -> None:
        """A record of an edit by a session's agent, unless its work is taken back at the moment."""
        id = self.state.ids[session]
        if (await self.hf.sessions.get(id)).revert is not None:
            return
        data = self.changed(session, name, how, at)
        if data is None and self.world.get(name) is None:
            return
        await self.world.agent({name: data}, session=id, observed=observed)
        self.changed_by(session)

    async def turn(self, session: str, model: str, edits: list[Edit]) -> None:
        """A prompt, and a model that edits; it commits a staged revert."""
        id = self.state.ids[session]
        then: list[Then] = []
        prompts: list[str] = []

        def begin() -> Step:
            then.append(self.now())
            return self.model.next(id)

        async with anyio.create_task_group() as group:
            works = [self.work(session, model, edit, group) for edit in edits]
            self.model.steps[id] = [begin, *works]
            group.start_soon(self.until_dead, group.cancel_scope)
            try:
                admitted = await self.hf.sessions.prompt(id, "go", model=f"scripted/{model}")
                prompts.append(admitted.prompt.id)
                await self.hf.sessions.wait(id)
            except (HoldfastError, Dead):
                if not self.mortal.dead.is_set():
                    raise
            group.cancel_scope.cancel()
        if self.mortal.dead.is_set():
            raise Dead
        if session in self.state.staged:
            await self.look()
        self.state.prompts[session].append((prompts[0], then[0]))

    async def until_dead(self, scope: anyio.CancelScope) -> None:
        await self.mortal.dead.wait()
        scope.cancel()

    def work(self, session: str, model: str, edit: Edit, group: Any) -> Callable[[], Step]:
        """The steps of one edit: a file that exists is read first."""
        tool, name, how, at, meanwhile = edit
        path = self.top / name
        is_known = tool == "bash"

        def work() -> Step:
            nonlocal is_known
            if not is_known and path.is_file():
                is_known = True
                self.model.steps[self.state.ids[session]].insert(0, work)
                return Step(undo_agents.read(path, self.token("read")))
            self.changed_by(session)
            noted = None if tool == "bash" else self.noted(session, model, path, how, at)
            calls = [] if noted is None else [noted]
            if tool != "noted" or noted is None:
                gate = self.gate(session, path, meanwhile, group)
                line = undo_agents.command(path, how, at, self.token(session), gate=gate)
                calls.append(undo_agents.bash(line, self.token("call")))
            return Step(*calls)

        return work

    def noted(self, session: str, model: str, path: Path, how: str, at: int) -> Any:
        lines, id = lines_of(path), self.token("call")
        if how == "move" and lines is not None and model != "m":
            return undo_agents.move(path, lines, path.with_name(MOVED), self.token(session))
        data = self.changed(session, str(path.relative_to(self.top)), how, at)
        new = None if data is None else data.decode().splitlines()
        return undo_agents.noted(model, path, lines, new, id)

    def gate(self, session: str, path: Path, meanwhile: Any, group: Any) -> Path | None:
        """Where a command of a session about a file waits, if something happens meanwhile."""
        if meanwhile is None:
            return None
        gate = self.place / "gates" / self.token("gate")
        gate.mkdir(parents=True)
        group.start_soon(self.meanwhile, session, gate, path, meanwhile)
        return gate

    async def meanwhile(self, session: str, gate: Path, path: Path, what: Any) -> None:
        """What the user, or another session, does while a command of a session waits at a gate."""
        await until((gate / "begun").exists)
        who, name, how, at = what
        before = self.state.count
        if who == "user":
            self.user(name, how, at)
        else:
            await self.turn(who, "m", [("noted", name, "append" if how == "delete" else how, at, None)])
        if who == "user" or self.top / name in (path, path.with_name(MOVED)):
            made = range(before + 1, self.state.count + 1)
            self.state.meanwhile |= {f"{who}-{number}" for number in made}
        self.changed_by(session)  # What the command does comes after all of that.
        (gate / "go").touch()

    async def prompt(self, session: str) -> None:
        """A prompt; it commits a staged revert."""
        if self.real:
            await self.turn(session, "m", [])
            return
        then, id = self.now(), self.state.ids[session]
        if (await self.hf.sessions.get(id)).revert is None:
            made = await self.world.prompt(session=id)
        else:
            self.clock.advance(10)
            admitted = await self.hf.sessions.prompt(id, "on", no_reply=True)
            made = admitted.prompt.id
            await self.look()
            then = self.now()
        self.state.prompts[session].append((made, then))

    async def revert(self, session: str, which: int) -> None:
        """Back to one of the prompts."""
        prompts, staged = self.state.prompts[session], self.state.staged
        if not prompts:
            return
        id, then = prompts[which % len(prompts)]
        files, is_again = self.exact(then, FAMILY[session]), session in staged
        before = self.now()
        work = lambda: self.hf.sessions.revert(self.state.ids[session], id)  # noqa: E731 - it is short
        if await self.undo(session, work, strict=not is_again):
            if files is not None and not is_again:
                assert self.files() == files, "the agent's files come back exactly"
            was = self.exact(staged.get(session), set())
            self.changed_by(session)
            now = len(self.state.authors)
            if is_again:
                staged[session] = None if was is None else Then(was, now)
            else:
                staged[session] = Then(before.files, now)

    async def unrevert(self, session: str, committed: bool) -> None:
        staged = self.state.staged
        exact = None if committed else self.exact(staged.get(session), set())
        id = self.state.ids[session]
        if await self.undo(session, lambda: self.hf.sessions.unrevert(id, committed=committed)):
            self.changed_by("undo" if committed else session)
            if not committed:
                if exact is not None:
                    assert self.files() == exact, "what was staged comes back exactly"
                staged.pop(session, None)

    async def undo(self, session: str, work: Callable[[], Awaitable[Any]], *, strict: bool = False) -> bool:
        """An undo of any kind: whether it was done."""
        files, beside = self.files(), self.beside()
        try:
            undo = await work()
        except UndoConflict:
            assert self.files() == files
            return False
        except (NotFound, Refused):  # There is no such revert, or another one is staged.
            return False
        finally:
            await self.check(files, beside, session, strict=strict)
        assert set(outcomes(undo).values()) <= {"restored", "merged", "deleted", "unchanged"}
        return True

    async def check(self, files: Files, beside: Files, session: str, *, strict: bool) -> None:
        """No line of another author goes out of the files, when it is a revert (`strict`); when what the
        agent had done is done again, with the lines that the agent had removed, they are still kept. So are
        those that came in while a command ran.
        """
        lost = protected(files, session) - protected(self.files(), session)
        allowed = self.state.meanwhile if strict else lost
        assert not lost - allowed, f"lost: {lost}"
        assert not lost or not lost - await self.kept(), f"not kept: {lost}"
        assert self.beside() == beside

    async def kept(self) -> set[str]:
        """The lines in everything that is kept under a name."""
        shadow = await self.world.shadow()
        ids = [each.id for each in shadow.kept()]
        return {
            match[0] for data in contents(shadow, ids).values() for match in _TOKEN.finditer(data.decode())
        }

    def beside(self) -> Files:
        """What no undo may touch: git's own files, and what lies beside the project."""
        names = (".git/HEAD", ".git/index", ".git/config", ".git/refs/heads/master", ".git/refs/heads/main")
        found = {name: (self.top / name).read_bytes() for name in names if (self.top / name).exists()}
        return found | {"outside": (self.place / "outside").read_bytes()}


def runs_command(model: str, edit: Edit) -> bool:
    """Whether an edit needs a command: a model that does not patch has no tool that deletes."""
    tool, _, how, *_ = edit
    return tool != "noted" or (how == "delete" and model == "m")


def _is_gone(pid: str) -> bool:
    return not Path("/proc", pid).exists()


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def protected(files: Files, session: str) -> set[str]:
    """The lines of others, wherever they stand."""
    found = {match[0] for data in files.values() for match in _TOKEN.finditer(data.decode())}
    return {token for token in found if token.split("-")[0] not in FAMILY[session]}
