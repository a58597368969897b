"""A provider that refuses what is too long, as real ones do, and transcripts written into a store."""

import re
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec

from holdfast.app import Holdfast
from holdfast.errors import ProviderError
from holdfast.provider.request.events import FinishReason, ProviderEvent
from holdfast.provider.request.request import (
    Assistant,
    HostedResult,
    Media,
    ProviderMessage,
    Reasoning,
    Request,
    Results,
    SystemUpdate,
    Text,
    ToolCall,
    User,
)
from holdfast.schema import usage
from holdfast.schema.fault import AbortedFault, Fault, MessageData, UnknownData, UnknownFault
from holdfast.schema.file_part import FilePart
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import AssistantMessage, AssistantPath, AssistantTime, SystemMessage, UserMessage
from holdfast.schema.model import ModelRef
from holdfast.schema.part import Part, ReasoningPart, StepPrefix, StepStartPart, TextPart, ToolPart
from holdfast.schema.stored import mark, strip
from holdfast.schema.times import Created, Span
from holdfast.schema.tool_state import Completed, Ended, ToolCompleted, ToolError
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.store.batch import Batch, Put
from holdfast.testing.mock_provider.script import Say, Usage
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step

MARK = re.compile(r"#\d+#")
PNG = "data:image/png;base64," + "A" * 400
ABORTED = AbortedFault(data=MessageData(message="stopped"))
BROKEN = UnknownFault(data=UnknownData(message="broke"))
REQUESTS_MAX = 200
COUNTED = 1_000
"""Tokens of each request that a written answer had, by the model's own count."""
ENDLESS = 50_000
"""A model that would write more characters than this does not know when to stop, and is cut."""


