"""What compaction decides and writes, case by case."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.provider.catalog.model import Limit
from holdfast.provider.request.lowering import QUARANTINED
from holdfast.runtime.compaction import carry, current_request, measure, wording
from holdfast.runtime.epoch import pruning
from holdfast.runtime.history import model_view, transcript, work
from holdfast.runtime.history.carried import Carried, CarriedCall
from holdfast.runtime.history.files_touched import Ledger, ledger
from holdfast.runtime.history.model_view import CONTINUED
from holdfast.schema.config import CompactionConfig
from holdfast.schema.fault import ContextOverflowData, ContextOverflowFault
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import AgentPart, CompactionPart, PatchPart, SubtaskPart
from holdfast.schema.session_lists import Todo
from holdfast.schema.usage import ZERO
from tests.provider.history import (
    CLAUDE,
    GPT,
    assistant,
    done,
    failed,
    file,
    head,
    running,
    step,
    step_end,
    system,
    text,
    thought,
    user,
)
from tests.provider.request.lowering import ABORTED, BROKEN, PNG


def answered(*parts: Any, finish: str | None = "stop", **fields: Any) -> MessageWithParts:
    """An answer that came to its end."""
    made = assistant(*parts, **fields)
    return MessageWithParts(replace(made.info, finish=finish), made.parts)


def asked(attempt: int | None = None, *, auto: bool = True) -> MessageWithParts:
    """A request to compact."""
    return user(CompactionPart(**head(), auto=auto, attempt=attempt))


def summary(of: MessageWithParts, **fields: Any) -> MessageWithParts:
    """What a compaction wrote, or tried to."""
    made = answered("summary", **fields)
    return MessageWithParts(replace(made.info, summary=True, parent_id=of.info.id), made.parts)


def going_on() -> MessageWithParts:
    """Our word to go on after a compaction."""
    made = user("go on")
    return MessageWithParts(
        made.info, tuple(replace(part, synthetic=True, metadata={CONTINUED: True}) for part in made.parts)
    )


FIRST, SECOND, BY_HAND = asked(1), asked(2), asked(auto=False)


@pytest.mark.parametrize(
    ("history", "count"),
    [
        ([], 0),
        ([user("a"), answered("b")], 0),
        ([user("a"), FIRST], 1),
        ([user("a"), FIRST, summary(FIRST, error=BROKEN, finish="error")], 1),
        ([user("a"), FIRST, summary(FIRST), going_on()], 1),
        ([user("a"), FIRST, summary(FIRST), going_on(), answered(error=BROKEN, finish="error")], 1),
        ([user("a"), FIRST, summary(FIRST), SECOND, summary(SECOND), going_on()], 2),
        ([user("a"), FIRST, summary(FIRST), going_on(), answered("b")], 0),
        ([user("a"), FIRST, summary(FIRST), going_on(), answered(done("c", "x"), finish="tool-calls")], 0),
        ([user("a"), BY_HAND, summary(BY_HAND)], 0),
        ([user("a"), FIRST, summary(FIRST, error=BROKEN, finish="error"), user("and now?")], 0),
        ([user("a"), FIRST, summary(FIRST), going_on(), answered(step(), finish="unknown")], 1),
        ([user("a"), FIRST, summary(FIRST), going_on(), answered(step(), "half", finish="unknown")], 0),
        ([user("a"), FIRST, summary(FIRST), going_on(), answered(step(), finish=None)], 1),
    ],
)
def test_attempts_are_counted_until_an_answer_comes(history: list[MessageWithParts], count: int) -> None:
    """The records tell, whatever began them and however they ended. A refusal leaves a message with nothing
    in it, which is no answer; half an answer is one, since the provider took the request.
    """
    assert measure.attempts(history) == count


@pytest.mark.parametrize(
    ("history", "joining", "found"),
    [
        ([user("a")], [], None),
        ([user("a"), BY_HAND], [], BY_HAND),
        ([user("a")], [BY_HAND, user("b")], BY_HAND),
        ([BY_HAND], [user("a")], None),
        ([user("a"), BY_HAND, summary(BY_HAND)], [], None),
        ([user("a"), BY_HAND, summary(BY_HAND, error=ABORTED)], [], None),
        ([user("a"), FIRST], [], None),
    ],
)
def test_a_compaction_by_hand_is_tried_once(
    history: list[MessageWithParts], joining: list[MessageWithParts], found: MessageWithParts | None
) -> None:
    """One that failed is over, and so is one after which somebody spoke."""
    assert model_view.asked(history, joining) == found


@pytest.mark.parametrize(
    ("limit", "reserved", "flag", "usable"),
    [
        ({}, None, None, None),
        ({"context": 200_000, "output": 8_000}, None, None, 192_000),
        ({"context": 200_000, "output": 64_000}, None, None, 168_000),
        ({"context": 200_000, "output": 64_000}, None, 64_000, 136_000),
        ({"context": 200_000, "output": 8_000}, 5_000, None, 187_000),
        ({"context": 400_000, "input": 272_000, "output": 128_000}, None, None, 252_000),
        ({"context": 400_000, "input": 272_000, "output": 4_000}, None, None, 268_000),
        ({"context": 400_000, "input": 272_000, "output": 128_000}, 1_000, None, 271_000),
    ],
)
def test_the_room_of_a_model(
    limit: dict[str, int], reserved: int | None, flag: int | None, usable: int | None
) -> None:
    """The input limit, else what the answer leaves of the context; less the reserve."""
    model = replace(CLAUDE, limit=Limit(**limit))
    config = CompactionConfig(reserved=reserved)
    assert measure.context_limits(model, config, output_tokens_max=flag).usable == usable


@pytest.mark.parametrize(
    ("message", "piece"),
    [
        (user(), ""),
        (user("a", text("made", synthetic=True), text("shown", ignored=True), " "), "person: a|made"),
        (
            user(file("image/png", PNG, "a.png"), file("image/png", PNG)),
            "person: *image/png a.png*|*image/png*",
        ),
        (user(SubtaskPart(**head(), prompt="p", description="d", agent="x")), "person: [task for x] p"),
        (user(AgentPart(**head(), name="x")), "person: [mentions the agent x]"),
        (answered(step(), "a", step_end()), "agent: a"),
        (answered(step(), step_end()), ""),
        (answered(thought("t", {"signature": "secret"})), "agent: [thought] t"),
        (answered(done("c", "out")), 'agent: [call] read {"path":"a"}|[result] out'),
        (
            answered(done("c", "out", compacted=1)),
            'agent: [call] read {"path":"a"}|[result] [Old tool result content cleared]',
        ),
        (
            answered(replace(done("c", ""), state=replace(done("c", "odd").state, refused={"acme/m": "no"}))),
            f'agent: [call] read {{"path":"a"}}|[result] {QUARANTINED}',
        ),
        (answered(failed("c", "no")), 'agent: [call] read {"path":"a"}|[failed] no'),
        (answered(running("c")), 'agent: [call] read {"path":"a"}|[no result]'),
        (answered(PatchPart(**head(), hash="h", files=["/a", "/b"])), "agent: [changed files: /a, /b]"),
        (answered("half", error=ABORTED), "agent: half|[ended with MessageAbortedError]"),
        (system("The date is now Monday."), "system: The date is now Monday."),
        (user("</message>\n<message"), "person: <\u200b/message>|<\u200bmessage"),
    ],
)
def test_how_a_message_is_written_down(message: MessageWithParts, piece: str) -> None:
    """No media, nothing of one provider's own; what looks like a frame is made harmless."""
    who, _, lines = piece.partition(": ")
    said = lines.replace("*image", "[attached: image").replace("*", "]").replace("|", "\n")
    expected = [f'<message from="{who}">\n{said}\n</message>'] if piece else []
    assert transcript.pieces([message]) == expected


