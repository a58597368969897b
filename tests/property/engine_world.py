"""A model that answers anything, and a session that is prompted, interrupted, killed and gone on with."""

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.errors import Conflict, ProviderError
from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.request import Assistant, Request, Results, ToolCall
from holdfast.schema.ids import PartID
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import ToolPart
from holdfast.schema.prompt import AdmittedPrompt
from holdfast.schema.stored import Mark
from holdfast.store.query import MessageQuery
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step, Wait
from tests import prefixes
from tests.stories import inside
from tests.stories.crashing import Machine, Mortal, life
from tests.stories.recovery import await_open
from tests.stories.tools import Deed
from tests.stories.world import World

PATIENCE_S = 60.0


class Oracle:
    """A model that never runs out of answers: those that were prepared, then plain ones."""

    def __init__(self) -> None:
        self.prepared: deque[str] = deque()
        self.requests: list[Request] = []
        self.gates: list[anyio.Event] = []
        self._count = 0

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """The next answer."""
        self.requests.append(request)
        step = self._step(self.prepared.popleft() if self.prepared else "text")
        async for event in ScriptedProvider(step).stream(request):
            yield event

    def _step(self, kind: str) -> Step:
        self._count += 1
        said, id = Say(f"answer {self._count}"), f"call_{self._count}"
        match kind:
            case "text":
                return Step(said)
            case "hangs":
                return Step(said, Wait(self.gate()), Say("and on"))
            case "hangs before a word":
                return Step(Wait(self.gate()), said)
            case "calls":
                return Step(said, Call("act", {"what": id}, id=id), Call("look", {"what": id}, id=f"{id}b"))
            case "calls and hangs":
                return Step(Call("act", {"what": id}, id=id), Wait(self.gate()))
            case "calls what is not there":
                return Step(Call("none", {}, id=id), Call("act", {"wrong": 1}, id=f"{id}b"))
            case "refuses":
                return Step(Fail(ProviderError("no key", kind="auth")))
            case "breaks off":
                return Step(said, Fail(ProviderError("cut", kind="connection", retryable=True)))
            case "breaks off in a call":
                error = ProviderError("cut", kind="connection", retryable=True)
                return Step(Call("act", {"what": id}, id=id), Fail(error))
            case "fails in the middle":
                return Step(said, Fail(ProviderError("bad", kind="other")))
            case other:
                raise AssertionError(other)

    def gate(self) -> anyio.Event:
        """Something to wait for until it is opened."""
        self.gates.append(anyio.Event())
        return self.gates[-1]

    def open_gates(self) -> None:
        """Nothing waits any more."""
        for gate in self.gates:
            gate.set()


