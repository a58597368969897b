"""Content that the provider refuses is taken out by name, and the session goes on."""

import base64
import json
from typing import Any

import pytest

from holdfast.errors import ProviderError
from holdfast.provider.request import Media, Request, Results, Text, User
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import RetryPart
from holdfast.schema.prompt import FilePartInput, TextPartInput
from holdfast.testing.mock_provider.script import Call
from holdfast.testing.scripted_provider import Fail, Step
from tests.stories.test_epochs import epochs, says, steps
from tests.stories.tools import Deed
from tests.stories.world import World

JUNK = b"\x89PNG\r\n\x1a\n" + b"junk" * 50
LEFT_OUT = '[The file "bad.png" was left out: the provider refused a request with it. Tell the user so.]'


def refusal(words: str = "Could not process image", status: int = 400) -> Step:
    """A provider that takes no such request."""
    body = json.dumps({"error": {"type": "invalid_request_error", "message": words}})
    error = ProviderError(f"acme: {words} (HTTP {status})", kind="other", status=status, body=body)
    return Step(Fail(error))


@pytest.fixture
def seeing(world: World) -> World:
    """A world whose model takes pictures and PDFs."""
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {
            "m": {
                "name": "M",
                "limit": {"context": 100_000, "output": 8_000},
                "attachment": True,
                "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
            }
        },
    }
    world.settings(provider={"scripted": entry}, permission={"act": "allow"})
    (world.project / "bad.png").write_bytes(JUNK)
    return world


def picture(name: str, mime: str = "image/png") -> FilePartInput:
    data = base64.b64encode(JUNK).decode()
    return FilePartInput(mime=mime, filename=name, url=f"data:{mime};base64,{data}")


def media(request: Request) -> list[str | None]:
    """The files of a request."""
    return [
        block.filename
        for message in request.messages
        for one in getattr(message, "content", ())
        for block in (one, *(getattr(one, "content", None) or ()))
        if isinstance(block, Media)
    ]


async def test_a_picture_from_a_tool_that_is_refused_does_not_end_the_session(seeing: World) -> None:
    """It is asked again without it; the model reads why, the user is told by name, the store keeps it, the
    move has its reason; and the next prompt, in another process too, extends what was sent.
    """
    read = Step(Call("read", {"filePath": "bad.png"}, id="r"))
    async with seeing.open(read, refusal(), *says("fine")) as (hf, script):
        session = await seeing.session(hf)
        answer = await hf.sessions.process(session, "look at it")
        page = await hf.sessions.messages(session)
        (epoch,) = await epochs(hf, session)
        moved = [each.moved for each in await steps(hf, session)]

    assert isinstance(answer.info, AssistantMessage)
    assert (answer.info.error, answer.parts[1].text) == (None, "fine")  # type: ignore[union-attr]
    assert [media(each) for each in script.requests] == [[], ["bad.png"], []]
    results = [each for each in script.requests[-1].messages if isinstance(each, Results)]
    assert results[0].content[0].content[-1] == Text(text=LEFT_OUT)
    assert (moved, epoch.reasons) == ([None, None, "quarantined block"], ())
    (told,) = [part for message in page.messages for part in message.parts if isinstance(part, RetryPart)]
    assert told.error.data.message.startswith("the provider refused bad.png; the work goes on without it (")
    (file,) = page.messages[1].parts[1].state.attachments  # type: ignore[union-attr]
    assert file.refused == "acme: Could not process image (HTTP 400)"
    assert base64.b64encode(JUNK).decode() in file.url

    async with seeing.open(*says("again")) as (hf, script):
        await hf.sessions.process(session, "and now?")
        assert [each.moved for each in await steps(hf, session)][-1] is None
    assert media(script.requests[0]) == []


async def test_only_what_no_request_was_answered_with_is_suspected(seeing: World) -> None:
    """A picture that the model has seen stays; of new files those of the kind that the refusal speaks of."""
    good = [TextPartInput(text="look"), picture("good.png")]
    bad = [TextPartInput(text="read"), picture("bad.pdf", "application/pdf"), picture("new.png")]
    async with seeing.open(*says("a"), refusal("The PDF specified was not valid."), *says("b")) as (
        hf,
        script,
    ):
        session = await seeing.session(hf)
        await hf.sessions.process(session, good)
        await hf.sessions.process(session, bad)
    assert [media(each) for each in script.requests] == [
        ["good.png"],
        ["good.png", "bad.pdf", "new.png"],
        ["good.png", "new.png"],
    ]


async def test_odd_content_of_a_result_is_taken_out_where_the_refusal_names_a_place(seeing: World) -> None:
    """There is no file to suspect: the results that are new go, and the call stays paired."""
    act = Step(Call("act", {"what": "x"}, id="c"))
    words = "messages.2.content.0.tool_result: unexpected character"
    async with seeing.open(act, refusal(words), *says("fine")) as (hf, script):
        hf.tools.register(Deed().tool)
        session = await seeing.session(hf)
        await hf.sessions.process(session, "go")
        assert [each.moved for each in await steps(hf, session)] == [None, None, "quarantined block"]
    (results,) = [each for each in script.requests[-1].messages if isinstance(each, Results)]
    assert results.content[0].content == (
        Text(text="[This result was left out: the provider refused a request with it]"),
    )


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("max_tokens: must be at most 8192", 400),
        ("The model does not exist", 404),
        ("Could not process image", 500),
    ],
    ids=["no place", "not found", "server"],
)
async def test_a_refusal_of_something_else_ends_the_work_and_takes_nothing_out(
    seeing: World, words: str, status: int
) -> None:
    """Neither is anything taken out for a fault of the server."""
    async with seeing.open(refusal(words, status)) as (hf, script):
        session = await seeing.session(hf)
        answer = await hf.sessions.process(session, [TextPartInput(text="look"), picture("a.png")])
        (epoch,) = await epochs(hf, session)
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is not None
    assert (len(script.requests), epoch.reasons) == (1, ())


async def test_refusals_come_to_an_end(seeing: World) -> None:
    """A provider that speaks of pictures for ever gets one request without any, and then the work ends."""
    prompt: list[Any] = [TextPartInput(text="look"), picture("a.png"), picture("b.png")]
    async with seeing.open(refusal(), refusal()) as (hf, script):
        session = await seeing.session(hf)
        answer = await hf.sessions.process(session, prompt)
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is not None
    assert [media(each) for each in script.requests] == [["a.png", "b.png"], []]
    (user,) = [each for each in script.requests[-1].messages if isinstance(each, User)]
    assert len(user.content) == 3


async def test_a_fork_does_not_send_it_again(seeing: World) -> None:
    """The mark is on the part, so it is copied with it."""
    async with seeing.open(refusal(), *says("fine", "still fine")) as (hf, script):
        session = await seeing.session(hf)
        await hf.sessions.process(session, [TextPartInput(text="look"), picture("a.png")])
        await hf.sessions.process((await hf.sessions.fork(session)).id, "go on")
    assert [media(each) for each in script.requests] == [["a.png"], [], []]
