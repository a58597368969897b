"""The vendor's SDK and our adapter read the same in the same bytes, and the SDK's types take our requests."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.events import StepFinish, ToolCalled
from holdfast.provider.request.request import (
    Assistant,
    GenerationControls,
    Media,
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
from tests.provider.oracle.streams import CHAT
from tests.provider.talking import ADAPTERS, a_model, a_request, hear, text_of

WIRE = WireKind.OPENAI_CHAT


@pytest.fixture
async def mock() -> AsyncIterator[MockProvider]:
    async with MockProvider() as mock:
        yield mock


@pytest.mark.ci
@pytest.mark.parametrize("name", CHAT)
async def test_both_read_the_same(mock: MockProvider, name: str) -> None:
    """Text, calls, usage and reason."""
    from openai import AsyncOpenAI

    stream = CHAT[name]
    pieces = tuple(stream[at : at + 97] for at in range(0, len(stream), 97))
    mock.play(Raw(pieces), Raw(pieces))
    tools: Any = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    text, reason, usage = "", None, None
    calls: dict[int, list[str]] = {}
    async with AsyncOpenAI(api_key="k", base_url=f"{mock.url}/v1", max_retries=0) as client:
        asked: Any = {"role": "user", "content": "x"}
        chunks = await client.chat.completions.create(model="m-1", messages=[asked], tools=tools, stream=True)
        async for chunk in chunks:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                reason = choice.finish_reason or reason
                for part in choice.delta.tool_calls or ():
                    call = calls.setdefault(part.index, ["", "", ""])
                    call[0] += part.id or ""
                    call[1] += part.function.name or ""
                    call[2] += part.function.arguments or ""
    ours = await hear(mock.url, a_request(WIRE))

    assert usage is not None
    assert text_of(ours) == text
    assert [(e.id, e.name, e.input) for e in ours if isinstance(e, ToolCalled)] == [
        (id, name, msgspec.json.decode(arguments)) for id, name, arguments in calls.values()
    ]
    finish = ours[-2]
    assert isinstance(finish, StepFinish)
    tokens, cached = finish.tokens, usage.prompt_tokens_details.cached_tokens
    assert finish.raw_reason == reason
    assert (
        tokens.input + tokens.cache.read + tokens.cache.write,
        tokens.output + tokens.reasoning,
        tokens.total,
        tokens.cache.read,
        tokens.reasoning,
    ) == (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.total_tokens,
        cached,
        usage.completion_tokens_details.reasoning_tokens,
    )


PNG = "data:image/png;base64,iVBORw0KGgo="
WHOLE = Request(
    model=a_model(WIRE, provider_id="openai", npm="@ai-sdk/openai"),
    tools=(ToolDefinition(name="read", description="Reads.", input={"type": "object"}),),
    system=("You are.", "Here."),
    messages=(
        User(
            content=(
                Text(text="Look"),
                Media(mime="image/png", url=PNG),
                Media(mime="application/pdf", url="data:application/pdf;base64,JVBE", filename="a.pdf"),
                Media(mime="audio/wav", url="data:audio/wav;base64,AAAA"),
            )
        ),
        SystemUpdate(text="Now"),
        Assistant(content=(Text(text="I look"), ToolCall(id="c1", name="read", input={"path": "a"}))),
        Results(
            content=(
                ToolResult(
                    id="c1", name="read", content=(Text(text="seen"), Media(mime="image/png", url=PNG))
                ),
            )
        ),
        Assistant(content=(Text(text="ok"),)),
        User(content=(Text(text="Go on"),)),
    ),
    tool_choice="required",
    controls=GenerationControls(
        max_output_tokens=9, temperature=0.5, top_p=0.9, frequency_penalty=0.1, seed=1, stop=("END",)
    ),
    options={
        "reasoning_effort": "high",
        "verbosity": "low",
        "parallel_tool_calls": False,
        "service_tier": "auto",
        "store": False,
        "user": "u",
    },
    cache_key="prefix",
)


@pytest.mark.parametrize("request_", [a_request(WIRE), WHOLE], ids=["plain", "whole"])
def test_our_requests_pass_their_types(request_: Request) -> None:
    """What we send validates against the SDK's own request type, and no field is unknown to it."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    from tests.provider.oracle.strict import complaints

    made = ADAPTERS[WIRE].encode(request_, Endpoint(base_url="https://h/v1", key="k"))

    assert complaints(CompletionCreateParamsStreaming, msgspec.json.decode(made.body)) == []
