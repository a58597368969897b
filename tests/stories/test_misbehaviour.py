"""Providers that misbehave, over real HTTP, on all four wires: each story ends in bounds, with a name.

The error is stored before the one idle, within 8 calls of the model, and the session can go on.
"""

import json
from typing import Any

import anyio
import pytest

import holdfast
from holdfast.runtime.answer import retry
from holdfast.schema.message import AssistantMessage
from holdfast.testing.mock_provider import Call, MockProvider, Reply, Say, Trouble
from holdfast.testing.mock_provider.script import Turn
from tests.stories.world import World
from tests.until import until

WIRES = {
    "anthropic": "@ai-sdk/anthropic",
    "chat": "@ai-sdk/openai-compatible",
    "responses": "@ai-sdk/openai",
    "gemini": "@ai-sdk/google",
}

HOPELESS = {
    "rate-limit": Trouble("rate-limit", retry_after="0"),
    "rate-limit without a header": Trouble("rate-limit"),
    "server-error": Trouble("server-error"),
    "overflow": Trouble("overflow"),
    "auth": Trouble("auth"),
    "html": Trouble("html"),
    "json-error": Trouble("json-error"),
    "empty": Trouble("empty"),
    "stall": Trouble("stall"),
    "cut": Trouble("cut"),
    "malformed": Trouble("malformed"),
    "error-frame": Trouble("error-frame"),
    "no-finish": Trouble("no-finish"),
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries wait for a moment only."""
    monkeypatch.setattr(retry, "BASE_MS", 1)


def settings(world: World, mock: MockProvider, wire: str) -> None:
    """One provider that speaks this wire."""
    entry = {
        "npm": WIRES[wire],
        "options": {"baseURL": f"{mock.url}/v1", "apiKey": "sk-mock", "chunkTimeout": 150},
        "models": {"m": {"limit": {"context": 100_000, "output": 8_000}}},
    }
    world.settings(model="acme/m", provider={"acme": entry})


async def told(
    world: World, mock: MockProvider, wire: str, *turns: Turn
) -> tuple[AssistantMessage, list[Any]]:
    """A prompt, the last answer, and what listeners heard."""
    settings(world, mock, wire)
    mock.play(*turns)
    heard: list[Any] = []
    async with holdfast.open(world.store) as hf:
        session = await world.session(hf)

        async def listen() -> None:
            async for frames in hf.feed.follow("beginning", session=session):
                heard.extend((frame.type, frame.value()) for frame in frames)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(listen)
                answer = await hf.sessions.process(session, "Hi", check=False)
                await until(lambda: any(type == "session.idle" for type, _ in heard))
                group.cancel_scope.cancel()
            mock.release()
            mock._turns.clear()
            mock.play(Reply((Say("better"),)))
            again = await hf.sessions.process(session, "Again")
    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(again.info, AssistantMessage)
    assert again.info.error is None, again.info.error
    return answer.info, heard


@pytest.mark.ci
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", HOPELESS)
async def test_a_provider_that_never_behaves_ends_the_work_with_a_name(
    world: World, wire: str, kind: str
) -> None:
    """Whatever it does, over and over."""
    async with MockProvider() as mock:
        answer, heard = await told(world, mock, wire, *[HOPELESS[kind]] * 8)
        calls = len(mock.requests) - 1

    assert calls <= 8
    assert answer.error is not None
    kinds = [kind for kind, _ in heard]
    assert kinds.count("session.idle") == 1
    stored = next(
        index
        for index, (kind, value) in enumerate(heard)
        if kind == "message.updated" and value["info"].get("error")
    )
    assert stored < kinds.index("session.idle")
    assert "sk-mock" not in json.dumps(heard)


@pytest.mark.parametrize("wire", WIRES)
async def test_trouble_that_passes_is_not_seen_in_the_answer(world: World, wire: str) -> None:
    """A rate limit, then a server error, then the answer; bad arguments and an unknown tool on the way."""
    async with MockProvider() as mock:
        answer, _ = await told(
            world,
            mock,
            wire,
            Trouble("rate-limit", retry_after="0"),
            Trouble("server-error"),
            Reply((Call("read", raw='{"filePath', id="c1"),)),
            Reply((Call("nothing", {}, id="c2"),)),
            Reply((Say("done"),)),
        )
        assert mock.unexpected == []

    assert (answer.error, answer.finish) == (None, "stop")
