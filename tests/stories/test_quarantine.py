"""Content that the provider refuses is taken out by name, and the session goes on."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.errors import ProviderError
from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.lowering import QUARANTINED
from holdfast.provider.request.request import Media, Request, Results, Text, User
from holdfast.schema.file_part import FilePart
from holdfast.schema.message import AssistantMessage
from holdfast.schema.part import RetryPart
from holdfast.schema.prompt import FilePartInput, PartInput, TextPartInput
from holdfast.testing.mock_provider.script import Call
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from holdfast.toolkit.output import ToolOutput
from tests.stories.crashing import Machine, life
from tests.stories.epochs import epochs, says, steps
from tests.stories.tools import Deed
from tests.stories.world import World

BAD = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture that is whole, and that the provider refuses all the same."""
LEFT_OUT = '[The file "bad.png" was left out: the provider refused a request with it. Tell the user so.]'


def refusal(words: str = "Could not process image", status: int = 400) -> Step:
    """A provider that takes no such request."""
    body = json.dumps({"error": {"type": "invalid_request_error", "message": words}})
    error = ProviderError(f"acme: {words} (HTTP {status})", kind="other", status=status, body=body)
    return Step(Fail(error))


@pytest.fixture
def seeing(world: World) -> World:
    """A world whose models, `m` and `b`, take pictures and PDFs."""
    model = {
        "name": "M",
        "limit": {"context": 100_000, "output": 8_000},
        "attachment": True,
        "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
    }
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": model, "b": model},
    }
    world.settings(provider={"scripted": entry}, permission={"act": "allow"})
    (world.project / "bad.png").write_bytes(BAD)
    return world


def picture(name: str, mime: str = "image/png") -> FilePartInput:
    data = base64.b64encode(BAD).decode()
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


async def moves(hf: Holdfast, session: str) -> list[str | None]:
    """Why each request of a session began differently."""
    return [each.moved for each in await steps(hf, session)]


def results(request: Request) -> list[str]:
    """The first text of each result in a request."""
    found = [each for message in request.messages if isinstance(message, Results) for each in message.content]
    return [each.content[0].text for each in found if isinstance(each.content[0], Text)]


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
        moved = await moves(hf, session)

    assert isinstance(answer.info, AssistantMessage)
    assert (answer.info.error, answer.parts[1].text) == (None, "fine")
    assert [media(each) for each in script.requests] == [[], ["bad.png"], []]
    (said,) = [each for each in script.requests[-1].messages if isinstance(each, Results)]
    assert said.content[0].content[-1] == Text(text=LEFT_OUT)
    assert (moved, epoch.reasons) == ([None, None, "quarantined block"], ())
    (told,) = [part for message in page.messages for part in message.parts if isinstance(part, RetryPart)]
    assert told.error.data.message.startswith("the provider refused bad.png; the work goes on without it (")
    (file,) = list(page.messages[1].parts[1].state.attachments or [])
    assert file.refused == {"scripted/m": "acme: Could not process image (HTTP 400)"}
    assert base64.b64encode(BAD).decode() in file.url

    async with seeing.open(*says("again")) as (hf, script):
        await hf.sessions.process(session, "and now?")
        assert (await moves(hf, session))[-1] is None
    assert media(script.requests[0]) == []


async def test_only_what_no_request_was_answered_with_is_suspected(seeing: World) -> None:
    """A picture that the model has seen stays; of new files those of the kind that the refusal speaks of."""
    good: list[PartInput] = [TextPartInput(text="look"), picture("good.png")]
    bad: list[PartInput] = [
        TextPartInput(text="read"),
        picture("bad.pdf", "application/pdf"),
        picture("new.png"),
    ]
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
        assert await moves(hf, session) == [None, None, "quarantined block"]
    assert results(script.requests[-1]) == [QUARANTINED]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("max_tokens: must be at most 8192", 400),
        ("The model does not exist", 404),
        ("Could not process image", 500),
        ("messages.1.content.0.thinking: invalid `signature` in `thinking` block", 400),
    ],
    ids=["no place", "not found", "server", "no result"],
)
async def test_a_refusal_of_something_else_ends_the_work_and_takes_nothing_out(
    seeing: World, words: str, status: int
) -> None:
    """Neither is anything taken out for a fault of the server."""
    async with seeing.open(refusal(words, status)) as (hf, script):
        session = await seeing.session(hf)
        answer = await hf.sessions.process(
            session, [TextPartInput(text="look"), picture("a.png")], check=False
        )
        (epoch,) = await epochs(hf, session)
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is not None
    assert (len(script.requests), epoch.reasons) == (1, ())


