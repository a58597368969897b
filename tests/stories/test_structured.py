"""An answer of a given form: checked, sent back when it does not fit, and given up in bounds."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.schema.fault import StructuredOutputFault
from holdfast.schema.message import AssistantMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.output_format import JsonSchemaFormat
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from tests.stories.world import World

FORM = JsonSchemaFormat(
    schema={
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
        "additionalProperties": False,
    }
)


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
    assert [tool.name for tool in request.tools] == ["StructuredOutput", "read", "recall"]


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


async def test_it_is_given_up_in_bounds_with_a_name(world: World) -> None:
    """Two repairs after the first try, unless the prompt says otherwise."""
    wrong = [Step(Call("StructuredOutput", {}, id=f"c{n}")) for n in range(3)]
    async with world.open(*wrong, Step(Say("no"))) as (hf, script):
        session = await world.session(hf)
        answer = info(await hf.sessions.process(session, "count", format=FORM))
        assert isinstance(answer.error, StructuredOutputFault)
        assert answer.error.data.retries == 2
        assert len(script.requests) == 3
        once = JsonSchemaFormat(schema=FORM.schema, retry_count=0)
        other = info(await hf.sessions.process(session, "again", format=once))
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
        answer = info(await hf.sessions.process(session, "x", format=form))

    assert isinstance(answer.error, StructuredOutputFault)
