"""Law 7 on each wire: what was sent is never written differently when more is sent after it.

Histories are drawn at random, in the shapes that lowering makes and in odder ones. For every place at which a
request could have been sent, the request of the whole history must extend it: tools and system are the same,
each message but the last is the same, and the last has the same items, and perhaps more behind them. The same
is then said of the bytes. A string that grows, a list that was a string, a block that moves: each is a miss
of the provider's cache, and so money.
"""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.request import cache_marks
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
    ToolDefinition,
    ToolResult,
    User,
)
from holdfast.provider.wire.wire import Endpoint
from tests.examples import examples
from tests.provider.talking import ADAPTERS, a_model

HERE = Endpoint(base_url="https://api.example/v1")
OPENAI = Endpoint(base_url="https://api.openai.com/v1")
ANTHROPIC, CHAT = WireKind.ANTHROPIC, WireKind.OPENAI_CHAT
RESPONSES, GEMINI = WireKind.OPENAI_RESPONSES, WireKind.GEMINI

MODELS = {
    "anthropic": a_model(ANTHROPIC, api_id="claude-sonnet-4-5"),
    "anthropic, native role": a_model(ANTHROPIC, api_id="claude-opus-4-8"),
    "chat": a_model(CHAT, reasoning_field="reasoning_content"),
    "chat, own": a_model(CHAT, provider_id="openai", npm="@ai-sdk/openai"),
    "chat, developer role": a_model(CHAT, provider_id="openai", npm="@ai-sdk/openai", api_id="gpt-5"),
    "chat, mistral": a_model(CHAT, provider_id="mistral", npm="@ai-sdk/mistral", api_id="devstral"),
    "chat, deepseek": a_model(CHAT, provider_id="deepseek", api_id="deepseek-r", reasoning=True),
    "chat, router": a_model(CHAT, provider_id="openrouter", npm="@openrouter/ai-sdk-provider"),
    "chat, marks": a_model(CHAT, provider_id="openrouter", api_id="anthropic/claude-x"),
    "chat, local": a_model(CHAT, provider_id="vllm"),
    "responses": a_model(RESPONSES, npm="@ai-sdk/openai", reasoning=True),
    "responses, developer role": a_model(RESPONSES, npm="@ai-sdk/openai", api_id="gpt-5"),
    "responses, imitated": a_model(RESPONSES, provider_id="other"),
    "gemini": a_model(GEMINI, api_id="gemini-3-pro"),
    "gemini, older": a_model(GEMINI, api_id="gemini-2.5-flash"),
}
# Where each wire writes its messages, and where each message its items.
MESSAGES = {ANTHROPIC: "messages", CHAT: "messages", RESPONSES: "input", GEMINI: "contents"}
ITEMS = {ANTHROPIC: "content", CHAT: "content", RESPONSES: "content", GEMINI: "parts"}
SYSTEM = {ANTHROPIC: "system", CHAT: "tools", RESPONSES: "instructions", GEMINI: "systemInstruction"}