@pytest.mark.parametrize("words", ["Multimodal data corrupted", "Request contains an invalid argument."])
async def test_a_refusal_that_names_nothing_takes_out_what_no_request_was_answered_with(
    seeing: World, words: str
) -> None:
    """A new picture ends no session. What another model has answered a request with is not suspected."""
    new: list[Any] = [TextPartInput(text="and this"), picture("b.png")]
    async with seeing.open(*says("one"), refusal(words), *says("two")) as (hf, script):
        session = await seeing.session(hf)
        await hf.sessions.process(session, [TextPartInput(text="look"), picture("a.png")])
        answer = await hf.sessions.process(session, new, model="scripted/b")
    assert isinstance(answer.info, AssistantMessage)
    assert (answer.info.error, answer.parts[1].text) == (None, "two")
    assert [media(each) for each in script.requests] == [["a.png"], ["a.png", "b.png"], ["a.png"]]


async def test_what_was_taken_out_in_vain_comes_back_whatever_number_the_refusal_has(seeing: World) -> None:
    """Some servers name each request in the text of its refusal."""
    refusals = [refusal(f"Bad request (request id: 2026111{n}f)") for n in range(2)]
    async with seeing.open(*refusals, *says("fine")) as (hf, script):
        session = await seeing.session(hf)
        prompt: list[Any] = [TextPartInput(text="look"), picture("a.png")]
        answer = await hf.sessions.process(session, prompt, check=False)
        await hf.sessions.process(session, "again")
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is not None
    assert [media(each) for each in script.requests] == [["a.png"], [], ["a.png"]]


async def test_refusals_come_to_an_end(seeing: World) -> None:
    """A provider that speaks of pictures for ever gets one request without any, and then the work ends."""
    prompt: list[Any] = [TextPartInput(text="look"), picture("a.png"), picture("b.png")]
    async with seeing.open(refusal(), refusal()) as (hf, script):
        session = await seeing.session(hf)
        answer = await hf.sessions.process(session, prompt, check=False)
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is not None
    assert [media(each) for each in script.requests] == [["a.png", "b.png"], []]
    (user,) = [each for each in script.requests[-1].messages if isinstance(each, User)]
    assert len(user.content) == 3


async def test_what_was_taken_out_in_vain_comes_back_when_the_work_ends(seeing: World) -> None:
    """The request without it is refused in the same words: it was not guilty. What an answer came without
    stays out. A fork from in between, and the session itself, name the reason for its return.
    """
    prompt: list[Any] = [TextPartInput(text="look"), picture("b.png")]
    script = [refusal(), *says("one"), refusal(), refusal(), *says("two", "three")]
    async with seeing.open(*script) as (hf, provider):
        session = await seeing.session(hf)
        await hf.sessions.process(session, [TextPartInput(text="look"), picture("a.png")])
        answer = await hf.sessions.process(session, prompt, check=False)
        (epoch,) = await epochs(hf, session)
        last = await hf.sessions.prompt(session, "again")
        await hf.sessions.wait(session)
        fork = (await hf.sessions.fork(session, last.prompt.id)).id
        await hf.sessions.process(fork, "elsewhere")
        moved, moved_fork = await moves(hf, session), await moves(hf, fork)
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is not None
    assert epoch.reasons == ("quarantined block",)
    sent = [["a.png"], [], ["b.png"], [], ["b.png"], ["b.png"]]
    assert [media(each) for each in provider.requests] == sent
    assert moved == [None, "quarantined block", None, "quarantined block", "quarantined block"]
    assert moved_fork == moved


