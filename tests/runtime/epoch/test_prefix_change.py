"""Whether a request begins like the one before it, and if not, why (law 7)."""

from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.runtime.epoch import prefix_change
from holdfast.runtime.epoch.prefix_change import UNKNOWN
from holdfast.schema.epoch import ContextEpoch, SentRequest
from holdfast.schema.message import MessageWithParts
from holdfast.schema.model import ModelRef
from holdfast.schema.output_format import JsonSchemaFormat, TextFormat
from holdfast.schema.part import StepPrefix, StepStartPart
from tests.provider.history import head, system, user
from tests.runtime.sample_epoch import EPOCH
from tests.runtime.sample_history import answer, said_by_user

FORM = JsonSchemaFormat(schema={"type": "object"})
ASKED = user("go")
SENT = SentRequest(blocks=[], provider_id="anthropic", model_id="claude", agent="build")


def sent(blocks: str | list[str], **fields: Any) -> SentRequest:
    """A request with these blocks, a letter each."""
    return replace(SENT, blocks=list(blocks), **fields)


def step(kept: int, blocks: str, *, epoch: str = "e") -> StepStartPart:
    """The beginning of a step, which keeps so many blocks of the one before and adds some."""
    return StepStartPart(**head(), prefix=StepPrefix(epoch=epoch, kept=kept, blocks=list(blocks), chars=9))


def turn(kept: int, blocks: str, *, epoch: str = "e", **fields: Any) -> MessageWithParts:
    """An answer with one step."""
    return answer(step(kept, blocks, epoch=epoch), "hi", to=ASKED, **fields)


@pytest.mark.parametrize(
    ("history", "epoch", "found"),
    [
        pytest.param([], EPOCH, None, id="nothing was sent"),
        pytest.param([ASKED, system("late")], EPOCH, None, id="no answer"),
        pytest.param([ASKED, answer("hi")], EPOCH, None, id="an answer that keeps nothing"),
        pytest.param([ASKED, turn(0, "ab")], EPOCH, sent("ab"), id="one step"),
        pytest.param([ASKED, turn(0, "ab"), turn(2, "c")], EPOCH, sent("abc"), id="a step adds to the last"),
        pytest.param([ASKED, turn(0, "ab"), turn(1, "x")], EPOCH, sent("ax"), id="and may replace its end"),
        pytest.param(
            [ASKED, turn(0, "a"), turn(0, "z", epoch="f")], EPOCH, sent("a"), id="of its epoch only"
        ),
        pytest.param(
            [ASKED, turn(3, "d")], EPOCH, sent([UNKNOWN] * 3 + ["d"]), id="names that are gone are unknown"
        ),
        pytest.param(
            [ASKED, turn(0, "ab")], replace(EPOCH, sent=sent("xy")), sent("xy"), id="after a removal"
        ),
        pytest.param(
            [user("x"), turn(0, "a", agent="plan", model_id="gpt", provider_id="openai")],
            EPOCH,
            sent("a", agent="plan", model_id="gpt", provider_id="openai"),
            id="with who answered",
        ),
    ],
)
def test_before(history: list[MessageWithParts], epoch: ContextEpoch, found: SentRequest | None) -> None:
    """The last request of the epoch, from what the steps keep."""
    assert prefix_change.before(history, epoch) == found


def test_the_form_that_was_asked_for_is_part_of_it() -> None:
    """It is the prompt's, which the answer names."""
    asked = MessageWithParts(replace(said_by_user(ASKED), format=FORM), ASKED.parts)

    assert prefix_change.before([asked, turn(0, "a")], EPOCH) == sent("a", schema=FORM.schema)


LAST = turn(0, "ab")
OF_ANOTHER_EPOCH = turn(0, "z", epoch="f")
BARE = answer(StepStartPart(**head()))


