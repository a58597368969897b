"""Requests on the Chat Completions wire, and what single servers need."""

import re
from typing import Any

import msgspec
import pytest

from holdfast.errors import InvariantBroken
from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.request.request import (
    Assistant,
    CacheMarks,
    GenerationControls,
    Media,
    NamedTool,
    Reasoning,
    Results,
    SystemUpdate,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    User,
)
from holdfast.provider.wire.openai_chat.adapter import OpenAIChatAdapter
from holdfast.provider.wire.wire import Endpoint
from tests.provider.talking import a_model, a_request

CHAT = WireKind.OPENAI_CHAT
HERE = Endpoint(base_url="https://api.example/v1/", key="k-123456")
PNG = "data:image/png;base64,iVBORw0KGgo="
MARK = {"cache_control": {"type": "ephemeral"}}


def model(**fields: object) -> Model:
    return a_model(CHAT, **fields)


def body(**fields: object) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.decode(
        OpenAIChatAdapter().encode(a_request(CHAT, **fields), HERE).body
    )
    return made


def messages(*history: object, **fields: object) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = body(messages=history, **fields)["messages"]
    return made


def said(*texts: str) -> User:
    return User(content=tuple(Text(text=text) for text in texts))


def item(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


CALL = Assistant(content=(ToolCall(id="call_1", name="read", input={"path": "a"}),))
RESULT = Results(content=(ToolResult(id="call_1", name="read", content=(Text(text="seen"),)),))
ANSWER = Assistant(content=(Text(text="ok"),))
UPDATE = SystemUpdate(text="a < b")
WRAPPED = "<system-update>\na &lt; b\n</system-update>"


def test_address_and_headers() -> None:
    """The key is a bearer unless a header is given by hand; gateways are told the session."""
    adapter = OpenAIChatAdapter()
    plain = adapter.encode(a_request(CHAT, session="ses_1"), HERE)
    given = adapter.encode(a_request(CHAT), Endpoint(base_url="http://h", key="k", headers={"API-Key": "z"}))

    own = {"content-type": "application/json", "accept": "text/event-stream"}
    assert plain.url == "https://api.example/v1/chat/completions"
    assert plain.headers == {**own, "authorization": "Bearer k-123456", "x-session-affinity": "ses_1"}
    assert (given.url, given.headers) == ("http://h/chat/completions", {**own, "api-key": "z"})


def test_the_plainest_body() -> None:
    """A bare request asks for a stream with usage and says nothing that it need not."""
    assert body() == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


SETTINGS = {
    "tools": (ToolDefinition(name="read", description="Reads.", input={"type": "object"}),),
    "tool_choice": NamedTool(name="read"),
    "controls": GenerationControls(
        max_output_tokens=9, temperature=0.5, top_p=0.9, top_k=3, seed=1, stop=("END",), presence_penalty=0.1
    ),
    "options": {"reasoning_effort": "high", "verbosity": "low", "parallel_tool_calls": False},
    "cache_key": "prefix-1",
    "body": {"stream_options": {"extra": 1}, "provider": {"order": ["x"]}},
}
SAID = {
    "model": "m-1",
    "messages": [{"role": "user", "content": "Hello"}],
    "stream": True,
    "stream_options": {"include_usage": True, "extra": 1},
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "read",
                "description": "Reads.",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ],
    "tool_choice": {"type": "function", "function": {"name": "read"}},
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 1,
    "stop": ["END"],
    "presence_penalty": 0.1,
    "verbosity": "low",
    "parallel_tool_calls": False,
    "provider": {"order": ["x"]},
}


@pytest.mark.parametrize(
    ("fields", "differs"),
    [
        ({}, {"max_tokens": 9, "top_k": 3, "reasoning_effort": "high"}),
        (
            {"provider_id": "openai", "npm": "@ai-sdk/openai"},
            {
                "messages": [{"role": "user", "content": [item("Hello")]}],
                "max_completion_tokens": 9,
                "reasoning_effort": "high",
                "prompt_cache_key": "prefix-1",
            },
        ),
        (
            {"provider_id": "openrouter", "npm": "@openrouter/ai-sdk-provider"},
            {
                "messages": [{"role": "user", "content": [item("Hello")]}],
                "max_tokens": 9,
                "top_k": 3,
                "reasoning": {"effort": "high"},
            },
        ),
    ],
)
def test_settings_by_server(fields: dict[str, str], differs: dict[str, object]) -> None:
    """OpenAI's own service has a name for the limit and a cache key; a router nests the effort."""
    assert body(model=model(**fields), **SETTINGS) == {**SAID, **differs}


