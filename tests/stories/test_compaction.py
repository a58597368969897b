"""Compaction: a summary takes the place of the beginning in the model's view, and nothing is lost."""

import anyio
import pytest

from holdfast.errors import ProviderError
from holdfast.provider.request.lowering import COMPACTION
from holdfast.runtime.compaction import wording
from holdfast.schema.fault import AbortedFault, APIFault, ContextOverflowFault
from holdfast.schema.message import AssistantMessage, UserMessage
from holdfast.schema.part import CompactionPart, StepStartPart, TextPart
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step, Wait
from tests.stories import inside
from tests.stories.compaction import BIG, LONG, OVERFLOW, SILENT, SUMMARY, shown, small, texts
from tests.stories.crashing import Machine, life
from tests.stories.epochs import Fact, epochs, told
from tests.stories.tools import Deed
from tests.stories.world import World
from tests.until import until


async def test_by_hand_it_is_not_needed_under_every_threshold(world: World) -> None:
    """Nothing is written, and nothing asked of the model."""
    async with world.open(Step(Say("a"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        before = await shown(hf, session)
        assert await hf.sessions.compact(session) == "not needed"
        await hf.sessions.wait(session)
        assert await shown(hf, session) == before
    assert len(script.requests) == 1


async def test_by_hand_it_stores_what_clients_expect(world: World) -> None:
    """A user message with a compaction part, an assistant message that is the summary, one event; the view
    of the model begins with both, then the kept tail; nothing is removed.
    """
    steps = [Step(Say(text)) for text in (f"a {LONG}", "b", "c")]
    summarising = Step(Say(SUMMARY), usage=Usage(input=300, output=20))
    async with world.open(*steps, summarising, Step(Say("d"))) as (hf, script):
        session = await world.session(hf)
        for text in ("first wish", "second wish", "third wish"):
            await hf.sessions.process(session, text)
        before = await shown(hf, session)
        seen = []
        cursor = await hf.store.head()
        assert await hf.sessions.compact(session, force=True) == "admitted"
        with anyio.fail_after(60):
            async for frames in hf.feed.follow(cursor, session=session):
                seen += [frame.type for frame in frames]
                if "session.idle" in seen:
                    break
        after = await shown(hf, session)
        await hf.sessions.process(session, "fourth wish")
        record = await hf.sessions.get(session)
    assert seen.count("session.compacted") == 1
    assert after[: len(before)] == before
    asked, summary = after[len(before) :]
    assert isinstance(asked.info, UserMessage)
    part = next(part for part in asked.parts if isinstance(part, CompactionPart))
    assert (part.auto, part.overflow) == (False, None)
    assert isinstance(summary.info, AssistantMessage)
    assert (summary.info.summary, summary.info.agent, summary.info.finish) == (True, "compaction", "stop")
    assert [part.text for part in summary.parts if isinstance(part, TextPart)] == [SUMMARY]
    assert record.time.compacting is None
    assert record.tokens is not None
    assert (record.tokens.input, record.tokens.output) == (300 + 4 * 10, 20 + 4 * 5)
    said = texts(script.requests[-1])
    assert said[0] == COMPACTION
    assert "third wish" in said[1]
    assert said[2] == SUMMARY
    assert said[-1] == "fourth wish"
    assert "first wish" not in said
    assert script.requests[3].tools == ()
    assert "first wish" in texts(script.requests[3])[0]


async def test_reported_usage_over_the_usable_room_compacts_before_the_next_turn(world: World) -> None:
    """The work goes on by itself, with the request word for word."""
    steps = [Step(Say(f"a {LONG}"), usage=BIG), Step(Say(SUMMARY)), Step(Say("b"))]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        answer = await hf.sessions.process(session, "the second request")
        messages = await shown(hf, session)
    assert [part.text for part in answer.parts if isinstance(part, TextPart)] == ["b"]
    said = texts(script.requests[2])
    assert any("<request>\nthe second request\n</request>" in text for text in said)
    assert said[-1] == wording.CONTINUE
    auto = [p for m in messages for p in m.parts if isinstance(p, CompactionPart)]
    assert [(part.auto, part.overflow) for part in auto] == [(True, None)]


async def test_an_estimate_over_the_usable_room_compacts_before_the_turn(world: World) -> None:
    """A long prompt is not sent to find out."""
    small(world)
    steps = [Step(Say(text), usage=SILENT) for text in ("a", "b", SUMMARY, "c")]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "x" * 50_000)
        await hf.sessions.process(session, "y" * 40_000)
        await hf.sessions.process(session, "z" * 80_000)
    assert len(script.requests) == 4
    assert "x" * 50_000 not in "".join(texts(script.requests[3]))
    assert "z" * 80_000 in "".join(texts(script.requests[3]))


async def test_a_provider_that_finds_the_request_too_long_is_asked_again_after_a_compaction(
    world: World,
) -> None:
    """Once for each overflow; the attempt that failed stays stored with its error and out of the view."""
    steps = [Step(Say(f"a {LONG}")), Step(Fail(OVERFLOW)), Step(Say(SUMMARY)), Step(Say("b"))]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        answer = await hf.sessions.process(session, "two")
    assert answer.info.error is None
    assert texts(script.requests[3])[-1].endswith(wording.CONTINUE)


async def test_after_two_compactions_without_an_answer_it_ends_with_a_name(world: World) -> None:
    """Whatever the trigger; what takes the room is itemised. Each of them made the request shorter."""
    world.settings(compaction={"tail_turns": 2})
    async with world.open(
        Step(Say(f"a {LONG}")),
        Step(Say(f"b {LONG}")),
        Step(Fail(OVERFLOW)),
        Step(Say(SUMMARY)),
        Step(Fail(OVERFLOW)),
        Step(Say(SUMMARY)),
        Step(Fail(OVERFLOW)),
    ) as (hf, script):
        session = await world.session(hf)
        for text in ("one", "two"):
            await hf.sessions.process(session, text)
        answer = await hf.sessions.process(session, "three", check=False)
    assert len(script.requests) == 7
    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, ContextOverflowFault)
    assert "still too long after 2 compactions" in answer.info.error.data.message
    assert "instructions and context" in answer.info.error.data.message


async def test_a_request_that_cannot_shrink_ends_with_a_name_and_asks_nobody(world: World) -> None:
    """The current request alone is larger than the room."""
    small(world)
    async with world.open(Step(Say("a"), usage=SILENT)) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "x" * 200_000, check=False)
        messages = await shown(hf, session)
    assert len(script.requests) == 1
    error = messages[-1].info.error
    assert isinstance(error, ContextOverflowFault)
    assert "cannot be brought under" in error.data.message
    assert "current request" in error.data.message