@pytest.mark.parametrize(
    ("history", "known", "blocks"),
    [
        pytest.param([ASKED, LAST], LAST, "xyz", id="it is the last answer's"),
        pytest.param([ASKED, LAST, answer("no step"), user("more")], LAST, "xyz", id="which has a step"),
        pytest.param([ASKED, LAST, turn(2, "c")], LAST, "abc", id="another answer came since"),
        pytest.param([ASKED, LAST, OF_ANOTHER_EPOCH], LAST, "ab", id="of another epoch, too"),
        pytest.param([ASKED, LAST, OF_ANOTHER_EPOCH], OF_ANOTHER_EPOCH, "ab", id="whose own it is"),
        pytest.param([ASKED, LAST, BARE], BARE, "ab", id="nor an answer that keeps nothing"),
        pytest.param(
            [ASKED, LAST, answer(StepStartPart(**head()))], LAST, "ab", id="or one that keeps nothing"
        ),
    ],
)
def test_what_this_process_remembers_counts_for_the_last_answer_only(
    history: list[MessageWithParts], known: MessageWithParts, blocks: str
) -> None:
    """Otherwise the steps are asked."""
    found = prefix_change.before(history, EPOCH, remembered=(known.info.id, list("xyz")))

    assert found == sent(blocks)


def test_without_a_step_nothing_is_remembered() -> None:
    """What the process knows belongs to an answer that is not there."""
    assert prefix_change.before([ASKED], EPOCH, remembered=("msg_1", ["x"])) is None
    assert prefix_change.before([ASKED, turn(0, "a", epoch="f")], EPOCH, remembered=("m", ["x"])) is None


def test_requests() -> None:
    """The epoch of each request, the first first; other steps do not count."""
    history = [ASKED, turn(0, "a"), answer(StepStartPart(**head())), turn(0, "b", epoch="f"), turn(1, "c")]

    assert prefix_change.requests(history) == ["e", "f", "e"]


@pytest.mark.parametrize(
    ("last", "blocks", "causes", "expected"),
    [
        pytest.param(None, "ab", [], (0, "ab", None, None), id="the first request names all"),
        pytest.param("", "ab", [], (0, "ab", None, None), id="an empty one before"),
        pytest.param("ab", "abc", [], (2, "c", None, None), id="it extends the last"),
        pytest.param("ab", "ab", ["model"], (2, "", None, None), id="the same again needs no reason"),
        pytest.param("abc", "abx", ["pruning"], (2, "x", "pruning", 2), id="a reason among the messages"),
        pytest.param("abc", "ab", ["edit"], (2, "", "edit", 2), id="it is shorter"),
        pytest.param("abc", "abx", [], (2, "x", "fault", 2), id="without a reason it is a fault"),
        pytest.param("abc", "xbc", ["pruning"], (0, "xbc", "fault", 0), id="pruning cannot move the head"),
        pytest.param("abc", "xbc", ["edit", "tools"], (0, "xbc", "tools", 0), id="tools can"),
        pytest.param("abc", "abx", ["tools"], (2, "x", "fault", 2), id="tools cannot move the messages"),
        pytest.param("abc", "abx", ["output format"], (2, "x", "fault", 2), id="nor can a form"),
        pytest.param("abc", "abx", ["model", "edit"], (2, "x", "model", 2), id="the first reason that fits"),
        pytest.param("abc", "axc", ["edit"], (1, "xc", "edit", 1), id="the first block of the messages"),
        pytest.param(["a", UNKNOWN, "c"], "abcd", [], (3, "d", None, None), id="an unknown block passes"),
        pytest.param(["a", UNKNOWN, "c"], "abx", ["edit"], (2, "x", "edit", 2), id="the others are judged"),
    ],
)
def test_step(
    last: str | list[str] | None, blocks: str, causes: list[str], expected: tuple[Any, ...]
) -> None:
    """What a step keeps, where one block stands before the messages."""
    before = None if last is None else replace(SENT, blocks=list(last))
    kept, added, moved, block = expected

    assert prefix_change.step(EPOCH, before, list(blocks), causes, chars=7, head=1) == StepPrefix(
        epoch="e", kept=kept, blocks=list(added), chars=7, moved=moved, block=block
    )


