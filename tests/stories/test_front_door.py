"""What a caller makes with the wrong types is refused at the door: nothing that cannot be read is stored."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.schema.budget import Budget
from holdfast.schema.output_format import JsonSchemaFormat
from holdfast.schema.permission import Rule
from holdfast.schema.prompt import TextPartInput
from holdfast.store.query import SessionQuery
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.stories.tools import Deed
from tests.stories.world import Attached, World
from tests.until import until

WRONG: dict[str, tuple[Any, dict[str, Any]]] = {
    "delivery": ("x", {"delivery": "later"}),
    "tools with words": ("x", {"tools": {"read": "no"}}),
    "tools as a list": ("x", {"tools": ["read"]}),
    "system": ("x", {"system": 5}),
    "agent": ("x", {"agent": 5}),
    "model": ("x", {"model": {"provider": "x"}}),
    "a text that is none": ([TextPartInput(text=5)], {}),  # type: ignore[arg-type]
    "parts as words": (["hi"], {}),
    "parts as a number": (5, {}),
    "retries": ("x", {"format": JsonSchemaFormat(schema={"type": "object"}, retry_count=-5)}),
    "schema": ("x", {"format": JsonSchemaFormat(schema=None)}),  # type: ignore[arg-type]
    "id": ("x", {"id": 5}),
    "a lone surrogate": ("x\ud800", {}),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_prompt_that_could_not_be_read_back_is_not_admitted(world: World, name: str) -> None:
    """The next prompt is answered as if nothing had been said."""
    parts, wishes = WRONG[name]
    async with world.open(Step(Say("fine"))) as (hf, _):
        session = await world.session(hf)
        with pytest.raises(InvalidInput):
            await hf.sessions.prompt(session, parts, **wishes)
        answer = await hf.sessions.process(session, "and now")
        page = await hf.sessions.messages(session)

    assert answer.info.error is None
    assert len(page.messages) == 2


SPOILT: dict[str, Callable[[Any, str], Any]] = {
    "budget": lambda hf, id: hf.sessions.set_budget(id, Budget(tokens="100")),  # type: ignore[arg-type]
    "price": lambda hf, id: hf.sessions.set_budget(id, Budget(cost=float("nan"))),
    "rule": lambda hf, id: hf.sessions.create(
        parent=id,
        permission=[Rule(permission="a", pattern="*", action="DENY")],  # type: ignore[arg-type]
    ),
    "agent": lambda hf, id: hf.sessions.create(parent=id, agent=5),
}


@pytest.mark.parametrize("name", SPOILT)
async def test_a_session_that_could_not_be_read_back_is_not_written(world: World, name: str) -> None:
    """Lists and the session itself are as before."""
    async with world.open() as (hf, _):
        before = await hf.sessions.get(await world.session(hf))
        with pytest.raises(InvalidInput):
            await SPOILT[name](hf, before.id)
        assert await hf.sessions.get(before.id) == before
        assert [each.id for each in (await hf.sessions.list()).sessions] == [before.id]


@pytest.mark.parametrize("word", ["allow", "REJECT", "", 5, None])
async def test_an_answer_that_is_none_leaves_the_question_open(world: World, word: Any) -> None:
    """It can still be answered."""
    world.settings(permission={"act": "ask"})
    deed = Deed()
    async with world.open(Step(Call("act", {"what": "x"})), Step(Say("ok")), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        waiting = await until(lambda: hf.sessions.requests(session), store=hf.store)
        with pytest.raises(InvalidInput, match="the answer is not valid"):
            await hf.sessions.reply(session, waiting[0].id, word)
        await hf.sessions.reply(session, waiting[0].id, "once")
        await hf.sessions.wait(session)

    assert deed.done == ["x"]


@pytest.mark.parametrize(
    ("agent", "prompt", "fault"), [("nobody", None, "nobody"), ("title", "  ", "prompt of an agent is empty")]
)
async def test_a_run_that_is_refused_leaves_no_session(
    world: World, agent: str, prompt: str | None, fault: str
) -> None:
    """An agent that does not exist, and an empty text in the place of its own."""
    async with world.open() as (hf, _):
        with pytest.raises(HoldfastError, match=fault):
            await hf.agents.run(agent, "hi", prompt=prompt, directory=world.project)
        assert (await hf.sessions.list(SessionQuery(agent_runs=None))).sessions == ()
