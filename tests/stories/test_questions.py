"""The model asks the user: the question is a record, answered once, from any process."""

from typing import Any, cast

import pytest
from msgspec.structs import force_setattr, replace

from holdfast.app import Holdfast
from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.schema.part import ToolPart
from holdfast.schema.permission import Rule
from holdfast.schema.request import Question, QuestionOption, QuestionRequest
from holdfast.schema.stored import Mark
from holdfast.schema.tool_state import ToolCompleted
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from tests.stories import inside
from tests.stories.permissions import outcomes
from tests.stories.world import Attached, World
from tests.until import until

WHICH = {"question": "Which?", "header": "Choice", "options": [{"label": "A"}, {"label": "B"}]}
ASKS = Step(Call("question", {"questions": [WHICH]}, id="q"))


async def asked(hf: Holdfast, session: str) -> QuestionRequest:
    """The question, once it is there."""

    async def look() -> QuestionRequest | None:
        found = [each for each in await hf.sessions.requests(session) if isinstance(each, QuestionRequest)]
        return found[0] if found else None

    return cast("QuestionRequest", await until(look, store=hf.store))


async def said(hf: Holdfast, session: str) -> list[tuple[str, str]]:
    return outcomes((await hf.sessions.messages(session)).messages)


def wait_no_longer(hf: Holdfast) -> None:
    """The user is silent for too long, at once."""
    engine = inside.engine(hf)
    force_setattr(engine, "limits", replace(engine.limits, answer_wait_ms=20))


async def is_open(hf: Holdfast, session: str) -> bool:
    return bool(await hf.store.select("request", session=session, mark=Mark.OPEN))


@pytest.mark.ci
async def test_an_answer_reaches_the_model(world: World) -> None:
    """Question by question, with what was not answered; it is answered once."""
    two: dict[str, Any] = {"question": "And?", "multiple": True, "options": [{"label": "X"}, {"label": "Y"}]}
    three = {"question": "Else?"}
    async with world.open(
        Step(Call("question", {"questions": [WHICH, two, three]}, id="q")),
        Step(Say("ok"), expect=answered("q", 'The user answered: "Which?"="A", "And?"="X, Y", "Else?"="Un')),
        presence=Attached(),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        request = await asked(hf, session)
        assert request.questions[0] == Question(
            question="Which?",
            header="Choice",
            options=[QuestionOption(label="A", description=""), QuestionOption(label="B", description="")],
        )
        for wrong in ([["A"]], [["A", "B"], [], []]):
            with pytest.raises(InvalidInput):
                await hf.sessions.answer(session, request.id, wrong)
        await hf.sessions.answer(session, request.id, [["A"], ["X", "Y"], []])
        with pytest.raises(Conflict, match="answered already"):
            await hf.sessions.answer(session, request.id, None)
        with pytest.raises(NotFound):
            await hf.sessions.answer(session, "que_none", None)
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    parts = [part for message in page.messages for part in message.parts if isinstance(part, ToolPart)]
    state = parts[0].state
    assert isinstance(state, ToolCompleted)
    assert (state.title, state.metadata["answers"]) == ("Asked 3 questions", [["A"], ["X", "Y"], []])


async def test_a_dismissal_ends_the_work(world: World) -> None:
    """The model is not called again until the user prompts."""
    async with world.open(ASKS, presence=Attached()) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await hf.sessions.answer(session, (await asked(hf, session)).id, None)
        await hf.sessions.wait(session)
        assert await said(hf, session) == [("error", "The user dismissed the questions.")]
        assert len(script.requests) == 1


async def test_it_is_offered_only_where_a_user_may_be(world: World) -> None:
    """A process without a user does not show the tool; one whose user is away answers at once."""

    class Away:
        def attached(self, session: object) -> bool:
            return False

    async with world.open(Step(Say("ok"))) as (hf, script):
        await hf.sessions.process(await world.session(hf), "go")
        assert "question" not in {tool.name for tool in script.requests[0].tools}
    async with world.open(ASKS, Step(Say("ok")), presence=Away()) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        assert "question" in {tool.name for tool in script.requests[0].tools}
        ((_, text),) = await said(hf, session)
        assert text.startswith("Nobody is there to answer.")
        assert not await hf.store.select("request", session=session)


async def test_a_flag_offers_it_everywhere(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user may be attached to another process; where nobody is, the model reads so at once."""
    monkeypatch.setenv("OPENCODE_ENABLE_QUESTION_TOOL", "1")
    async with world.open(ASKS, Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        assert "question" in {tool.name for tool in script.requests[0].tools}
        ((_, text),) = await said(hf, session)
        assert text.startswith("Nobody is there to answer.")


async def test_an_agent_that_may_not_ask_does_not(world: World) -> None:
    """The rules of the session count."""
    rules = [Rule(permission="question", pattern="*", action="deny")]
    async with world.open(Step(Say("ok")), presence=Attached()) as (hf, script):
        await hf.sessions.process(await world.session(hf, permission=rules), "go")
        assert "question" not in {tool.name for tool in script.requests[0].tools}


async def test_a_question_outlives_its_process(world: World) -> None:
    """Parked, it stays open; a process without a user leaves it; answered elsewhere, the call goes on."""
    async with world.open(ASKS, presence=Attached()) as (hf, _):
        wait_no_longer(hf)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await hf.sessions.wait(session)
        request = await asked(hf, session)
        assert [outcome for outcome, _ in await said(hf, session)] == ["running"]
    async with world.open() as (hf, _):
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        assert await is_open(hf, session)
    async with world.open(Step(Say("ok"), expect=answered("q", '"Which?"="C"'))) as (hf, _):
        await hf.sessions.answer(session, request.id, [["C"]])
        await hf.sessions.wait(session)
        assert [outcome for outcome, _ in await said(hf, session)] == ["completed"]


async def test_an_interrupt_closes_the_question(world: World) -> None:
    """While it is waited for, and when it was parked."""
    async with world.open(ASKS, ASKS, presence=Attached()) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await asked(hf, session)
        await hf.sessions.interrupt(session)
        assert not await is_open(hf, session)
        wait_no_longer(hf)
        other = await world.session(hf)
        await hf.sessions.prompt(other, "go")
        await hf.sessions.wait(other)
        assert await is_open(hf, other)
        await hf.sessions.interrupt(other)
        assert not await is_open(hf, other)
