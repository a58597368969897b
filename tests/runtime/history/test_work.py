"""What a history says about the work: one row, one fact."""

from typing import Any

import pytest

from holdfast.runtime.history import work
from holdfast.runtime.history.model_view import RESTS
from holdfast.schema.fault import AbortedFault, MessageData
from holdfast.schema.message import MessageWithParts
from holdfast.tools.execute import STOPPED
from tests.provider.history import done, failed, file, running, system, text, thought, user
from tests.runtime.sample_history import OPEN, answer, compaction, going_on, note, summary

History = list[MessageWithParts]

ERROR = AbortedFault(data=MessageData(message="stopped"))
PROMPT = user("go")
COMPACT = compaction()
UNKNOWN = failed("c", "lost", {"outcome": "unknown"})
HOSTED = done("c", "found", part_metadata={"providerExecuted": True})
CARRIED = {"compaction": {"steps": 3}}


def rows(**facts: Any) -> pytest.MarkDecorator:
    """A table of facts by name."""
    return pytest.mark.parametrize("row", facts.values(), ids=[name.replace("_", " ") for name in facts])


@rows(
    nothing_was_said=([], False),
    a_prompt=([PROMPT], True),
    a_note_alone=([note()], False),
    an_answer_that_ended=([PROMPT, answer("hi")], False),
    an_answer_that_is_open=([PROMPT, answer("h", finish=None)], True),
    a_stream_that_broke_off=([PROMPT, answer("h", finish="unknown")], True),
    a_call_with_its_result=([PROMPT, answer(done("c", "x"), finish="tool-calls")], True),
    a_call_although_the_reason_is_stop=([PROMPT, answer(done("c", "x"), finish="stop")], True),
    calls_as_the_reason_and_none_there=([PROMPT, answer("hm", finish="tool-calls")], False),
    a_call_that_the_provider_ran=([PROMPT, answer(HOSTED, finish="tool-calls")], False),
    an_error_after_a_call=([PROMPT, answer(done("c", "x"), finish="tool-calls", error=ERROR)], False),
    an_error_of_an_open_answer=([PROMPT, answer("h", finish=None, error=ERROR)], False),
    structured_output_given_by_a_call=([PROMPT, answer(done("c", "x"), structured={"a": 1})], False),
    a_call_that_the_user_rejected_without_words=(
        [PROMPT, answer(failed("c", "no", {STOPPED: True}), finish="tool-calls")],
        False,
    ),
    a_result_that_happens_to_be_named_so=([PROMPT, answer(done("c", "x", metadata={STOPPED: True}))], True),
    a_call_that_failed=([PROMPT, answer(failed("c", "no", {}), finish="tool-calls")], True),
    a_call_that_failed_without_metadata=([PROMPT, answer(failed("c", "no"), finish="tool-calls")], True),
    a_prompt_before_a_system_message=([PROMPT, system("It is late.")], True),
    a_prompt_before_a_note=([PROMPT, note()], True),
    a_note_after_the_answer=([PROMPT, answer("hi"), note()], False),
    a_system_message_after_the_answer=([PROMPT, answer("hi"), system("It is late.")], False),
    a_prompt_after_the_answer=([PROMPT, answer("hi"), user("more")], True),
)
def test_owes_answer(row: tuple[History, bool]) -> None:
    """Whether the model still has something to say."""
    history, expected = row
    assert work.owes_answer(history) is expected


@rows(
    nothing_was_said=([], False),
    a_note_alone=([note()], False),
    a_prompt_that_no_answer_follows=([PROMPT], True),
    an_answer_that_ended=([PROMPT, answer("hi")], False),
    an_answer_that_is_open=([PROMPT, answer("h", time=OPEN, finish=None)], True),
    an_open_answer_with_an_error=([PROMPT, answer("h", time=OPEN, error=ERROR)], True),
    a_closed_answer_with_an_error=([PROMPT, answer("h", error=ERROR)], False),
    a_result_that_the_model_has_not_seen=([PROMPT, answer(done("c", "x"))], True),
    a_call_that_waits_for_the_user=([PROMPT, answer(done("b", "x"), running("c"))], False),
    an_open_answer_with_a_call_that_runs=([PROMPT, answer(running("c"), time=OPEN)], True),
    a_stream_that_broke_off=([PROMPT, answer("h", finish="unknown")], True),
)
def test_is_unfinished(row: tuple[History, bool]) -> None:
    """Whether the work was cut off and no process goes on with it."""
    history, expected = row
    assert work.is_unfinished(history) is expected


