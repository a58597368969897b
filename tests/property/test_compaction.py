"""Whatever a session holds, a prompt is answered within the model's room, or the work ends by name.

Everything is drawn before a story begins; stories run on a real SQLite store.
"""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

import holdfast
from holdfast.app import Holdfast
from holdfast.provider.request import lowering, size
from holdfast.provider.request.request import Request
from holdfast.runtime.compaction.measure import RATIO_MAX, RATIO_MIN
from holdfast.runtime.compaction.summarise import CHUNKS_MAX
from holdfast.runtime.epoch import pruning
from holdfast.runtime.history import model_view
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.schema.fault import ContextOverflowFault, OutputLengthFault
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.part import CompactionPart, ToolPart
from holdfast.schema.prompt import FilePartInput, TextPartInput
from holdfast.schema.session_lists import Todo
from tests.examples import examples
from tests.property.compaction_world import MARK, PNG, Strict, Writer, marks
from tests.stories import inside
from tests.stories.world import World

KINDS = ["talk", "long answer", "tools", "pictures", "hosted", "trouble", "nothing"]
SIZES = [10, 600, 4_000, 30_000, 120_000, 500_000]
TODO = "[pending] write the tests"
REQUEST = re.compile(r"(?:cannot be brought|would not make) .*current request (\d+)")
ITEMS = re.compile(r"instructions and context (\d+)")
TARGET = re.compile(r"cannot be brought under (\d+) tokens: (.*)")

Turn = tuple[str, int]
turn: st.SearchStrategy[Turn] = st.tuples(st.sampled_from(KINDS), st.sampled_from(SIZES))


class Told(NamedTuple):
    """One story: what the session holds, compacted by hand after each stretch but the last; then a prompt."""

    stretches: list[list[Turn]]
    words: int
    pictures: int
    window: int
    answer: int
    density: float
    media: int
    tools: int
    summary: int
    counts: bool


story = st.builds(
    Told,
    st.lists(st.lists(turn, max_size=5), min_size=1, max_size=6),
    st.sampled_from(SIZES),
    st.sampled_from([0, 0, 1, 3]),
    st.sampled_from([16_000, 40_000, 100_000]),
    st.sampled_from([1_000, 4_000]),
    st.sampled_from([4.0, 5.0, 7.0]),
    st.sampled_from([1_600, 9_000]),
    st.sampled_from([0, 0, 12_000, 90_000]),
    st.sampled_from([10, 2_000, 16_000, 80_000]),
    st.booleans(),
)
PLAIN = Told([[]], 10, 0, 40_000, 1_000, 4.0, 1_600, 0, 2_000, True)
"""A prompt to an empty session."""


def configure(world: World, told: Told) -> None:
    """One model with the room that was drawn, which takes pictures."""
    model = {
        "name": "M",
        "attachment": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": {"context": told.window, "output": told.answer},
    }
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": model},
    }
    world.settings(provider={"scripted": entry})


async def play(told: Told, folder: Path) -> None:
    """Write it, compact it, prompt, and look at what came of it."""
    world = World(folder, Path.home())
    configure(world, told)
    strict = Strict(
        told.window,
        density=told.density,
        media=told.media,
        tools=told.tools,
        summary=told.summary,
        counts=told.counts,
    )
    async with holdfast.open(world.store, provider=strict) as hf:
        session = await world.session(hf)
        await hf.sessions.set_todos(
            session, [Todo(content="write the tests", status="pending", priority="1")]
        )
        writer = Writer(hf, session, told.density if told.counts else None)
        for number, stretch in enumerate(told.stretches):
            for kind, size in stretch:
                await writer.write(kind, size)
            if stretch and number < len(told.stretches) - 1:
                await compact(hf, session)
        before = await whole(hf, session)
        asked, paid = len(strict.answers), len(strict.summarising)
        words = writer.mark() + "w" * told.words
        parts = [TextPartInput(text=words)] + [
            FilePartInput(mime="image/png", url=PNG, filename=f"{number}.png")
            for number in range(told.pictures)
        ]
        with anyio.fail_after(60):
            answer = await hf.sessions.process(session, parts, check=False)
        after = await whole(hf, session)
        await check_boundary(hf, session)
        record = await hf.sessions.get(session)
    assert strict.problems == []
    assert record.time.compacting is None
    assert kept(after)[: len(kept(before))] == kept(before), "something was lost from the store"
    assert len(strict.answers) - asked <= 3
    assert len(compactions(after)) - len(compactions(before)) <= 2
    assert isinstance(answer.info, AssistantMessage)
    if answer.info.error is not None:
        check_named(answer.info.error)
        check_measured(answer.info.error, told, words)
        # Where the request alone is too long, no summary is paid for to find out.
        assert told.words / RATIO_MAX < told.window or len(strict.summarising) == paid
        return
    request = strict.answers[-1]
    assert strict.count(request) <= told.window - told.answer
    check_shown(request, writer, words, strict.summarising, compacted=any(map(finished, after)))


async def compact(hf: Holdfast, session: str) -> None:
    """By hand: what the model sees is shorter afterwards. Where it came to nothing the reason is stored, and
    nothing is longer; old output may have been pruned before it.
    """
    before = await length(hf, session)
    await hf.sessions.compact(session, force=True)
    await hf.sessions.wait(session)
    after = await length(hf, session)
    last = (await whole(hf, session))[-1].info
    assert isinstance(last, AssistantMessage)
    assert last.summary
    assert after < before or (after == before and last.error is not None)