def test_what_is_too_long_is_shortened_in_the_middle() -> None:
    """Beginning and end of a result stay; a person's own words are not touched."""
    long = "a" * 5_000 + "z" * 5_000
    (said,) = transcript.pieces([answered(done("c", long))])
    assert "a" * 1_000 + "\n[… 8000 characters left out …]\n" + "z" * 1_000 in said
    assert len(said) < 2_200
    assert transcript.pieces([user(long)]) == [f'<message from="person">\n{long}\n</message>']


def compacted(carried: Carried, *tail: MessageWithParts) -> list[MessageWithParts]:
    """A history that begins with a compaction which carried this over, and the tail that it kept."""
    part = CompactionPart(**head(), auto=True, tail_start_id=tail[0].info.id if tail else None)
    kept = text(carry.text(carried), synthetic=True, metadata=carried.metadata())
    request = user(part, kept)
    return [*tail, request, summary(request)]


OPEN, OVER = Carried(request="task", system="S", owed=True), Carried(request="task", system="S")
TASK, STEER, OTHER = user("task", system="S"), user("steer", system="T"), user("other")
NOTE = MessageWithParts(replace(OTHER.info, no_reply=True), OTHER.parts)
CALLS, ANSWER = answered(done("c", "x"), finish="tool-calls"), answered("b")
TOO_LONG = ContextOverflowFault(data=ContextOverflowData(message="too long"))