@rows(
    nothing_was_said=([], False),
    a_prompt=([PROMPT], False),
    an_answer_that_ended=([PROMPT, answer("hi")], False),
    a_call_of_unknown_outcome=([PROMPT, answer(done("b", "x"), UNKNOWN)], True),
    a_call_that_failed=([PROMPT, answer(failed("c", "no", {"outcome": "failed"}))], False),
    a_call_that_still_runs=([PROMPT, answer(running("c"))], False),
    an_answer_after_the_unknown_outcome=([PROMPT, answer(UNKNOWN), answer("I looked.")], False),
    a_prompt_after_the_unknown_outcome=([PROMPT, answer(UNKNOWN), user("never mind")], False),
    a_note_after_the_unknown_outcome=([PROMPT, answer(UNKNOWN), note()], True),
    a_compaction_after_the_unknown_outcome=([PROMPT, answer(UNKNOWN), COMPACT, summary(COMPACT)], True),
    a_compaction_of_work_that_rested=([COMPACT, summary(COMPACT), going_on(RESTS)], True),
    a_compaction_of_work_that_went_on=([COMPACT, summary(COMPACT), going_on()], False),
    a_compaction_that_failed=([PROMPT, COMPACT, summary(COMPACT, finish="error", error=ERROR)], True),
    a_compaction_that_broke_off=([PROMPT, COMPACT, summary(COMPACT, finish="unknown", error=ERROR)], False),
    a_compaction_that_was_made=([PROMPT, COMPACT, summary(COMPACT)], False),
    an_answer_that_failed=([PROMPT, answer("h", finish="error", error=ERROR)], False),
)
def test_rests(row: tuple[History, bool]) -> None:
    """Whether only a prompt or `resume` goes on with what the model owes."""
    history, expected = row
    assert work.rests(history) is expected


FIRST, SECOND, GO_ON = user("one"), user("two"), going_on()
CALLS = answer(done("c", "x"), to=FIRST, finish="tool-calls")
ANSWER, TO_SECOND, TO_GO_ON = answer("a", to=FIRST), answer("b", to=SECOND), answer("c", to=GO_ON)
SUMMARY = summary(COMPACT)
FAILED_SUMMARY = summary(COMPACT, finish="error", error=ERROR)
BROKEN_SUMMARY = summary(COMPACT, finish="unknown", error=ERROR)
EARLIER = answer("of a prompt before")


@rows(
    no_answer_yet=([FIRST], None),
    one_answer=([FIRST, ANSWER], ANSWER),
    the_last_of_several_turns=([FIRST, CALLS, ANSWER], ANSWER),
    the_first_prompt_of_two=([FIRST, ANSWER, SECOND, TO_SECOND], ANSWER),
    two_prompts_that_were_answered_together=([FIRST, SECOND, TO_SECOND], TO_SECOND),
    a_note_before_the_answer=([FIRST, note(), ANSWER], ANSWER),
    an_answer_to_what_stands_before=([FIRST, EARLIER], None),
    a_note_is_not_answered=([note(), EARLIER], None),
    work_that_went_on_after_a_compaction=([FIRST, CALLS, COMPACT, SUMMARY, GO_ON, TO_GO_ON], TO_GO_ON),
    a_compaction_that_was_made=([FIRST, CALLS, COMPACT, SUMMARY], CALLS),
    a_compaction_that_failed=([FIRST, CALLS, COMPACT, FAILED_SUMMARY], FAILED_SUMMARY),
    a_compaction_that_broke_off=([FIRST, CALLS, COMPACT, BROKEN_SUMMARY], CALLS),
    a_compaction_that_the_user_asked_for=([COMPACT, SUMMARY, GO_ON, TO_GO_ON], SUMMARY),
    the_second_try_of_a_compaction=([COMPACT, BROKEN_SUMMARY, SUMMARY], SUMMARY),
    a_compaction_without_a_summary=([COMPACT, SECOND, TO_SECOND], None),
)
def test_answer(row: tuple[History, MessageWithParts | None]) -> None:
    """The last answer to the prompt that the messages begin with."""
    since, expected = row
    assert work.answer(since) is expected


