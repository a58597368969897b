"""Requests on the Responses wire."""

from typing import Any

import msgspec
import pytest

from holdfast.errors import InvariantBroken
from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.request.request import (
    Assistant,
    GenerationControls,
    HostedResult,
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
from holdfast.provider.wire.openai_responses.adapter import OpenAIResponsesAdapter
from holdfast.provider.wire.wire import Endpoint
from tests.provider.talking import a_model, a_request

RESPONSES = WireKind.OPENAI_RESPONSES
HERE = Endpoint(base_url="https://api.example/v1/", key="k-123456")
PNG = "data:image/png;base64,iVBORw0KGgo="
STORED = {"store": True}
OTHER = a_model(RESPONSES, provider_id="local")


def model(**fields: object) -> Model:
    return a_model(RESPONSES, **fields)


def body(**fields: object) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.decode(
        OpenAIResponsesAdapter().encode(a_request(RESPONSES, **fields), HERE).body
    )
    return made


def items(*history: object, **fields: object) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = body(messages=history, **fields)["input"]
    return made


def said(*texts: str) -> User:
    return User(content=tuple(Text(text=text) for text in texts))


def heard(*texts: str) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}


def answered(text: str, **fields: object) -> dict[str, object]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content, **fields}


def thought(text: str, **own: object) -> Reasoning:
    return Reasoning(text=text, metadata={"openai": {"itemId": "rs_1", **own}})


CALL = Assistant(content=(ToolCall(id="call_1", name="read", input={"path": "a"}),))
RESULT = Results(content=(ToolResult(id="call_1", name="read", content=(Text(text="seen"),)),))
ANSWER = Assistant(content=(Text(text="ok"),))
UPDATE = SystemUpdate(text="a < b")
WRAPPED = "<system-update>\na &lt; b\n</system-update>"


def test_address_and_headers() -> None:
    """The key is a bearer unless a header is given by hand."""
    adapter = OpenAIResponsesAdapter()
    plain = adapter.encode(a_request(RESPONSES), HERE)
    given = adapter.encode(
        a_request(RESPONSES), Endpoint(base_url="http://h", key="k", headers={"API-Key": "z"})
    )

    own = {"content-type": "application/json", "accept": "text/event-stream"}
    assert (plain.url, plain.headers) == (
        "https://api.example/v1/responses",
        {**own, "authorization": "Bearer k-123456"},
    )
    assert (given.url, given.headers) == ("http://h/responses", {**own, "api-key": "z"})


def test_the_plainest_body() -> None:
    """A bare request asks for a stream, keeps nothing at the server and says nothing that it need not."""
    assert body() == {"model": "m-1", "input": [heard("Hello")], "stream": True, "store": False}


def test_every_setting() -> None:
    """Controls and options by this wire's names; what it has no name for is left out."""
    made = body(
        model=model(reasoning=True),
        system=("You are.", "", "Here."),
        tools=(ToolDefinition(name="read", description="Reads.", input={"type": "object"}),),
        tool_choice=NamedTool(name="read"),
        controls=GenerationControls(
            max_output_tokens=99, temperature=0.5, top_p=0.9, top_k=3, seed=1, stop=("END",)
        ),
        options={
            "reasoning_effort": "high",
            "reasoning_summary": "auto",
            "verbosity": "low",
            "include": ["web_search_call.action.sources"],
            "service_tier": "flex",
            "parallel_tool_calls": False,
            "cache_retention": "24h",
            "user": "u",
            "metadata": {"a": "b"},
            "truncation": "auto",
            "thinking": {"type": "enabled"},
        },
        cache_key="prefix-1",
        body={"text": {"format": {"type": "text"}}, "max_tool_calls": 3},
    )

    assert made == {
        "model": "m-1",
        "instructions": "You are.\n\nHere.",
        "input": [heard("Hello")],
        "stream": True,
        "store": False,
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
        "tool_choice": {"type": "function", "name": "read"},
        "max_output_tokens": 99,
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {"verbosity": "low", "format": {"type": "text"}},
        "include": ["web_search_call.action.sources", "reasoning.encrypted_content"],
        "service_tier": "flex",
        "parallel_tool_calls": False,
        "prompt_cache_key": "prefix-1",
        "prompt_cache_retention": "24h",
        "user": "u",
        "metadata": {"a": "b"},
        "truncation": "auto",
        "max_tool_calls": 3,
    }