async def test_a_failed_attempt_leaves_the_old_boundary(world: World) -> None:
    """Its error is stored, `time.compacting` is cleared, and the history is what it was."""
    broken = ProviderError("no credit", kind="quota")
    async with world.open(Step(Say(f"a {LONG}")), Step(Fail(broken)), Step(Say("b"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        failed = (await shown(hf, session))[-1]
        assert (await hf.sessions.get(session)).time.compacting is None
        await hf.sessions.process(session, "two")
    assert isinstance(failed.info.error, APIFault)
    assert texts(script.requests[2]) == ["one", f"a {LONG}", "two"]


async def test_an_interrupted_attempt_leaves_the_old_boundary(world: World) -> None:
    """The half of a summary is none."""
    gate = anyio.Event()
    async with world.open(
        Step(Say(f"a {LONG}")), Step(Say("half of a"), Wait(gate), Say("summary")), Step(Say("b"))
    ) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.compact(session, force=True)
        await until(lambda: len(script.requests) >= 2)
        await hf.sessions.interrupt(session)
        failed = (await shown(hf, session))[-1]
        assert (await hf.sessions.get(session)).time.compacting is None
        await hf.sessions.process(session, "two")
    assert isinstance(failed.info.error, AbortedFault)
    assert texts(script.requests[2]) == ["one", f"a {LONG}", "two"]


@pytest.mark.ci
async def test_a_second_compaction_merges_the_first(world: World) -> None:
    """The model is given the earlier summary; the ledger and the request are carried on."""
    (world.project / "a.txt").write_text("content")
    async with world.open(
        Step(Call("read", {"filePath": "a.txt"}, id="r")),
        Step(Say("read it")),
        Step(Say("first summary")),
        Step(Say("ok")),
        Step(Say("second summary")),
        Step(Say("end")),
    ) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "read the file")
        world.settings(compaction={"tail_turns": 0})
        inside.forget_workspaces(hf)
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "go on")
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "finish")
    merging = texts(script.requests[4])[0]
    assert "<earlier-summary>\nfirst summary\n</earlier-summary>" in merging
    assert "read the file" in merging, "it was carried over until now, and is summarised when it no longer is"
    said = texts(script.requests[5])
    assert f"Files that were read:\n- {world.project / 'a.txt'}" in said[1]
    assert "<request>\ngo on\n</request>" in said[1]
    assert said[2:] == ["second summary", "finish"]


