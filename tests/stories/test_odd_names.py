"""Names that a model makes up: kept as it said them, and sent back in a form that every wire takes."""

import re
from typing import Any

import pytest

import holdfast
from holdfast.schema.part import ToolPart
from holdfast.testing.mock_provider import Call, MockProvider, Reply, Say
from tests.stories.permissions import outcomes
from tests.stories.world import World

WIRES = {
    "anthropic": "@ai-sdk/anthropic",
    "chat": "@ai-sdk/openai-compatible",
    "responses": "@ai-sdk/openai",
    "gemini": "@ai-sdk/google",
}
ODD = "functions.a b<script>\0é" + "x" * 200


def names(value: Any) -> list[str]:
    """The names of calls, wherever a wire puts them."""
    if isinstance(value, list):
        return [name for each in value for name in names(each)]
    if not isinstance(value, dict):
        return []
    own = [value["name"]] if isinstance(value.get("name"), str) else []
    return own + [name for each in value.values() for name in names(each)]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_made_up_name_is_sent_back_in_a_form_that_the_wire_takes(
    world: World, mock: MockProvider, wire: str
) -> None:
    """The record keeps what the model said; each later request shows the same form of it."""
    entry = {
        "npm": WIRES[wire],
        "options": {"baseURL": f"{mock.url}/v1", "apiKey": "sk-mock"},
        "models": {"m": {"limit": {"context": 100_000, "output": 8_000}}},
    }
    world.settings(model="acme/m", provider={"acme": entry})
    mock.play(Reply((Call(ODD, {"what": "x"}, id="c1"),)), *(Reply((Say("done"),)) for _ in range(2)))
    async with holdfast.open(world.store) as hf:
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        await hf.sessions.process(session, "again")
        messages = (await hf.sessions.messages(session)).messages
    (part,) = [each for each in messages[1].parts if isinstance(each, ToolPart)]
    assert part.tool == ODD
    assert outcomes(messages)[0][1].startswith("There is no tool called functions.a b<script>")
    sent = [each.json for each in mock.requests[1:]]
    shown = [names(each.get("messages") or each.get("input") or each.get("contents")) for each in sent]
    assert len(set(shown[0])) == 1
    assert re.fullmatch("functions_a_b_script__+x+_[0-9a-f]{12}", shown[0][0])
    assert len(shown[0][0]) == 64
    assert shown[0] == shown[1]
