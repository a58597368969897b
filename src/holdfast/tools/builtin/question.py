"""The tool `question`: the model asks the user, and waits for the answer."""

from typing import Annotated, Final

import msgspec

from holdfast.schema.request import Question, QuestionOption
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolOutput

NAME: Final = "question"
QUESTIONS_MAX: Final = 10
OPTIONS_MAX: Final = 20
UNANSWERED: Final = "Unanswered"

DESCRIPTION: Final = """Ask the user something that only they can decide, and wait for the answer. Give \
short options, the one that you recommend first; they may also type an answer. Do not ask what you can find \
out."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to choose."""

    label: str
    description: str = ""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One question of the model's."""

    question: Annotated[str, msgspec.Meta(min_length=1)]
    header: Annotated[str, msgspec.Meta(description="A few words for a tab")] = ""
    options: Annotated[list[Option], msgspec.Meta(max_length=OPTIONS_MAX)] = []
    multiple: Annotated[bool, msgspec.Meta(description="Several options may be chosen")] = False


def question_tool() -> Tool:
    """The tool."""

    # Run again after a crash, the call gets the answer that was given to it.
    @tool(name=NAME, description=DESCRIPTION, repeatable=True)
    async def question(
        context: ToolContext,
        questions: Annotated[list[Asked], msgspec.Meta(min_length=1, max_length=QUESTIONS_MAX)],
    ) -> ToolOutput:
        await context.ask(NAME, ["*"], always=["*"])
        answers = await context.question([_question(each) for each in questions])
        pairs = [
            f'"{each.question}"="{", ".join(chosen) or UNANSWERED}"'
            for each, chosen in zip(questions, answers, strict=True)
        ]
        count = "1 question" if len(questions) == 1 else f"{len(questions)} questions"
        return ToolOutput(
            text=f"The user answered: {', '.join(pairs)}. Go on with that.",
            title=f"Asked {count}",
            metadata={"answers": answers},
        )

    return question


def _question(asked: Asked) -> Question:
    return Question(
        question=asked.question,
        header=asked.header or asked.question[:30],
        options=[QuestionOption(label=each.label, description=each.description) for each in asked.options],
        multiple=asked.multiple or None,
    )
