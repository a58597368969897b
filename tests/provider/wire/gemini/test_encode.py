"""Requests on the Gemini wire."""

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
from holdfast.provider.wire.gemini.adapter import GeminiAdapter
from holdfast.provider.wire.wire import Endpoint
from tests.provider.talking import a_model, a_request

GEMINI = WireKind.GEMINI
HERE = Endpoint(base_url="https://api.example/v1beta/", key="k-123456")
PNG = "data:image/png;base64,iVBORw0KGgo="


def model(**fields: object) -> Model:
    return a_model(GEMINI, **fields)


OLD, NEW = model(api_id="gemini-2.5-pro"), model(api_id="gemini-3-pro-preview")


def body(**fields: object) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.decode(GeminiAdapter().encode(a_request(GEMINI, **fields), HERE).body)
    return made


def contents(*history: object, **fields: object) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = body(messages=history, **fields)["contents"]
    return made


def said(*texts: str) -> User:
    return User(content=tuple(Text(text=text) for text in texts))


def signed(signature: str = "c2ln") -> dict[str, object]:
    return {"google": {"thoughtSignature": signature}}


CALL = Assistant(content=(ToolCall(id="call_1", name="read", input={"path": "a"}),))
RESULT = Results(content=(ToolResult(id="call_1", name="read", content=(Text(text="seen"),)),))
ANSWER = Assistant(content=(Text(text="ok"),))
UPDATE = SystemUpdate(text="a < b")
WRAPPED = "<system-update>\na &lt; b\n</system-update>"


@pytest.mark.parametrize(
    ("base_url", "api_id", "url"),
    [
        ("https://h/v1beta/", "m-1", "https://h/v1beta/models/m-1:streamGenerateContent?alt=sse"),
        ("https://h", "m-1", "https://h/v1beta/models/m-1:streamGenerateContent?alt=sse"),
        ("https://h/p", "tunedModels/a b", "https://h/p/tunedModels/a%20b:streamGenerateContent?alt=sse"),
    ],
)
def test_address(base_url: str, api_id: str, url: str) -> None:
    """The model stands in the path, under the version; a bare address gets one."""
    request = a_request(GEMINI, model=model(api_id=api_id))

    assert GeminiAdapter().encode(request, Endpoint(base_url=base_url)).url == url


def test_the_key_is_a_header() -> None:
    """The key never stands in the address; one given by hand wins, and a query given by hand is joined."""
    adapter = GeminiAdapter()
    plain = adapter.encode(a_request(GEMINI), HERE)
    given = adapter.encode(
        a_request(GEMINI),
        Endpoint(base_url="http://h/v1", key="k", headers={"Authorization": "Bearer z"}, query={"a": "b"}),
    )

    own = {"content-type": "application/json", "accept": "text/event-stream"}
    assert plain.headers == {**own, "x-goog-api-key": "k-123456"}
    assert "k-123456" not in plain.url
    assert given.headers == {**own, "authorization": "Bearer z"}
    assert given.url == "http://h/v1/models/m-1:streamGenerateContent?alt=sse&a=b"


def test_the_plainest_body() -> None:
    """A bare request says nothing that it need not."""
    assert body() == {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}


