"""A prefix that moves has a reason, whatever happens around it: refused requests, forks, upgrades."""

from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from holdfast.app import Holdfast
from holdfast.errors import ProviderError
from holdfast.provider.instructions import choose
from holdfast.provider.request.request import Request
from holdfast.runtime.epoch import pins, prefix_change
from holdfast.schema.epoch import SentRequest
from holdfast.schema.message import AssistantMessage, MessageWithParts, UserMessage
from holdfast.schema.part import TextPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.store.query import MessageQuery
from holdfast.store.record import MessagePage
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step
from tests.runtime.sample_epoch import EPOCH
from tests.sessions.filling import ask, say
from tests.stories.crashing import Machine, life
from tests.stories.epochs import LONG, compacted, epochs, extends, says, steps
from tests.stories.moves import FORM
from tests.stories.pruning import flood, flooded, script, settings
from tests.stories.tools import Deed
from tests.stories.world import MODEL, World

QUOTA = Step(Fail(ProviderError("no credit", kind="quota")))
SILENT = Usage(input=0, output=0)
TWO_MODELS = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "http://127.0.0.1:9/v1"},
    "models": {
        name: {"name": name, "limit": {"context": 100_000, "output": 8_000}} for name in ("m", "gpt-4")
    },
}
REFUSED = Step(Fail(ProviderError("no", kind="auth", retryable=False)))