async def test_a_head_that_exceeds_a_smaller_model_is_folded_in_chunks(world: World) -> None:
    """A switch to a smaller model: several calls, each with the summary so far."""
    small(world)
    steps = [Step(Say("a")), Step(Say("b"))]
    folding = [Step(Say(f"fold {number}")) for number in range(12)]
    with ScriptedProvider(*steps, *folding) as script:
        import holdfast

        async with holdfast.open(world.store, provider=script) as hf:
            session = await world.session(hf)
            await hf.sessions.process(session, "first " + "x" * 150_000, model="scripted/large")
            await hf.sessions.process(session, "second " + "y" * 150_000, model="scripted/large")
            await hf.sessions.process(session, "now on the small one", model="scripted/m")
        folds = script.requests[2:-1]
        script._steps.clear()
    assert len(folds) > 1
    assert "<earlier-summary>\nfold 0\n</earlier-summary>" in texts(folds[1])[0]
    assert all(sum(map(len, texts(each))) < 40_000 * 4 for each in folds)
    assert texts(script.requests[-1])[-1] == wording.CONTINUE


async def test_compaction_begins_a_new_epoch(world: World) -> None:
    """A fresh baseline takes in what was told since; earlier system messages stay stored, out of the view."""
    fact = Fact()
    steps = [Step(Say(text)) for text in (f"a {LONG}", "b", SUMMARY, "c")]
    async with world.open(*steps) as (hf, script):
        fact.register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        fact.value = "two"
        await hf.sessions.process(session, "two")
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "three")
        first, second = await epochs(hf, session)
        assert await told(hf, session) == ["The fact is now two."]
        page = await hf.sessions.messages(session)
    sent = [p.prefix for m in page.messages for p in m.parts if isinstance(p, StepStartPart)]
    assert (first.cause, second.cause) == ("first", "compaction")
    assert first.time.ended is not None
    assert "The fact is two." in script.requests[3].system[-1]
    assert sent[-1] is not None
    assert (sent[-1].epoch, sent[-1].kept, sent[-1].moved) == (second.id, 0, None)
    assert "is now two" not in str(script.requests[3].messages)


async def test_media_never_reaches_the_summary(world: World) -> None:
    """The head carries attachments by name only."""
    from holdfast.schema.prompt import FilePartInput, TextPartInput

    image = FilePartInput(mime="image/png", filename="a.png", url="data:image/png;base64,AAAA")
    steps = [Step(Say(text)) for text in (f"a {LONG}", "b", SUMMARY, "c")]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, [TextPartInput(text="look"), image])
        await hf.sessions.process(session, "two")
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "three")
    assert "base64" not in str(script.requests[2].messages)
    assert "[attached: image/png a.png]" in texts(script.requests[2])[0]