OWN = {
    "anthropic": {"signature": "s"},
    "openai": {"itemId": "rs_1", "reasoningEncryptedContent": "e"},
    "google": {"thoughtSignature": "g"},
    "openaiCompatible": {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
}
METADATA = st.sampled_from((None, OWN))
TEXTS = st.builds(Text, text=st.sampled_from(("a", "b c", " ", "\n", "")))
MEDIA = st.sampled_from(
    (
        Media(mime="image/png", url="data:image/png;base64,AAAA"),
        Media(mime="text/plain", url="data:text/plain,a", filename="a.txt"),
    )
)
SAID = st.lists(TEXTS | MEDIA, min_size=1, max_size=2).map(tuple)
USERS = st.builds(User, content=SAID)
UPDATES = st.builds(SystemUpdate, text=st.sampled_from(("now", "a < b")), native=st.booleans())
THOUGHTS = st.builds(Reasoning, text=st.sampled_from(("hm", "")), metadata=METADATA)
WORDS = st.builds(Text, text=st.sampled_from(("z", " ", "")), metadata=METADATA)


@st.composite
def steps(draw: st.DrawFn) -> list[ProviderMessage]:
    """One step of the model: thinking, words, calls; then what our tools answered."""
    content: list[Text | Reasoning | ToolCall | HostedResult] = draw(
        st.lists(THOUGHTS | WORDS, min_size=1, max_size=2)
    )
    if draw(st.booleans()):
        search = {"type": "web_search_call", "id": "ws_1"}
        content += [
            ToolCall(id="ws_1", name="web_search", input={}, hosted=True),
            HostedResult(id="ws_1", name="web_search", output=search),
        ]
    ids = draw(st.lists(st.sampled_from(("c.1", "c:1", "y" * 80, "call_1")), max_size=2, unique=True))
    content += [ToolCall(id=id, name="read", input={"a": 1}, metadata=draw(METADATA)) for id in ids]
    results = tuple(ToolResult(id=id, name="read", content=draw(SAID)) for id in ids)
    answer: list[ProviderMessage] = [Assistant(content=tuple(content))]
    return [*answer, Results(content=results)] if results else answer


SILENT = Assistant(content=(Text(text=""),))
HISTORIES = st.lists(
    st.one_of(USERS.map(lambda one: [one]), UPDATES.map(lambda one: [one]), steps(), st.just([SILENT])),
    min_size=1,
    max_size=7,
).map(lambda groups: [User(content=(Text(text="hi"),)), *(one for group in groups for one in group)])
TOOLS = (ToolDefinition(name="read", description="Reads.", input={}),)


def encoded(model: Model, history: list[ProviderMessage], *, marked: bool = False) -> dict[str, Any]:
    """The body of a request; `marked`: with its cache marks set, and then taken out again."""
    request = Request(model=model, system=("s", "t"), tools=TOOLS, messages=tuple(history))
    if marked:
        request = replace(request, marks=cache_marks.marks(request))
    endpoint = OPENAI if model.npm == "@ai-sdk/openai" else HERE
    made: dict[str, Any] = unmarked(msgspec.json.decode(ADAPTERS[model.wire].encode(request, endpoint).body))
    return made


def unmarked(value: Any) -> Any:
    match value:
        case dict():
            return {name: unmarked(item) for name, item in value.items() if name != "cache_control"}
        case list():
            return [unmarked(item) for item in value]
        case _:
            return value


def check_extends(model: Model, shorter: dict[str, Any], longer: dict[str, Any]) -> None:
    for field in ("tools", SYSTEM[model.wire]):
        assert shorter.get(field) == longer.get(field)
    before, after = shorter[MESSAGES[model.wire]], longer[MESSAGES[model.wire]]
    assert before[:-1] == after[: len(before) - 1]
    last, grown = before[-1], after[len(before) - 1]
    name = ITEMS[model.wire]
    items = last.get(name)
    if isinstance(items, list):
        assert items == grown[name][: len(items)]
        grown = {**grown, name: items}
    assert last == grown
    assert msgspec.json.encode(after).startswith(msgspec.json.encode(before).rstrip(b"]}"))


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@settings(max_examples=examples(30))
@given(history=HISTORIES)
def test_a_longer_history_extends_the_shorter_one(model: Model, history: list[ProviderMessage]) -> None:
    """Each request that could have been sent is the beginning of the one that is."""
    longer = encoded(model, history)

    for end in range(1, len(history)):
        if not isinstance(history[end], Results):  # A call goes nowhere without its result.
            shorter = encoded(model, history[:end])
            check_extends(model, shorter, longer)
            if isinstance(history[end], Assistant) and not isinstance(history[end - 1], Assistant):
                # The model has answered: nothing joins what it answered to, even if it said nothing.
                sent = shorter[MESSAGES[model.wire]]
                assert sent == longer[MESSAGES[model.wire]][: len(sent)]


@pytest.mark.parametrize("name", ["anthropic", "chat, marks"])
@settings(max_examples=examples(30))
@given(history=HISTORIES)
def test_marks_leave_nothing_behind(name: str, history: list[ProviderMessage]) -> None:
    """A mark that moves on leaves the block as it would have been without it."""
    assert encoded(MODELS[name], history) == encoded(MODELS[name], history, marked=True)


@pytest.mark.ci
@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@settings(max_examples=examples(30))
@given(history=HISTORIES)
def test_every_message_is_one_that_a_wire_takes(model: Model, history: list[ProviderMessage]) -> None:
    """No message is empty, the person speaks first, and where roles must alternate they do."""
    made = encoded(model, history)[MESSAGES[model.wire]]
    made = made[1:] if model.wire is CHAT else made  # The system's stands first.
    items = [message.get(ITEMS[model.wire]) for message in made]
    roles = [message.get("role") for message in made]

    assert roles[0] == "user"
    assert [] not in items
    if model.wire in (ANTHROPIC, GEMINI):
        assert all(one != other for one, other in pairwise(roles))
    if model.wire is ANTHROPIC:
        followed = [other for one, other in pairwise(roles) if one == "system"]
        assert set(followed) <= {"assistant"}
        assert not any(
            message["content"][-1]["type"].endswith("thinking")
            for message in made
            if message["role"] == "assistant"
        )
