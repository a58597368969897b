"""An answer of a given form: checked, sent back when it does not fit, and given up in bounds."""

import contextlib

import anyio
import pytest
from msgspec.structs import force_setattr, replace

from holdfast.app import Holdfast
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.provider.request.request import SystemUpdate
from holdfast.runtime.answer.structured_answer import REMINDER
from holdfast.schema.fault import StructuredOutputFault
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.output_format import JsonSchemaFormat
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, Wait, answered
from tests.stories import inside
from tests.stories.crashing import Dead, Machine, life
from tests.stories.tools import STANDARD, Deed
from tests.stories.world import Attached, World, shape

FORM = JsonSchemaFormat(
    schema={
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
        "additionalProperties": False,
    }
)


def impatient(hf: Holdfast) -> None:
    """Wait for persons for a moment only."""
    engine = inside.engine(hf)
    force_setattr(engine, "limits", replace(engine.limits, answer_wait_ms=20))


def info(message: MessageWithParts) -> AssistantMessage:
    """The answer's own record."""
    assert isinstance(message.info, AssistantMessage)
    return message.info


async def test_an_answer_that_fits_is_taken(world: World) -> None:
    """It is in the message; the model is not asked again."""
    async with world.open(Step(Call("StructuredOutput", {"n": 3}))) as (hf, script):
        session = await world.session(hf)
        answer = info(await hf.sessions.process(session, "count", format=FORM))

    assert (answer.structured, answer.error) == ({"n": 3}, None)
    (request,) = script.requests
    assert request.tool_choice == "required"
    assert [tool.name for tool in request.tools] == ["StructuredOutput", *STANDARD]


async def test_an_answer_that_does_not_fit_is_sent_back(world: World) -> None:
    """With what is wrong; words instead of a call are not taken either."""
    async with world.open(
        Step(Call("StructuredOutput", {"n": 0, "x": 1}, id="c1")),
        Step(Say("three"), expect=answered("c1", "n: 0 is less than the minimum of 1")),
        Step(Call("StructuredOutput", {"n": 3}, id="c2")),
    ) as (hf, script):
        session = await world.session(hf)
        answer = info(await hf.sessions.process(session, "count", format=FORM))

    assert answer.structured == {"n": 3}
    assert len(script.requests) == 3
    last = script.requests[2].messages[-1]
    assert isinstance(last, SystemUpdate)
    assert last.text == REMINDER


async def test_it_is_given_up_in_bounds_with_a_name(world: World) -> None:
    """Two repairs after the first try, unless the prompt says otherwise."""
    wrong = [Step(Call("StructuredOutput", {}, id=f"c{n}")) for n in range(3)]
    async with world.open(*wrong, Step(Say("no"))) as (hf, script):
        session = await world.session(hf)
        answer = info(await hf.sessions.process(session, "count", format=FORM, check=False))
        assert isinstance(answer.error, StructuredOutputFault)
        assert answer.error.data.retries == 2
        assert len(script.requests) == 3
        once = JsonSchemaFormat(schema=FORM.schema, retry_count=0)
        other = info(await hf.sessions.process(session, "again", format=once, check=False))
        assert isinstance(other.error, StructuredOutputFault)


@pytest.mark.parametrize(
    "schema", [{"type": "no such type"}, {"type": "array"}, {"properties": 7}], ids=["type", "array", "shape"]
)
async def test_a_schema_that_is_none_is_refused_before_anything_is_written(
    world: World, schema: dict[str, object]
) -> None:
    """The prompt is not admitted."""
    async with world.open() as (hf, _):
        session = await world.session(hf)
        with pytest.raises(InvalidInput, match="the schema of the answer"):
            await hf.sessions.prompt(session, "x", format=JsonSchemaFormat(schema=schema))
        assert (await hf.sessions.messages(session)).messages == ()


async def test_a_reference_to_elsewhere_fetches_nothing(world: World) -> None:
    """It is an answer that cannot be checked, and is sent back."""
    form = JsonSchemaFormat(schema={"$ref": "http://127.0.0.1:9/schema.json"}, retry_count=0)
    async with world.open(Step(Call("StructuredOutput", {"n": 1}))) as (hf, _):
        session = await world.session(hf)
        answer = info(await hf.sessions.process(session, "x", format=form, check=False))

    assert isinstance(answer.error, StructuredOutputFault)