async def length(hf: Holdfast, session: str) -> int:
    """How long the conversation is, as the model sees it."""
    history = model_view.project(await SessionHistory(hf.store, session).read())
    workspace = await inside.workspace(hf, session)
    model = workspace.providers.model("scripted", "m")
    return size.characters(Request(model=model, messages=lowering.lower(history, model)))


async def whole(hf: Holdfast, session: str) -> tuple[MessageWithParts, ...]:
    """Everything that is stored, system messages included."""
    return (await hf.sessions.messages(session, system=True)).messages


def kept(messages: Sequence[MessageWithParts]) -> list[MessageWithParts]:
    """Messages without what may change: the mark of pruning, and what a compaction adds to its own."""
    return [
        MessageWithParts(
            each.info,
            tuple(pruning.unpruned(part, ()) if isinstance(part, ToolPart) else part for part in each.parts),
        )
        for each in messages
        if not compactions([each]) and not model_view.is_summary(each)
    ]


def compactions(messages: Sequence[MessageWithParts]) -> list[MessageWithParts]:
    """The requests to compact."""
    return [each for each in messages if any(isinstance(part, CompactionPart) for part in each.parts)]


def finished(message: MessageWithParts) -> bool:
    """Whether the message is a summary that counts."""
    return model_view.is_finished_summary(message)


async def check_boundary(hf: Holdfast, session: str) -> None:
    """The store's boundary and the projection agree; what the runner remembers is what is stored."""
    fresh = await SessionHistory(hf.store, session).read()
    page = (await hf.sessions.messages(session, system=True)).messages
    everything = model_view.project(page)
    ids = {each.info.id for each in fresh}
    assert [each for each in everything if each.info.id not in ids] == []
    assert model_view.project(fresh) == everything
    remembered = inside.history(hf, session)
    assert await remembered.read() == fresh


def check_named(error: Any) -> None:
    """The work ended with a name, and with what takes the room; a target that is named is truly missed. A
    summary that was cut has a name of its own.
    """
    if isinstance(error, OutputLengthFault):
        return
    assert isinstance(error, ContextOverflowFault)
    assert ITEMS.search(error.data.message), error.data.message
    missed = TARGET.search(error.data.message)
    if missed is not None:
        assert sum(map(int, re.findall(r" (\d+)", missed[2]))) >= int(missed[1]) - 10


def check_measured(error: Any, told: Told, words: str) -> None:
    """How long a token is was learnt from the model's own counts, and is known over every compaction."""
    item = REQUEST.search(getattr(error.data, "message", ""))
    if item is None:
        return
    counted = told.counts and any(told.stretches)
    ratio = min(RATIO_MAX, max(RATIO_MIN, told.density)) if counted else 4.0
    files = sum(len(f"\\n[attached: {number}.png]") for number in range(told.pictures))
    assert abs(int(item[1]) - (len(words) + 2 + files) / ratio) <= 1


def check_shown(
    request: Request, writer: Writer, words: str, summarising: list[Request], *, compacted: bool
) -> None:
    """The model sees the current request word for word, the latest messages once and in order, and of the
    rest the files; everything else was given to whoever wrote the summary.
    """
    said = "\n".join(str(getattr(block, "text", "")) for each in request.messages for block in _content(each))
    assert words in said
    begin = 2 if compacted else 0
    shown = [mark for mark in marks(request.messages[begin:]) if mark in writer.shown]
    assert shown == writer.shown[len(writer.shown) - len(shown) :]
    if not compacted:
        assert shown == writer.shown
        return
    assert TODO in said
    gone = set(writer.shown) - set(shown)
    files = [path for path in writer.files if MARK.findall(path)[0] in gone]
    assert [path for path in files if f"- {path}" not in said] == []
    summarised = {mark for each in summarising for mark in marks(each.messages)}
    # What the person asked last was carried over word for word at its time; a head of very many chunks is
    # summarised by its beginning and its end.
    assert len(summarising) >= CHUNKS_MAX or gone - summarised <= {*writer.requests, writer.shown[-1]}


def _content(message: Any) -> Sequence[Any]:
    return getattr(message, "content", ())


@pytest.mark.ci
@settings(
    max_examples=examples(32),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
@example(PLAIN)
@example(PLAIN._replace(words=500_000))
@example(PLAIN._replace(stretches=[[("talk", 500_000)]]))
@example(PLAIN._replace(stretches=[[("tools", 500_000)] * 2]))
@example(PLAIN._replace(stretches=[[("pictures", 10)] * 5], pictures=3, media=9_000))
@example(PLAIN._replace(stretches=[[("nothing", 10)]] * 6))
@example(PLAIN._replace(stretches=[[("talk", 600)] * 4], tools=90_000))
@example(PLAIN._replace(stretches=[[("talk", 30_000), ("tools", 30_000)]] * 6, window=16_000))
@example(PLAIN._replace(stretches=[[("talk", 30_000)], []], words=120_000, density=7.0))
@example(PLAIN._replace(stretches=[[("talk", 120_000)], [("talk", 10)]], words=500_000, density=7.0))
@example(PLAIN._replace(stretches=[[("talk", 10)]] * 3, summary=80_000))
@given(story)
def test_a_prompt_is_answered_within_the_room_or_ends_by_name(told: Told) -> None:
    """One huge message, only tool output, only media, nothing at all, compacted up to five times already.

    At most two compactions and three requests to the model; each request is one that a provider would take;
    the answered one is within the room and has the current request word for word, the latest messages once,
    todos and files; the store still holds everything.
    """
    note(f"told = {told}")
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(play, told, Path(folder))
