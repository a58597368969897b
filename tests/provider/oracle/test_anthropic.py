"""The vendor's SDK and our adapter read the same in the same bytes, and the SDK's types take our requests."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.events import ReasoningEnd, StepFinish, ToolCalled, ToolResulted
from holdfast.provider.request.request import (
    Assistant,
    CacheMarks,
    GenerationControls,
    HostedResult,
    Media,
    NamedTool,
    Reasoning,
    Request,
    Results,
    SystemUpdate,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    User,
)
from holdfast.provider.wire.wire import Endpoint
from holdfast.testing.mock_provider import MockProvider, Raw
from tests.provider.oracle.streams import MESSAGES
from tests.provider.talking import ADAPTERS, a_model, a_request, hear, text_of, thought_of


@pytest.fixture
async def mock() -> AsyncIterator[MockProvider]:
    async with MockProvider() as mock:
        yield mock


@pytest.mark.ci
@pytest.mark.parametrize("name", MESSAGES)
async def test_both_read_the_same(mock: MockProvider, name: str) -> None:
    """Text, thinking with its signatures, calls, hosted answers, usage and reason."""
    from anthropic import AsyncAnthropic

    stream = MESSAGES[name]
    pieces = tuple(stream[at : at + 97] for at in range(0, len(stream), 97))
    mock.play(Raw(pieces), Raw(pieces))
    async with AsyncAnthropic(api_key="k", base_url=mock.url, max_retries=0) as client:
        asked: Any = {"role": "user", "content": "x"}
        async with client.messages.stream(model="m-1", max_tokens=9, messages=[asked]) as read:
            theirs = await read.get_final_message()
    ours = await hear(mock.url, a_request(WireKind.ANTHROPIC))

    blocks = theirs.content
    assert text_of(ours) == "".join(block.text for block in blocks if block.type == "text")
    assert thought_of(ours) == "".join(block.thinking for block in blocks if block.type == "thinking")
    assert [event.metadata for event in ours if isinstance(event, ReasoningEnd)] == [
        {"anthropic": {"signature": b.signature} if b.type == "thinking" else {"redactedData": b.data}}
        for b in blocks
        if b.type in {"thinking", "redacted_thinking"}
    ]
    assert [(e.id, e.name, e.input, e.hosted) for e in ours if isinstance(e, ToolCalled)] == [
        (block.id, block.name, block.input, block.type == "server_tool_use")
        for block in blocks
        if block.type in {"tool_use", "server_tool_use"}
    ]
    assert [(event.id, event.output) for event in ours if isinstance(event, ToolResulted)] == [
        (block.tool_use_id, [item.model_dump(exclude_unset=True) for item in block.content])
        for block in blocks
        if block.type == "web_search_tool_result"
    ]
    finish, usage = ours[-2], theirs.usage
    assert isinstance(finish, StepFinish)
    tokens = finish.tokens
    assert finish.raw_reason == theirs.stop_reason
    assert (tokens.input, tokens.cache.write, tokens.cache.read, tokens.output + tokens.reasoning) == (
        usage.input_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        usage.output_tokens,
    )


PNG = "data:image/png;base64,iVBORw0KGgo="
WHOLE = Request(
    model=a_model(api_id="claude-opus-4-8"),
    tools=(ToolDefinition(name="read", description="Reads.", input={"type": "object", "properties": {}}),),
    system=("You are.", "Here."),
    messages=(
        User(
            content=(
                Text(text="Look"),
                Media(mime="image/png", url=PNG),
                Media(mime="application/pdf", url="data:application/pdf;base64,JVBE", filename="a.pdf"),
                Media(mime="text/plain", url="data:text/plain,a"),
                Media(mime="image/png", url="https://x.example/a.png"),
            )
        ),
        SystemUpdate(text="Now"),
        Assistant(
            content=(
                Reasoning(text="Hm", metadata={"anthropic": {"signature": "s"}}),
                Reasoning(text="", metadata={"anthropic": {"redactedData": "x"}}),
                Text(text="I search"),
                ToolCall(id="s1", name="web_search", input={"query": "q"}, hosted=True),
                HostedResult(
                    id="s1",
                    name="web_search",
                    output=[
                        {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e"}
                    ],
                ),
                ToolCall(id="c1", name="read", input={"path": "a"}),
            )
        ),
        Results(
            content=(
                ToolResult(
                    id="c1",
                    name="read",
                    content=(Text(text="seen"), Media(mime="image/png", url=PNG)),
                    failed=True,
                ),
            )
        ),
        User(content=(Text(text="Go on"),)),
    ),
    tool_choice=NamedTool(name="read"),
    controls=GenerationControls(max_output_tokens=2_000, stop=("END",)),
    options={
        "thinking": {"type": "enabled", "budget_tokens": 1_024},
        "reasoning_effort": "high",
        "user": "u",
        "parallel_tool_calls": False,
        "service_tier": "auto",
    },
    marks=CacheMarks(system=(0, 1), messages=(3, 4)),
)


@pytest.mark.parametrize("request_", [a_request(), WHOLE], ids=["plain", "whole"])
def test_our_requests_pass_their_types(request_: Request) -> None:
    """What we send validates against the SDK's own request type, and no field is unknown to it."""
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    from tests.provider.oracle.strict import complaints

    made = ADAPTERS[WireKind.ANTHROPIC].encode(request_, Endpoint(base_url="https://h/v1", key="k"))

    assert complaints(MessageCreateParamsStreaming, msgspec.json.decode(made.body)) == []