async def test_a_tool_that_arrives_with_a_refused_request_is_the_reason_all_the_same(world: World) -> None:
    """What was sent is known before anybody answers; the next request extends it."""
    async with world.open(*says("a"), REFUSED, *says("b")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        hf.tools.register(Deed().tool)
        await hf.sessions.process(session, "two", check=False)
        await hf.sessions.process(session, "three")
        assert [each.moved for each in await steps(hf, session)] == [None, "tools", None]


async def test_an_agent_edited_before_a_refused_request_is_the_reason(world: World) -> None:
    """Once."""
    world.settings(agent={"build": {"prompt": "Be brief."}})
    async with world.open(*says("a")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    world.settings(agent={"build": {"prompt": "Be thorough."}})
    async with world.open(REFUSED, *says("b")) as (hf, _):
        await hf.sessions.process(session, "two", check=False)
        await hf.sessions.process(session, "three")
        assert [each.moved for each in await steps(hf, session)] == [None, "agent", None]


async def test_a_fork_from_before_a_tool_arrived_goes_on_with_the_source_s_prefix(world: World) -> None:
    """It begins with what was pinned then; the tool, which is there by now, moves it for its reason."""
    async with world.open(*says("a", "b", "c", "d")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        registration = hf.tools.register(Deed().tool)
        await hf.sessions.process(session, "two")
        page = await hf.sessions.messages(session)
        here = (await hf.sessions.fork(session, page.messages[2].info.id)).id
        await hf.sessions.process(here, "two again")
        assert [(each.moved, each.block) for each in await steps(hf, here)] == [(None, None), ("tools", 0)]
        registration.close()
        gone = (await hf.sessions.fork(session, page.messages[2].info.id)).id
        await hf.sessions.process(gone, "without it")
        assert [each.moved for each in await steps(hf, gone)] == [None, None]
    assert extends(script.requests[0], script.requests[3])


@pytest.mark.ci
async def test_a_fork_from_before_a_pruning_shows_the_output_again(world: World) -> None:
    """And a fork of that fork too: what was pruned later was not pruned then."""
    settings(world, prune=True)
    pairs = [(Step(Call("flood", {"number": n}, id=f"c{n}")), Step(Say("ok"))) for n in range(9)]
    script = [step for pair in pairs for step in pair]
    async with world.open(*script, *says("x", "y")) as (hf, _):
        hf.tools.register(flood)
        session = await world.session(hf)
        for _ in range(9):
            await hf.sessions.process(session, "more")
        moved = [each.moved for each in await steps(hf, session)]
        first = moved.index("pruning")
        page = await hf.sessions.messages(session)
        prompts = [each.info.id for each in page.messages if isinstance(each.info, UserMessage)]
        forked = (await hf.sessions.fork(session, prompts[first // 2])).id
        await hf.sessions.process(forked, "again")
        again = (await hf.sessions.fork(forked)).id
        await hf.sessions.process(again, "and again")
        for each in (forked, again):
            assert {step.moved for step in await steps(hf, each)} <= {None, "pruning"}


async def test_another_agent_is_told_of_tools_as_the_first_one_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade a switch moves the agent's own text, and nothing before it."""
    async with world.open(*says("a")) as (hf, one):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    monkeypatch.setattr(choose, "_text", lambda name: f"An improved text for {name}.")
    async with world.open(*says("b")) as (hf, two):
        await hf.sessions.process(session, "two", agent="plan")
        last = (await steps(hf, session))[-1]
    assert two.requests[0].tools == one.requests[0].tools
    assert two.requests[0].system[0] == one.requests[0].system[0]
    assert (last.moved, last.block) == ("agent", len(one.requests[0].tools) + 1)


async def test_a_message_that_a_person_removes_is_a_reason(world: World) -> None:
    """Once; what is said afterwards extends the new prefix."""
    async with world.open(*says("a", "b", "c", "d")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two")
        page = await hf.sessions.messages(session)
        await hf.sessions.remove_message(session, page.messages[1].info.id)
        await hf.sessions.process(session, "three")
        await hf.sessions.process(session, "four")
        moved = [(each.moved, each.block) for each in await steps(hf, session)]
    assert [each[0] for each in moved] == [None, "edit", None]


async def test_a_message_that_a_person_removes_is_a_reason_after_a_restart(world: World) -> None:
    """Though with the answer the names went of the blocks that its request had added."""
    async with world.open(*says("a", "b")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two")
        page = await hf.sessions.messages(session)
        await hf.sessions.remove_message(session, page.messages[1].info.id)
    async with world.open(*says("c")) as (hf, _):
        await hf.sessions.process(session, "three")
    async with world.open(*says("d")) as (hf, _):
        await hf.sessions.process(session, "four")
        moved = [each.moved for each in await steps(hf, session)]
    assert moved == [None, "edit", None]


async def test_a_tool_that_arrives_at_a_boundary_without_a_request_is_the_reason_later(world: World) -> None:
    """A compaction that the provider refuses crosses the boundary; the next request tells why it moves."""
    world.settings(compaction={"tail_turns": 0})
    async with world.open(*says(f"a {LONG}"), QUOTA, *says("b", "c")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        hf.tools.register(Deed().tool)
        await compacted(hf, session)
        assert (await epochs(hf, session))[0].reasons == ("tools",)
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        assert [each.moved for each in await steps(hf, session)] == [None, "tools", None]
        assert (await epochs(hf, session))[0].reasons == ()


@pytest.mark.ci
async def test_a_pruning_at_a_boundary_without_a_request_is_the_reason_later(world: World) -> None:
    """The output is gone from the view with the boundary, and the next request tells so."""
    settings(world, prune=False)
    async with world.open(*script(7)) as (hf, _):
        session = await flooded(world, hf, 7)
    settings(world, prune=True)
    async with world.open(QUOTA, *says("x", "y")) as (hf, _):
        hf.tools.register(flood)
        await compacted(hf, session)
        await hf.sessions.process(session, "on")
        await hf.sessions.process(session, "and on")
        moved = [each.moved for each in await steps(hf, session)]
    assert moved == [*[None] * 14, "pruning", None]


@pytest.mark.ci
@pytest.mark.parametrize("reason", ["tools", "agent"])
async def test_wherever_a_move_of_the_pins_dies_its_reason_is_told(world: World, reason: str) -> None:
    """Crash after every write of the turn that moves them: then go on, and no move is without its reason."""
    dies_at = 1
    while True:
        machine, store = Machine(), f"{world.store}{dies_at}"
        world.settings(agent={"build": {"prompt": "Be brief."}})
        with ScriptedProvider(*says("a")) as first:
            async with life(store, machine, provider=first) as (hf, _):
                session = await world.session(hf)
                await hf.sessions.process(session, "one")
        if reason == "agent":
            world.settings(agent={"build": {"prompt": "Be thorough."}})
        with ScriptedProvider(*says("b", "c")) as dying:
            async with life(store, machine, provider=dying) as (hf, mortal):
                if reason == "tools":
                    hf.tools.register(Deed().tool)
                mortal._left, mortal._after = mortal.writes + dies_at, True
                try:
                    with anyio.fail_after(60):
                        await hf.sessions.process(session, "two")
                except BaseException:  # noqa: BLE001 - it dies with whatever error
                    assert mortal.dead.is_set()
                died = mortal.dead.is_set()
                dying._steps.clear()
        with ScriptedProvider(*says("d", "e", "f")) as again:
            async with life(store, machine, provider=again) as (hf, _):
                if reason == "tools":
                    hf.tools.register(Deed().tool)
                await hf.sessions.resume(session)
                await hf.sessions.wait(session)
                await hf.sessions.process(session, "three")
                moved = [each.moved for each in await steps(hf, session)]
                again._steps.clear()
        assert moved.count(reason) == 1, (dies_at, moved)
        assert set(moved) == {None, reason}, (dies_at, moved)
        if not died:
            return
        dies_at += 1


async def prompts(hf: Holdfast, session: str) -> list[str]:
    """The ids of what the person said."""
    page = await hf.sessions.messages(session)
    return [each.info.id for each in page.messages if isinstance(each.info, UserMessage)]


@pytest.mark.parametrize("how", ["changed", "removed"])
async def test_a_fork_from_before_the_prompt_that_followed_an_edit_tells_the_edit(
    world: World, how: str
) -> None:
    """It has what the person left, which is not what the last request of its history had, and so has a fork
    of that fork, also where the answer is gone whose step named the first blocks. A fork from after the edit
    extends what was sent.
    """
    world.settings(provider={"scripted": TWO_MODELS})
    async with world.open(*says(*"abcdefg")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two")
        page = await hf.sessions.messages(session)
        if how == "changed":
            part = page.messages[0].parts[0]
            assert isinstance(part, TextPart)
            await hf.sessions.update_part(session, part.id, lambda old: replace(old, text="ONE"))
        else:
            await hf.sessions.remove_message(session, page.messages[1].info.id)
        pending = (await hf.sessions.fork(session)).id
        await hf.sessions.process(session, "three", model="scripted/gpt-4")
        cut = (await prompts(hf, session))[2]
        before = (await hf.sessions.fork(session, cut)).id
        await hf.sessions.process(before, "three", model=MODEL)
        again = (await hf.sessions.fork(before, (await prompts(hf, before))[2])).id
        for each in (pending, again):
            await hf.sessions.process(each, "three", model=MODEL)
        for each in (pending, before, again):
            assert (await steps(hf, each))[-1].moved == "edit"
        after = (await hf.sessions.fork(session)).id
        await hf.sessions.process(after, "four", model="scripted/gpt-4")
        assert (await steps(hf, after))[-1].moved is None


@pytest.mark.parametrize("how", ["changed", "removed"])
@pytest.mark.parametrize("when", ["before the next epoch", "in the next epoch", "in the one after it"])
async def test_a_fork_from_an_epoch_before_the_edit_tells_the_edit(world: World, how: str, when: str) -> None:
    """A compaction counts for nothing here: each epoch that was sent the message is told of its edit."""
    world.settings(compaction={"tail_turns": 1})
    later = {"in the next epoch": ["c"], "in the one after it": [f"c {LONG}", "sum", "d"]}.get(when, [])
    async with world.open(*says(f"a {LONG}", "b", "sum", *later, "e")) as (hf, _):
        session = await world.session(hf)
        for text in (f"one {LONG}", "two"):
            await hf.sessions.process(session, text)
        await compacted(hf, session)
        page = await hf.sessions.messages(session)
        cut = page.messages[4].info.id
        if when != "before the next epoch":
            await hf.sessions.process(session, "three")
        if when == "in the one after it":
            await compacted(hf, session)
            await hf.sessions.process(session, "four")
        await _edit(hf, page.messages[0] if how == "changed" else page.messages[1])
        forked = (await hf.sessions.fork(session, cut)).id
        await hf.sessions.process(forked, "three")
        assert [each.moved for each in await steps(hf, forked)][-1] == "edit"


async def test_an_edit_of_what_an_epoch_was_never_sent_is_no_reason_there(world: World) -> None:
    """A fork from that epoch extends what was sent, and a switch of models is told as what it is."""
    world.settings(compaction={"tail_turns": 0}, provider={"scripted": TWO_MODELS})
    async with world.open(*says(f"a {LONG}", "sum", "b", "c")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await compacted(hf, session)
        await hf.sessions.process(session, "two")
        page = await hf.sessions.messages(session)
        await _edit(hf, page.messages[-2])
        forked = (await hf.sessions.fork(session, page.messages[2].info.id)).id
        await hf.sessions.process(forked, "again", model="scripted/gpt-4")
        assert [each.moved for each in await steps(hf, forked)] == [None, "model"]
        assert [each.edited_at for each in await epochs(hf, session)] == [None, 2]


@pytest.mark.ci
async def test_a_conversation_is_written_part_by_part_in_linear_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller's own messages behind an answer of the model: each part reads the end, not all of it. A part
    of what was sent is an edit all the same, however much stands behind it.
    """
    async with world.open(*says("a", "b")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        sent = (await hf.sessions.messages(session)).messages[0].info.id
        read: list[int] = []
        messages = type(hf.store).messages

        async def counted(self: Any, query: MessageQuery) -> MessagePage:
            page = await messages(self, query)
            read.append(len(page.messages))
            return page

        with monkeypatch.context() as patch:
            patch.setattr(type(hf.store), "messages", counted)
            for number in range(160):
                await ask(hf, session, f"note {number}")
        assert max(read) <= 50
        await say(hf, session, sent, "and this")
        await hf.sessions.process(session, "two")
        assert [each.moved for each in await steps(hf, session)] == [None, "edit"]


@pytest.mark.ci
@pytest.mark.parametrize("also", [False, True])
async def test_a_fork_from_before_an_answer_that_was_removed_has_moved_nothing(
    world: World, *, also: bool
) -> None:
    """No request had shown the last answer to the model, so to remove it is no edit of what was sent; where
    the answer before it goes `also`, which the last request did show, a fork from before both has not moved.
    """
    world.settings(provider={"scripted": TWO_MODELS})
    async with world.open(*says(*("abcde" if also else "abcdef"))) as (hf, _):
        session = await world.session(hf)
        for text in ("one", "two", "three"):
            await hf.sessions.process(session, text)
        page = await hf.sessions.messages(session)
        await hf.sessions.remove_message(session, page.messages[5].info.id)
        if also:
            await hf.sessions.remove_message(session, page.messages[3].info.id)
        forks = [(await hf.sessions.fork(session, page.messages[at].info.id)).id for at in (2, 4)]
        for each in forks:
            await hf.sessions.process(each, "again")
        if not also:
            await hf.sessions.process(session, "four", model="scripted/gpt-4")

        assert [[each.moved for each in await steps(hf, fork)] for fork in forks] == [
            [None, None],
            [None, None] if also else [None, None, None],
        ]
        assert also or (await steps(hf, session))[-1].moved == "model"


async def _edit(hf: Holdfast, message: MessageWithParts) -> None:
    """Change what a person said; remove what the model answered."""
    if isinstance(message.info, AssistantMessage):
        await hf.sessions.remove_message(message.info.session_id, message.info.id)
    else:
        part = message.parts[0]
        assert isinstance(part, TextPart)
        edited = replace(part, text=f"EDITED {LONG}")
        await hf.sessions.update_part(message.info.session_id, part.id, lambda _: edited)


@pytest.mark.ci
async def test_a_fork_at_an_answer_before_a_pruning_shows_the_output_again(world: World) -> None:
    """Pruning happens before a request, not before a prompt: one prompt has many."""
    settings(world)
    calls = [Step(Call("flood", {"number": n}, id=f"c{n}")) for n in range(6)]
    many = [Step(Call("act", {"what": str(n)}, id=f"a{n}"), usage=SILENT) for n in range(60)]
    async with world.open(*calls, *says("a", "b", "c"), *many, *says("d")) as (hf, asked):
        hf.tools.register(flood)
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)
        for text in ("one", "two", "three", "four"):
            await hf.sessions.process(session, text)
        moved = [each.moved for each in await steps(hf, session)]
        at = moved.index("pruning")
        assert at > moved.index(None) + 9, "in the middle of the last prompt"
        page = await hf.sessions.messages(session)
        answers = [each.info.id for each in page.messages if isinstance(each.info, AssistantMessage)]
        sent = asked.requests[at - 1]
        forked = (await hf.sessions.fork(session, answers[at])).id
    settings(world, prune=False)
    async with world.open(*says("e")) as (hf, after):
        await hf.sessions.process(forked, "again")
        assert [each.moved for each in await steps(hf, forked)] == [None] * (at + 1)
    assert extends(sent, after.requests[0])


async def test_a_fork_from_before_more_moves_than_are_kept_has_a_reason_too(world: World) -> None:
    """What the tools were then is kept no more, so the fork begins with those of now, and says so."""
    count = pins.EARLIER_MAX + 1
    async with world.open(*says("a"), *says(*"b" * count), *says("c", "d")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        for number in range(count):
            hf.tools.register(Deed(f"act{number}").tool)
            await hf.sessions.process(session, "more")
        forked = (await hf.sessions.fork(session, (await prompts(hf, session))[1])).id
        await hf.sessions.process(forked, "again")
        await hf.sessions.process(forked, "and again")
        assert [each.moved for each in await steps(hf, forked)] == [None, "tools", None]


async def test_a_fork_after_an_answer_of_a_given_form_goes_on_with_the_pins_of_then(world: World) -> None:
    """The tool for the form stands beside the pinned ones: it is told from them."""
    answer = Step(Call("StructuredOutput", {"a": 1}, id="s"))
    async with world.open(answer, *says("b", "c")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one", format=FORM)
        registration = hf.tools.register(Deed().tool)
        await hf.sessions.process(session, "two")
        registration.close()
        forked = (await hf.sessions.fork(session, (await prompts(hf, session))[1])).id
        (epoch,) = await epochs(hf, forked)
        assert epoch.reasons == ()
        await hf.sessions.process(forked, "two again")
        assert [each.moved for each in await steps(hf, forked)] == [None, "output format"]


@pytest.mark.parametrize("how", ["part", "message", "title"])
async def test_an_edit_that_the_model_does_not_see_is_no_reason(world: World, how: str) -> None:
    """Written as it was, or changed where only people look: a switch of models is told as what it is."""
    world.settings(provider={"scripted": TWO_MODELS}, permission={"act": "allow"})
    async with world.open(Step(Call("act", {"what": "x"}, id="c")), *says("a", "b")) as (hf, _):
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        page = await hf.sessions.messages(session)
        if how == "message":
            await hf.sessions.update_message(session, page.messages[0].info.id, lambda old: old)
        elif how == "part":
            await hf.sessions.update_part(session, page.messages[0].parts[0].id, lambda old: old)
        else:
            (part,) = [each for each in page.messages[1].parts if isinstance(each, ToolPart)]
            assert isinstance(part.state, ToolCompleted)
            await hf.sessions.update_part(session, part.id, lambda old: replace(old, metadata={"seen": True}))
        (epoch,) = await epochs(hf, session)
        assert epoch.reasons == (("edit",) if how == "title" else ())
        await hf.sessions.process(session, "two", model="scripted/gpt-4")
        assert [each.moved for each in await steps(hf, session)] == [None, None, "model"]


def test_a_reason_counts_only_for_what_it_can_move() -> None:
    """An edit moves messages, tools what stands before them; where no reason fits, it is our fault."""

    def moved(block: int, *causes: str) -> str | None:
        sent = ["tool", "system", "one", "two"]
        last = SentRequest(blocks=sent, provider_id="p", model_id="m", agent="build")
        now = [*sent[:block], "other", *sent[block + 1 :]]
        return prefix_change.step(EPOCH, last, now, causes, chars=0, head=2).moved

    assert moved(1, "edit", "pruning", "model") == "model"
    assert moved(1, "edit") == prefix_change.FAULT
    assert moved(2, "tools", "output format", "edit") == "edit"
    assert moved(2, "tools") == prefix_change.FAULT
    assert moved(2, "model") == moved(1, "model") == "model"
    assert moved(2) == prefix_change.FAULT


async def _asked(world: World, session: str, prompt: str, agent: str) -> Request:
    """One prompt in a process of its own; what was sent."""
    async with world.open(*says("again")) as (hf, script):
        await hf.sessions.process(session, prompt, agent=agent)
        return script.requests[-1]


@pytest.mark.parametrize(("removed", "moves"), [(1, [None, "edit", "agent"]), (3, [None, None, "agent"])])
async def test_after_a_removal_a_text_that_changes_is_recorded_as_moved(
    world: World, removed: int, moves: list[str | None]
) -> None:
    """The step that named the system text, or the last one, went with its answer; another process still sees
    the move. What follows a removed step names all its blocks; a fork without any step has nothing to extend.
    """
    world.settings(agent={"custom": {"prompt": "One.", "mode": "primary"}})
    async with world.open(*says("a", "b", "c")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one", agent="custom")
        await hf.sessions.process(session, "two", agent="custom")
        page = await hf.sessions.messages(session)
        await hf.sessions.remove_message(session, page.messages[removed].info.id)
        (left,) = await steps(hf, session)
        (epoch,) = await epochs(hf, session)
        assert epoch.sent is not None
        assert (left.kept, left.blocks) == (0, epoch.sent.blocks[: len(left.blocks)])
        before = (await hf.sessions.fork(session, page.messages[2].info.id)).id
        if removed == 1:  # No request is left in what the fork keeps.
            assert [each.sent for each in await epochs(hf, before)] == [None]
        await hf.sessions.process(session, "three", agent="custom")
        assert (await steps(hf, session))[-1].kept == 0
    world.settings(agent={"custom": {"prompt": "Two.", "mode": "primary"}})
    await _asked(world, session, "four", "custom")
    async with world.open() as (hf, _):
        assert [each.moved for each in await steps(hf, session)] == moves


@pytest.mark.ci
@pytest.mark.parametrize(
    ("removed", "moved"), [(1, "edit"), (3, "edit"), (5, None)], ids=["first", "second", "last"]
)
async def test_after_a_removal_a_request_that_extends_the_last_has_not_moved(
    world: World, removed: int, moved: str | None
) -> None:
    """Whichever answer went (the last was in no request yet), and though another process asks; a fork from
    before the next request agrees.
    """
    async with world.open(*says("a", "b", "c", "d", "e")) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one", agent="build")
        for prompt in ("two", "three"):
            await hf.sessions.process(session, prompt, agent="plan")
        page = await hf.sessions.messages(session)
        await hf.sessions.remove_message(session, page.messages[removed].info.id)
        fork = (await hf.sessions.fork(session)).id
        await hf.sessions.process(session, "four", agent="plan")
        await hf.sessions.process(fork, "four", agent="plan")
        sent = script.requests[-2:]
        assert sent[0].messages == sent[1].messages
    for each in (session, fork):
        now = await _asked(world, each, "five", "plan")
        assert extends(sent[0], now)
    async with world.open() as (hf, _):
        for each in (session, fork):
            moves = [step.moved for step in await steps(hf, each)]
            assert (len(moves), moves[-2:]) == (4, [moved, None])
            (epoch,) = await epochs(hf, each)
            assert (epoch.reasons, epoch.sent) == ((), None)
