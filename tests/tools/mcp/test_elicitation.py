"""A server's form as questions to the user, and their answers as the server wants them."""

from typing import Any

import pytest

from holdfast.schema.request import Question, QuestionOption
from holdfast.tools.mcp.elicitation import Elicitation, ElicitationAnswer, answer, questions

FORM: Any = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "size": {"type": "integer"},
        "weight": {"type": "number"},
        "sure": {"type": "boolean"},
        "color": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]},
        "days": {"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}, {"const": "tu"}]}},
    },
    "required": ["name"],
}


def asked(form: Any = FORM, **more: Any) -> Elicitation:
    return Elicitation(server="shop", message="Tell me", form=form, **more)


def made(given: Elicitation) -> list[Question]:
    found = questions(given)
    assert found is not None
    return found


def option(label: str) -> QuestionOption:
    return QuestionOption(label=label, description="")


def test_each_property_is_a_question_that_names_the_server() -> None:
    """Choices are options that nothing else may be typed beside; of a list several may be chosen."""
    found = made(asked())

    assert found[0] == Question(
        question="shop (MCP server) asks: Tell me — name (string) Your name", header="name", options=[]
    )
    assert [
        (each.header, [one.label for one in each.options], each.multiple, each.custom) for each in found
    ] == [
        ("name", [], None, None),
        ("size", [], None, None),
        ("weight", [], None, None),
        ("sure", ["Yes", "No"], None, False),
        ("color", ["Red", "Blue"], None, False),
        ("days", ["Monday", "tu"], True, False),
    ]


def test_answers_have_the_types_of_the_form() -> None:
    """And the values behind the titles; what was not answered is left out."""
    given = answer(asked(), [["Ann"], ["7"], ["1.5"], ["No"], ["Blue"], ["Monday", "tu"]])
    few = answer(asked(), [["Ann"], [], [], [], [], []])

    content: Any = {
        "name": "Ann",
        "size": 7,
        "weight": 1.5,
        "sure": False,
        "color": "b",
        "days": ["mo", "tu"],
    }
    assert given == ElicitationAnswer(action="accept", content=content)
    assert few == ElicitationAnswer(action="accept", content={"name": "Ann"})


@pytest.mark.parametrize(
    "chosen",
    [
        [[], ["7"], [], [], [], []],
        [["Ann"], ["seven"], [], [], [], []],
        [["Ann"], [], [], [], ["Green"], []],
    ],
)
def test_an_answer_that_does_not_fit_is_a_refusal(chosen: list[list[str]]) -> None:
    """What is required and missing, no number, or no choice: nothing of it is sent."""
    assert answer(asked(), chosen) == ElicitationAnswer(action="decline")


def test_a_form_without_properties_and_an_address_are_confirmed() -> None:
    """Yes or no; the user reads the address in full."""
    opened = asked({}, url="https://example.invalid/x")
    (plain,), (address,) = made(asked({})), made(opened)

    assert plain.options == [option("Yes"), option("No")]
    assert address.question == "shop (MCP server) asks: Tell me Open https://example.invalid/x"
    assert answer(asked({}), [["Yes"]]) == ElicitationAnswer(action="accept", content={})
    assert answer(opened, [["Done"]]) == ElicitationAnswer(action="accept")
    assert answer(opened, [["No"]]) == ElicitationAnswer(action="decline")


def test_a_form_with_too_many_questions_is_not_asked() -> None:
    """A server does not fill the user's screen."""
    many = {"properties": {f"p{number}": {"type": "string"} for number in range(21)}}
    wide = {"properties": {"x": {"type": "string", "enum": [str(number) for number in range(21)]}}}

    assert (questions(asked(many)), questions(asked(wide))) == (None, None)


def test_a_server_s_words_are_bounded_and_stay_on_their_line() -> None:
    """It cannot write a screen of its own."""
    (one,) = made(Elicitation(server="s", message="a\n\x1b[2J" + "b" * 5_000, form={}))

    assert len(one.question) < 700
    assert "\n" not in one.question
    assert "\x1b" not in one.question