async def test_another_model_is_still_shown_what_one_refuses(seeing: World) -> None:
    """Each has its own mark, and the second does not lose the first's; a switch of models is the reason."""
    words = "image input is not supported by this model"
    script = [refusal(), *says("m", "m"), refusal(words), *says("b", "m", "b in the fork")]
    async with seeing.open(*script) as (hf, provider):
        session = await seeing.session(hf)
        await hf.sessions.process(session, [TextPartInput(text="look"), picture("bad.png")])
        await hf.sessions.process(session, [TextPartInput(text="and"), picture("good.png")])
        answer = await hf.sessions.process(session, "second", model="scripted/b")
        await hf.sessions.process(session, "third", model="scripted/m")
        fork = (await hf.sessions.fork(session, answer.info.id)).id
        await hf.sessions.process(fork, "elsewhere", model="scripted/b")
        page = await hf.sessions.messages(session)
        moved, moved_fork = await moves(hf, session), await moves(hf, fork)
    files = [part for message in page.messages for part in message.parts if isinstance(part, FilePart)]
    assert [list(file.refused or ()) for file in files] == [["scripted/m", "scripted/b"], ["scripted/b"]]
    sent = [["bad.png"], [], ["good.png"], ["bad.png", "good.png"], [], ["good.png"], []]
    assert [media(each) for each in provider.requests] == sent
    assert moved == [None, "quarantined block", None, "model", "quarantined block", "model"]
    assert moved_fork == [None, "quarantined block", None, "model", "quarantined block"]


async def test_a_picture_that_the_model_has_seen_is_never_taken_out(seeing: World) -> None:
    """Nothing is new, so nothing is suspected, whatever the refusal says."""
    async with seeing.open(*says("a"), refusal()) as (hf, script):
        session = await seeing.session(hf)
        await hf.sessions.process(session, [TextPartInput(text="look"), picture("good.png")])
        answer = await hf.sessions.process(session, "second", check=False)
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is not None
    assert [media(each) for each in script.requests] == [["good.png"], ["good.png"]]


async def test_a_fork_does_not_send_it_again(seeing: World) -> None:
    """The mark is on the part, so it is copied with it; a fork from right after the refusal moves by name."""
    async with seeing.open(refusal(), *says("fine", "still fine", "fine too")) as (hf, script):
        session = await seeing.session(hf)
        answer = await hf.sessions.process(session, [TextPartInput(text="look"), picture("a.png")])
        after, between = await hf.sessions.fork(session), await hf.sessions.fork(session, answer.info.id)
        await hf.sessions.process(after.id, "go on")
        await hf.sessions.process(between.id, "go on")
        moved = [await moves(hf, after.id), await moves(hf, between.id)]
    assert [media(each) for each in script.requests] == [["a.png"], [], [], []]
    assert moved == [[None, "quarantined block", None], [None, "quarantined block"]]


async def test_what_a_tool_notes_is_no_mark_of_ours(seeing: World) -> None:
    """A tool may use the same word in its metadata."""

    @tool(name="act")
    async def act(context: ToolContext, what: str) -> ToolOutput:
        """Do it."""
        return ToolOutput(text="42 rows", title=what, metadata={"refused": {"scripted/m": "3"}})

    async with seeing.open(Step(Call("act", {"what": "x"}, id="c")), *says("fine")) as (hf, script):
        hf.tools.register(act)
        await hf.sessions.process(await seeing.session(hf), "go")
    assert results(script.requests[-1]) == ["42 rows"]


