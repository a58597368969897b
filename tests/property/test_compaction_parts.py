"""The plain functions that compaction is made of, over anything that a history may hold."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.provider.catalog.model import Limit
from holdfast.runtime.compaction import carry, divide
from holdfast.runtime.compaction import measure as measuring
from holdfast.runtime.compaction.measure import ContextLimits
from holdfast.runtime.epoch import prefix_change
from holdfast.runtime.history import files_touched, model_view, transcript
from holdfast.runtime.history.carried import Carried, carried_before
from holdfast.runtime.history.files_touched import Ledger
from holdfast.schema import usage
from holdfast.schema.config import CompactionConfig
from holdfast.schema.ids import MessageID
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import CompactionPart, PatchPart, StepPrefix, StepStartPart
from holdfast.schema.usage import CacheTokens, Tokens
from tests.provider.history import CLAUDE, assistant, done, head, step_end, system, text, user
from tests.provider.request.lowering import BROKEN
from tests.runtime.sample_epoch import EPOCH

SPEAKERS: dict[str, Callable[[str], MessageWithParts]] = {
    "user": user,
    "assistant": assistant,
    "system": system,
}
ATTEMPTS = ["finished", "failed", "cut off"]

Item = tuple[str, int]
"""A speaker and a size, or how an attempt to compact ended and how many of the latest messages it kept."""
said: st.SearchStrategy[Item] = st.tuples(st.sampled_from(sorted(SPEAKERS)), st.integers(0, 40))
attempt: st.SearchStrategy[Item] = st.tuples(st.sampled_from(ATTEMPTS), st.integers(0, 6))
names = st.sampled_from(["a", "b", "c"])
HEAD = 10
"""Every block stands before the messages: so tools may move it."""


def compaction(tail: str | None = None) -> MessageWithParts:
    """A request to compact."""
    part = CompactionPart(**head(), auto=True, tail_start_id=None if tail is None else MessageID(tail))
    return user(part)


def summary(asked: MessageWithParts, *, failed: bool = False) -> MessageWithParts:
    """The answer to a request to compact."""
    made = assistant("summary", error=BROKEN if failed else None)
    return MessageWithParts(replace(made.info, summary=True, parent_id=asked.info.id), made.parts)


def build(items: Sequence[Item]) -> tuple[list[MessageWithParts], list[MessageWithParts]]:
    """A history, and what of it the model has to be shown."""
    history: list[MessageWithParts] = []
    shown: list[MessageWithParts] = []
    heads: list[MessageWithParts] = []
    for kind, number in items:
        if kind in SPEAKERS:
            shown.append(SPEAKERS[kind](kind))
            history.append(shown[-1])
            continue
        tail = shown[-number:] if number else []
        done = kind == "finished"
        history.append(compaction(tail[0].info.id if done and tail else None))
        if kind != "cut off":
            history.append(summary(history[-1], failed=not done))
        if done:
            shown, heads = list(tail), history[-2:]
    return history, [*heads, *shown]


@given(st.lists(said | attempt, max_size=25))
def test_what_is_said_after_the_boundary_is_shown_once_and_in_order(items: list[Item]) -> None:
    """Summary, kept tail, what came since; attempts that came to nothing leave no trace."""
    history, shown = build(items)
    assert model_view.project(history) == shown


@given(st.lists(said | attempt, max_size=25))
def test_what_stands_before_the_boundary_does_not_matter(items: list[Item]) -> None:
    """The store gives only what follows it; the view is the same."""
    history, shown = build(items)
    first = next((number for number, each in enumerate(history) if each in shown[2:]), len(history))
    begin = min(first, next((history.index(each) for each in shown[:1]), 0))
    assert model_view.project(history[begin:]) == shown


@given(st.lists(said, max_size=60), st.integers(0, 400), st.none() | st.integers(0, 5))
def test_a_history_is_divided_into_a_head_and_a_tail_within_its_bounds(
    items: list[Item], tokens_max: int, turns_max: int | None
) -> None:
    """Nothing is lost or said twice; the tail never is the whole, and nothing fits that was left out."""
    history = [SPEAKERS[kind](kind) for kind, _ in items]
    sizes = {each.info.id: size for each, (_, size) in zip(history, items, strict=True)}

    def measure(messages: Sequence[MessageWithParts]) -> int:
        return sum(sizes[each.info.id] for each in messages)

    divided = divide.divide(history, measure, tokens_max=tokens_max, turns_max=turns_max)
    turns = sum(kind == "user" for kind, _ in items[len(divided.head) :])
    assert [*divided.head, *divided.tail] == history
    assert bool(divided.head) == bool(history)
    assert measure(divided.tail) <= tokens_max
    assert len(divided.tail) <= divide.TAIL_MESSAGES_MAX
    assert turns_max is None or turns <= turns_max


@given(st.none() | st.integers(0, 10**7), st.none() | st.integers(0, 10**6))
def test_the_tail_has_a_quarter_of_the_room_within_bounds(usable: int | None, wanted: int | None) -> None:
    """From 2,000 to 15,000 tokens, or what the person wants."""
    tokens = divide.tail_tokens(usable, wanted)
    if wanted is not None:
        assert tokens == wanted
    elif usable is None:
        assert tokens == 15_000
    else:
        assert tokens == sorted([2_000, usable // 4, 15_000])[1]


@given(st.lists(st.text(max_size=60), max_size=30), st.integers(1, 100))
def test_chunks_hold_everything_in_order_within_their_bound(texts: list[str], chars_max: int) -> None:
    """A piece that is too long is cut; nothing else is added than the blank line between two."""
    chunks = transcript.chunks(texts, chars_max)
    assert all(0 < len(chunk) <= chars_max for chunk in chunks)
    position = 0
    joined = "".join(chunks)
    for text_ in texts:
        for sign in text_:
            while joined[position] != sign:
                assert joined[position] == "\n"
                position += 1
            position += 1
    assert joined[position:].strip("\n") == ""


def counted(chars: int, tokens: Tokens, by: tuple[str, str]) -> MessageWithParts:
    """An answer whose request had so many characters, and so many tokens by the model's own count."""
    prefix = StepPrefix(epoch="e", kept=0, blocks=[], chars=chars)
    made = assistant(StepStartPart(**head(), prefix=prefix), "a", step_end(), by=by)
    return MessageWithParts(replace(made.info, tokens=tokens, finish="stop"), made.parts)