def test_after_a_removal_a_step_names_all_its_blocks() -> None:
    """The steps that named them may be gone."""
    epoch = replace(EPOCH, sent=sent("ab"))

    assert prefix_change.step(epoch, epoch.sent, list("abc"), [], chars=7, head=1) == StepPrefix(
        epoch="e", kept=0, blocks=list("abc"), chars=7
    )


@pytest.mark.parametrize(
    ("last", "also", "found"),
    [
        pytest.param(None, ["edit"], ["edit"], id="nothing was sent before"),
        pytest.param(SENT, [], [], id="nothing is different"),
        pytest.param(SENT, ["pruning"], ["pruning"], id="what is known already"),
        pytest.param(replace(SENT, model_id="other"), ["edit"], ["edit", "model"], id="another model"),
        pytest.param(replace(SENT, provider_id="other"), [], ["model"], id="the model of another provider"),
        pytest.param(replace(SENT, agent="plan"), [], ["agent"], id="another agent"),
        pytest.param(replace(SENT, schema={"type": "object"}), [], ["output format"], id="another form"),
        pytest.param(
            replace(SENT, model_id="o", agent="plan", schema={}),
            [],
            ["model", "agent", "output format"],
            id="all",
        ),
    ],
)
def test_causes(last: SentRequest | None, also: list[str], found: list[str]) -> None:
    """Why the prefix may differ, by name."""
    prompt = replace(said_by_user(ASKED), model=ModelRef(provider_id="anthropic", model_id="claude"))
    assert prefix_change.causes(last, prompt, also=also) == found
    assert prefix_change.causes(last, replace(prompt, format=TextFormat()), also=also) == found


def test_the_same_form_is_no_cause() -> None:
    """A form is its schema, however often it may be tried."""
    prompt = replace(said_by_user(ASKED), format=replace(FORM, retry_count=9))

    assert prefix_change.causes(replace(SENT, schema=FORM.schema), prompt) == []


@pytest.mark.parametrize(
    ("request_", "blocks", "expected"),
    [
        ("abc", "", True),
        ("abc", "ab", True),
        ("abc", "abc", True),
        ("abc", "abcd", False),
        ("abc", "b", False),
        ("", "", True),
        (["a", UNKNOWN, "c"], "axc", True),
        (["a", UNKNOWN, "c"], "axd", False),
    ],
)
def test_begins(request_: str | list[str], blocks: str, expected: bool) -> None:
    """Whether a request that was sent began with these blocks."""
    assert prefix_change.begins(list(request_), list(blocks)) is expected


ONE, TWO, THREE, FOUR = turn(0, "ab"), turn(2, "c"), turn(3, "d"), turn(4, "e")


@pytest.mark.parametrize(
    ("gone", "whole"),
    [
        pytest.param(set[str](), [], id="nothing goes"),
        pytest.param({ONE.info.id}, [(TWO, "abc")], id="the step after the first"),
        pytest.param({TWO.info.id, THREE.info.id}, [(FOUR, "abcde")], id="the one after two of them"),
        pytest.param({ONE.info.id, THREE.info.id}, [(TWO, "abc"), (FOUR, "abcde")], id="one after each gap"),
        pytest.param({FOUR.info.id}, [], id="the last is missed by none"),
        pytest.param({TWO.parts[0].id}, [(THREE, "abcd")], id="a part that goes"),
        pytest.param({TWO.parts[1].id}, [], id="a text that goes"),
    ],
)
def test_named_whole(gone: set[str], whole: list[tuple[MessageWithParts, str]]) -> None:
    """The steps that must name all their blocks when those before them are removed."""
    found = prefix_change.named_whole([ASKED, ONE, TWO, THREE, FOUR], "e", gone)

    assert {part.id: part.prefix for part in found} == {
        message.parts[0].id: StepPrefix(epoch="e", kept=0, blocks=list(blocks), chars=9)
        for message, blocks in whole
    }
