"""The vendor's SDK and our adapter read the same in the same bytes, and the SDK's types take our requests."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.events import ReasoningEnd, StepFinish, TextEnd, ToolCalled, ToolResulted
from holdfast.provider.request.request import (
    Assistant,
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
from tests.provider.oracle.streams import RESPONSES
from tests.provider.talking import ADAPTERS, a_model, a_request, hear, text_of, thought_of

WIRE = WireKind.OPENAI_RESPONSES


@pytest.fixture
async def mock() -> AsyncIterator[MockProvider]:
    async with MockProvider() as mock:
        yield mock


@pytest.mark.parametrize("name", RESPONSES)
async def test_both_read_the_same(mock: MockProvider, name: str) -> None:
    """Text with its citations, thinking and what is encrypted of it, calls, searches, usage and reason."""
    from openai import AsyncOpenAI

    stream = RESPONSES[name]
    pieces = tuple(stream[at : at + 97] for at in range(0, len(stream), 97))
    mock.play(Raw(pieces), Raw(pieces))
    text = thinking = ""
    theirs: Any = None
    async with AsyncOpenAI(api_key="k", base_url=f"{mock.url}/v1", max_retries=0) as client:
        async for event in await client.responses.create(model="m-1", input="x", stream=True):
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.reasoning_summary_text.delta":
                thinking += event.delta
            if event.type in {"response.completed", "response.incomplete"}:
                theirs = event.response
    ours = await hear(mock.url, a_request(WIRE))

    items = theirs.output
    assert (text_of(ours), thought_of(ours)) == (text, thinking)
    assert text == theirs.output_text
    assert [event.metadata for event in ours if isinstance(event, TextEnd) and event.metadata] == [
        {"openai": {"annotations": [note.model_dump() for note in part.annotations]}}
        for item in items
        if item.type == "message"
        for part in item.content
        if part.annotations
    ]
    ends = [(event.metadata or {})["openai"] for event in ours if isinstance(event, ReasoningEnd)]
    assert [own["reasoningEncryptedContent"] for own in ends if "reasoningEncryptedContent" in own] == [
        item.encrypted_content for item in items if item.type == "reasoning"
    ]
    assert sorted((e.id, e.name, e.input) for e in ours if isinstance(e, ToolCalled) and not e.hosted) == [
        (item.call_id, item.name, msgspec.json.decode(item.arguments))
        for item in items
        if item.type == "function_call"
    ]
    assert [event.output for event in ours if isinstance(event, ToolResulted)] == [
        item.model_dump(exclude_unset=True) for item in items if item.type == "web_search_call"
    ]
    finish, usage = ours[-2], theirs.usage
    assert isinstance(finish, StepFinish)
    assert usage is not None
    tokens, why = finish.tokens, theirs.incomplete_details
    assert finish.raw_reason == (why.reason if why else theirs.status)
    assert (finish.metadata or {})["openai"]["id"] == theirs.id
    assert (
        tokens.input + tokens.cache.read + tokens.cache.write,
        tokens.cache.read,
        tokens.cache.write,
        tokens.output + tokens.reasoning,
        tokens.reasoning,
        tokens.total,
    ) == (
        usage.input_tokens,
        usage.input_tokens_details.cached_tokens,
        usage.input_tokens_details.cache_write_tokens,
        usage.output_tokens,
        usage.output_tokens_details.reasoning_tokens,
        usage.total_tokens,
    )


PNG = "data:image/png;base64,iVBORw0KGgo="
SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "q", "queries": ["q"]},
}
CITED = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2}


def own(**fields: Any) -> dict[str, Any]:
    return {"openai": fields}


def whole(provider: str, **options: Any) -> Request:
    """A request with everything in it."""
    return Request(
        model=a_model(WIRE, provider_id=provider, reasoning=True),
        tools=(ToolDefinition(name="read", description="Reads.", input={"type": "object"}),),
        system=("You are.", "Here."),
        messages=(
            User(
                content=(
                    Text(text="Look"),
                    Media(mime="image/png", url=PNG),
                    Media(mime="application/pdf", url="data:application/pdf;base64,JVBE", filename="a.pdf"),
                    Media(mime="application/pdf", url="https://x.example/a.pdf"),
                )
            ),
            SystemUpdate(text="Now"),
            Assistant(
                content=(
                    Reasoning(text="Hm", metadata=own(itemId="rs_1")),
                    Reasoning(text="so", metadata=own(itemId="rs_1", reasoningEncryptedContent="enc")),
                    ToolCall(id="ws_1", name="web_search", input={}, hosted=True),
                    HostedResult(id="ws_1", name="web_search", output=SEARCH),
                    Text(
                        text="I look", metadata=own(itemId="msg_1", phase="commentary", annotations=[CITED])
                    ),
                    Text(text="No.", metadata=own(itemId="msg_2", refusal=True)),
                    ToolCall(id="c1", name="read", input={"path": "a"}, metadata=own(itemId="fc_1")),
                )
            ),
            Results(
                content=(
                    ToolResult(
                        id="c1", name="read", content=(Text(text="seen"), Media(mime="image/png", url=PNG))
                    ),
                )
            ),
            Assistant(content=(Text(text="ok", metadata=own(itemId="msg_3")),)),
            User(content=(Text(text="Go on"),)),
        ),
        tool_choice=NamedTool(name="read"),
        controls=GenerationControls(max_output_tokens=99, temperature=0.5, top_p=0.9),
        options={
            "reasoning_effort": "high",
            "reasoning_summary": "auto",
            "verbosity": "low",
            "parallel_tool_calls": False,
            "service_tier": "auto",
            "user": "u",
            "metadata": {"a": "b"},
            "truncation": "auto",
            "cache_retention": "24h",
            **options,
        },
        cache_key="prefix",
    )


REQUESTS = {
    "plain": a_request(WIRE),
    "stored": whole("openai", store=True),
    "not stored": whole("openai"),
    "of an imitation": whole("acme"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_our_requests_pass_their_types(name: str) -> None:
    """What we send validates against the SDK's own request type, and no field is unknown to it.

    The type demands ids of answers, which the vendor's service looks up in vain when it stores nothing; we
    leave them out then (`item_ids.py`), so they are put in here.
    """
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    from tests.provider.oracle.strict import complaints

    made = ADAPTERS[WIRE].encode(REQUESTS[name], Endpoint(base_url="https://h/v1", key="k"))
    body = msgspec.json.decode(made.body)
    if name == "not stored":
        named = {"message", "reasoning", "web_search_call"}
        body["input"] = [{**item, "id": "x"} if item.get("type") in named else item for item in body["input"]]

    assert complaints(ResponseCreateParamsStreaming, body) == []