def test_settings_of_mistral() -> None:
    """It has its own name for the seed, and refuses fields that it does not know."""
    controls = GenerationControls(seed=3, top_k=4, temperature=0.5)
    made = body(model=model(provider_id="mistral", npm="@ai-sdk/mistral"), controls=controls)
    routed = body(model=model(api_id="mistral-large"), controls=controls)

    assert (made["random_seed"], made["temperature"]) == (3, 0.5)
    assert not {"seed", "top_k", "stream_options"} & set(made)
    assert (routed["seed"], routed["top_k"]) == (3, 4)


def test_a_turn_with_a_tool() -> None:
    """System first and single, arguments as JSON text, results by id."""
    said_call = Assistant(content=(Text(text="I "), Text(text="look"), *CALL.content))

    assert messages(said("Look", ""), said_call, RESULT, ANSWER, system=("You are.", "", "Here.")) == [
        {"role": "system", "content": "You are.\n\nHere."},
        {"role": "user", "content": "Look"},
        {
            "role": "assistant",
            "content": "I look",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path":"a"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "seen"},
        {"role": "assistant", "content": "ok"},
    ]


def test_a_message_without_words_says_so() -> None:
    """Nothing empty is sent, and nothing is left out; a hosted call of another wire has no words here."""
    hosted = Assistant(content=(ToolCall(id="s", name="web_search", input={}, hosted=True),))

    silent = {"role": "assistant", "content": "[No answer]"}
    assert messages(said(""), Assistant(content=()), said("a"), hosted) == [
        {"role": "user", "content": "[Empty message]"},
        silent,
        {"role": "user", "content": "a"},
        silent,
    ]


@pytest.mark.parametrize(
    ("media", "expected"),
    [
        (Media(mime="image/png", url=PNG), {"type": "image_url", "image_url": {"url": PNG}}),
        (
            Media(mime="image/png", url="https://x.example/a.png"),
            {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
        ),
        (
            Media(mime="application/pdf", url="data:application/pdf;base64,JVBE", filename="a.pdf"),
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        ),
        (
            Media(mime="audio/wav", url="data:audio/wav;base64,AAAA"),
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ),
        (Media(mime="text/plain", url="data:text/plain,a", filename="a.txt"), item("a.txt:\na")),
    ],
)
def test_attachments(media: Media, expected: dict[str, object]) -> None:
    """Images, PDFs, sounds and texts as content items beside the text."""
    user = User(content=(Text(text="See"), media))

    (made,) = messages(user, model=model(provider_id="vllm"))
    assert made == {"role": "user", "content": [item("See"), expected]}


def test_text_alone_is_a_string_where_lists_are_not_known() -> None:
    """Some servers refuse a list of texts; with an image beside it there is no other way."""
    assert messages(said("a", "b")) == [{"role": "user", "content": "a\nb"}]
    pictured = User(content=(Text(text="a"), Media(mime="image/png", url=PNG)))
    assert isinstance(messages(pictured)[0]["content"], list)
    for provider in ("openrouter", "ollama", "lmstudio", "llamacpp", "vllm", "local"):
        assert messages(said("a"), model=model(provider_id=provider)) == [
            {"role": "user", "content": [item("a")]}
        ]


def test_media_of_results_follow_them() -> None:
    """A tool's answer is text; its images come after all answers, introduced, and an update joins them."""
    results = Results(
        content=(
            ToolResult(id="a", name="shot", content=(Media(mime="image/png", url=PNG),)),
            ToolResult(id="b", name="read", content=(Text(text="x"), Text(text="y"))),
        )
    )
    image = {"type": "image_url", "image_url": {"url": PNG}}

    assert messages(results, UPDATE) == [
        {"role": "tool", "tool_call_id": "a", "content": "The result is attached below."},
        {"role": "tool", "tool_call_id": "b", "content": "x\ny"},
        {"role": "user", "content": [item("Attached by the result of shot:"), image, item(WRAPPED)]},
    ]


def test_an_update_has_a_role_of_its_own_at_openai() -> None:
    """A message of its own with the text as it is; in an epoch of older rules it is wrapped as before."""
    at_openai = Endpoint(base_url="https://api.openai.com/v1", key="k-123456")

    def sent(*history: object) -> object:
        request = a_request(
            CHAT, messages=history, model=model(npm="@ai-sdk/openai", api_id="gpt-4.1"), system=()
        )
        return msgspec.json.decode(OpenAIChatAdapter().encode(request, at_openai).body)["messages"]

    native = SystemUpdate(text="a < b", native=True)
    asked = {"role": "user", "content": [item("a")]}
    assert sent(said("a"), native, native) == [asked, *[{"role": "system", "content": "a < b"}] * 2]
    assert sent(said("a"), UPDATE) == [{"role": "user", "content": [item("a"), item(WRAPPED)]}]
    with pytest.raises(InvariantBroken):
        sent(CALL, native, RESULT)


def test_an_update_is_wrapped() -> None:
    """An item beside the user's, or a message of its own; never between a call and its result.

    A string before it stays as it is: it was sent so.
    """
    wrapped = {"role": "user", "content": WRAPPED}
    assert messages(said("a"), UPDATE) == [{"role": "user", "content": "a"}, wrapped]
    assert messages(said("a"), UPDATE, model=model(provider_id="vllm")) == [
        {"role": "user", "content": [item("a"), item(WRAPPED)]}
    ]
    assert messages(ANSWER, UPDATE)[1] == {"role": "user", "content": WRAPPED}
    with pytest.raises(InvariantBroken):
        messages(CALL, UPDATE, RESULT)


def test_marks_sit_on_the_last_item() -> None:
    """Where marks are used everything is written as items, so a mark that moves on leaves the same behind."""
    claude = model(api_id="claude-x")
    history = (said("a"), CALL, RESULT, ANSWER, said("b"), UPDATE)
    marks = CacheMarks(system=(0,), messages=(3, 4))
    made = messages(*history, system=("s", "t"), model=claude, marks=marks)

    assert made[0] == {"role": "system", "content": [{**item("s"), **MARK}, item("t")]}
    assert made[3:] == [
        {"role": "tool", "tool_call_id": "call_1", "content": [item("seen")]},
        {"role": "assistant", "content": [{**item("ok"), **MARK}]},
        {"role": "user", "content": [{**item("b"), **MARK}, item(WRAPPED)]},
    ]
    assert b"".join(msgspec.json.encode(made).split(b',"cache_control":{"type":"ephemeral"}')) == (
        msgspec.json.encode(messages(*history, system=("s", "t"), model=claude))
    )


def test_mistral_wants_short_ids_and_no_user_after_a_tool() -> None:
    """Ids are nine letters or digits, the same for call and result; a filler stands before the user."""
    mistral = model(provider_id="mistral", api_id="mistral-large")
    _, call, result, filler, user = messages(said("a"), CALL, RESULT, said("b"), model=mistral)

    id = call["tool_calls"][0]["id"]
    assert re.fullmatch("[a-z0-9]{9}", id)
    assert result["tool_call_id"] == id
    assert filler == {"role": "assistant", "content": "Done."}
    assert user == {"role": "user", "content": [item("b")]}
    kept = Assistant(content=(ToolCall(id="abcDEF123", name="read", input={}),))
    assert messages(kept, model=mistral)[0]["tool_calls"][0]["id"] == "abcDEF123"


def test_ids_are_short_and_stay_different() -> None:
    """OpenAI takes forty characters; Claude behind a router plain letters alone."""
    long = [f"functions.mcp__some_server__some_very_long_tool_name:{number}" for number in range(2)]
    calls = Assistant(content=tuple(ToolCall(id=id, name="read", input={}) for id in (*long, "a.1", "a:1")))
    for fields, letters in (({}, "."), ({"api_id": "claude-x"}, r"[\w-]")):
        (made,) = messages(calls, model=model(**fields))
        ids = [call["id"] for call in made["tool_calls"]]
        assert len(set(ids)) == 4
        assert all(re.fullmatch(f"{letters}{{1,40}}", id) for id in ids)


THOUGHT = Assistant(content=(Reasoning(text="Hm "), Reasoning(text="so"), Text(text="ok")))


@pytest.mark.parametrize(
    ("fields", "assistant", "extra"),
    [
        ({}, THOUGHT, {}),
        ({"reasoning_field": "reasoning_content"}, THOUGHT, {"reasoning_content": "Hm so"}),
        ({"reasoning_field": "reasoning"}, THOUGHT, {"reasoning": "Hm so"}),
        ({"reasoning_field": "reasoning_content"}, ANSWER, {}),
        ({"api_id": "deepseek-reasoner", "reasoning": True}, ANSWER, {"reasoning_content": ""}),
        ({"api_id": "deepseek-reasoner", "reasoning": True}, THOUGHT, {"reasoning_content": "Hm so"}),
        ({"api_id": "deepseek-chat"}, ANSWER, {}),
    ],
)
def test_thinking_goes_back_in_its_field(
    fields: dict[str, object], assistant: Assistant, extra: dict[str, str]
) -> None:
    """Only where the server has a field for it; DeepSeek's reasoners want the field always."""
    assert messages(assistant, model=model(**fields)) == [{"role": "assistant", "content": "ok", **extra}]


def test_opaque_thinking_goes_back_as_it_came() -> None:
    """A router gets its items and no second copy of the words; a call keeps what its server hung on it."""
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    assistant = Assistant(
        content=(
            Reasoning(text="", metadata={"openaiCompatible": {"reasoning_details": details}}),
            ToolCall(
                id="c",
                name="read",
                input={},
                metadata={"openaiCompatible": {"extra_content": {"google": {"thought_signature": "s"}}}},
            ),
        )
    )
    (made,) = messages(assistant, model=model(provider_id="openrouter"))

    assert (made["reasoning_details"], "reasoning" in made) == (details, False)
    assert made["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}
