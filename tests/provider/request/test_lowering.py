"""What the model is shown of stored history: one golden case for each rule of the seeds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request import lowering
from holdfast.provider.request.lowering import INTERRUPTED, PRUNED, QUARANTINED, RESUMED
from holdfast.provider.request.request import (
    Assistant,
    HostedResult,
    Media,
    ProviderMessage,
    Reasoning,
    Results,
    SystemUpdate,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from holdfast.schema.fault import Fault
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import AgentPart, CompactionPart, PatchPart, SubtaskPart, ToolPart
from holdfast.schema.tool_state import ToolPending
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
from tests.provider.talking import a_model


def lowered(*history: MessageWithParts, **settings: Any) -> list[ProviderMessage]:
    """The messages for Claude."""
    return list(lowering.lower(history, settings.pop("model", CLAUDE), **settings))


def said(words: str) -> User:
    """A person's message with one text."""
    return User(content=(Text(text=words),))


def call(id: str) -> ToolCall:
    """The call that `done`, `failed` and `running` stand for."""
    return ToolCall(id=id, name="read", input={"path": "a"})


def result(id: str, words: str, *, failed: bool = False) -> ToolResult:
    """Its answer."""
    return ToolResult(id=id, name="read", content=(Text(text=words),), failed=failed)


def test_text_of_a_person_is_sent_unless_it_is_ignored_or_empty() -> None:
    """Synthetic text is hidden from people and sent; ignored text is shown to people and not sent."""
    history = user("hi", text("made", synthetic=True), text("shown", ignored=True), "")

    assert lowered(history) == [User(content=(Text(text="hi"), Text(text="made")))]


def test_a_message_without_content_is_left_out() -> None:
    """No parts, only empty parts, only marks of steps."""
    assert lowered(user(), user(""), assistant(), assistant(step()), assistant(step(), step_end())) == []


def test_files_are_sent_where_the_model_takes_them() -> None:
    """Text files and folders are not: their text stands beside them. What cannot be sent is said."""
    history = user(
        file("image/png", PNG, "a.png"),
        file("text/plain", "file:///a.txt"),
        file("application/x-directory", "file:///a"),
        file("audio/wav", "data:audio/wav;base64,AAAA", "a.wav"),
        file("application/zip", "data:application/zip;base64,AAAA"),
        file("image/png", "file:///a.png", "b.png"),
    )

    assert lowered(history) == [
        User(
            content=(
                Media(mime="image/png", url=PNG, filename="a.png"),
                Text(text='[The file "a.wav" was not sent: this model cannot read audio. Tell the user so.]'),
                Text(
                    text="[The file of type application/zip was not sent: this model cannot read "
                    "application/zip. Tell the user so.]"
                ),
                Text(text='[The file "b.png" was not sent: its content is not at hand. Tell the user so.]'),
            )
        )
    ]


def test_a_file_over_the_limit_of_the_wire_is_named_instead() -> None:
    """The size is checked before sending: a refused request would cost the whole turn."""
    large = "data:image/png;base64," + "A" * (6 * 1024 * 1024)

    (message,) = lowered(user(file("image/png", large, "big.png")))

    assert message == said(
        '[The file "big.png" was not sent: with 6.0 MiB it is over the provider\'s limit of 5 MiB. '
        "Tell the user so.]"
    )


def test_compaction_and_subtask_are_told_in_words() -> None:
    """The words are the seeds'. A mention of an agent says nothing by itself."""
    history = user(
        CompactionPart(**head(), auto=True),
        SubtaskPart(**head(), prompt="p", description="d", agent="general"),
        AgentPart(**head(), name="explore"),
    )

    assert lowered(history) == [
        User(
            content=(
                Text(text="What did we do so far?"),
                Text(text="The following tool was executed by the user"),
            )
        )
    ]


def test_system_messages_stand_where_they_were_admitted() -> None:
    """A Mid-Conversation System Message, and the system text of one prompt: after the prompt it came with."""
    assert lowered(
        user("one", system="be brief"), assistant("yes"), system("The date is now X."), user("t")
    ) == [
        said("one"),
        SystemUpdate(text="be brief"),
        Assistant(content=(Text(text="yes"),)),
        SystemUpdate(text="The date is now X."),
        said("t"),
    ]