tokens = st.builds(
    lambda input, output, read, write: Tokens(
        input=input, output=output, reasoning=0, cache=CacheTokens(read=read, write=write)
    ),
    *[st.integers(0, 10**6)] * 4,
)
models = st.sampled_from([("anthropic", "claude"), ("openai", "gpt")])
Answer = tuple[int, Tokens, tuple[str, str]]
answers: st.SearchStrategy[list[Answer]] = st.lists(
    st.tuples(st.integers(0, 10**7), tokens, models), max_size=5
)


TWO: list[Answer] = [(1, usage.ZERO, ("anthropic", "claude"))] * 2
"""As many messages as a limit of one would forbid, and too few to compact."""


def history_of(made: list[Answer]) -> list[MessageWithParts]:
    """The answers as messages."""
    return [counted(*each) for each in made]


@given(answers)
def test_a_token_has_two_to_six_characters_as_its_own_model_counted_last(made: list[Answer]) -> None:
    """Four until it has counted."""
    told = [
        chars / count
        for chars, tokens, by in made
        if by == ("anthropic", "claude") and chars
        if (count := tokens.input + tokens.cache.read + tokens.cache.write)
    ]
    assert measuring.ratio(history_of(made), CLAUDE) == (min(6.0, max(2.0, told[-1])) if told else 4.0)


@pytest.mark.ci
@given(answers)
def test_usage_counts_until_a_summary_takes_its_place(made: list[Answer]) -> None:
    """Input, cache and output of the last step that was counted; after a compaction nothing."""
    history, asked = history_of(made), compaction()
    totals = [each.input + each.output + each.cache.read + each.cache.write for _, each, _ in made]
    used = [total for total in totals if total]
    assert measuring.reported(history) == (used[-1] if used else 0)
    assert measuring.reported([*history, asked, summary(asked, failed=True)]) == measuring.reported(history)
    assert measuring.reported([*history, asked, summary(asked)]) == 0


limits = st.none() | st.integers(1, 10**6)


@pytest.mark.ci
@given(st.none() | st.integers(0, 10**6), limits, limits, st.integers(0, 10**6), answers)
@example(None, None, 1, 0, TWO)
def test_a_request_is_compacted_when_and_only_when_it_is_over_a_limit(
    usable: int | None,
    max_tokens: int | None,
    max_messages: int | None,
    estimated: int,
    made: list[Answer],
) -> None:
    """The estimate, the reported usage, and the person's own limits; another model's usage is none."""
    history = history_of(made)
    limits = ContextLimits(usable=usable, max_tokens=max_tokens, max_messages=max_messages)
    for same in (True, False):
        most = max(estimated, measuring.reported(history) if same else 0)
        over = [
            usable is not None and most > usable,
            max_tokens is not None and most > max_tokens,
            # So many stay in any case: a compaction could not go below them.
            max_messages is not None and len(history) > max(max_messages, measuring.MESSAGES_MIN),
        ]
        trigger = measuring.trigger(limits, history, estimated=estimated, same_model=same)
        assert (trigger is not None) == any(over)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.none() | st.integers(0, 10**6))
