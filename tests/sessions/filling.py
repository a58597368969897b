"""Fills sessions with messages and parts, through the front door."""

from holdfast.app import Holdfast
from holdfast.schema import usage
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import AssistantMessage, AssistantPath, AssistantTime, UserMessage
from holdfast.schema.model import ModelRef
from holdfast.schema.part import CompactionPart, StepFinishPart, TextPart, ToolPart
from holdfast.schema.times import Created
from holdfast.schema.tool_state import ToolState
from holdfast.schema.usage import CacheTokens, Tokens

STEP = Tokens(input=10, output=5, reasoning=1, cache=CacheTokens(read=100, write=7))


async def ask(hf: Holdfast, session: str, words: str) -> UserMessage:
    """A person's message with its text."""
    message = UserMessage(
        id=MessageID(await hf.sessions.new_id(session, "msg")),
        session_id=SessionID(session),
        time=Created(created=hf.clock.now_ms()),
        agent="build",
        model=ModelRef(provider_id="scripted", model_id="m"),
    )
    await hf.sessions.add_message(message)
    await say(hf, session, message.id, words)
    return message


async def answer(
    hf: Holdfast, session: str, asked: str, words: str, *, cost: float = 0.25
) -> AssistantMessage:
    """A finished answer: text and the step's usage."""
    message = AssistantMessage(
        id=MessageID(await hf.sessions.new_id(session, "msg")),
        session_id=SessionID(session),
        time=AssistantTime(created=hf.clock.now_ms(), completed=hf.clock.now_ms()),
        parent_id=MessageID(asked),
        model_id="m",
        provider_id="scripted",
        mode="build",
        agent="build",
        path=AssistantPath(cwd="/", root="/"),
        cost=cost,
        tokens=usage.ZERO,
        finish="stop",
    )
    await hf.sessions.add_message(message)
    await say(hf, session, message.id, words)
    await finish(hf, session, message.id, cost=cost)
    return message


async def say(hf: Holdfast, session: str, message: str, words: str) -> TextPart:
    """A text part."""
    part = TextPart(
        id=PartID(await hf.sessions.new_id(session, "prt")),
        session_id=SessionID(session),
        message_id=MessageID(message),
        text=words,
    )
    await hf.sessions.add_part(part)
    return part


async def finish(hf: Holdfast, session: str, message: str, *, cost: float) -> StepFinishPart:
    """The end of a step, with what it used."""
    part = StepFinishPart(
        id=PartID(await hf.sessions.new_id(session, "prt")),
        session_id=SessionID(session),
        message_id=MessageID(message),
        reason="stop",
        cost=cost,
        tokens=STEP,
    )
    await hf.sessions.add_part(part)
    return part


async def compact(hf: Holdfast, session: str, message: str, tail: str) -> CompactionPart:
    """A request to compact that keeps a tail."""
    part = CompactionPart(
        id=PartID(await hf.sessions.new_id(session, "prt")),
        session_id=SessionID(session),
        message_id=MessageID(message),
        auto=False,
        tail_start_id=MessageID(tail),
    )
    await hf.sessions.add_part(part)
    return part


async def call(hf: Holdfast, session: str, message: str, state: ToolState) -> ToolPart:
    """A tool call in some state, not yet written."""
    return ToolPart(
        id=PartID(await hf.sessions.new_id(session, "prt")),
        session_id=SessionID(session),
        message_id=MessageID(message),
        call_id="call_1",
        tool="bash",
        state=state,
    )
