"""Several processes on one store: one runs a session, the others read, interrupt, answer, and take over."""

import signal

import anyio
import pytest

from holdfast.schema.fault import AbortedFault
from holdfast.schema.message import AssistantMessage
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider import Call, MockProvider, Reply, Say, Trouble
from tests.stories.processes import SHORT_LEASE_MS, Place, Worker, calls, left_open, problems
from tests.until import until

STALLED = Trouble("stall", after=6, reply=Reply((Say("Half of an answer that does not end here."),)))


async def running(place: Place, mock: MockProvider, worker: Worker) -> str:
    """A session that the worker runs: the provider has said half a sentence."""
    mock.play(STALLED)
    session = await worker.do("create", directory=str(place.project))
    await worker.do("prompt", session=session, text="go")
    with anyio.fail_after(60):
        await mock.stalled.wait()
    return str(session)


@pytest.mark.ci
async def test_when_one_is_killed_the_other_goes_on_at_once(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """On the same host nobody waits for a deadline: well before one lease has passed, the answer is there."""
    one, two = workers
    session = await running(place, mock, one)
    assert await two.do("busy", session=session)

    await one.kill()
    mock.play(Reply((Say("And the rest."),)))
    with anyio.fail_after(30):
        assert not await two.do("busy", session=session)
        await two.do("resume", session=session)
        await two.do("wait", session=session)

    history = await place.messages(session)
    assert [each.info.__struct_config__.tag for each in history].count("user") == 1
    assert left_open(history) == []
    assert history[-1].parts[1].text == "And the rest."
    assert [problems(request) for request in mock.requests] == [[], []]


@pytest.mark.ci
@pytest.mark.parametrize("workers", [SHORT_LEASE_MS], indirect=True)
async def test_a_paused_process_that_lost_its_session_ends_without_a_word(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """Stopped for longer than its lease, it is buried and the other takes over; when it goes on, its tool is
    cancelled, what it writes under its old claim is refused, and the session stays as the other left it.
    """
    one, two = workers
    mock.play(Reply((Call("slow", {"what": "x"}, id="c1"),)), Reply((Say("Taken over."),)))
    session = await one.do("create", directory=str(place.project))
    await one.do("prompt", session=session, text="go")
    await until(lambda: place.lines("begin") == [(one.pid, "x")])
    await one.do("keep fence", session=session)

    one.signal(signal.SIGSTOP)
    await two.do("resume", session=session)
    assert len(mock.requests) == 1, "while the lease lasts, nobody else runs it"
    await until(lambda: len(mock.requests) == 2)
    await two.do("wait", session=session)
    async with place.opened() as store:
        cursor = await store.head()
        before = await place.messages(session)
        one.signal(signal.SIGCONT)

        async def gone() -> bool:
            return session not in await one.do("active")

        await until(gone)
        place.gate.touch()
        late = await one.ask("write late", session=session)
        changes = await store.changes(cursor, session)
    assert isinstance(calls(before)["c1"].state, ToolError)
    assert late["error"].startswith("LeaseLost")
    assert place.lines("end") == []
    assert changes.records == ()
    assert await place.messages(session) == before
    assert [problems(request) for request in mock.requests] == [[], []]
    # And it is of use again.
    mock.play(Reply((Say("Here."),)))
    again = await one.do("create", directory=str(place.project))
    await one.do("prompt", session=again, text="go")
    await one.do("wait", session=again)
    assert await one.end() == 0


@pytest.mark.ci
async def test_whoever_only_looks_never_goes_on_with_a_session(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """List, show, search and doctor after a crash: no model is asked, no record is written."""
    one, _ = workers
    session = await running(place, mock, one)
    await one.kill()
    async with place.opened() as store:
        cursor = await store.head()
        for arguments in (
            ("session", "list"),
            ("session", "show", session),
            ("session", "search", "Half"),
            ("session", "context", session),
            ("doctor",),
        ):
            code, _, err = await place.command(*arguments)
            assert code == 0, (arguments, err)
        changes = await store.changes(cursor, None)

    assert len(mock.requests) == 1
    assert changes.records == ()


@pytest.mark.ci
async def test_another_process_interrupts(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """What was said is kept, and `session abort` does the same from a shell."""
    one, two = workers
    session = await running(place, mock, one)
    await two.do("interrupt", session=session)
    assert not await two.do("busy", session=session)
    first = (await place.messages(session))[-1]

    mock.stalled.clear()
    mock.play(STALLED)
    await one.do("prompt", session=session, text="again")
    with anyio.fail_after(60):
        await mock.stalled.wait()
    code, _, _ = await place.command("session", "abort", session)
    second = (await place.messages(session))[-1]

    assert code == 0
    for message in (first, second):
        assert isinstance(message.info, AssistantMessage)
        assert isinstance(message.info.error, AbortedFault)
        assert message.parts[1].text.startswith("Half")
    mock.play(Reply((Say("Fine."),)))
    await two.do("prompt", session=session, text="and now")
    await two.do("wait", session=session)
    assert (await place.messages(session))[-1].parts[1].text == "Fine."


@pytest.mark.ci
async def test_another_process_answers_a_question(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """The runner hears of it, runs the call once, and goes on."""
    place.settings(permission={"*": "ask"})
    place.gate.touch()
    one, two = workers
    mock.play(Reply((Call("slow", {"what": "x"}, id="c1"),)), Reply((Say("Done."),)))
    session = await one.do("create", directory=str(place.project))
    await one.do("prompt", session=session, text="go")

    async def asked() -> bool:
        return bool(await two.do("requests", session=session))

    await until(asked)
    (request,) = await two.do("requests", session=session)
    await two.do("reply", session=session, request=request, reply="once")
    await two.do("wait", session=session)
    await one.do("wait", session=session)

    history = await place.messages(session)
    assert isinstance(calls(history)["c1"].state, ToolCompleted)
    assert place.lines("end") == [(one.pid, "x")]
    assert history[-1].parts[1].text == "Done."
