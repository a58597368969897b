"""A message with its parts: what it says, how an answer failed, and the tags that tell the kinds apart."""

import pickle
from typing import Any, get_args

import pytest

from holdfast.schema import event, fault, message, output_format, part, prompt, request, status, tool_state
from holdfast.schema.fault import (
    AbortedFault,
    APIData,
    APIFault,
    Fault,
    MessageData,
    NoData,
    OutputLengthFault,
)
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import (
    AnswerFailed,
    AssistantMessage,
    AssistantPath,
    AssistantTime,
    MessageWithParts,
    SystemMessage,
    UserMessage,
)
from holdfast.schema.model import ModelRef
from holdfast.schema.part import Part, ReasoningPart, TextPart
from holdfast.schema.times import Created, Span
from holdfast.schema.usage import ZERO

HEAD: dict[str, Any] = {"session_id": SessionID("ses_1"), "id": MessageID("msg_1")}
PART: dict[str, Any] = {
    "id": PartID("prt_1"),
    "session_id": SessionID("ses_1"),
    "message_id": MessageID("msg_1"),
}
USER = UserMessage(
    **HEAD, time=Created(created=1), agent="build", model=ModelRef(provider_id="p", model_id="m")
)
THOUGHT = ReasoningPart(**PART, text="hm", time=Span(start=1))


def said(text: str, **marks: Any) -> TextPart:
    return TextPart(**PART, text=text, **marks)


def answer(*parts: Part, error: Fault | None = None) -> MessageWithParts:
    info = AssistantMessage(
        **HEAD,
        time=AssistantTime(created=1, completed=2),
        parent_id=MessageID("msg_0"),
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=AssistantPath(cwd="/", root="/"),
        cost=0,
        tokens=ZERO,
        error=error,
        structured={"n": 1},
    )
    return MessageWithParts(info, parts)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((), ""),
        ((THOUGHT,), ""),
        ((THOUGHT, said("one")), "one"),
        ((said("One."), said("Two.")), "One.\n\nTwo."),
        ((said("Let me look."), THOUGHT, said("Done.")), "Let me look.\n\nDone."),
        ((said("for the model", synthetic=True), said("for the reader", ignored=True)), "for the reader"),
        ((said(""), THOUGHT, said("two")), "two"),
    ],
)
def test_the_text_is_what_a_reader_is_shown(parts: tuple[Part, ...], text: str) -> None:
    """Its texts, with an empty line between them; no thought, nothing hidden."""
    assert (answer(*parts).text, MessageWithParts(USER, parts).text) == (text, text)


def test_a_message_for_the_model_has_its_own_text() -> None:
    """A Mid-Conversation System Message has no parts."""
    system = SystemMessage(**HEAD, time=Created(created=1), text="It is Monday.")

    assert MessageWithParts(system, ()).text == "It is Monday."


def test_what_is_no_answer_has_no_error() -> None:
    """Neither has a sound answer, and both may be checked."""
    asked = MessageWithParts(USER, (said("hi"),))
    asked.raise_for_error()
    answer().raise_for_error()

    assert (asked.id, asked.error, asked.structured) == ("msg_1", None, None)
    assert (answer().error, answer().structured) == (None, {"n": 1})


LATER = APIFault(data=APIData(message="busy\nnow", status_code=503, is_retryable=True))


@pytest.mark.parametrize(
    ("error", "facts", "line"),
    [
        (LATER, ("APIError", "busy\nnow", True, 503, False), "APIError in session ses_1: busy now"),
        (
            AbortedFault(data=MessageData(message="stopped")),
            ("MessageAbortedError", "stopped", False, None, True),
            "MessageAbortedError in session ses_1: stopped",
        ),
        (
            OutputLengthFault(data=NoData()),
            ("MessageOutputLengthError", "the answer was cut off at its limit", False, None, False),
            "MessageOutputLengthError in session ses_1: the answer was cut off at its limit",
        ),
    ],
)
def test_a_failed_answer_raises_what_it_failed_of(error: Fault, facts: tuple[Any, ...], line: str) -> None:
    """With the answer on it, on one line, also after a way between processes."""
    failed = answer(said("half"), error=error)
    with pytest.raises(AnswerFailed) as caught:
        failed.raise_for_error()
    again = pickle.loads(pickle.dumps(caught.value))

    for each in (caught.value, again):
        assert (each.answer, each.fault, str(each)) == (failed, error, line)
        assert (each.name, each.message, each.retryable, each.status, each.interrupted) == facts


UNIONS = (
    *(event.Event, fault.Fault, message.Message, output_format.OutputFormat, part.Part, prompt.PartInput),
    *(request.Request, status.SessionStatus, tool_state.ToolState),
)


def test_every_kind_says_which_it_is() -> None:
    """The tag that stands in the JSON is an attribute: `part.type`, `message.role`, `state.status`."""
    kinds = [kind for union in UNIONS for kind in get_args(union)]
    tags = [(kind, kind.__struct_config__.tag_field, kind.__struct_config__.tag) for kind in kinds]

    assert len(kinds) == 70
    assert [kind for kind, field, tag in tags if getattr(kind, field, None) != tag] == []