def test_every_setting() -> None:
    """System blocks as parts, tools with their schemas, controls by this wire's names."""
    made = body(
        system=("You are.", "", "Here."),
        tools=(
            ToolDefinition(
                name="read",
                description="Reads.",
                input={
                    "type": "object",
                    "properties": {"path": {"type": "string"}},
                    "additionalProperties": False,
                },
            ),
            ToolDefinition(name="now", description="Tells.", input={"type": "object", "properties": {}}),
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
        options={"service_tier": "flex", "verbosity": "low"},
        body={"generationConfig": {"responseModalities": ["TEXT"]}, "safetySettings": []},
    )

    assert made == {
        "systemInstruction": {"parts": [{"text": "You are."}, {"text": "Here."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "read",
                        "description": "Reads.",
                        "parameters": {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}},
                    },
                    {"name": "now", "description": "Tells."},
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
        "generationConfig": {
            "maxOutputTokens": 99,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 3,
            "frequencyPenalty": 0.1,
            "presencePenalty": 0.2,
            "seed": 1,
            "stopSequences": ["END"],
            "responseModalities": ["TEXT"],
        },
        "serviceTier": "flex",
        "safetySettings": [],
    }


@pytest.mark.parametrize(
    ("choice", "calling"), [("auto", None), ("none", {"mode": "NONE"}), ("required", {"mode": "ANY"})]
)
def test_tool_choice(choice: str, calling: dict[str, str] | None) -> None:
    """`auto` is the wire's default; a choice without tools is not made."""
    tools = (ToolDefinition(name="now", description="Tells.", input={}),)

    expected = None if calling is None else {"functionCallingConfig": calling}
    assert body(tools=tools, tool_choice=choice).get("toolConfig") == expected
    assert "toolConfig" not in body(tool_choice=choice)


@pytest.mark.parametrize(
    ("which", "options", "config"),
    [
        (OLD, {}, None),
        (OLD, {"thinking": {"budget_tokens": 512, "include_thoughts": True}}, (None, 512, True)),
        (OLD, {"thinking": {"type": "disabled"}}, (None, 0, None)),
        (OLD, {"reasoning_effort": "none"}, (None, 0, None)),
        (OLD, {"reasoning_effort": "medium"}, (None, 8_192, None)),
        (OLD, {"reasoning_effort": "max"}, (None, 24_576, None)),
        (OLD, {"reasoning_effort": "low", "thinking": {"budget_tokens": 9}}, (None, 9, None)),
        (NEW, {"reasoning_effort": "low", "thinking": {"include_thoughts": True}}, ("LOW", None, True)),
        (NEW, {"reasoning_effort": "high", "thinking": {"budget_tokens": 9}}, ("HIGH", None, None)),
        (NEW, {"reasoning_effort": "none"}, ("MINIMAL", None, None)),
        (NEW, {"reasoning_effort": "xhigh"}, ("HIGH", None, None)),
        (NEW, {"thinking": {"budget_tokens": 9}}, (None, 9, None)),
        (model(api_id="gemini-flash-latest"), {"reasoning_effort": "low"}, ("LOW", None, None)),
        (model(api_id="gemini-robotics-er-1.5"), {"reasoning_effort": "low"}, (None, 1_024, None)),
    ],
)
def test_thinking_by_generation(
    which: Model, options: dict[str, object], config: tuple[object, ...] | None
) -> None:
    """A level where the model has levels, else a number of tokens; never both."""
    made = body(model=which, options=options).get("generationConfig")

    names = ("thinkingLevel", "thinkingBudget", "includeThoughts")
    expected = config and {
        name: value for name, value in zip(names, config, strict=True) if value is not None
    }
    assert made == (expected and {"thinkingConfig": expected})


def test_a_turn_with_a_tool() -> None:
    """Arguments are an object, roles alternate, results are by id and name, failure is said."""
    failed = Results(
        content=(ToolResult(id="call_1", name="read", content=(Text(text="gone"),), failed=True),)
    )

    assert contents(said("Look", ""), CALL, failed, said("Again"), CALL, RESULT, ANSWER, model=OLD) == [
        {"role": "user", "parts": [{"text": "Look"}]},
        {"role": "model", "parts": [{"functionCall": CALLED}]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "call_1", "name": "read", "response": {"error": "gone"}}},
                {"text": "Again"},
            ],
        },
        {"role": "model", "parts": [{"functionCall": CALLED}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "call_1", "name": "read", "response": {"output": "seen"}}}],
        },
        {"role": "model", "parts": [{"text": "ok"}]},
    ]


CALLED = {"id": "call_1", "name": "read", "args": {"path": "a"}}


def test_ids_that_the_wire_never_gave_stay_here() -> None:
    """A call that came without an id goes back without one, and so does its result."""
    id = "call_gemini_0123456789abcdef01234567"
    call = Assistant(content=(ToolCall(id=id, name="read", input={}),))
    result = Results(content=(ToolResult(id=id, name="read", content=(Text(text="x"),)),))

    assert [content["parts"] for content in contents(call, result, model=OLD)] == [
        [{"functionCall": {"name": "read", "args": {}}}],
        [{"functionResponse": {"name": "read", "response": {"output": "x"}}}],
    ]


def test_signatures_go_back_where_they_came() -> None:
    """On thinking, text and calls; thinking without words goes back for its signature alone."""
    answer = Assistant(
        content=(
            Reasoning(text="Hm", metadata=signed("YQ==")),
            Reasoning(text="", metadata=signed("Yg==")),
            Reasoning(text=""),
            Text(text="ok", metadata=signed("Yw==")),
            ToolCall(id="a", name="read", input={}, metadata=signed("ZA==")),
            ToolCall(id="b", name="read", input={}),
        )
    )

    assert contents(answer, model=NEW)[0]["parts"] == [
        {"text": "Hm", "thought": True, "thoughtSignature": "YQ=="},
        {"text": "", "thought": True, "thoughtSignature": "Yg=="},
        {"text": "ok", "thoughtSignature": "Yw=="},
        {"functionCall": {"id": "a", "name": "read", "args": {}}, "thoughtSignature": "ZA=="},
        {"functionCall": {"id": "b", "name": "read", "args": {}}},
    ]