async def test_a_result_that_was_refused_is_in_no_summary(seeing: World) -> None:
    """A compaction would be refused for it, for ever."""

    @tool(name="act")
    async def act(context: ToolContext, what: str) -> str:
        """Do it."""
        return "ODD " + "word " * 3_000

    words = "messages.2.content.0.tool_result: odd character"
    script = [Step(Call("act", {"what": "x"}, id="c")), refusal(words), *says("fine", "SUMMARY")]
    async with seeing.open(*script) as (hf, provider):
        hf.tools.register(act)
        session = await seeing.session(hf)
        await hf.sessions.process(session, "go")
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
    assert ["ODD" in str(each.messages) for each in provider.requests] == [False, True, False, False]


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("No endpoints found that support image input", {"status": 404}),
        ("this image violates our content policy", {"status": 400, "kind": "content-filter"}),
        ("image input is not supported", {"status": 500, "retryable": True, "retry_after_ms": 0}),
    ],
    ids=["no endpoint", "policy", "server"],
)
async def test_refusals_that_look_like_something_else(
    seeing: World, words: str, fields: dict[str, Any]
) -> None:
    """They speak of a kind of file. A server that failed is asked again first, as often as any other."""
    refused = Step(Fail(ProviderError(f"acme: {words}", **fields)))
    times = 6 if "retryable" in fields else 1
    async with seeing.open(*[refused] * times, *says("fine")) as (hf, script):
        session = await seeing.session(hf)
        answer = await hf.sessions.process(session, [TextPartInput(text="look"), picture("a.png")])
        moved = await moves(hf, session)
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is None
    assert [media(each) for each in script.requests] == [*[["a.png"]] * times, []]
    assert moved == [None, "quarantined block"]


async def test_a_file_that_the_provider_cannot_load_is_one_with_an_address(seeing: World) -> None:
    """A picture that was sent along stays."""
    far = FilePartInput(mime="image/png", filename="far.png", url="https://example.com/far.png")
    words = "Timeout while downloading https://example.com/far.png."
    async with seeing.open(refusal(words), *says("fine")) as (hf, script):
        session = await seeing.session(hf)
        await hf.sessions.process(session, [TextPartInput(text="look"), picture("near.png"), far])
    assert [media(each) for each in script.requests] == [["near.png", "far.png"], ["near.png"]]


class Picky:
    """A provider that takes no pictures."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncIterator[ProviderEvent]:
        self.requests.append(request)
        script = ScriptedProvider(refusal() if media(request) else says("fine")[0])
        async for event in script.stream(request):
            yield event


@pytest.mark.ci
@pytest.mark.parametrize("after", [False, True], ids=["before a write", "after a write"])
async def test_a_crash_at_any_write_loses_nothing_of_it(seeing: World, *, after: bool) -> None:
    """The user is told in the commit that takes it out; whoever goes on sends it once more at most, and every
    move has its reason.
    """
    dies_at, died = 0, True
    while died:
        dies_at += 1
        machine, store = Machine(), f"{seeing.store}{dies_at}{after}"
        async with life(store, machine, provider=Picky()) as (hf, mortal):
            session = await seeing.session(hf)
            mortal._left, mortal._after = mortal.writes + dies_at, after
            try:
                with anyio.fail_after(60):
                    await hf.sessions.process(session, [TextPartInput(text="look"), picture("a.png")])
            except BaseException:  # noqa: BLE001 - it dies with whatever error
                assert mortal.dead.is_set()
            died = mortal.dead.is_set()
        provider = Picky()
        async with life(store, machine, provider=provider) as (hf, _):
            page = await hf.sessions.messages(session)
            parts = [part for message in page.messages for part in message.parts]
            told = [part for part in parts if isinstance(part, RetryPart)]
            marked = [part for part in parts if isinstance(part, FilePart) and part.refused]
            assert len(told) == len(marked), dies_at
            answer = await hf.sessions.process(session, "and now?")
            assert answer.info.error is None, dies_at
            assert set(await moves(hf, session)) <= {None, "quarantined block"}, dies_at
        assert [media(each) for each in provider.requests] in ([["a.png"], []], [[]], [[], []]), dies_at
    assert dies_at > 5