@pytest.mark.parametrize(
    ("reasoning", "options", "include"),
    [
        (True, {}, ["reasoning.encrypted_content"]),
        (True, {"include": ["reasoning.encrypted_content"]}, ["reasoning.encrypted_content"]),
        (True, STORED, None),
        (False, {}, None),
    ],
)
def test_thinking_that_nobody_stores_is_asked_for(
    reasoning: bool, options: dict[str, object], include: list[str] | None
) -> None:
    """Encrypted thinking is asked for once, of models that think, when the server keeps nothing."""
    assert body(model=model(reasoning=reasoning), options=options).get("include") == include


@pytest.mark.parametrize(("choice", "expected"), [("auto", None), ("none", "none"), ("required", "required")])
def test_tool_choice(choice: str, expected: str | None) -> None:
    """`auto` is the server's default; a choice without tools is not made."""
    tools = (ToolDefinition(name="read", description="Reads.", input={"type": "object"}),)

    assert body(tools=tools, tool_choice=choice).get("tool_choice") == expected
    assert "tool_choice" not in body(tool_choice=choice)


def test_a_turn_with_a_tool() -> None:
    """A message, a call with its arguments as JSON text, and its output are items in a row."""
    told = Assistant(content=(Text(text="I look"), Text(text=""), *CALL.content))

    assert items(said("Look", ""), told, RESULT, ANSWER) == [
        heard("Look"),
        answered("I look"),
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "seen"},
        answered("ok"),
    ]


def test_half_a_character_in_arguments() -> None:
    """A lone surrogate in a call's input does not break the request."""
    call = Assistant(content=(ToolCall(id="c", name="read", input={"path": "a\ud83d"}),))

    assert items(said("x"), call)[1]["arguments"] == '{"path":"a\ufffd"}'


@pytest.mark.parametrize(
    ("media", "expected"),
    [
        (
            Media(mime="image/png", url=PNG),
            {"type": "input_image", "image_url": PNG, "detail": "auto"},
        ),
        (
            Media(mime="image/png", url="https://x.example/a.png"),
            {"type": "input_image", "image_url": "https://x.example/a.png", "detail": "auto"},
        ),
        (
            Media(mime="application/pdf", url="data:application/pdf;base64,JVBE", filename="a.pdf"),
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,JVBE",
            },
        ),
        (
            Media(mime="application/pdf", url="https://x.example/a.pdf"),
            {"type": "input_file", "file_url": "https://x.example/a.pdf"},
        ),
        (
            Media(mime="text/plain", url="data:text/plain,a", filename="a.txt"),
            {"type": "input_text", "text": "a.txt:\na"},
        ),
        (
            Media(mime="audio/wav", url="data:audio/wav;base64,AAAA", filename="a.wav"),
            {
                "type": "input_text",
                "text": '[The file "a.wav" could not be sent to this model. Tell the user so.]',
            },
        ),
    ],
)
def test_attachments(media: Media, expected: dict[str, object]) -> None:
    """Images, PDFs and texts are content, of a user's message and of a tool's output alike."""
    results = Results(content=(ToolResult(id="c", name="shot", content=(media,)),))

    assert items(User(content=(media,)), results) == [
        {"role": "user", "content": [expected]},
        {"type": "function_call_output", "call_id": "c", "output": [expected]},
    ]


def test_an_update_has_a_role_of_its_own_at_openai() -> None:
    """An input of its own with the text as it is; in an epoch of older rules it is wrapped as before."""
    at_openai = Endpoint(base_url="https://api.openai.com/v1", key="k-123456")

    def sent(*history: object) -> object:
        request = a_request(RESPONSES, messages=history, model=model(npm="@ai-sdk/openai", api_id="gpt-5"))
        return msgspec.json.decode(OpenAIResponsesAdapter().encode(request, at_openai).body)["input"]

    native = SystemUpdate(text="a < b", native=True)
    told = {"role": "developer", "content": [{"type": "input_text", "text": "a < b"}]}
    assert sent(said("a"), native, native) == [heard("a"), told, told]
    assert sent(said("a"), UPDATE) == [heard("a", WRAPPED)]
    with pytest.raises(InvariantBroken):
        sent(CALL, native, RESULT)


def test_an_update_is_wrapped() -> None:
    """Content of the user's input before it, else an input of its own; never between call and result."""
    assert items(said("a"), UPDATE) == [heard("a", WRAPPED)]
    assert items(said("a"), CALL, RESULT, UPDATE)[3] == heard(WRAPPED)
    with pytest.raises(InvariantBroken):
        items(CALL, UPDATE, RESULT)


def test_an_update_never_joins_what_stood_before_an_answer() -> None:
    """Not even where the answer leaves no item: the input before it was sent as it is."""
    silent = Assistant(content=(Reasoning(text="lost"),))

    assert items(said("a"), silent, UPDATE) == [heard("a"), heard(WRAPPED)]


