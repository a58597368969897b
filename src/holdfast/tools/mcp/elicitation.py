"""What a server asks the user in the middle of a call: its form as our questions, the answers as its content.

Pure. A form has properties of plain types; each is one question. What must stay true: the user reads which
server asks; an answer that does not fit the form is not sent.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from holdfast.schema.request import Question, QuestionOption
from holdfast.schema.wire import JsonMap
from holdfast.text import one_line

QUESTIONS_MAX: Final = 20
OPTIONS_MAX: Final = 20
_TEXT_CHARS_MAX: Final = 600
_LABEL_CHARS_MAX: Final = 80
_YES: Final = "Yes"
_NO: Final = "No"
_DONE: Final = "Done"

Value = str | int | float | bool | list[str] | None


class Elicitation(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a server: a form, or an address that the user is to open."""

    server: str
    message: str
    form: JsonMap = {}
    url: str | None = None


class ElicitationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for the server."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Value] | None = None


class _Field(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    labels: dict[str, Value]
    """By what the user is shown, the value that is sent; empty for a text or a number."""
    several: bool
    required: bool


def questions(asked: Elicitation) -> list[Question] | None:
    """The questions to the user; None for a form that has no room in them."""
    head = f"{asked.server[:_LABEL_CHARS_MAX]} (MCP server) asks: {one_line(asked.message, _TEXT_CHARS_MAX)}"
    if asked.url is not None:
        return [_confirmation(f"{head} Open {one_line(asked.url, _TEXT_CHARS_MAX)}", asked.server, _DONE)]
    fields = _fields(asked.form)
    if len(fields) > QUESTIONS_MAX or any(len(each.labels) > OPTIONS_MAX for each in fields):
        return None
    if not fields:
        return [_confirmation(head, asked.server, _YES)]
    return [_question(each, head, asked) for each in fields]


def answer(asked: Elicitation, chosen: Sequence[Sequence[str]]) -> ElicitationAnswer:
    """What the user chose or typed, as the server wants it."""
    if asked.url is not None or not (fields := _fields(asked.form)):
        agreed = list(chosen[0]) in ([_YES], [_DONE])
        content: dict[str, Value] | None = None if asked.url is not None else {}
        if agreed:
            return ElicitationAnswer(action="accept", content=content)
        return ElicitationAnswer(action="decline")
    content = {}
    for field, given in zip(fields, chosen, strict=True):
        try:
            if given:
                content[field.name] = _value(field, given)
            elif field.required:
                return ElicitationAnswer(action="decline")
        except ValueError:
            return ElicitationAnswer(action="decline")
    return ElicitationAnswer(action="accept", content=content)


def _confirmation(text: str, server: str, agree: str) -> Question:
    options = [QuestionOption(label=agree, description=""), QuestionOption(label=_NO, description="")]
    return Question(question=text, header=server[:30], options=options, custom=False)


def _question(field: _Field, head: str, asked: Elicitation) -> Question:
    given = asked.form["properties"][field.name]
    words = " ".join(str(given[key]) for key in ("title", "description") if isinstance(given.get(key), str))
    wanted = f" — {one_line(field.name, _LABEL_CHARS_MAX)} ({field.kind})"
    options = [QuestionOption(label=label, description="") for label in field.labels]
    return Question(
        question=f"{head}{wanted} {one_line(words, _TEXT_CHARS_MAX)}".rstrip(),
        header=one_line(field.name, 30),
        options=options,
        multiple=field.several or None,
        custom=False if options else None,
    )


def _fields(form: JsonMap) -> list[_Field]:
    properties = form.get("properties")
    required = form.get("required")
    if not isinstance(properties, dict):
        return []
    return [
        _field(name, given, required=isinstance(required, list) and name in required)
        for name, given in properties.items()
        if isinstance(given, dict)
    ]


def _field(name: str, given: JsonMap, *, required: bool) -> _Field:
    kind = str(given.get("type", "string"))
    several = kind == "array"
    source = given.get("items", {}) if several else given
    labels: dict[str, Value] = {}
    if kind == "boolean":
        labels = {_YES: True, _NO: False}
    elif isinstance(source, dict):
        labels = _labels(source)
    return _Field(name=name, kind=kind, labels=labels, several=several, required=required)


def _labels(source: JsonMap) -> dict[str, Value]:
    """The choices of an enumeration, with their titles where they have some."""
    titled: Any = source.get("oneOf") or source.get("anyOf")
    if isinstance(titled, list):
        pairs = [
            (each.get("title", each.get("const")), each.get("const"))
            for each in titled
            if isinstance(each, dict)
        ]
    else:
        values = source.get("enum")
        names = source.get("enumNames")
        values = values if isinstance(values, list) else []
        pairs = list(zip(names if isinstance(names, list) else values, values, strict=False))
    return {one_line(str(label), _LABEL_CHARS_MAX): value for label, value in pairs if isinstance(value, str)}


def _value(field: _Field, given: Sequence[str]) -> Value:
    if field.several:
        return [str(field.labels.get(each, each)) for each in given]
    if field.labels:
        return field.labels[given[0]] if given[0] in field.labels else _refuse()
    if field.kind == "integer":
        return int(given[0])
    return float(given[0]) if field.kind == "number" else given[0]


def _refuse() -> Value:
    raise ValueError