async def test_switched_off_an_overflow_is_an_error(world: World) -> None:
    """`compaction.auto: false`: nothing is summarised that nobody asked for."""
    world.settings(compaction={"auto": False})
    async with world.open(Step(Say("a"), usage=BIG), Step(Fail(OVERFLOW))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        answer = await hf.sessions.process(session, "two", check=False)
    assert len(script.requests) == 2
    assert isinstance(answer.info.error, ContextOverflowFault)


@pytest.mark.parametrize(("setting", "value"), [("max_messages", 3), ("max_tokens", 7_000)])
async def test_the_person_s_own_limits_compact_too(world: World, setting: str, value: int) -> None:
    """They are off by default."""
    world.settings(compaction={setting: value, "preserve_recent_tokens": 10})
    long = "word " * 1_200
    steps = [Step(Say(text), usage=SILENT) for text in ("a", "a", SUMMARY, "b")]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        for _ in range(3):
            await hf.sessions.process(session, long)
    assert len(script.requests) == 4
    assert texts(script.requests[3])[0] == COMPACTION


async def test_the_estimate_learns_how_long_a_token_is(world: World) -> None:
    """A model that counts a token for two characters fills its room sooner than four would tell."""
    small(world)
    dense = Usage(input=15_000, output=10)
    async with world.open(Step(Say("a"), usage=dense), Step(Say(SUMMARY)), Step(Say("b"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "x" * 20_000)
        await hf.sessions.process(session, "y" * 60_000)
    assert len(script.requests) == 3


@pytest.mark.ci
@pytest.mark.parametrize("after", [False, True])
async def test_wherever_a_compaction_dies_the_session_goes_on(world: World, after: bool) -> None:
    """Crash at every write: afterwards there is a whole summary or none, and the next request is answered."""
    dies_at = 1
    while True:
        machine, store = Machine(), f"{world.store}{dies_at}{after}"
        with ScriptedProvider(*[Step(Say(f"one {LONG}"), usage=BIG)] * 6) as script:
            async with life(store, machine, provider=script) as (hf, mortal):
                session = await world.session(hf)
                await hf.sessions.process(session, "first")
                mortal._left, mortal._after = mortal.writes + dies_at, after
                script._steps[:] = [Step(Say("the summary")), Step(Say("an answer"))]
                try:
                    with anyio.fail_after(60):
                        await hf.sessions.process(session, "second")
                except BaseException:  # noqa: BLE001 - it dies with whatever error
                    assert mortal.dead.is_set()
                died = mortal.dead.is_set()
                script._steps.clear()
        replies = [Step(Say("the summary")), *[Step(Say("an answer"))] * 4]
        with ScriptedProvider(*replies) as script:
            async with life(store, machine, provider=script) as (hf, _):
                await hf.sessions.resume(session)
                await hf.sessions.wait(session)
                answer = await hf.sessions.process(session, "last")
                messages = await shown(hf, session)
                record = await hf.sessions.get(session)
                script._steps.clear()
        assert answer.info.error is None, dies_at
        assert record.time.compacting is None
        summaries = [each for each in messages if getattr(each.info, "summary", None) is True]
        whole = [each for each in summaries if each.info.error is None]
        assert all(each.info.time.completed for each in summaries), dies_at
        assert len(whole) == 1, dies_at
        said = "".join(texts(script.requests[-1]))
        assert "second" in said or dies_at <= 2
        if not died:
            return
        dies_at += 1


async def test_a_prompt_that_waits_behind_a_compaction_is_answered(world: World) -> None:
    """It was admitted before the boundary of what the model sees, and is promoted after it."""
    world.settings(compaction={"tail_turns": 0}, permission={"act": "allow"})
    deed = Deed(ask=False)
    deed.gate = anyio.Event()
    async with world.open(
        Step(Call("act", {"what": LONG}, id="c")), Step(Say(SUMMARY)), Step(Say("done")), Step(Say("later"))
    ) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "first")
        with anyio.fail_after(60):
            await deed.begun.wait()
        await hf.sessions.prompt(session, "second", delivery="queue")
        await hf.sessions.compact(session, force=True)
        deed.gate.set()
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
        prompts = [each.value() for each in await hf.store.select("prompt", session=session)]
    assert all(each.promoted is not None for each in prompts)
    assert texts(script.requests[-1])[-1] == "second"
    assert "second" not in str(script.requests[1].messages)


@pytest.mark.ci
@pytest.mark.parametrize("limit", [1, 4, 6, 30])
async def test_a_limit_on_messages_is_kept_to_and_never_loops(world: World, limit: int) -> None:
    """However low: one compaction at a time, an answer after each."""
    world.settings(compaction={"max_messages": limit})
    with ScriptedProvider(*[Step(Say("ok"), usage=SILENT)] * 60) as script:
        import holdfast

        async with holdfast.open(world.store, provider=script) as hf:
            session = await world.session(hf)
            for number in range(12):
                answer = await hf.sessions.process(session, f"wish {number}")
                assert answer.info.error is None
        script._steps.clear()
    working = [each for each in script.requests if each.tools]
    assert len(working) == 12
    assert all(len(each.messages) <= max(limit, 4) for each in working)