def test_call_ids_are_bounded() -> None:
    """The wire takes sixty-four characters; two ids stay two, and a result finds its call."""
    ids = ("x" * 80, "x" * 81, "call_1")
    calls = Assistant(content=tuple(ToolCall(id=id, name="read", input={}) for id in ids))
    results = Results(content=tuple(ToolResult(id=id, name="read", content=()) for id in ids))
    made = [item["call_id"] for item in items(calls, results)]

    assert made[:3] == made[3:]
    assert [len(id) for id in made[:3]] == [64, 64, 6]
    assert len(set(made)) == 3


def test_thinking_goes_back_as_one_item() -> None:
    """Blocks of one summary are joined again, with what the server encrypted; without ids of its own."""
    answer = Assistant(
        content=(
            thought("First"),
            thought("Then", reasoningEncryptedContent="enc"),
            Reasoning(text="", metadata={"openai": {"itemId": "rs_2", "reasoningEncryptedContent": "more"}}),
            Text(text="ok"),
        )
    )

    assert items(answer) == [
        {
            "type": "reasoning",
            "summary": [
                {"type": "summary_text", "text": "First"},
                {"type": "summary_text", "text": "Then"},
            ],
            "encrypted_content": "enc",
        },
        {"type": "reasoning", "summary": [], "encrypted_content": "more"},
        answered("ok"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        (thought("lost"), Text(text="ok")),
        (Reasoning(text="foreign"), Text(text="ok")),
        (Text(text="ok"), thought("led nowhere", reasoningEncryptedContent="enc")),
    ],
)
def test_thinking_that_would_be_refused_stays_away(content: tuple[Any, ...]) -> None:
    """Thinking that is neither encrypted nor stored, is not this wire's, or has nothing after it."""
    assert items(Assistant(content=content)) == [answered("ok")]


OWN_IDS = Assistant(
    content=(
        thought("Hm", reasoningEncryptedContent="enc"),
        Text(text="ok", metadata={"openai": {"itemId": "msg_1", "phase": "commentary"}}),
        ToolCall(id="call_1", name="read", input={}, metadata={"openai": {"itemId": "fc_1"}}),
    )
)


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({}, [None, None, None]),
        ({"options": STORED}, ["rs_1", "msg_1", "fc_1"]),
        ({"model": OTHER}, ["rs_1", "msg_1", "fc_1"]),
        ({"model": model(npm="@ai-sdk/azure", provider_id="mine")}, [None, None, None]),
    ],
)
def test_ids_go_back_where_they_mean_something(fields: dict[str, object], ids: list[str | None]) -> None:
    """All of an answer's ids or none: none to OpenAI when it stores nothing. The phase always."""
    made = items(OWN_IDS, **fields)

    assert [item.get("id") for item in made] == ids
    assert made[1]["phase"] == "commentary"


def test_an_imitation_always_gets_an_id() -> None:
    """A server that checks the shape finds an id on each answer, the same in a longer history."""
    made = items(said("a"), ANSWER, said("b"), ANSWER, model=OTHER)

    assert [item.get("id") for item in made] == [None, "msg_1", None, "msg_3"]


def test_thinking_in_the_open_goes_back() -> None:
    """A server that shows the thinking itself, and encrypts nothing, gets it back as content."""
    (item, _) = items(Assistant(content=(thought("Hm", open=True), Text(text="ok"))), model=OTHER)

    content = [{"type": "reasoning_text", "text": "Hm"}]
    assert item == {"type": "reasoning", "id": "rs_1", "summary": [], "content": content}


@pytest.mark.parametrize("stored", [True, False])
def test_hosted_items_go_back_as_they_came(stored: bool) -> None:
    """A call of a hosted tool and its answer are one item; only its id depends on who stores it."""
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    answer = Assistant(
        content=(
            ToolCall(id="ws_1", name="web_search", input={"action": {}}, hosted=True),
            HostedResult(id="ws_1", name="web_search", output=search),
            Text(text="found", metadata={"openai": {"annotations": [{"type": "url_citation", "url": "u"}]}}),
        )
    )
    first, second = items(answer, options={"store": stored})

    assert first == (search if stored else {k: v for k, v in search.items() if k != "id"})
    assert second["content"][0]["annotations"] == [{"type": "url_citation", "url": "u"}]


def test_a_refusal_goes_back_as_one() -> None:
    """What the model refused with is told as a refusal."""
    (item,) = items(Assistant(content=(Text(text="No.", metadata={"openai": {"refusal": True}}),)))

    assert item["content"] == [{"type": "refusal", "refusal": "No."}]