class Strict:
    """Counts what it is sent, refuses what its window does not hold, and what no provider would take."""

    def __init__(
        self, window: int, *, density: float, media: int, tools: int, summary: int, counts: bool
    ) -> None:
        self.window = window
        self.density = density
        """Characters a token."""
        self.media = media
        """Tokens of an image."""
        self.tools = tools
        """Tokens that it takes for tools besides what it is sent, and that nobody knows of."""
        self.summary = summary
        """Characters of each summary, as far as its answer may be that long."""
        self.counts = counts
        """Whether it tells what it counted."""
        self.requests: list[Request] = []
        self.problems: list[str] = []

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """An answer, or a refusal."""
        self.requests.append(request)
        self.problems += problems(request)
        async for event in ScriptedProvider(self._step(request)).stream(request):
            yield event

    def _step(self, request: Request) -> Step:
        if len(self.requests) > REQUESTS_MAX:
            return Step(Fail(ProviderError("enough", kind="auth")))
        count = self.count(request)
        if count + (request.controls.max_output_tokens or 0) > self.window:
            return Step(Fail(ProviderError("prompt is too long", kind="context-overflow")))
        most = int((request.controls.max_output_tokens or 0) * self.density)
        words = "done" if request.tools else "s" * min(self.summary, most)
        reason: FinishReason = "length" if not request.tools and self.summary > ENDLESS else "stop"
        told = Usage(input=count, output=len(words) // 4) if self.counts else Usage(input=0, output=0)
        return Step(Say(words), reason=reason, usage=told, delta_characters=1_000)

    def count(self, request: Request) -> int:
        """How many tokens a request has."""
        texts = [*request.system, msgspec.json.encode(request.tools).decode()]
        media = 0
        for block in blocks(request.messages):
            if isinstance(block, Media):
                media += 1
            else:
                texts.append(words_of(block))
        hidden = self.tools if request.tools else 0
        return int(sum(map(len, texts)) / self.density) + media * self.media + hidden

    @property
    def answers(self) -> list[Request]:
        """The requests of the conversation, without those for a summary."""
        return [request for request in self.requests if request.tools]

    @property
    def summarising(self) -> list[Request]:
        """The requests for a summary."""
        return [request for request in self.requests if not request.tools]


def blocks(messages: tuple[ProviderMessage, ...]) -> Iterator[Any]:
    """Everything that messages hold, results opened."""
    for message in messages:
        if isinstance(message, SystemUpdate):
            yield message
            continue
        for block in message.content:
            yield block
            yield from getattr(block, "content", ())


def words_of(block: Any) -> str:
    """The words of a block, arguments included."""
    match block:
        case Text() | Reasoning() | SystemUpdate():
            return block.text
        case ToolCall():
            return msgspec.json.encode(block.input).decode()
        case HostedResult():
            return msgspec.json.encode(block.output).decode()
        case _:
            return ""


def marks(messages: tuple[ProviderMessage, ...]) -> list[str]:
    """The marks of the messages, in the order in which the model is shown them."""
    found: list[str] = []
    for block in blocks(messages):
        said = block.filename or "" if isinstance(block, Media) else words_of(block)
        found += MARK.findall(said)
    return found


def problems(request: Request) -> list[str]:
    """What a strict provider would refuse."""
    found: list[str] = []
    if not is_paired(request.messages):
        found.append("calls and results are not paired")
    spoken = [message for message in request.messages if not isinstance(message, SystemUpdate)]
    if not spoken or not isinstance(spoken[0], User):
        found.append("the first to speak is not the person")
    if isinstance(spoken[-1], Assistant):
        found.append("it ends with the model's own words")
    ids = [block.id for block in blocks(request.messages) if isinstance(block, ToolCall)]
    if len(ids) != len(set(ids)):
        found.append("two calls have one id")
    if any(isinstance(block, Text) and not block.text for block in blocks(request.messages)):
        found.append("an empty text")
    if not request.tools and any(
        not isinstance(each, Text) or "base64" in each.text or "native" in each.text
        for each in blocks(request.messages)
    ):
        found.append("a summary is asked for with more than what was said")
    return found


def is_paired(messages: tuple[ProviderMessage, ...]) -> bool:
    """Whether each call is answered once: at the provider within its message, else right behind it."""
    owed: list[str] = []
    for message in messages:
        if isinstance(message, Results):
            if sorted(result.id for result in message.content) != sorted(owed):
                return False
            owed = []
        elif owed:
            return False
        if isinstance(message, Assistant):
            there = {block.id for block in message.content if isinstance(block, HostedResult)}
            calls = [block for block in message.content if isinstance(block, ToolCall)]
            if there != {call.id for call in calls if call.hosted}:
                return False
            owed = [call.id for call in calls if not call.hosted]
    return not owed


class Writer:
    """Writes turns into a session, each message with a mark of its own.

    `density` is how many characters a token has, where the model tells what it counts.
    """

    def __init__(self, hf: Holdfast, session: str, density: float | None = None) -> None:
        self._hf = hf
        self._density = density
        self.session = SessionID(session)
        self.number = 0
        self.shown: list[str] = []
        """The marks of the messages that a model may be shown, in their order."""
        self.requests: list[str] = []
        """The marks of what the person asked for."""
        self.files: list[str] = []
        """The files that were read, the first first."""
        self._puts: list[Put] = []
        self._user = MessageID("")

    async def write(self, kind: str, size: int) -> None:
        """One turn, in one commit."""
        getattr(self, f"_{kind.replace(' ', '_')}")(size)
        await self._hf.store.commit(Batch(tuple(self._puts)))
        self._puts = []

    def mark(self, *, shown: bool = True) -> str:
        """A new mark."""
        self.number += 1
        if shown:
            self.shown.append(f"#{self.number}#")
        return f"#{self.number}#"

    def _talk(self, size: int) -> None:
        self._says(self.mark() + "p" * size)
        self._answers(self._text(self.mark()))

    def _long_answer(self, size: int) -> None:
        self._says(self.mark())
        self._answers(self._text(self.mark() + "a" * size))

    def _tools(self, size: int) -> None:
        """A run of calls, the output in four pieces."""
        self._says(self.mark())
        for _ in range(4):
            self._answers(StepStartPart(**self._head()), self._read("r" * (size // 4)), finish="tool-calls")
        self._answers(self._text(self.mark()))

    def _pictures(self, size: int) -> None:
        """Nothing but media, on both sides."""
        file = FilePart(**self._head(), mime="image/png", url=PNG, filename=f"{self.mark()}.png")
        self.requests.append(self.shown[-1])
        self._user_message(file)
        shot = FilePart(**self._head(), mime="image/png", url=PNG, filename="shot.png")
        self._answers(self._read("", [shot]), finish="tool-calls")
        self._answers(self._text(self.mark()))

    def _hosted(self, size: int) -> None:
        """A tool at the provider, and signed thinking."""
        self._says(self.mark())
        thought = ReasoningPart(
            **self._head(), text="t" * size, time=Span(start=1, end=2), metadata={"signature": "s"}
        )
        state = ToolCompleted(
            input={"query": self.mark()},
            output="found",
            title="",
            metadata={"hosted": {"native": "h" * size}},
            time=Completed(start=1, end=2),
        )
        searched = ToolPart(
            **self._head(),
            call_id=f"hosted_{self.number}",
            tool="web_search",
            state=state,
            metadata={"providerExecuted": True},
        )
        self._answers(thought, searched, self._text("so"))

    def _trouble(self, size: int) -> None:
        """A call with an unknown outcome, an answer that failed, one that was stopped, one with nothing."""
        self._says(self.mark())
        error = ToolError(
            input={"command": self.mark()},
            error="e" * min(size, 4_000),
            metadata={"outcome": "unknown", "interrupted": True},
            time=Ended(start=1, end=2),
        )
        call = ToolPart(**self._head(), call_id=f"call_{self.number}", tool="bash", state=error)
        self._answers(call, finish="tool-calls")
        self._answers(self._text(self.mark(shown=False) + "f" * size), error=BROKEN, finish="error")
        self._answers(self._text(self.mark()), error=ABORTED, finish="error")
        self._answers()
        self._system("A note.")

    def _nothing(self, size: int) -> None:
        """A message without a part, and an answer without a word."""
        self._user_message()
        self._answers()

    def _head(self) -> dict[str, Any]:
        id = PartID(self._hf.mint.ascending("prt"))
        return {"id": id, "session_id": self.session, "message_id": MessageID("")}

    def _text(self, words: str) -> TextPart:
        return TextPart(**self._head(), text=words)

    def _read(self, output: str, files: list[FilePart] | None = None) -> ToolPart:
        mark = self.mark()
        path = f"/w/{mark}.txt"
        self.files.append(path)
        state = ToolCompleted(
            input={"filePath": path},
            output=output,
            title="",
            metadata={"filepath": path},
            time=Completed(start=1, end=2),
            attachments=files,
        )
        return ToolPart(**self._head(), call_id=f"call_{mark}", tool="read", state=state)

    def _says(self, words: str) -> None:
        self.requests.append(MARK.findall(words)[0])
        self._user_message(self._text(words))

    def _user_message(self, *parts: Part) -> None:
        info = UserMessage(
            id=MessageID(self._hf.mint.ascending("msg")),
            session_id=self.session,
            time=Created(created=1),
            agent="build",
            model=ModelRef(provider_id="scripted", model_id="m"),
        )
        self._user = info.id
        self._put(info, parts)

    def _answers(self, *parts: Part, error: Fault | None = None, finish: str = "stop") -> None:
        tokens = usage.ZERO
        if self._density is not None and error is None:
            # Its size is what tells how long a token is; it is small, so that it is no reason to compact.
            prefix = StepPrefix(epoch="evt_before", kept=0, blocks=[], chars=int(self._density * COUNTED))
            tokens = Tokens(input=COUNTED, output=1, reasoning=0, cache=CacheTokens(read=0, write=0))
            parts = (StepStartPart(**self._head(), prefix=prefix), *parts)
        info = AssistantMessage(
            id=MessageID(self._hf.mint.ascending("msg")),
            session_id=self.session,
            time=AssistantTime(created=1, completed=2),
            parent_id=self._user,
            provider_id="scripted",
            model_id="m",
            mode="build",
            agent="build",
            path=AssistantPath(cwd="/w", root="/w"),
            cost=0,
            tokens=tokens,
            error=error,
            finish=finish,
        )
        self._put(info, parts)

    def _system(self, words: str) -> None:
        id = MessageID(self._hf.mint.ascending("msg"))
        self._put(
            SystemMessage(id=id, session_id=self.session, time=Created(created=1), text=words, snapshot=None),
            (),
        )

    def _put(self, info: UserMessage | AssistantMessage | SystemMessage, parts: tuple[Part, ...]) -> None:
        self._puts.append(
            Put(self.session, "message", info.id, strip("message", info), mark=mark(info)),
        )
        for part in parts:
            mine = msgspec.structs.replace(part, message_id=info.id)
            self._puts.append(Put(self.session, "part", mine.id, strip("part", mine), info.id, mark(mine)))
