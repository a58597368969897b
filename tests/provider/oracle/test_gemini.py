"""The vendor's SDK and our adapter read the same in the same bytes, and the SDK's types take our requests."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.events import StepFinish, ToolCalled, ToolResulted
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
from tests.provider.oracle.streams import GEMINI
from tests.provider.talking import ADAPTERS, a_model, a_request, hear, text_of, thought_of

WIRE = WireKind.GEMINI


@pytest.fixture
async def mock() -> AsyncIterator[MockProvider]:
    async with MockProvider() as mock:
        yield mock


@pytest.mark.ci
@pytest.mark.parametrize("name", GEMINI)
async def test_both_read_the_same(mock: MockProvider, name: str) -> None:
    """Text, thinking, calls with their signatures, code that ran there, usage and reason."""
    from google import genai

    stream = GEMINI[name]
    pieces = tuple(stream[at : at + 97] for at in range(0, len(stream), 97))
    mock.play(Raw(pieces), Raw(pieces))
    parts: list[Any] = []
    chunks: list[Any] = []
    client = genai.Client(api_key="k", http_options={"base_url": mock.url, "api_version": "v1"})
    async for chunk in await client.aio.models.generate_content_stream(model="m-1", contents="x"):
        chunks.append(chunk)
        parts += chunks[-1].candidates[0].content.parts or ()
    await client.aio.aclose()
    client.close()
    ours = await hear(mock.url, a_request(WIRE))

    first, second = mock.requests
    assert (first.method, first.path) == (second.method, second.path)
    assert text_of(ours) == "".join(part.text for part in parts if part.text and not part.thought)
    assert thought_of(ours) == "".join(part.text for part in parts if part.text and part.thought)
    called = [event for event in ours if isinstance(event, ToolCalled) and not event.hosted]
    theirs = [part for part in parts if part.function_call]
    assert [(e.name, e.input, _signature(e)) for e in called] == [
        (part.function_call.name, part.function_call.args, part.thought_signature) for part in theirs
    ]
    assert [e.id for e in called if not e.id.startswith("call_gemini_")] == [
        part.function_call.id for part in theirs if part.function_call.id
    ]
    assert [event.output for event in ours if isinstance(event, ToolResulted)] == [
        part.code_execution_result.model_dump(mode="json", exclude_unset=True)
        for part in parts
        if part.code_execution_result
    ]
    finish = ours[-2]
    assert isinstance(finish, StepFinish)
    tokens, usage = finish.tokens, chunks[-1].usage_metadata
    assert finish.raw_reason == chunks[-1].candidates[0].finish_reason.value
    assert (
        tokens.input + tokens.cache.read,
        tokens.cache.read,
        tokens.output,
        tokens.reasoning,
        tokens.total,
    ) == (
        usage.prompt_token_count + (usage.tool_use_prompt_token_count or 0),
        usage.cached_content_token_count,
        usage.candidates_token_count,
        usage.thoughts_token_count,
        usage.total_token_count,
    )


def _signature(called: ToolCalled) -> bytes | None:
    own = (called.metadata or {}).get("google") or {}
    return base64.b64decode(own["thoughtSignature"]) if own else None


PNG = "data:image/png;base64,iVBORw0KGgo="


def own(**fields: Any) -> dict[str, Any]:
    return {"google": fields}


def whole(api_id: str) -> Request:
    """A request with everything in it."""
    return Request(
        model=a_model(WIRE, api_id=api_id),
        tools=(
            ToolDefinition(
                name="read",
                description="Reads.",
                input={
                    "$schema": "s",
                    "type": "object",
                    "properties": {
                        "path": {"type": ["string", "null"], "minLength": 1, "pattern": "a"},
                        "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1},
                        "mode": {"oneOf": [{"const": "a"}, {"type": "integer", "enum": [1, 2]}]},
                        "when": {"type": "string", "format": "date-time", "title": "When"},
                        "kids": {"type": "array", "items": {"$ref": "#"}},
                    },
                    "required": ["path", "gone"],
                    "additionalProperties": False,
                },
            ),
            ToolDefinition(name="now", description="Tells.", input={"type": "object"}),
        ),
        system=("You are.", "Here."),
        messages=(
            User(
                content=(
                    Text(text="Look"),
                    Media(mime="image/png", url=PNG),
                    Media(mime="application/pdf", url="https://x.example/a.pdf"),
                )
            ),
            SystemUpdate(text="Now"),
            Assistant(
                content=(
                    Reasoning(text="Hm", metadata=own(thoughtSignature="YWJj")),
                    ToolCall(
                        id="call_gemini_1",
                        name="code_execution",
                        input={"language": "PYTHON", "code": "1"},
                        hosted=True,
                    ),
                    HostedResult(id="call_gemini_1", name="code_execution", output={"outcome": "OUTCOME_OK"}),
                    Text(text="I look", metadata=own(thoughtSignature="YWJj")),
                    ToolCall(id="c1", name="read", input={"path": "a"}),
                )
            ),
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
        tool_choice=NamedTool(name="read"),
        controls=GenerationControls(
            max_output_tokens=99,
            temperature=0.5,
            top_p=0.9,
            top_k=3,
            frequency_penalty=0.1,
            presence_penalty=0.2,
            seed=1,
            stop=("END",),
        ),
        options={
            "reasoning_effort": "high",
            "thinking": {"include_thoughts": True},
            "service_tier": "flex",
        },
    )


REQUESTS = {
    "plain": a_request(WIRE),
    "third generation": whole("gemini-3-pro-preview"),
    "second generation": whole("gemini-2.5-pro"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_our_requests_pass_their_types(name: str) -> None:
    """Each field of the body validates against the SDK's type for it, and comes out again as it went in."""
    from google.genai import types

    made = ADAPTERS[WIRE].encode(REQUESTS[name], Endpoint(base_url="https://h/v1", key="k"))
    body = msgspec.json.decode(made.body)
    fields: dict[str, Any] = {
        "contents": types.Content,
        "systemInstruction": types.Content,
        "tools": types.Tool,
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    assert body.pop("serviceTier", "flex") in {tier.value for tier in types.ServiceTier}
    assert set(body) <= set(fields)
    for field, sent in body.items():
        for value in sent if isinstance(sent, list) else [sent]:
            read = fields[field].model_validate_json(msgspec.json.encode(value))
            assert _plain(value) == read.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _plain(value: Any) -> Any:
    """Bytes as the SDK writes them: it prefers the other alphabet of base 64."""
    match value:
        case {"thoughtSignature": str(text), **rest}:
            plain = base64.urlsafe_b64encode(base64.urlsafe_b64decode(text)).decode()
            return {**_plain(rest), "thoughtSignature": plain}
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value