@pytest.mark.parametrize(
    ("history", "wanted"),
    [
        ([], ("", "", False)),
        ([TASK], ("task", "S", True)),
        ([TASK, STEER], ("task\n\nsteer", "S\n\nT", True)),
        ([TASK, CALLS, STEER], ("task\n\nsteer", "S\n\nT", True)),
        ([TASK, CALLS, STEER, CALLS, ANSWER], ("task\n\nsteer", "S\n\nT", False)),
        ([TASK, answered(step(), finish="unknown"), STEER], ("task\n\nsteer", "S\n\nT", True)),
        ([TASK, ANSWER], ("task", "S", False)),
        ([TASK, ANSWER, OTHER], ("other", "", True)),
        ([TASK, answered(error=BROKEN, finish="error"), OTHER], ("other", "", True)),
        (
            [TASK, FIRST, summary(FIRST, error=BROKEN, finish="error"), STEER],
            ("task\n\nsteer", "S\n\nT", True),
        ),
        ([TASK, FIRST, summary(FIRST, error=TOO_LONG, finish="error")], ("task", "S", True)),
        ([TASK, FIRST, summary(FIRST, error=TOO_LONG, finish="error"), OTHER], ("other", "", True)),
        (
            [TASK, FIRST, summary(FIRST, error=TOO_LONG, finish="unknown"), STEER],
            ("task\n\nsteer", "S\n\nT", True),
        ),
        ([NOTE], ("", "", False)),
        ([TASK, ANSWER, NOTE], ("task", "S", False)),
        ([TASK, NOTE, CALLS, STEER], ("task\n\nsteer", "S\n\nT", True)),
        ([*compacted(OVER), NOTE], ("task", "S", False)),
        (
            [TASK, CALLS, BY_HAND, summary(BY_HAND, error=TOO_LONG, finish="error"), STEER],
            ("task\n\nsteer", "S\n\nT", True),
        ),
        (compacted(OPEN), ("task", "S", True)),
        ([*compacted(OPEN), going_on(), CALLS], ("task", "S", True)),
        ([*compacted(OPEN), going_on(), ANSWER], ("task", "S", False)),
        ([*compacted(OPEN), going_on(), STEER], ("task\n\nsteer", "S\n\nT", True)),
        ([*compacted(OPEN), going_on(), CALLS, STEER, ANSWER], ("task\n\nsteer", "S\n\nT", False)),
        ([*compacted(OPEN), going_on(), ANSWER, OTHER], ("other", "", True)),
        ([*compacted(OPEN, TASK, CALLS), going_on(), STEER], ("task\n\nsteer", "S\n\nT", True)),
        ([*compacted(OPEN, OTHER, ANSWER, TASK), going_on()], ("task", "S", True)),
        (compacted(OVER), ("task", "S", False)),
        ([*compacted(OVER), OTHER], ("other", "", True)),
        ([*compacted(OVER, TASK, ANSWER), OTHER], ("other", "", True)),
        ([*compacted(Carried(), TASK, CALLS), STEER], ("task\n\nsteer", "S\n\nT", True)),
    ],
)
def test_the_current_request_is_all_that_is_being_worked_on(
    history: list[MessageWithParts], wanted: tuple[str, str, bool]
) -> None:
    """Back to where work ended: with an answer, an error, or a compaction of its own that gave up. What was
    carried over is part of it until it is answered, and nothing is in it twice.
    """
    found = current_request.current(history)
    assert (found.text, found.system, found.owed) == wanted


@pytest.mark.parametrize(
    ("history", "messages"),
    [
        ([TASK, CALLS, STEER], [TASK, STEER]),
        ([*compacted(OPEN, TASK, CALLS), going_on(), STEER], [TASK, STEER]),
        ([*compacted(OPEN, TASK, CALLS), going_on(), ANSWER, OTHER], [OTHER]),
        ([*compacted(OVER, TASK, ANSWER)], [TASK]),
    ],
)
def test_the_messages_of_the_current_request_are_known(
    history: list[MessageWithParts], messages: list[MessageWithParts]
) -> None:
    """They are carried over word for word, and need not be summarised."""
    assert current_request.current(history).messages == messages


