"""Where the long story is played: a project, a wall clock that the story moves, tools, and a scripted model
of the Anthropic wire that remembers every request with what was true of the world when it was made.
"""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

import holdfast
from holdfast.app import Holdfast
from holdfast.clock import SystemClock
from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.part import StepPrefix, StepStartPart
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from holdfast.toolkit.declare import Tool
from tests.stories.world import World

SONNET = "anthropic/claude-sonnet-4-5"
HAIKU = "anthropic/claude-haiku-4-5"
START_MS = int(datetime(2027, 3, 1, 12, tzinfo=UTC).timestamp() * 1_000)
DAY_MS = 86_400_000
TURN_MS = 20_000
STEP_MS = 2_000


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and what the story says of it.

    `before` is the request that it must extend, by number; `moved` the reason for which it need not, `begins`
    the cause of the epoch that begins with it. `aside` is one of another kind: it wrote a summary.
    """

    number: int
    turn: int
    note: str
    session: str
    request: Request
    at_ms: int
    before: int | None
    moved: str | None
    begins: str | None
    aside: bool
    date: str
    rules: str | None
    """AGENTS.md as it was then."""
    tools: tuple[str, ...]
    """The tools in the order of their registration."""
    prefix: StepPrefix | None = None
    """What the step has stored of it."""


class Wall(SystemClock):
    """Wall time as the story tells it; leases are renewed by the machine's own."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed_ms = 0
        self.days = 0

    def now_ms(self) -> int:
        return START_MS + self.elapsed_ms + self.days * DAY_MS

    def today(self) -> str:
        return datetime.fromtimestamp(self.now_ms() / 1_000, UTC).date().isoformat()


class Gate:
    """A place in a stream that is never passed; who waits for it knows when it was reached."""

    def __init__(self) -> None:
        self.reached = anyio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await anyio.sleep_forever()


class Remembering(ScriptedProvider):
    """Plays the script, and has each request noted before it is answered."""

    def __init__(self, note: Callable[[Request], None]) -> None:
        super().__init__()
        self._note = note

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        self._note(request)
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                yield event


class Stage:
    """The world of the story. `HOME` must be `place / "home"` while it is played."""

    def __init__(self, place: Path, model: str = SONNET) -> None:
        (place / "home").mkdir(parents=True, exist_ok=True)
        self.place = place
        self.model = model
        self.world = World(place, place / "home")
        self.wall = Wall()
        self.script = Remembering(self._remember)
        self.seen: list[Seen] = []
        self.names: dict[str, str] = {}
        self._hf: Holdfast | None = None
        self._tools: list[str] = []
        self._last: dict[str, int] = {}
        self._copied: dict[str, int] = {}
        self._began_ms = 0
        self._turn = 0
        self._note = ""
        self._moved: str | None = None
        self._begins: str | None = None

    @property
    def hf(self) -> Holdfast:
        """The runtime, while it is open."""
        assert self._hf is not None, "the story opens it first"
        return self._hf

    @property
    def rules(self) -> Path:
        """The project's instruction file."""
        return self.world.project / "AGENTS.md"

    def settings(self, **more: Any) -> None:
        """The person's settings: models of the Anthropic wire, and what the story adds."""
        limits = {"limit": {"context": 200_000, "output": 8_000}}
        ids = [model.partition("/")[2] for model in (SONNET, HAIKU, self.model)]
        entry = {
            "npm": "@ai-sdk/anthropic",
            "options": {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "none"},
            "models": {id: {"name": f"Model {id}", **limits} for id in ids},
        }
        self.world.settings(model=self.model, provider={"anthropic": entry}, timezone="UTC", **more)

    @asynccontextmanager
    async def open(self, *tools: Tool) -> AsyncIterator[None]:
        """One life of the runtime, with tools registered in this order."""
        store = self.world.store
        async with holdfast.open(store, provider=self.script, clock=self.wall) as self._hf:
            self._tools = sorted(self.hf.tools.names() - {"apply_patch", "question"})
            for each in tools:
                self.register(each)
            yield
            self.script.check()
            await self._keep_prefixes()

    def register(self, tool: Tool) -> None:
        """A tool more."""
        self.hf.tools.register(tool)
        self._tools.append(tool.name)

    async def session(self, name: str) -> str:
        """A session of the project, under a name of the story's."""
        id = await self.world.session(self.hf)
        self.names[id] = name
        return id

    async def fork(self, session: str, name: str, *, cut: str | None = None, after: int | None = None) -> str:
        """A fork, which goes on after the request with this number, or after the source's last one."""
        forked = (await self.hf.sessions.fork(session, cut)).id
        self.names[forked] = name
        self._last[forked] = self._last[session] if after is None else after
        self._copied[forked] = len(await self._steps(forked))
        return forked

    def begin(
        self, note: str, *, moved: str | None = None, begins: str | None = None, after_ms: int = TURN_MS
    ) -> None:
        """The next turn comes so much later than the last one, and its first request may not extend."""
        if self.seen:
            self.wall.elapsed_ms = max(self.wall.elapsed_ms, self._began_ms + after_ms)
        self._began_ms = self.wall.elapsed_ms
        self._turn += 1
        self._note, self._moved, self._begins = note, moved, begins

    async def turn(
        self,
        session: str,
        note: str,
        prompt: str,
        *steps: Step,
        moved: str | None = None,
        begins: str | None = None,
        after_ms: int = TURN_MS,
        **wishes: Any,
    ) -> None:
        """A prompt, and all that follows."""
        self.begin(note, moved=moved, begins=begins, after_ms=after_ms)
        self.script.add(*steps)
        await self.hf.sessions.process(session, prompt, check=False, **wishes)
        self.script.check()

    def _remember(self, request: Request) -> None:
        number, session = len(self.seen) + 1, str(request.session)
        aside = request.cache_key is None
        self.seen.append(
            Seen(
                number=number,
                turn=self._turn,
                note=self._note,
                session=self.names[session],
                request=request,
                at_ms=self.wall.elapsed_ms,
                before=None if aside else self._last.get(session),
                moved=None if aside else self._moved,
                begins=None if aside else self._begins,
                aside=aside,
                date=self.wall.today(),
                rules=self.rules.read_text() if self.rules.exists() else None,
                tools=tuple(self._tools),
            )
        )
        self.wall.elapsed_ms += STEP_MS
        if not aside:
            self._last[session] = number
            self._moved = self._begins = None

    async def _steps(self, session: str) -> list[StepPrefix | None]:
        """What the answers of a session have stored, in order; one without a word has stored nothing."""
        page = await self.hf.sessions.messages(session, system=True, limit=10_000)
        answers = [each for each in page.messages if isinstance(each.info, AssistantMessage)]
        return [_prefix(each) for each in answers if not each.info.summary]

    async def _keep_prefixes(self) -> None:
        for id, name in self.names.items():
            stored = (await self._steps(id))[self._copied.get(id, 0) :]
            asked = [each for each in self.seen if each.session == name and not each.aside]
            assert len(stored) == len(asked), f"{name}: {len(asked)} requests, {len(stored)} answers"
            for each, prefix in zip(asked, stored, strict=True):
                self.seen[each.number - 1] = replace(each, prefix=prefix)

    def plain(self, text: str) -> str:
        """A text without what differs from machine to machine."""
        for path, name in ((self.world.project, "/project"), (self.place, "/place")):
            text = text.replace(str(path), name)
        return text.replace(f"Platform: {sys.platform}", "Platform: any")


def _prefix(answer: MessageWithParts) -> StepPrefix | None:
    return next((part.prefix for part in answer.parts if isinstance(part, StepStartPart)), None)