def test_the_room_is_what_the_window_leaves_for_the_request(
    context: int, input: int, output: int, reserved: int | None
) -> None:
    """The model's input limit, else its context less the answer; less a reserve; never below nothing."""
    model = replace(CLAUDE, limit=Limit(context=context, input=input, output=output))
    answer = min(output, 32_000) if output else 32_000
    if not input and context:
        answer = min(answer, max(1, context // 2))  # Half of the window is left for the question.
    usable = measuring.context_limits(model, CompactionConfig(reserved=reserved)).usable
    if input:
        assert usable == max(0, input - (min(20_000, answer) if reserved is None else reserved))
    elif context:
        assert usable == max(0, context - answer - (reserved or 0))
    else:
        assert usable is None


paths = st.sampled_from(["/a", "/b", "/c"])
touches = st.lists(
    st.tuples(st.sampled_from(["read", "write", "apply_patch", "patch part"]), paths), max_size=8
)


def touched(each: tuple[str, str]) -> MessageWithParts:
    """A message with one call that touched a file; a patch deletes it, and its part names it once more."""
    tool, path = each
    patch = PatchPart(**head(), hash="h", files=[path])
    if tool == "patch part":
        return assistant(patch)
    files = {"files": [{"filePath": path, "type": "delete"}]}
    part = done("c", "ok", metadata=files if tool == "apply_patch" else {"filepath": path})
    return assistant(replace(part, tool=tool), *([patch] if tool == "apply_patch" else []))


@given(touches, st.integers(0, 8))
def test_the_ledger_of_two_compactions_is_the_ledger_of_both(made: list[tuple[str, str]], cut: int) -> None:
    """Wherever the history is cut; each path once, the latest last; deleted is not written."""
    messages = [touched(each) for each in made]
    whole = files_touched.ledger(Ledger(), messages)
    assert files_touched.ledger(files_touched.ledger(Ledger(), messages[:cut]), messages[cut:]) == whole
    assert len(set(whole.read)) == len(whole.read)
    assert not set(whole.written) & set(whole.deleted)
    assert set(whole.read) == {path for tool, path in made if tool == "read"}
    changed = {path: tool for tool, path in made if tool != "read"}
    assert set(whole.deleted) == {path for path, tool in changed.items() if tool == "apply_patch"}
    assert set(whole.written) == {path for path, tool in changed.items() if tool != "apply_patch"}


@given(st.text(), st.lists(st.text(), max_size=3), st.lists(paths, max_size=3))
def test_what_is_carried_over_is_told_and_comes_back(request: str, todos: list[str], read: list[str]) -> None:
    """As text for the model, as data for the next compaction."""
    carried = Carried(
        request=request,
        owed=bool(todos),
        todos=tuple(todos),
        ledger=Ledger(read=tuple(read)),
        ratios={"anthropic/claude": 5.5},
    )
    told = carry.text(carried)
    assert all(each in told for each in (request, *todos, *read))
    asked = compaction()
    kept = MessageWithParts(
        asked.info, (*asked.parts, text(told, synthetic=True, metadata=carried.metadata()))
    )
    assert carried_before([user("a"), kept, summary(kept)]) == carried


@given(st.lists(st.lists(names, max_size=6), min_size=1, max_size=6), st.lists(names, max_size=6))
def test_the_request_before_can_be_named_from_its_steps(requests: list[list[str]], new: list[str]) -> None:
    """Each step keeps what it added; the next is moved exactly where it does not extend the one before."""
    history = told_of(requests)
    assert blocks_before(history) == requests[-1]
    assert prefix_change.before(history, replace(EPOCH, id="other")) is None
    extends = new[: len(requests[-1])] == requests[-1]
    for causes, reason in ((["tools"], "tools"), ([], prefix_change.FAULT)):
        after: Any = prefix_change.step(
            EPOCH, prefix_change.before(history, EPOCH), new, causes, chars=1, head=HEAD
        )
        assert after.moved == (None if extends else reason)


def told_of(requests: list[list[str]]) -> list[MessageWithParts]:
    history: list[MessageWithParts] = []
    for blocks in requests:
        prefix = prefix_change.step(
            EPOCH, prefix_change.before(history, EPOCH), blocks, ["model"], chars=1, head=HEAD
        )
        history.append(assistant(StepStartPart(**head(), prefix=prefix), "a"))
    return history


def blocks_before(history: list[MessageWithParts]) -> list[str]:
    sent = prefix_change.before(history, EPOCH)
    return [] if sent is None else sent.blocks


@pytest.mark.ci
@given(st.lists(st.lists(names, max_size=6), min_size=1, max_size=6), st.data())
def test_removals_leave_every_request_that_is_still_told_of_named(
    requests: list[list[str]], data: st.DataObject
) -> None:
    """Whichever answers go, in whichever order, each one that stays names all blocks of its request."""
    history = told_of(requests)
    left = list(zip(requests, history, strict=True))
    for _ in range(data.draw(st.integers(1, 3))):
        if not left:
            break
        chosen = {left.index(each) for each in data.draw(st.lists(st.sampled_from(left), max_size=3))}
        gone = {left[index][1].info.id for index in chosen}
        whole = {
            part.id: part for part in prefix_change.named_whole([each for _, each in left], EPOCH.id, gone)
        }
        left = [
            (blocks, MessageWithParts(each.info, tuple(whole.get(part.id, part) for part in each.parts)))
            for blocks, each in left
            if each.info.id not in gone
        ]
        for index, (blocks, _) in enumerate(left):
            assert blocks_before([each for _, each in left[: index + 1]]) == blocks