def test_a_step_ends_with_the_results_of_its_calls() -> None:
    """The next step's words come after the results, as they did when they were said."""
    history = assistant(
        step(), "look", done("c1", "A"), done("c2", "B"), step_end(), step(), "found", step_end()
    )

    assert lowered(user("q"), history) == [
        said("q"),
        Assistant(content=(Text(text="look"), call("c1"), call("c2"))),
        Results(content=(result("c1", "A"), result("c2", "B"))),
        Assistant(content=(Text(text="found"),)),
    ]


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        (done("c", "out"), result("c", "out")),
        (done("c", ""), result("c", "[No output]")),
        (done("c", "out", compacted=3, attachments=[file("image/png", PNG)]), result("c", PRUNED)),
        (failed("c", "no such file"), result("c", "no such file", failed=True)),
        (failed("c", "stopped", {"interrupted": True, "output": "half"}), result("c", "half")),
        (failed("c", "stopped", {"interrupted": True}), result("c", "stopped", failed=True)),
        (failed("c", "e", {"output": "not interrupted"}), result("c", "e", failed=True)),
        (running("c"), result("c", INTERRUPTED, failed=True)),
    ],
)
def test_every_call_is_answered(part: ToolPart, answer: ToolResult) -> None:
    """Completed, pruned, failed, interrupted with and without output, never settled."""
    assert lowered(user("q"), assistant(part)) == [
        said("q"),
        Assistant(content=(call("c"),)),
        Results(content=(answer,)),
    ]


def test_a_call_whose_arguments_were_still_being_written_is_paired_too() -> None:
    """Its input is empty."""
    part = ToolPart(**head(), call_id="c", tool="read", state=ToolPending(input={}, raw='{"pa'))

    assert lowered(user("q"), assistant(part))[1:] == [
        Assistant(content=(ToolCall(id="c", name="read", input={}),)),
        Results(content=(result("c", INTERRUPTED, failed=True),)),
    ]


def test_files_of_a_result_come_with_it() -> None:
    """After its text; a model that cannot see is told so."""
    part = done("c", "shot", attachments=[file("image/png", PNG)])

    (_, _, seen), (_, _, told) = (
        lowered(user("q"), assistant(part)),
        lowered(user("q"), assistant(part), model=GPT),
    )

    assert seen == Results(
        content=(
            ToolResult(id="c", name="read", content=(Text(text="shot"), Media(mime="image/png", url=PNG))),
        )
    )
    assert isinstance(told, Results)
    assert told.content[0].content[1] == Text(
        text="[The file of type image/png was not sent: this model cannot read image. Tell the user so.]"
    )


def test_thinking_goes_back_to_the_model_that_did_it() -> None:
    """With its signature; another model gets it as plain text, blank thoughts and metadata left out."""
    history = assistant(
        thought("hm", {"signature": "s"}),
        thought(" "),
        thought("", {"redacted": "r"}),
        text("so", metadata={"i": 1}),
    )

    assert lowered(user("q"), history)[1:] == [
        Assistant(
            content=(
                Reasoning(text="hm", metadata={"signature": "s"}),
                Reasoning(text=" "),
                Reasoning(text="", metadata={"redacted": "r"}),
                Text(text="so", metadata={"i": 1}),
            )
        )
    ]
    assert lowered(user("q"), history, model=GPT)[1:] == [
        Assistant(content=(Text(text="hm"), Text(text="so")))
    ]


def test_an_empty_text_beside_signed_thinking_becomes_a_space() -> None:
    """The block is part of what was signed; elsewhere an empty text is left out."""
    signed = assistant(thought("hm", {"signature": "s"}), "")

    assert lowered(user("q"), signed)[1:] == [
        Assistant(content=(Reasoning(text="hm", metadata={"signature": "s"}), Text(text=" ")))
    ]
    assert lowered(user("q"), assistant("", "x"))[1:] == [Assistant(content=(Text(text="x"),))]


