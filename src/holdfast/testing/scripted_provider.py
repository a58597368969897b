"""A model whose answers are data. It fails on a request that the script does not expect, and on a step that
was not requested.

    with ScriptedProvider(
        Step(Say("Let me look."), Call("read", {"path": "a"})),
        Step(Say("Done."), expect=answered("call_1", "text of a")),
    ) as provider:
        ...                                    # pass `provider` to the runtime

A step answers one request. Steps are taken in order; one that names a session answers that session's requests
only, so that several may run side by side. `Wait` stops a stream until the test opens its gate: no sleeps.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from types import TracebackType
from typing import Self

import anyio
import msgspec

from holdfast.errors import ProviderError
from holdfast.provider.request.events import (
    Failed,
    Finish,
    FinishReason,
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
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from holdfast.provider.request.request import Request, Results, Text
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.testing.mock_provider.script import Call, Say, Think, Usage, pieces


class Wait(msgspec.Struct, frozen=True):
    """The stream stops here until the gate is opened."""

    gate: anyio.Event


class Fail(msgspec.Struct, frozen=True):
    """The stream fails here; what came before it stays."""

    error: ProviderError


class Events(msgspec.Struct, frozen=True):
    """Exactly these events, for what the other items cannot express."""

    events: tuple[ProviderEvent, ...]


Item = Say | Think | Call | Wait | Fail | Events
Expectation = Callable[[Request], str | None]
"""Returns what is wrong with a request, as a sentence; None if it is as expected."""


class Step:
    """One answer. Without a reason it is `tool-calls` where a tool is called, else `stop`."""

    def __init__(
        self,
        *items: Item,
        reason: FinishReason | None = None,
        usage: Usage | None = None,
        expect: Expectation | None = None,
        session: str | None = None,
        delta_characters: int = 8,
    ) -> None:
        called = any(isinstance(item, Call) for item in items)
        self.items = items
        self.reason: FinishReason = reason or ("tool-calls" if called else "stop")
        self.usage = usage or Usage()
        self.expect = expect
        self.session = session
        self.delta_characters = delta_characters


class ScriptFailed(AssertionError):
    """The script and what happened differ."""


class ScriptedProvider:
    """Plays steps. Leaving the `with` block, or `check`, raises if the requests differed from the script."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.requests: list[Request] = []
        self.problems: list[str] = []

    def add(self, *steps: Step) -> None:
        """More steps, behind those that are left."""
        self._steps += steps

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """The next step's events."""
        self.requests.append(request)
        step = self._next(request)
        if step is None:
            raise self._problem(
                f"request {len(self.requests)} was not expected: the script has no step for it"
            )
        if step.expect is not None and (wrong := step.expect(request)) is not None:
            raise self._problem(f"request {len(self.requests)} is not as expected: {wrong}")
        yield Start()
        yield StepStart()
        for number, item in enumerate(step.items):
            match item:
                case Wait(gate=gate):
                    await gate.wait()
                case Fail(error=error):
                    yield Failed(error=error)
                    return
                case _:
                    for event in _events(item, str(number), step.delta_characters):
                        yield event
        yield StepFinish(reason=step.reason, tokens=_tokens(step.usage))
        yield Finish()

    def _next(self, request: Request) -> Step | None:
        for index, step in enumerate(self._steps):
            if step.session is None or step.session == request.session:
                return self._steps.pop(index)
        return None

    def _problem(self, what: str) -> ScriptFailed:
        # Kept as well as raised: a runtime that survives any error of a provider must not hide it.
        self.problems.append(what)
        return ScriptFailed(what)

    def check(self) -> None:
        """Raise for every request that was not expected and every step that was not asked for."""
        problems = list(self.problems)
        if self._steps:
            problems.append(f"{len(self._steps)} steps of the script were never asked for")
        if problems:
            raise ScriptFailed("; ".join(problems))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.check()


def answered(call: str, text: str) -> Expectation:
    """Expects that a tool's result reached the model, with this text in it."""

    def wrong(request: Request) -> str | None:
        results = [
            result
            for message in request.messages
            if isinstance(message, Results)
            for result in message.content
            if result.id == call
        ]
        if not results:
            return f"no result for call {call}"
        said = "".join(block.text for block in results[-1].content if isinstance(block, Text))
        return None if text in said else f"the result of {call} is {said!r}, without {text!r}"

    return wrong


def _events(item: Say | Think | Call | Events, id: str, size: int) -> Iterator[ProviderEvent]:
    match item:
        case Say(text=text):
            yield TextStart(id=id)
            yield from (TextDelta(id=id, text=piece) for piece in pieces(text, size))
            yield TextEnd(id=id)
        case Think(text=text, signature=signature):
            yield ReasoningStart(id=id)
            yield from (ReasoningDelta(id=id, text=piece) for piece in pieces(text, size))
            yield ReasoningEnd(id=id, metadata={"signature": signature})
        case Call(name=name, id=call):
            yield ToolInputStart(id=call, name=name)
            yield from (ToolInputDelta(id=call, text=piece) for piece in pieces(item.arguments(), size))
            yield ToolInputEnd(id=call)
            # `raw` is no valid input: as from a real adapter, it arrives beside an empty one.
            yield ToolCalled(id=call, name=name, input={} if item.raw else item.input, invalid=item.raw)
        case Events(events=events):
            yield from events


def _tokens(usage: Usage) -> Tokens:
    return Tokens(
        input=usage.input,
        output=usage.output,
        reasoning=usage.reasoning,
        cache=CacheTokens(read=usage.cache_read, write=usage.cache_write),
    )
