"""Requests on the Messages wire, field by field."""

import re
from typing import Any

import msgspec
import pytest

from holdfast.errors import InvariantBroken
from holdfast.provider.catalog.model import Limit
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
    ToolChoice,
    ToolDefinition,
    ToolResult,
    User,
)
from holdfast.provider.wire.anthropic.adapter import AnthropicAdapter
from holdfast.provider.wire.wire import Endpoint
from tests.provider.talking import a_model, a_request

HERE = Endpoint(base_url="https://api.example/v1", key="k-123456")
PNG = "data:image/png;base64,iVBORw0KGgo="


def body(**fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.decode(AnthropicAdapter().encode(a_request(**fields), HERE).body)
    return made


def messages(*history: object, **fields: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = body(messages=history, **fields)["messages"]
    return made


def said(*texts: str) -> User:
    return User(content=tuple(Text(text=text) for text in texts))


def block(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def test_address_and_headers() -> None:
    """The key goes into its header unless one is given by hand; later headers win; the query is kept."""
    adapter, request = AnthropicAdapter(), a_request(headers={"X-B": "3"}, session="ses_1")
    plain = adapter.encode(request, HERE)
    given = adapter.encode(
        request,
        Endpoint(
            base_url="https://api.example",
            key="k",
            headers={"Authorization": "Bearer t", "x-a": "1", "x-b": "2"},
            query={"q": "a b"},
        ),
    )

    own = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "anthropic-version": "2023-06-01",
    }
    assert plain.url == "https://api.example/v1/messages"
    assert plain.headers == {**own, "x-api-key": "k-123456", "x-b": "3"}
    assert given.url == "https://api.example/v1/messages?q=a+b"
    assert given.headers == {**own, "authorization": "Bearer t", "x-a": "1", "x-b": "3"}
    gateway = a_request(model=a_model(provider_id="gate"), session="ses_1")
    assert adapter.encode(gateway, HERE).headers["x-session-affinity"] == "ses_1"


def test_the_plainest_body() -> None:
    """A bare request has what the wire demands and nothing else."""
    assert body() == {
        "model": "m-1",
        "max_tokens": 32_000,
        "stream": True,
        "messages": [{"role": "user", "content": [block("Hello")]}],
    }


@pytest.mark.parametrize(
    ("limit", "wanted", "budget", "expected"),
    [
        (64_000, None, None, 32_000),
        (8_192, None, None, 8_192),
        (0, None, None, 32_000),
        (64_000, 100, None, 100),
        (64_000, None, 16_000, 32_000),
        (64_000, 8_000, 16_000, 24_000),
        (20_000, 8_000, 16_000, 20_000),
        (16_000, 8_000, 16_000, 16_001),
    ],
)
def test_room_for_the_answer(limit: int, wanted: int | None, budget: int | None, expected: int) -> None:
    """`max_tokens` is said always, is at most the model's, and exceeds the budget for thinking."""
    options = {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget else {}
    made = body(
        model=a_model(limit=Limit(output=limit)),
        controls=GenerationControls(max_output_tokens=wanted),
        options=options,
    )

    assert made["max_tokens"] == expected


def test_controls_options_and_fields() -> None:
    """Each setting by its name on the wire; fields given as they are come last and are merged deeply."""
    tool = ToolDefinition(name="read", description="Reads.", input={"type": "object"})
    made = body(
        tools=(tool,),
        tool_choice=NamedTool(name="read"),
        system=("You are.", "", "Here."),
        controls=GenerationControls(temperature=0.5, top_k=3, stop=("END",), seed=1),
        options={"reasoning_effort": "high", "user": "u", "parallel_tool_calls": False, "verbosity": "low"},
        body={"output_config": {"format": {"type": "json_schema"}}, "speed": "fast"},
    )
    del made["messages"], made["model"], made["max_tokens"], made["stream"]

    assert made == {
        "tools": [
            {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
        ],
        "tool_choice": {"type": "tool", "name": "read", "disable_parallel_tool_use": True},
        "system": [block("You are."), block("Here.")],
        "temperature": 0.5,
        "top_k": 3,
        "stop_sequences": ["END"],
        "output_config": {"effort": "high", "format": {"type": "json_schema"}},
        "metadata": {"user_id": "u"},
        "speed": "fast",
    }


def test_thinking_excludes_sampling() -> None:
    """With thinking on, the wire takes no temperature, top_p or top_k."""
    controls = GenerationControls(temperature=0.5, top_p=0.9, top_k=3)
    on = body(controls=controls, options={"thinking": {"type": "adaptive", "include_thoughts": True}})
    off = body(controls=controls, options={"thinking": {"type": "disabled"}})

    assert on["thinking"] == {"type": "adaptive"}
    assert not {"temperature", "top_p", "top_k"} & set(on)
    assert {"temperature", "top_k"} <= set(off)


def test_temperature_excludes_top_p() -> None:
    """Newer models refuse the two together; a model that takes no temperature still gets the other."""
    controls = GenerationControls(temperature=0.5, top_p=0.9)
    both = body(controls=controls)
    cold = body(controls=controls, model=a_model(temperature=False))

    assert (both.get("temperature"), both.get("top_p")) == (0.5, None)
    assert (cold.get("temperature"), cold.get("top_p")) == (None, 0.9)
    assert body(controls=GenerationControls(top_p=0.9))["top_p"] == 0.9


@pytest.mark.parametrize(
    ("choice", "thinks"),
    [("auto", True), ("none", True), ("required", False), (NamedTool(name="t"), False)],
)
def test_thinking_gives_way_to_a_forced_call(choice: ToolChoice, thinks: bool) -> None:
    """The wire refuses thinking with a forced tool; without tools nothing is forced."""
    thinking = {"type": "enabled", "budget_tokens": 2_000}
    tool = ToolDefinition(name="t", description="", input={})
    made = body(tools=(tool,), tool_choice=choice, options={"thinking": thinking})
    bare = body(tool_choice=choice, options={"thinking": thinking})

    assert (thinking if thinks else None) == made.get("thinking")
    assert bare["thinking"] == thinking


def test_every_schema_is_an_object() -> None:
    """A tool without input is still told as a tool that takes an object."""
    tools = (ToolDefinition(name="t", description="", input={}),)

    assert body(tools=tools)["tools"][0]["input_schema"] == {"type": "object", "properties": {}}


def test_a_turn_with_everything() -> None:
    """Signed and hidden thinking, hosted and own calls, results with images: as the wire gave them."""
    made = messages(
        said("Look"),
        Assistant(
            content=(
                Reasoning(text="Hm", metadata={"anthropic": {"signature": "s1"}}),
                Reasoning(text="", metadata={"anthropic": {"redactedData": "xx"}}),
                Reasoning(text="unsigned"),
                Text(text=" "),
                Text(text=""),
                ToolCall(id="srv_1", name="web_search", input={"query": "q"}, hosted=True),
                HostedResult(id="srv_1", name="web_search", output=[{"type": "web_search_result"}]),
                HostedResult(
                    id="srv_2",
                    name="bash",
                    output={},
                    metadata={"anthropic": {"type": "bash_code_execution_tool_result"}},
                ),
                Text(text="So", metadata={"anthropic": {"citations": [{"url": "u"}]}}),
                ToolCall(id="call.1|x", name="read", input={"path": "a"}),
            )
        ),
        Results(
            content=(
                ToolResult(
                    id="call.1|x",
                    name="read",
                    content=(Text(text="seen"), Media(mime="image/png", url=PNG)),
                    failed=True,
                ),
                ToolResult(id="c2", name="read", content=()),
            )
        ),
        said("Next"),
    )

    image = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert made == [
        {"role": "user", "content": [block("Look")]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "s1"},
                {"type": "redacted_thinking", "data": "xx"},
                block(" "),
                {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srv_1",
                    "content": [{"type": "web_search_result"}],
                },
                {"type": "bash_code_execution_tool_result", "tool_use_id": "srv_2", "content": {}},
                {"type": "text", "text": "So", "citations": [{"url": "u"}]},
                {"type": "tool_use", "id": "call_1_x_4e413e2e76fd", "name": "read", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1_x_4e413e2e76fd",
                    "content": [block("seen"), {"type": "image", "source": image}],
                    "is_error": True,
                },
                {"type": "tool_result", "tool_use_id": "c2"},
                block("Next"),
            ],
        },
    ]


def test_roles_alternate_and_nothing_is_empty() -> None:
    """Neighbours of one role are merged; blank text is left out, and a message without a block says so."""
    made = messages(
        said("a"),
        said("", " "),
        said("b"),
        Assistant(content=()),
        said("c"),
        Assistant(content=(Text(text=" "),)),
    )

    assert made == [
        {"role": "user", "content": [block("a"), block("[Empty message]"), block("b")]},
        {"role": "assistant", "content": [block("[No answer]")]},
        {"role": "user", "content": [block("c")]},
        {"role": "assistant", "content": [block("[No answer]")]},
    ]


def test_a_blank_prompt_is_a_prompt() -> None:
    """A request is never without messages, and never begins with the model."""
    empty = {"role": "user", "content": [block("[Empty message]")]}

    assert messages(said(" \n")) == [empty]
    assert messages(said(" "), ANSWER, said("b"))[0] == empty


def test_thinking_never_ends_a_message() -> None:
    """The wire refuses a message of the model's that ends with thinking, so its silence is said."""
    thought = Reasoning(text="Hm", metadata={"anthropic": {"signature": "s"}})
    made = messages(said("a"), Assistant(content=(thought,)), said("b"))

    assert made[1]["content"] == [
        {"type": "thinking", "thinking": "Hm", "signature": "s"},
        block("[No answer]"),
    ]


def test_ids_that_differ_stay_different() -> None:
    """A replaced character or a cut end makes no two ids one; an id that fits is left alone."""
    ids = ("a.1", "a:1", "a_1", "x" * 80, "x" * 81)
    calls = Assistant(content=tuple(ToolCall(id=id, name="read", input={}) for id in ids))
    results = Results(content=tuple(ToolResult(id=id, name="read", content=()) for id in ids))
    _, called, answered = messages(said("a"), calls, results)

    made = [one["id"] for one in called["content"]]
    assert made == [one["tool_use_id"] for one in answered["content"]]
    assert len(set(made)) == len(ids)
    assert made[2] == "a_1"
    assert all(re.fullmatch(r"[\w-]{1,64}", one) for one in made)


@pytest.mark.parametrize(
    ("media", "expected"),
    [
        (
            Media(mime="application/pdf", url="data:application/pdf;base64,JVBE", filename="a.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
                "title": "a.pdf",
            },
        ),
        (
            Media(mime="image/png", url="https://x.example/a.png"),
            {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
        ),
        (
            Media(mime="text/plain", url="data:text/plain,a%20b", filename="a.txt"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "a b"},
                "title": "a.txt",
            },
        ),
    ],
)
def test_attachments(media: Media, expected: dict[str, object]) -> None:
    """Images, PDFs and texts, from content or by link."""
    assert messages(User(content=(media,)))[0]["content"] == [expected]


@pytest.mark.parametrize(
    "media",
    [
        Media(mime="video/mp4", url="data:video/mp4;base64,AAAA", filename="v.mp4"),
        Media(mime="image/png", url="data:image/png;base64,%%%"),
        Media(mime="image/png", url="file:///a.png"),
    ],
)
def test_what_cannot_be_carried_is_told(media: Media) -> None:
    """The model reads that something is missing, and is asked to say so."""
    (item,) = messages(User(content=(media,)))[0]["content"]

    assert item["type"] == "text"
    assert "Tell the user" in item["text"]


def test_marks_sit_on_blocks() -> None:
    """A mark is on the last block of its message that can carry one, and on its system block."""
    made = body(
        system=("one", "two"),
        messages=(
            said("a", "b"),
            Assistant(
                content=(Text(text="c"), Reasoning(text="", metadata={"anthropic": {"redactedData": "x"}}))
            ),
        ),
        marks=CacheMarks(system=(1,), messages=(0, 1)),
    )

    mark = {"cache_control": {"type": "ephemeral"}}
    assert made["system"] == [block("one"), {**block("two"), **mark}]
    assert made["messages"] == [
        {"role": "user", "content": [block("a"), {**block("b"), **mark}]},
        {
            "role": "assistant",
            "content": [
                block("c"),
                {"type": "redacted_thinking", "data": "x"},
                {**block("[No answer]"), **mark},
            ],
        },
    ]


UPDATE = SystemUpdate(text="a < b & c")
WRAPPED = block("<system-update>\na &lt; b &amp; c\n</system-update>")
NATIVE = {"role": "system", "content": [block("a < b & c")]}
ANSWER = Assistant(content=(Text(text="ok"),))


def test_an_update_is_wrapped() -> None:
    """It joins the user's message before it; after the model it is a message of its own."""
    assert messages(said("a"), UPDATE) == [{"role": "user", "content": [block("a"), WRAPPED]}]
    assert messages(said("a"), ANSWER, UPDATE, said("b"))[2:] == [
        {"role": "user", "content": [WRAPPED, block("b")]}
    ]


def test_an_update_is_native_where_the_model_takes_it() -> None:
    """One model has the role, after the user; elsewhere it is wrapped there too. What follows moves nothing.

    The role must have the model's turn behind it, so a person who speaks instead finds its silence told.
    """
    opus = a_model(api_id="claude-opus-4-8")
    silent = {"role": "assistant", "content": [block("[No answer]")]}

    assert messages(said("a"), UPDATE, model=opus)[1:] == [NATIVE]
    assert messages(said("a"), UPDATE, ANSWER, said("b"), model=opus)[1] == NATIVE
    assert messages(said("a"), UPDATE, said("b"), model=opus)[1:] == [
        NATIVE,
        silent,
        {"role": "user", "content": [block("b")]},
    ]
    assert messages(said("a"), UPDATE, UPDATE, ANSWER, model=opus)[1]["content"] == [*NATIVE["content"]] * 2
    assert messages(said("a"), ANSWER, UPDATE, UPDATE, model=opus)[2]["content"] == [WRAPPED] * 2
    assert messages(said("a"), ANSWER, UPDATE, model=opus)[2]["content"] == [WRAPPED]


def test_an_update_never_parts_a_call_from_its_result() -> None:
    """That would be a bug of ours, and is said to be one."""
    call = Assistant(content=(ToolCall(id="c", name="read", input={}),))
    result = Results(content=(ToolResult(id="c", name="read", content=()),))

    with pytest.raises(InvariantBroken):
        messages(said("a"), call, UPDATE, result)


def test_the_same_request_gives_the_same_bytes() -> None:
    """Encoding is pure, and a lone surrogate does not break it."""
    request: Request = a_request(
        messages=(said("x\ud800y"),), tools=(ToolDefinition(name="t", description="", input={}),)
    )
    first, second = (AnthropicAdapter().encode(request, HERE) for _ in range(2))

    assert first == second
    assert msgspec.json.decode(first.body)["messages"][0]["content"] == [block("x\ufffdy")]