@rows(
    nothing_was_said=([], 0),
    a_prompt=([PROMPT], 0),
    two_turns=([PROMPT, CALLS, ANSWER], 2),
    turns_of_a_prompt_before=([PROMPT, CALLS, user("more"), ANSWER], 1),
    a_note_begins_nothing=([PROMPT, CALLS, note(), ANSWER], 2),
    a_summary_is_no_turn=([PROMPT, CALLS, COMPACT, SUMMARY, ANSWER], 2),
    going_on_begins_nothing=([PROMPT, CALLS, GO_ON, ANSWER], 2),
    turns_that_a_compaction_carried_over=([PROMPT, CALLS, going_on(**CARRIED), CALLS, ANSWER], 5),
    carried_data_that_cannot_be_read=([PROMPT, CALLS, going_on(compaction={"steps": "3"}), ANSWER], 2),
    a_prompt_after_what_was_carried=([going_on(**CARRIED), PROMPT, ANSWER], 1),
)
def test_steps_since_prompt(row: tuple[History, int]) -> None:
    """How many turns have answered the latest prompt."""
    history, expected = row
    assert work.steps_since_prompt(history) == expected


@rows(
    a_prompt=(PROMPT, True),
    a_note=(note(), False),
    a_request_to_compact=(COMPACT, False),
    our_text_after_a_compaction=(GO_ON, False),
    an_answer=(ANSWER, False),
    a_system_message=(system("It is late."), False),
)
def test_begins(row: tuple[MessageWithParts, bool]) -> None:
    """Whether a user's prompt begins with the message."""
    message, expected = row
    assert work.begins(message) is expected


@rows(
    nothing_was_said=([], None),
    the_latest_of_two=([FIRST, SECOND, ANSWER], SECOND),
    a_note_is_none=([FIRST, note()], FIRST),
    a_request_to_compact=([FIRST, COMPACT], COMPACT),
)
def test_newest_user(row: tuple[History, MessageWithParts | None]) -> None:
    """The latest message of the user that wants an answer."""
    history, expected = row
    assert work.newest_user(history) is expected


@rows(
    nothing_was_said=([], None),
    a_prompt=([PROMPT], None),
    the_latest_of_two=([FIRST, CALLS, ANSWER, SECOND], ANSWER),
    a_summary_is_one=([FIRST, ANSWER, COMPACT, SUMMARY], SUMMARY),
)
def test_last_answer(row: tuple[History, MessageWithParts | None]) -> None:
    """The latest message of the model."""
    history, expected = row
    assert work.last_answer(history) is expected


@rows(
    it_was_never_said=([PROMPT, ANSWER], False),
    since_the_prompt=([PROMPT, system("late"), ANSWER], True),
    before_the_prompt=([system("late"), PROMPT], False),
    another_text=([PROMPT, system("early")], False),
    before_a_note=([PROMPT, system("late"), note()], True),
)
def test_has_notice(row: tuple[History, bool]) -> None:
    """Whether the model has been sent this system message since the latest prompt."""
    history, expected = row
    assert work.has_notice(history, "late") is expected


@rows(
    no_call=(answer("hi"), []),
    settled_ones=(answer(done("a", "x"), failed("b", "no")), []),
    one_that_runs=(answer(done("a", "x"), running("b"), running("c")), ["b", "c"]),
)
def test_unsettled(row: tuple[MessageWithParts, list[str]]) -> None:
    """Calls that were recorded and never settled."""
    message, expected = row
    assert [part.call_id for part in work.unsettled(message)] == expected


PICTURE = file("image/png", "data:,", "cat.png")


@rows(
    a_text=(text("go"), "go"),
    an_empty_text=(text(" \n"), None),
    a_text_of_ours=(text("x", synthetic=True), None),
    a_text_that_the_model_does_not_see=(text("x", ignored=True), None),
    a_file=(PICTURE, "[attached: cat.png]"),
    a_file_without_a_name=(file("image/png", "data:,"), "[attached: image/png]"),
    a_thought=(thought("x"), None),
)
def test_user_text(row: tuple[Any, str | None]) -> None:
    """What the user said in a part; attachments by name."""
    part, expected = row
    assert work.user_text(part) == expected


def test_prompt_text_is_word_for_word() -> None:
    """Each part is a line of its own; what came with the prompt is left out."""
    message = user(text("  one"), text("hidden", synthetic=True), PICTURE, text("two\n"))

    assert work.prompt_text(message) == "  one\n[attached: cat.png]\ntwo\n"


def test_words_are_what_the_model_said_and_thought() -> None:
    """In their order; calls are no words."""
    assert work.model_texts(answer(thought("hm"), done("c", "x"), "hi")) == ["hm", "hi"]