def test_answers_that_failed_are_left_out_unless_a_person_stopped_them() -> None:
    """And then only when they had said more than thoughts."""
    history = (
        user("q"),
        assistant("half", error=BROKEN),
        assistant(step(), thought("hm"), error=ABORTED),
        assistant(step(), thought("hm"), "half", error=ABORTED),
    )

    assert lowered(*history) == [
        said("q"),
        Assistant(content=(Reasoning(text="hm"), Text(text="half"))),
    ]


def test_an_answer_that_failed_is_sent_when_it_has_a_call_of_ours() -> None:
    """The call may have had its effect. Not so by the first rules, which an old epoch keeps, and not for a
    tool that ran at the provider.
    """
    history = (user("q"), assistant(step(), "half", done("c", "A"), error=BROKEN))
    hosted = done("c", "A", part_metadata={"providerExecuted": True})

    assert lowered(*history) == [
        said("q"),
        Assistant(content=(Text(text="half"), call("c"))),
        Results(content=(result("c", "A"),)),
    ]
    assert lowered(*history, rules=lowering.FIRST_RULES) == [said("q")]
    assert lowered(user("q"), assistant("half", hosted, error=BROKEN)) == [said("q")]


def test_a_system_message_may_have_a_role_of_its_own_from_the_third_rules_on() -> None:
    """On OpenAI's wires alone: an epoch that began before sends the same block as ever."""
    told = system("It is Tuesday")
    openai = a_model(WireKind.OPENAI_RESPONSES)

    assert lowered(told, model=openai) == [SystemUpdate(text="It is Tuesday", native=True)]
    assert lowered(told, model=openai, rules=2) == [SystemUpdate(text="It is Tuesday")]
    assert lowered(told, model=a_model(WireKind.GEMINI)) == [SystemUpdate(text="It is Tuesday")]


def test_what_was_made_by_other_rules_is_made_anew() -> None:
    """A session's next epoch may have other rules, in the same process."""
    history, known = (user("q"), assistant(done("c", "A"), error=BROKEN)), lowering.Lowered()

    assert lowered(*history, rules=lowering.FIRST_RULES, known=known) == [said("q")]
    assert len(lowered(*history, known=known)) == 3


def test_tools_that_ran_at_the_provider_stay_the_providers() -> None:
    """Their result goes back exactly as it came; another model gets an ordinary call with its text."""
    part = done(
        "c",
        "three hits",
        metadata={"hosted": [{"url": "u"}]},
        part_metadata={"providerExecuted": True, "kind": "web"},
    )

    assert lowered(user("q"), assistant(part, "so"))[1:] == [
        Assistant(
            content=(
                replace(call("c"), hosted=True, metadata={"providerExecuted": True, "kind": "web"}),
                HostedResult(
                    id="c",
                    name="read",
                    output=[{"url": "u"}],
                    metadata={"providerExecuted": True, "kind": "web"},
                ),
                Text(text="so"),
            )
        )
    ]
    assert lowered(user("q"), assistant(part, "so"), model=GPT)[1:] == [
        Assistant(content=(call("c"), Text(text="so"))),
        Results(content=(result("c", "three hits"),)),
    ]


def test_two_calls_of_one_id_are_told_apart() -> None:
    """Some servers number calls anew in each answer; a request with two of one id would be refused."""
    history = lowered(user("q"), assistant(done("c", "A")), user("r"), assistant(done("c", "B")), user("s"))

    assert history[1:3] == [Assistant(content=(call("c"),)), Results(content=(result("c", "A"),))]
    assert history[4:6] == [Assistant(content=(call("c-2"),)), Results(content=(result("c-2", "B"),))]


def test_a_history_that_begins_with_the_model_gets_a_beginning() -> None:
    """A cut can leave one, and providers want the person first."""
    assert lowered(system("S"), assistant("yes"), user("q")) == [
        SystemUpdate(text="S"),
        said(RESUMED),
        Assistant(content=(Text(text="yes"),)),
        said("q"),
    ]