def counted(tokens: int, *, model: str = "claude") -> MessageWithParts:
    """An answer whose request and words the provider counted."""
    made = answered("b")
    return MessageWithParts(
        replace(made.info, model_id=model, tokens=replace(ZERO, input=tokens)), made.parts
    )


REFUSED = summary(FIRST, error=TOO_LONG, finish="unknown")


@pytest.mark.parametrize(
    ("history", "grown"),
    [
        ([TASK, counted(101)], True),
        ([FIRST, summary(FIRST), going_on(), counted(101)], False),
        ([FIRST, summary(FIRST), going_on(), counted(101), counted(111)], False),
        ([FIRST, summary(FIRST), going_on(), counted(101), counted(112)], True),
        ([FIRST, summary(FIRST), going_on(), counted(100), counted(101)], True),
        ([FIRST, summary(FIRST), going_on(), counted(500, model="other"), counted(101)], False),
        ([FIRST, summary(FIRST), counted(500), SECOND, summary(SECOND), counted(90), counted(101)], True),
        ([TASK, counted(101), FIRST, REFUSED], False),
        ([TASK, counted(101), FIRST, REFUSED, counted(111)], False),
        ([TASK, counted(101), FIRST, REFUSED, counted(112)], True),
        ([TASK, counted(101), FIRST, summary(FIRST, error=BROKEN, finish="error")], True),
    ],
)
def test_a_count_that_a_compaction_did_not_lower_has_to_grow(
    history: list[MessageWithParts], grown: bool
) -> None:
    """By a tenth of the limit: since the first count after a compaction, or the last before one that could
    not help. One that failed for another reason has shown nothing.
    """
    assert measure.has_grown(history, CLAUDE, 100) is grown


def test_what_came_with_the_words_of_a_request_is_told_apart_from_them() -> None:
    """Texts of others, tasks and agents are not carried word for word; the words and attachments are."""
    task = SubtaskPart(**head(), prompt="p", description="d", agent="x")
    more = (text("the file", synthetic=True), task, AgentPart(**head(), name="x"))
    message = user("read it", file("image/png", PNG, "a.png"), *more)
    assert work.prompt_text(message) == "read it\n[attached: a.png]"
    assert carry.besides(message) == MessageWithParts(message.info, more)


def test_a_file_that_a_call_deleted_is_not_written_by_the_patch_of_its_step() -> None:
    """The patch names every file that changed. In a later step it means that the file is there again."""
    deleting = done("c", "ok", metadata={"files": [{"filePath": "/a", "type": "delete"}]})
    gone = answered(replace(deleting, tool="apply_patch"), PatchPart(**head(), hash="h", files=["/a", "/b"]))
    again = answered(PatchPart(**head(), hash="i", files=["/a"]))
    assert ledger(Ledger(), [gone]) == Ledger(written=("/b",), deleted=("/a",))
    assert ledger(Ledger(), [gone, again]) == Ledger(written=("/b", "/a"))


def test_how_long_a_token_is_stays_known_by_model() -> None:
    """What a compaction carried counts until the model counts again; another model's says nothing."""
    known = compacted(Carried(ratios={"anthropic/claude": 5.5, "openai/gpt": 99.0}))
    assert measure.ratio(known, CLAUDE) == 5.5
    assert measure.ratio(known, GPT) == 6.0
    assert measure.ratio(known, replace(GPT, id="other")) == 4.0
    assert measure.ratios(known) == {"anthropic/claude": 5.5, "openai/gpt": 6.0}