async def test_a_prompt_that_queues_behind_it_is_answered_next(world: World) -> None:
    """An answer that was taken owes nothing, also when the session is resumed."""
    gate = anyio.Event()
    async with world.open(Step(Wait(gate), Call("StructuredOutput", {"n": 1})), Step(Say("next"))) as (
        hf,
        script,
    ):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "count", format=FORM)
        await hf.sessions.prompt(session, "another thing", delivery="queue")
        gate.set()
        await hf.sessions.wait(session)
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)

    assert shape(page.messages[-1:]) == [
        ("assistant", ["step-start", ("text", "next"), ("step-finish", "stop")])
    ]
    assert [request.tool_choice for request in script.requests] == ["required", "auto"]


async def test_calls_that_a_provider_only_announces_owe_no_answer(world: World) -> None:
    """It says that it stopped for calls and made none: the next prompt is answered, once."""
    async with world.open(Step(Say("one"), reason="tool-calls"), Step(Say("two"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "a")
        answer = await hf.sessions.process(session, "b")

    assert shape((answer,)) == [("assistant", ["step-start", ("text", "two"), ("step-finish", "stop")])]
    assert len(script.requests) == 2


async def test_the_last_step_may_still_give_it(world: World) -> None:
    """Of an agent that has one step, the form is demanded and taken."""
    world.settings(agent={"brief": {"mode": "primary", "steps": 1, "prompt": "Be brief."}})
    async with world.open(Step(Call("StructuredOutput", {"n": 1}))) as (hf, script):
        session = await world.session(hf)
        answer = info(await hf.sessions.process(session, "count", agent="brief", format=FORM))

    assert (answer.structured, answer.error) == ({"n": 1}, None)
    assert [request.tool_choice for request in script.requests] == ["required"]


async def test_it_stands_beside_a_call_that_waits_for_a_person(world: World) -> None:
    """The session is parked, and when the call was answered and run the model is not asked again."""
    world.settings(permission={"act": "ask"})
    deed = Deed()
    both = Step(Call("StructuredOutput", {"n": 1}, id="c0"), Call("act", {"what": "it"}, id="c1"))
    async with world.open(both, presence=Attached()) as (hf, script):
        impatient(hf)
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        answer = info(await hf.sessions.process(session, "count", format=FORM))
        assert answer.structured == {"n": 1}
        (request,) = await hf.sessions.requests(session)
        await hf.sessions.reply(session, request.id, "once")
        await hf.sessions.wait(session)

    assert (deed.done, len(script.requests)) == (["it"], 1)


@pytest.mark.ci
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_write_asks_for_it_once_more_at_most(world: World, after: bool) -> None:
    """Stopped at the n-th write until the story completes: the answer is taken, and once a call with it was
    recorded as completed nobody asks the model again.
    """
    dies_at, asked = 0, []
    while True:
        dies_at += 1
        url = world.store.replace("store.db", f"store-{dies_at}.db")
        machine = Machine()
        script = ScriptedProvider(*(Step(Call("StructuredOutput", {"n": 1}, id=f"c{n}")) for n in range(2)))
        async with life(url, machine, provider=script) as (hf, _):
            session = await world.session(hf)
            await hf.sessions.prompt(session, "count", format=FORM, resume=False)
        with contextlib.suppress(Dead, HoldfastError):
            async with life(url, machine, provider=script, dies_at=dies_at, after=after) as (hf, mortal):
                await hf.sessions.resume(session)
                await hf.sessions.wait(session)
        async with life(url, machine, provider=script) as (hf, _):
            await hf.sessions.resume(session)
            await hf.sessions.wait(session)
            page = await hf.sessions.messages(session)
        assert info(page.messages[-1]).structured == {"n": 1}, dies_at
        asked.append(len(script.requests))
        if not mortal.dead.is_set():
            break
    assert (max(asked), asked[-1]) == (2, 1)
    # What was recorded last: the end of the step, and the release; before them, the call itself.
    assert asked[-3:] == [1, 1, 1]
