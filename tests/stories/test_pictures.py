"""A picture that the model reads: scaled once, recorded as it is sent, and sent as it was recorded."""

import base64
import io

from PIL import Image

from holdfast.provider.request.request import Media, ToolResult
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from tests.stories.world import World


def shown(script: ScriptedProvider, request: int) -> list[Media]:
    """The pictures in the results of a request."""
    return [
        item
        for message in script.requests[request].messages
        for result in message.content
        if isinstance(result, ToolResult)
        for item in result.content
        if isinstance(item, Media)
    ]


async def test_a_large_picture_is_scaled_once_and_sent_as_it_is_recorded(world: World) -> None:
    """Within the user's limits; also after a restart, though the file has changed since."""
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {
            "m": {
                "limit": {"context": 100_000, "output": 8_000},
                "modalities": {"input": ["text", "image"], "output": ["text"]},
            }
        },
    }
    world.settings(provider={"scripted": entry}, attachment={"image": {"max_width": 300}})
    path = world.project / "a.png"
    Image.new("RGB", (600, 100), "red").save(path)
    look = Call("read", {"filePath": "a.png"}, id="r")
    async with world.open(Step(look), Step(Say("red"))) as (hf, first):
        session = await world.session(hf)
        await hf.sessions.process(session, "Which colour is it?")
        page = await hf.sessions.messages(session)
    path.unlink()
    async with world.open(Step(Say("red"))) as (hf, second):
        await hf.sessions.process(session, "Are you sure?")

    (part,) = [part for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, ToolCompleted)
    assert part.state.attachments is not None
    (file,) = part.state.attachments
    assert Image.open(io.BytesIO(base64.b64decode(file.url.partition(",")[2]))).size == (300, 50)
    assert part.state.output.endswith(
        "[The picture a.png is shown scaled from 600 × 100 to 300 × 50 pixels.]"
    )
    sent = [Media(mime="image/png", url=file.url, filename="a.png")]
    assert [shown(first, 1), shown(second, 0)] == [sent, sent]
