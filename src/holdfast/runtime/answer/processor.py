"""Turns a provider's events into records and live deltas.

One processor serves one assistant message. What must stay true: the record of a part is committed before the
first delta of its text is published; deltas are never committed one by one; text that arrived is on disk at
the latest `CHECKPOINT_MS` after its first unsaved character, even if the provider falls silent; a call is
recorded as running before its tool starts; parts are recorded in the order in which they began.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import assert_never

import anyio
from msgspec.structs import replace

from holdfast.feed.frame import Delta
from holdfast.feed.tail import Feed
from holdfast.provider.request.events import (
    Failed,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Start,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCalled,
    ToolFailed,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResulted,
)
from holdfast.runtime.answer.open_text import OpenText
from holdfast.runtime.calls.recorded_call import RecordedCall
from holdfast.runtime.engine.recorder import Recorder
from holdfast.schema.ids import PartID
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import Part, ReasoningPart, StepStartPart, TextPart, ToolPart
from holdfast.schema.times import Span
from holdfast.schema.tool_state import (
    Completed,
    Ended,
    Started,
    ToolCompleted,
    ToolError,
    ToolPending,
    ToolRunning,
)
from holdfast.schema.wire import JsonMap
from holdfast.store.put import put

CHECKPOINT_MS = 1_000
SHOW_MS = 100
"""A call whose arguments are not complete by then is recorded as pending, so that clients can show it."""


class Processor:
    """Processes one answer. `on_call` is called with each call that this runtime has to run."""

    def __init__(
        self,
        recorder: Recorder,
        feed: Feed,
        message: AssistantMessage,
        on_call: Callable[[RecordedCall], Awaitable[None]],
    ) -> None:
        self._recorder = recorder
        self._feed = feed
        self._clock = recorder.clock
        self._message = message
        self._on_call = on_call
        self._steps = 0
        self._step_pending = False
        self._texts: dict[str, OpenText] = {}
        self._calls: dict[str, ToolPart] = {}
        self._named: dict[str, list[str]] = {}
        """The ids under which calls are kept, by the one that the provider gave: it may give one twice."""
        self._begun: list[str] = []
        """The ids of calls that are not recorded yet, in the order in which they began."""
        self._lock = anyio.Lock()
        self._dirty = anyio.Event()
        self._unshown = anyio.Event()
        self.published = False
        """Whether anything of the answer was published: after that there is no silent retry."""
        self.characters = 0
        """How much of it has come."""
        self.finish: StepFinish | None = None
        self.failed: Failed | None = None

    async def take(self, event: ProviderEvent) -> None:
        """Process one event."""
        match event:
            case TextDelta(id=id, text=text) | ReasoningDelta(id=id, text=text):
                self._delta(id, text)
            case TextStart(id=id) | ReasoningStart(id=id):
                await self._open(id, event)
            case TextEnd(id=id, metadata=metadata) | ReasoningEnd(id=id, metadata=metadata):
                await self._close(id, metadata)
            case ToolInputStart():
                self._begin(event.id, event.name, hosted=event.hosted)
            case ToolCalled():
                await self._called(event)
            case ToolResulted() | ToolFailed():
                await self._hosted(event)
            case StepStart():
                # The first step was recorded before the request was sent.
                self._step_pending = self._steps > 0
                self._steps += 1
            case StepFinish():
                self.finish = event
            case Failed():
                self.failed = event
            case Start() | Finish() | ToolInputDelta() | ToolInputEnd():
                pass  # Arguments are used when they are complete, and then come as a whole.
            case _:
                assert_never(event)

    async def keep_saved(self) -> None:
        """Checkpoint open texts in time, as long as the answer lasts. Runs beside `take`."""
        while True:
            await self._dirty.wait()
            self._dirty = anyio.Event()
            await anyio.sleep(CHECKPOINT_MS / 1_000)
            await self.save()

    async def keep_shown(self) -> None:
        """Record calls whose arguments take their time. Runs beside `take`."""
        while True:
            await self._unshown.wait()
            await anyio.sleep(SHOW_MS / 1_000)
            self._unshown = anyio.Event()
            await self._record_begun()

    async def save(self) -> None:
        """Commit the text of every open part that has unsaved text."""
        async with self._lock:
            parts = [text.checkpoint() for text in self._texts.values() if text.unsaved]
            self._recorder.hold(*map(put, parts))
            await self._recorder.flush()

    async def end(self) -> None:
        """Close what the provider left open, and keep its text."""
        for id in list(self._texts):
            await self._close(id, None)
        await self._record_begun()

    def _delta(self, id: str, text: str) -> None:
        open_ = self._texts.get(id)
        if open_ is None or not text:
            return
        offset = open_.add(text)
        self.characters += len(text)
        part = open_.part
        self._feed.delta(Delta(part.session_id, part.message_id, part.id, "text", offset, text))
        self._dirty.set()

    async def _open(self, id: str, event: TextStart | ReasoningStart) -> None:
        now = Span(start=self._clock.now_ms())

        def make(part: PartID) -> TextPart | ReasoningPart:
            kind = TextPart if isinstance(event, TextStart) else ReasoningPart
            return kind(
                id=part,
                session_id=self._message.session_id,
                message_id=self._message.id,
                text="",
                time=now,
                metadata=event.metadata,
            )

        await self._close(id, None)  # A provider may open one twice: the text of the first one stays.
        made = await self._add(make)
        assert isinstance(made, TextPart | ReasoningPart)
        self._texts[id] = OpenText(made)

    async def _close(self, id: str, metadata: JsonMap | None) -> None:
        open_ = self._texts.get(id)
        if open_ is None:
            return
        # Its last text is written with the next commit, at the latest when open texts would be.
        async with self._lock:
            part = open_.final(self._clock.now_ms(), metadata)
            self._recorder.hold(put(part))
            self._texts.pop(id, None)
        self._dirty.set()
        self._feed.closed(part.session_id, part.id)

    def _begin(self, given: str, name: str, *, hosted: bool) -> ToolPart:
        """A new call, which is recorded soon. If another has the same id, this one gets an id of its own."""
        id, count = given, 1
        while id in self._calls:
            count += 1
            id = f"{given}-{count}"
        part = self._calls[id] = ToolPart(
            id=PartID(""),
            session_id=self._message.session_id,
            message_id=self._message.id,
            call_id=id,
            tool=name,
            state=ToolPending(input={}, raw=""),
            metadata={"providerExecuted": True} if hosted else None,
        )
        self._named.setdefault(given, []).append(id)
        self._begun.append(id)
        self.published = True
        self._unshown.set()
        return part

    async def _record(self, part: ToolPart) -> ToolPart:
        """Record a call as it is now: if it is new, after those that began before it, in one commit."""
        async with self._lock:
            if part.call_id in self._begun:
                self._calls[part.call_id] = part
                await self._add_begun(self._begun.index(part.call_id) + 1)
            else:  # It has got its id meanwhile.
                part = self._calls[part.call_id] = replace(part, id=self._calls[part.call_id].id)
                await self._recorder.commit(put(part))
            return self._calls[part.call_id]

    async def _record_begun(self) -> None:
        async with self._lock:
            if self._begun:
                await self._add_begun(len(self._begun))

    async def _add_begun(self, count: int, *makes: Callable[[PartID], Part]) -> Part:
        """Add the first calls that are not recorded yet, then other parts; the lock is held.

        A step-start comes first, in the same commit: alone it says nothing.
        """
        begun = [partial(self._numbered, id) for id in self._begun[:count]]
        step = [self._step] if self._step_pending else []
        parts = await self._recorder.add_parts(*step, *begun, *makes)
        self._step_pending = False
        del self._begun[:count]
        for part in parts:
            if isinstance(part, ToolPart):
                self._calls[part.call_id] = part
        return parts[-1]

    def _numbered(self, call: str, id: PartID) -> ToolPart:
        return replace(self._calls[call], id=id)

    def _first(self, given: str, is_it: Callable[[ToolPart], bool]) -> ToolPart | None:
        """The first call with the provider's id for which `is_it` holds."""
        calls = (self._calls[id] for id in self._named.get(given, ()))
        return next((part for part in calls if is_it(part)), None)

    async def _called(self, event: ToolCalled) -> None:
        part = self._first(event.id, lambda part: isinstance(part.state, ToolPending))
        part = part or self._begin(event.id, event.name, hosted=event.hosted)
        metadata = {**(event.metadata or {}), **({"providerExecuted": True} if event.hosted else {})}
        part = replace(
            part,
            tool=event.name,
            state=ToolRunning(input=event.input, time=Started(start=self._clock.now_ms())),
            metadata=metadata or None,
        )
        part = await self._record(part)
        if not event.hosted:
            await self._on_call(RecordedCall(part, event.invalid))

    async def _hosted(self, event: ToolResulted | ToolFailed) -> None:
        """Record the result of a hosted tool exactly as it came, not bounded."""
        part = self._first(event.id, _is_hosted_and_open)
        part = part or self._begin(event.id, event.name, hosted=True)
        now = self._clock.now_ms()
        start = part.state.time.start if isinstance(part.state, ToolRunning) else now
        kept: JsonMap = {"hosted": event.output}
        state: ToolCompleted | ToolError
        if isinstance(event, ToolResulted):
            state = ToolCompleted(
                input=part.state.input,
                output="",
                title=part.tool,
                metadata=kept,
                time=Completed(start=start, end=now),
            )
        else:
            state = ToolError(
                input=part.state.input,
                error=event.error,
                metadata={**kept, "outcome": "failed"},
                time=Ended(start=start, end=now),
            )
        settled = replace(
            part, state=state, metadata={**(part.metadata or {}), **(event.metadata or {})} or None
        )
        await self._record(settled)

    async def _add(self, make: Callable[[PartID], Part]) -> Part:
        """Add a part, after the calls that began before it."""
        self.published = True
        async with self._lock:
            return await self._add_begun(len(self._begun), make)

    def _step(self, id: PartID) -> StepStartPart:
        return StepStartPart(id=id, session_id=self._message.session_id, message_id=self._message.id)

    def open_calls(self) -> list[ToolPart]:
        """Calls whose arguments never became complete, and hosted calls without a result."""
        return [
            part
            for part in self._calls.values()
            if isinstance(part.state, ToolPending) or _is_hosted_and_open(part)
        ]


def _is_hosted_and_open(part: ToolPart) -> bool:
    """Whether the part is a hosted call without a result."""
    hosted = bool((part.metadata or {}).get("providerExecuted"))
    return hosted and isinstance(part.state, ToolPending | ToolRunning)