def test_what_is_carried_over_without_a_model() -> None:
    """The request, todos, files, and calls whose outcome is open; from the one before what still counts."""
    unknown = failed("c", "gone", {"outcome": "unknown"})
    denied = failed("d", "no", {"outcome": "denied"})
    messages = [
        user("first"),
        answered(done("a", "x", metadata={"filepath": "/b"}), unknown, denied),
        answered("that is all"),
        user("second", file("image/png", PNG, "a.png")),
        user(text("go on", synthetic=True)),
    ]
    before = Carried(request="zeroth", ledger=Ledger(read=("/a",)))
    todos = [Todo(content="test it", status="pending", priority="high")]
    carried = carry.carry(before, current_request.current(messages), messages[:3], todos)
    assert carried == Carried(
        request="second\n[attached: a.png]",
        owed=True,
        todos=("[pending] test it",),
        ledger=Ledger(read=("/a", "/b")),
        problems=('read {"path":"a"}: unknown',),
    )
    assert carry.text(carried) == (
        f"{carry.INTRODUCTION}\n\n"
        "The person's current request, word for word:\n<request>\nsecond\n[attached: a.png]\n</request>\n\n"
        "The list of things to do:\n- [pending] test it\n\n"
        "Files that were read:\n- /a\n- /b\n\n"
        "Calls that were cut off; look at the actual state before you rely on them:\n"
        '- read {"path":"a"}: unknown'
    )


def test_without_a_new_request_the_one_before_is_carried_on() -> None:
    """Words of ours are no request."""
    ours = [user(text("go on", synthetic=True)), answered("done")]
    assert current_request.current([*compacted(Carried(request="the wish")), *ours]).text == "the wish"


def test_the_earlier_summary_is_merged() -> None:
    """It stands behind the conversation, with what to do about it; without one there is no word of it. A
    plugin's words take the place of ours alone.
    """
    assert wording.prompt("C", " ", ("more", " ")) == (
        f"<conversation>\nC\n</conversation>\n\nmore\n\n{wording.ASK}"
    )
    assert wording.prompt("C", "S") == (
        "<conversation>\nC\n</conversation>\n\n<earlier-summary>\nS\n</earlier-summary>\n\n"
        f"{wording.MERGE}\n\n{wording.ASK}"
    )
    assert wording.prompt("C", "S", ask=" ") == wording.prompt("C", "S")
    assert wording.prompt("C", "S", ("more",), ask="Be short.") == (
        "<conversation>\nC\n</conversation>\n\n<earlier-summary>\nS\n</earlier-summary>\n\n"
        f"{wording.MERGE}\n\nmore\n\nBe short."
    )


OLD, NEW = done("old", "x" * 200_000), done("new", "x" * 170_000)
SMALL, SKILL = done("small", "x" * 40_000), replace(done("skill", "x" * 400_000), tool="skill")
LATER = [user("two"), answered("b"), user("three")]


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([], []),
        ([user("one"), answered(OLD, NEW), *LATER], [NEW, OLD]),
        ([user("one"), answered(SMALL, NEW), *LATER], [NEW, SMALL]),
        ([user("one"), answered(OLD), user("two"), answered(NEW), user("three")], [OLD]),
        ([user("one"), answered(OLD, NEW), user("two")], []),
        ([user("one"), answered(OLD, NEW), user("two"), NOTE, NOTE], []),
        ([user("one"), answered(SMALL, SMALL), *LATER], []),
        ([user("one"), answered(SKILL), *LATER], []),
        ([user("one"), answered(replace(OLD, metadata={"providerExecuted": True})), *LATER], []),
        ([user("one"), answered(done("gone", "x" * 400_000, compacted=1)), *LATER], []),
        ([user("one"), answered(OLD), FIRST, summary(FIRST), *LATER], []),
    ],
)
def test_what_may_be_pruned(history: list[MessageWithParts], found: list[Any]) -> None:
    """Output before the last two prompts, beyond the latest 40,000 tokens, if that frees 20,000. A note is no
    prompt: it begins no turn.
    """
    assert pruning.candidates(history) == found


def test_the_last_calls_are_carried_with_those_beside_them() -> None:
    """Whole answers of the model, within a bound: a loop is told by all the calls of an answer."""
    answer = [CarriedCall("act", {"what": str(n)}, beside=n > 0) for n in range(5)]
    alone = CarriedCall("act", {"what": "alone"})

    def kept(*calls: CarriedCall) -> tuple[CarriedCall, ...]:
        return carry.carry(Carried(), carry.Wanted(), (), (), calls=calls).calls

    assert kept() == ()
    assert kept(*answer) == tuple(answer)
    assert kept(alone, *answer, alone) == (*answer, alone)
    assert kept(*answer, alone, alone, alone) == (alone,) * 3
    assert len(kept(*[msgspec.structs.replace(alone, beside=True)] * 99)) == carry.CALLS_MAX