def test_a_quarantined_block_is_replaced_by_a_marker() -> None:
    """A file, one that a tool gave, a whole result: the rest stays, and a call stays paired. Another model
    sees it all.
    """
    picture = replace(file("image/png", PNG), refused={"anthropic/claude": "no"})
    seen, odd = done("a", "seen"), done("b", "odd")
    seen = replace(seen, state=replace(seen.state, attachments=[picture]))
    odd = replace(odd, state=replace(odd.state, refused={"anthropic/claude": "no"}))
    left_out = Text(
        text="[The file of type image/png was left out: the provider refused a request with it. "
        "Tell the user so.]"
    )

    history = user("q", picture), assistant("so", seen, odd)
    assert lowered(*history) == [
        User(content=(Text(text="q"), left_out)),
        Assistant(content=(Text(text="so"), call("a"), call("b"))),
        Results(
            content=(
                ToolResult(id="a", name="read", content=(Text(text="seen"), left_out)),
                result("b", QUARANTINED),
            )
        ),
    ]
    elsewhere = lowered(*history, model=replace(CLAUDE, id="other"))
    assert [each.content for each in elsewhere if isinstance(each, Results)] == [
        (
            ToolResult(
                id="a",
                name="read",
                content=(Text(text="seen"), Media(mime="image/png", url=PNG, filename=None)),
            ),
            result("b", "odd"),
        )
    ]


def test_bookkeeping_is_not_shown() -> None:
    """Patches and ends of steps."""
    patch = PatchPart(**head(), hash="h", files=["/a"])

    assert lowered(user("q"), assistant("yes", patch, step_end()))[1:] == [
        Assistant(content=(Text(text="yes"),))
    ]


PARTS = st.sampled_from(
    [
        lambda n: text(f"t{n}"),
        lambda n: text(""),
        lambda n: thought(f"r{n}"),
        lambda n: step(),
        lambda n: step_end(),
        lambda n: done(f"c{n % 3}", "out"),
        lambda n: failed(f"c{n % 3}", "bad"),
        lambda n: running(f"c{n % 3}"),
    ]
)


@st.composite
def histories(draw: st.DrawFn) -> list[MessageWithParts]:
    """Any mixture of messages and parts."""
    history = []
    for n in range(draw(st.integers(0, 8))):
        parts = [make(n * 10 + m) for m, make in enumerate(draw(st.lists(PARTS, max_size=6)))]
        kind = draw(st.sampled_from(["user", "assistant", "system", "aborted", "broken"]))
        if kind == "user":
            history.append(user(*(part for part in parts if part.__struct_config__.tag == "text")))
        elif kind == "system":
            history.append(system(f"s{n}"))
        else:
            errors: dict[str, Fault] = {"aborted": ABORTED, "broken": BROKEN}
            history.append(assistant(*parts, error=errors.get(kind)))
    return history


@pytest.mark.ci
@given(histories())
def test_whatever_happened_the_messages_are_valid(history: list[MessageWithParts]) -> None:
    """Each call is answered once and at once, ids differ, the person begins, nothing is empty."""
    messages = lowered(*history)
    spoken = [message for message in messages if not isinstance(message, SystemUpdate)]
    seen: set[str] = set()

    assert not spoken or isinstance(spoken[0], User)
    for index, message in enumerate(messages):
        if isinstance(message, SystemUpdate):
            assert message.text
            continue
        assert message.content
        assert all(block.text for block in message.content if isinstance(block, Text))
        if isinstance(message, Assistant):
            calls = [block.id for block in message.content if isinstance(block, ToolCall)]
            after = messages[index + 1] if calls else None
            answered = [each.id for each in after.content] if isinstance(after, Results) else []
            assert calls == answered
            assert not seen & set(calls)
            assert len(set(calls)) == len(calls)
            seen.update(calls)


@given(histories(), st.integers(0, 8))
def test_a_longer_history_extends_a_shorter_one(history: list[MessageWithParts], cut: int) -> None:
    """Law 7 begins here: what was lowered once is lowered the same way for ever."""
    whole, part = lowered(*history), lowered(*history[:cut])

    assert whole[: len(part)] == part