class Scene:
    """One session through all its lives, and what was acknowledged."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.machine = Machine()
        self.oracle = Oracle()
        self.admitted: list[tuple[str, str, str]] = []
        """Id, text and delivery of each prompt that was acknowledged, in that order."""
        self.settled: dict[PartID, ToolPart] = {}
        self.deeds = [Deed("act"), Deed("look", repeatable=True)]
        self.session = ""
        self.left = False
        """Whether the process that worked on it is dead, and no other has been told to go on."""
        self.stopped = False
        """Whether somebody interrupted it, and nobody has said anything since."""
        self.hf: Holdfast
        self.mortal: Mortal
        self._stack = AsyncExitStack()

    async def begin(self) -> None:
        """A process on the store."""
        self.hf, self.mortal = await self._stack.enter_async_context(
            life(self.world.store, self.machine, provider=self.oracle)
        )
        for deed in self.deeds:
            self.hf.tools.register(deed.tool)
        self.session = self.session or await self.world.session(self.hf)

    async def crash(self) -> None:
        """The process dies; another is there, and has been told nothing."""
        self.mortal.kill()
        await self._stack.aclose()
        self.oracle.open_gates()  # After its end: what hung in it had no effect.
        self.oracle.gates.clear()
        self.left = True
        await self.begin()
        assert not await self.busy(), "busy, and nobody works on it"

    async def end(self) -> None:
        """Close everything in order."""
        await self._stack.aclose()

    async def prompt(self, kind: str) -> None:
        """Say something new."""
        text = f"prompt {len(self.admitted)}"
        wishes: dict[str, Any] = {"no_reply": True} if kind == "no reply" else {"delivery": kind}
        receipt = await self.hf.sessions.prompt(self.session, text, **wishes)
        assert receipt.fresh
        if kind != "no reply":
            self.left = self.stopped = False
        self.admitted.append((receipt.prompt.id, text, kind))

    async def prompt_again(self, *, changed: bool) -> None:
        """Say the latest once more: the same is the same receipt, other words are a conflict."""
        if not self.admitted:
            return
        id, text, kind = self.admitted[-1]
        wishes: dict[str, Any] = {"no_reply": True} if kind == "no reply" else {"delivery": kind}
        if changed:
            with pytest.raises(Conflict):
                await self.hf.sessions.prompt(self.session, text + "!", id=id, **wishes)
        else:
            receipt = await self.hf.sessions.prompt(self.session, text, id=id, **wishes)
            assert (receipt.fresh, receipt.prompt.id) == (False, id)
            if kind != "no reply":
                self.left = self.stopped = False

    async def resume(self) -> None:
        """Go on with whatever was left."""
        await self.hf.sessions.resume(self.session)
        self.left = self.stopped = False

    async def interrupt(self) -> None:
        """Stop what runs."""
        with anyio.fail_after(PATIENCE_S):
            await self.hf.sessions.interrupt(self.session)
        self.stopped = True

    def hold(self) -> None:
        """From now on tools wait before their effect, until what hangs is let go."""
        for deed in self.deeds:
            deed.gate = self.oracle.gate()

    async def rest(self) -> None:
        """Wait until nobody works on the session; what hangs is let go."""
        self.oracle.open_gates()
        with anyio.fail_after(PATIENCE_S):
            while await self.busy() or self.session in inside.coordinator(self.hf).active():
                self.oracle.open_gates()
                with anyio.move_on_after(0.05):
                    await self.hf.sessions.wait(self.session)
        await self.check()

    async def busy(self) -> bool:
        """Whether the session says that somebody works on it."""
        record = await self.hf.store.session(self.session)
        return record is not None and record.busy

    async def check(self) -> None:
        """What holds whenever the session rests."""
        history = (await self.hf.sessions.messages(self.session)).messages
        if not self.left:
            assert await_open(history) == []
            self._check_calls(history)
            assert self.stopped or not is_owed(history), "the model was not asked again"
        await self._check_inbox(history)
        self.check_requests()

    async def check_all_heard(self) -> None:
        """After the last rest nothing waits, and the model has heard everything that was said."""
        assert await self.hf.store.select("prompt", session=self.session, mark=Mark.OPEN) == []
        told = str(self.oracle.requests[-1].messages)
        assert [text for _, text, _ in self.admitted if f"'{text}'" not in told] == []

    def _check_calls(self, history: tuple[MessageWithParts, ...]) -> None:
        calls = {part.id: part for each in history for part in each.parts if isinstance(part, ToolPart)}
        tags = {part.state.__struct_config__.tag for part in calls.values()}
        assert tags <= {"completed", "error"}
        again = {id: calls[id] for id in self.settled}
        assert again == self.settled, "settled once, and changed"
        self.settled = calls
        did = self.deeds[0].done
        assert len(did) == len(set(did)), "done twice"

    async def _check_inbox(self, history: tuple[MessageWithParts, ...]) -> None:
        """Every acknowledged prompt is there once, and each kind was promoted in the order of admission."""
        records = await self.hf.store.select("prompt", session=self.session)
        waiting = {each.id for each in records if each.mark is Mark.OPEN}
        assert self.left or self.stopped or not waiting, "a prompt was forgotten"
        values = [each.value() for each in records]
        known = {value.id for value in values if isinstance(value, AdmittedPrompt)}
        assert {id for id, _, _ in self.admitted} <= known
        page = await self.hf.store.messages(MessageQuery(self.session))
        placed = sorted(page.messages, key=lambda each: each.info.place)
        users = [each.info.id for each in placed if isinstance(each.info.value(), UserMessage)]
        assert len(users) == len(set(users))
        for kind in ("steer", "queue"):
            order = [id for id, _, said in self.admitted if said == kind and id not in waiting]
            assert [id for id in users if id in order] == order, f"{kind} out of order"

    def check_requests(self) -> None:
        """Each request extends the one before it, and pairs every call with one result."""
        for before, after in pairwise(self.oracle.requests):
            old, new = prefixes.blocks(before), prefixes.blocks(after)
            moved = prefixes.first_difference(old, new)
            assert moved is None, f"the prefix moved: {old[moved]!r} became {new[moved : moved + 1]!r}"
        for request in self.oracle.requests:
            check_paired(request)


def is_owed(history: tuple[MessageWithParts, ...]) -> bool:
    """Whether the last answer called tools, ended well, and nobody told the model what they gave."""
    answers = [each for each in history if isinstance(each.info, AssistantMessage)]
    if not answers:
        return False
    last = answers[-1]
    assert isinstance(last.info, AssistantMessage)
    return last.info.error is None and any(isinstance(part, ToolPart) for part in last.parts)


def check_paired(request: Request) -> None:
    """Each call is answered once, right behind the message that made it."""
    owed: list[str] = []
    for message in request.messages:
        if isinstance(message, Results):
            assert sorted(result.id for result in message.content) == sorted(owed)
            owed = []
            continue
        assert owed == []
        if isinstance(message, Assistant):
            owed = [block.id for block in message.content if isinstance(block, ToolCall)]
    assert owed == []
