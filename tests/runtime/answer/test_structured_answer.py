"""Structured output: whether it is missing, and when the model is not asked again."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.runtime.answer import structured_answer
from holdfast.runtime.answer.structured_answer import REMINDER
from holdfast.schema.fault import StructuredOutputData, StructuredOutputFault
from holdfast.schema.message import MessageWithParts
from holdfast.schema.output_format import JsonSchemaFormat, OutputFormat, TextFormat
from holdfast.schema.part import ToolPart
from holdfast.tools import structured
from tests.provider.history import assistant, done, failed, system, user
from tests.runtime.sample_history import said_by_user

FORM = JsonSchemaFormat(schema={"type": "object"})
ASKED = user("go")
EARLIER = user("before")


def named(part: ToolPart) -> ToolPart:
    """A call of the tool that takes structured output."""
    return replace(part, tool=structured.NAME)


REFUSED = assistant(named(failed("c", "it does not fit")))
OTHER = assistant(done("c", "x"))
ASIDE = system("It is late.")
REMINDED = system(REMINDER)


def turn(form: OutputFormat | None, *history: MessageWithParts, last_step: bool = False) -> Any:
    """A turn that answers `ASKED`, with the history before it."""
    asked = replace(said_by_user(ASKED), format=form)
    return SimpleNamespace(user=asked, history=[*history], last_step=last_step)


def heard(*, calls: int = 0, tries: int = 0, taken: dict[str, Any] | None = None) -> Any:
    """An answer with so many calls, `tries` of them of the tool that takes structured output."""
    made = SimpleNamespace(count=calls, structured_tries=tries, structured_output=taken)
    return SimpleNamespace(calls=made)


@pytest.mark.parametrize(
    ("form", "answer", "missing"),
    [
        pytest.param(FORM, heard(), True, id="an answer in words"),
        pytest.param(FORM, heard(calls=1, tries=1, taken={"a": 1}), False, id="it was given"),
        pytest.param(FORM, heard(taken={}), False, id="an empty one was given"),
        pytest.param(FORM, heard(calls=1), False, id="the model works with other tools first"),
        pytest.param(None, heard(), False, id="no form was asked for"),
        pytest.param(TextFormat(), heard(), False, id="text was asked for"),
    ],
)
def test_is_missing(form: OutputFormat | None, answer: Any, missing: bool) -> None:
    """A form was asked for, and the model ended without calling any tool."""
    assert structured_answer.is_missing(turn(form), answer) is missing


@pytest.mark.parametrize(
    ("ready", "answer", "tries"),
    [
        pytest.param(turn(FORM, ASKED), heard(), None, id="the first answer in words"),
        pytest.param(turn(FORM, ASKED), heard(calls=1, tries=1), None, id="the first call that does not fit"),
        pytest.param(turn(FORM, ASKED, REMINDED, REMINDED), heard(), 3, id="the third answer in words"),
        pytest.param(turn(FORM, ASKED, REFUSED, REMINDED), heard(), 3, id="calls and reminders count alike"),
        pytest.param(turn(FORM, ASKED), heard(calls=3, tries=3), 3, id="three calls in one answer"),
        pytest.param(turn(FORM, ASKED, REFUSED, REFUSED), heard(calls=1), None, id="work with other tools"),
        pytest.param(turn(FORM, ASKED, OTHER, ASIDE, ASIDE), heard(), None, id="other calls and texts"),
        pytest.param(
            turn(FORM, EARLIER, REFUSED, REFUSED, ASKED), heard(), None, id="tries for another prompt"
        ),
        pytest.param(turn(FORM, ASKED, last_step=True), heard(), 1, id="there is no step left"),
        pytest.param(turn(FORM, ASKED, last_step=True), heard(calls=1), 0, id="the last step called others"),
        pytest.param(turn(FORM, ASKED, last_step=True), heard(taken={}), None, id="it came at the last step"),
        pytest.param(turn(replace(FORM, retry_count=0), ASKED), heard(), 1, id="no try beyond the first"),
        pytest.param(
            turn(replace(FORM, retry_count=3), ASKED, REFUSED, REFUSED), heard(), None, id="more tries"
        ),
        pytest.param(turn(None, ASKED, last_step=True), heard(), None, id="no form was asked for"),
        pytest.param(turn(TextFormat(), ASKED, last_step=True), heard(), None, id="text was asked for"),
    ],
)
def test_fault(ready: Any, answer: Any, tries: int | None) -> None:
    """The work ends when the model was asked often enough, or may not be asked again."""
    expected = None
    if tries is not None:
        message = f"the model did not give an answer of the form that was asked for, in {tries} tries"
        data = StructuredOutputData(message=message, retries=max(0, tries - 1))
        expected = StructuredOutputFault(data=data)

    assert structured_answer.fault(ready, answer) == expected


@pytest.mark.parametrize(
    ("message", "given"),
    [
        pytest.param(assistant("hi"), None, id="no call"),
        pytest.param(OTHER, None, id="another tool"),
        pytest.param(REFUSED, None, id="a call that did not fit"),
        pytest.param(assistant(named(done("c", "ok"))), {"path": "a"}, id="a call that fitted"),
        pytest.param(assistant(named(done("c", "ok")), done("d", "x")), {"path": "a"}, id="beside another"),
    ],
)
def test_output_in(message: MessageWithParts, given: dict[str, Any] | None) -> None:
    """The input of the call that gave it."""
    assert structured_answer.output_in(message) == given
