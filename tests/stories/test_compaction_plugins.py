"""What a plugin may change of a compaction: the words that ask for a summary, and whether work goes on."""

from holdfast.runtime.compaction import wording
from holdfast.schema.message import AssistantMessage
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step
from tests.stories.compaction import BIG, LONG, SUMMARY, shown, small, texts
from tests.stories.compaction_bounds import compacted, says
from tests.stories.world import World

OURS = "Summarise in the style of our team."


def plugin(world: World, hook: str, *lines: str) -> None:
    """A plugin of the person's own with one hook."""
    folder = world.home / ".config" / "holdfast" / "plugin"
    folder.mkdir(parents=True, exist_ok=True)
    body = "".join(f"        {line}\n" for line in lines)
    (folder / "team.py").write_text(
        f"class Team:\n    async def {hook}(self, input, output):\n{body}\n"
        "def plugin(context):\n    return Team()\n"
    )


async def test_a_plugin_s_prompt_takes_the_place_of_our_words_and_not_of_the_conversation(
    world: World,
) -> None:
    """The summariser gets what was said, the earlier summary, and the plugin's words for ours."""
    world.settings(compaction={"tail_turns": 0})
    plugin(world, "experimental_session_compacting", f"output.prompt = {OURS!r}")
    async with world.open(*says(f"a {LONG}", "first summary", f"b {LONG}", SUMMARY)) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "Port the frobnicator.")
        await compacted(hf, session)
        await hf.sessions.process(session, "Test it.")
        await compacted(hf, session)
    (first,), (second,) = texts(script.requests[1]), texts(script.requests[3])
    said = f'<message from="agent">\na {LONG}\n</message>'
    assert first == f"<conversation>\n{said}\n</conversation>\n\n{OURS}"
    assert "Port the frobnicator." in second
    assert f"<earlier-summary>\nfirst summary\n</earlier-summary>\n\n{wording.MERGE}" in second
    assert second.endswith(f"\n\n{OURS}")
    assert wording.ASK not in first + second


async def test_every_chunk_is_summarised_by_a_plugin_s_prompt(world: World) -> None:
    """A head that is folded in several calls: each has its piece, and the plugin's words behind it."""
    small(world)
    plugin(world, "experimental_session_compacting", f"output.prompt = {OURS!r}")
    folding = [Step(Say(f"fold {number}")) for number in range(12)]
    async with world.open(*says("a", "b"), *folding) as (hf, script):
        session = await world.session(hf)
        for sign in "xy":
            await hf.sessions.process(session, sign * 150_000, model="scripted/large")
        await hf.sessions.process(session, "now on the small one", model="scripted/m")
        folds = [texts(each)[0] for each in script.requests[2:-1]]
        script._steps.clear()
    assert len(folds) > 1
    assert all(each.startswith("<conversation>\n") and each.endswith(f"\n\n{OURS}") for each in folds)
    assert "x" * 1_000 in folds[0]
    assert "y" * 1_000 in folds[-1]


async def test_what_a_plugin_adds_stands_before_our_words(world: World) -> None:
    """The conversation, what the plugin knows besides, what is asked."""
    plugin(
        world, "experimental_session_compacting", 'output.context += ["The branch is main.", "CI is red."]'
    )
    async with world.open(*says(f"a {LONG}", SUMMARY)) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await compacted(hf, session)
    (asked,) = texts(script.requests[1])
    assert asked.endswith(f"</conversation>\n\nThe branch is main.\n\nCI is red.\n\n{wording.ASK}")


async def test_a_plugin_may_end_the_work_with_a_compaction(world: World) -> None:
    """Nothing goes on by itself; the next prompt finds the summary, and the request that was not answered."""
    plugin(world, "experimental_compaction_autocontinue", "output.enabled = False")
    steps = [Step(Say("a"), usage=BIG), Step(Say(SUMMARY)), Step(Say("b"))]
    async with world.open(*steps) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, f"one {LONG}")
        await hf.sessions.prompt(session, "two")
        await hf.sessions.wait(session)
        last = (await shown(hf, session))[-1]
        assert len(script.requests) == 2
        await hf.sessions.process(session, "three")
    assert isinstance(last.info, AssistantMessage)
    assert last.info.summary is True
    said = texts(script.requests[2])
    assert "<request>\ntwo\n</request>" in said[1]
    assert said[2:] == [SUMMARY, "three"]