def test_a_call_made_elsewhere_passes() -> None:
    """Where a signature is demanded, the first unsigned call of a message gets the word that lets it pass."""
    calls = Assistant(content=tuple(ToolCall(id=id, name="read", input={}) for id in "ab"))

    signatures = [part.get("thoughtSignature") for part in contents(calls, model=NEW)[0]["parts"]]
    assert signatures == ["skip_thought_signature_validator", None]
    assert all("thoughtSignature" not in part for part in contents(calls, model=OLD)[0]["parts"])


def test_hosted_parts_go_back_as_they_came() -> None:
    """Code that ran at the provider and what it gave, and any other tool of the provider's."""
    code = {"language": "PYTHON", "code": "1+1"}
    result = {"outcome": "OUTCOME_OK", "output": "2"}
    search = {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}, "id": "t"}
    found = {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "t"}
    own = {"google": {"call": "toolCall", "response": "toolResponse", "thoughtSignature": "YQ=="}}
    answer = Assistant(
        content=(
            ToolCall(id="call_gemini_1", name="code_execution", input=code, hosted=True),
            HostedResult(id="call_gemini_1", name="code_execution", output=result),
            ToolCall(id="t", name="google_search_web", input=search, hosted=True, metadata=own),
            HostedResult(id="t", name="google_search_web", output=found, metadata=own),
        )
    )

    assert contents(answer, model=NEW)[0]["parts"] == [
        {"executableCode": code},
        {"codeExecutionResult": result},
        {"toolCall": search, "thoughtSignature": "YQ=="},
        {"toolResponse": found},
    ]


@pytest.mark.parametrize(
    ("media", "expected"),
    [
        (
            Media(mime="image/png", url=PNG),
            {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
        ),
        (
            Media(mime="audio/wav", url="data:audio/wav;base64,AAAA"),
            {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
        ),
        (
            Media(mime="video/mp4", url="https://x.example/a.mp4"),
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://x.example/a.mp4"}},
        ),
        (Media(mime="text/plain", url="data:text/plain,a", filename="a.txt"), {"text": "a.txt:\na"}),
        (
            Media(mime="application/zip", url="data:application/zip;base64,AAAA", filename="a.zip"),
            {"text": '[The file "a.zip" could not be sent to this model. Tell the user so.]'},
        ),
    ],
)
def test_attachments(media: Media, expected: dict[str, object]) -> None:
    """Images, sounds and films inside or by address; texts as text."""
    assert contents(User(content=(media,))) == [{"role": "user", "parts": [expected]}]


IMAGE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
SHOTS = Results(
    content=(
        ToolResult(id="a", name="shot", content=(Media(mime="image/png", url=PNG),)),
        ToolResult(id="b", name="hear", content=(Media(mime="audio/wav", url="data:audio/wav;base64,AA=="),)),
    )
)
SOUND = [
    {"text": "Attached by the result of hear:"},
    {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}},
]


def test_media_of_results() -> None:
    """Inside the response where the generation takes it, else behind all responses, introduced."""
    new, old = (contents(SHOTS, UPDATE, model=which)[0]["parts"] for which in (NEW, OLD))
    below = {"output": "The result is attached below."}
    hear = {"functionResponse": {"id": "b", "name": "hear", "response": below}}

    inside = {"id": "a", "name": "shot", "response": {"output": "The result is attached."}, "parts": [IMAGE]}
    assert new == [{"functionResponse": inside}, hear, *SOUND, {"text": WRAPPED}]
    assert old == [
        {"functionResponse": {"id": "a", "name": "shot", "response": below}},
        hear,
        {"text": "Attached by the result of shot:"},
        IMAGE,
        *SOUND,
        {"text": WRAPPED},
    ]


def test_an_update_is_wrapped() -> None:
    """A part of the user's content before it, else a content of its own; never between a call and result."""
    assert contents(said("a"), UPDATE) == [{"role": "user", "parts": [{"text": "a"}, {"text": WRAPPED}]}]
    assert contents(said("a"), ANSWER, UPDATE)[2] == {"role": "user", "parts": [{"text": WRAPPED}]}
    with pytest.raises(InvariantBroken):
        contents(CALL, UPDATE, RESULT)
