"""Sentences of seed 000 that only a whole session can show, each by its name."""

import anyio
import pytest
from msgspec.structs import replace

from holdfast.context.system_context import SystemContext
from holdfast.provider.request.request import Results, SystemUpdate
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from tests.stories.epochs import Fact, epochs, extends, told
from tests.stories.permissions import asked
from tests.stories.tools import Deed
from tests.stories.world import Attached, World

PLUGIN = """
import pathlib

class Loud:
    async def experimental_chat_system_transform(self, input, output):
        calls = pathlib.Path(__file__).with_name("calls")
        calls.write_text((calls.read_text() if calls.exists() else "") + "x")
        output.system = [text.upper() for text in output.system]

def plugin(context):
    return Loud()
"""


async def test_settled_tool_results_precede_the_system_message(world: World) -> None:
    """At a safe boundary, promoted input or settled results come first, then what changed."""
    world.settings(permission={"act": "allow"})
    fact, deed = Fact(), Deed(ask=False)
    deed.gate = anyio.Event()
    async with world.open(Step(Call("act", {"what": "x"}, id="c")), Step(Say("ok"))) as (hf, script):
        fact.register(hf)
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
        fact.value = "two"
        deed.gate.set()
        await hf.sessions.wait(session)
    *_, results, update = script.requests[1].messages
    assert isinstance(results, Results)
    assert update == SystemUpdate(text="The fact is now two.", native=True)


async def test_agent_and_model_are_sampled_when_a_turn_starts(world: World) -> None:
    """A switch that is admitted while a turn runs counts for the next turn, and restarts nothing."""
    world.settings(permission={"act": "allow"})
    deed = Deed(ask=False)
    deed.gate = anyio.Event()
    async with world.open(Step(Call("act", {"what": "x"}, id="c")), Step(Say("ok"))) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go", agent="build")
        with anyio.fail_after(60):
            await deed.begun.wait()
        await hf.sessions.prompt(session, "and plan it", agent="plan")
        assert len(script.requests) == 1
        deed.gate.set()
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
    agents = [each.info.agent for each in page.messages if each.info.__struct_config__.tag == "assistant"]
    assert agents == ["build", "plan"]
    assert deed.done == ["x"]


async def test_a_pending_call_keeps_the_agent_of_its_turn(world: World) -> None:
    """A later switch of agents does not change the policy of a call that waits for a person."""
    world.settings(agent={"build": {"permission": {"act": "ask"}}, "plan": {"permission": {"act": "deny"}}})
    deed = Deed()
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c")),
        Step(Say("ok"), expect=answered("c", "did x")),
        presence=Attached(),
    ) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go", agent="build")
        (question,) = await asked(hf, session)
        await hf.sessions.prompt(session, "plan it", agent="plan")
        await hf.sessions.reply(session, question.id, "once")
        await hf.sessions.wait(session)
    assert deed.done == ["x"]


async def test_a_system_transform_runs_once_when_a_baseline_is_rendered(world: World) -> None:
    """The flagged ambiguity, decided: a plugin may rewrite a baseline, and then it is the baseline."""
    folder = world.home / ".config" / "holdfast" / "plugin"
    folder.mkdir(parents=True)
    (folder / "loud.py").write_text(PLUGIN)
    async with world.open(*[Step(Say("a"))] * 2) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        await hf.sessions.process(session, "two")
        (epoch,) = await epochs(hf, session)
    assert "TODAY'S DATE IS" in epoch.baseline
    assert script.requests[0].system[-1] == script.requests[1].system[-1] == epoch.baseline
    assert (folder / "calls").read_text() == "x"
    assert extends(*script.requests)


async def test_what_is_built_in_comes_first_then_contributions_by_their_keys(world: World) -> None:
    """Built-in sources have a fixed order, the least changing first; then what others register, by key."""
    other = Fact("else")
    async with world.open(Step(Say("a"))) as (hf, script):
        hf.context.register("z/last", lambda: SystemContext.make(replace(other.source(), key="z/last")))
        Fact().register(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    text = script.requests[0].system[-1]
    places = [text.index(word) for word in ("<env>", "Today's date", "The fact is one.", "The fact is else.")]
    assert places == sorted(places)


async def test_a_plugin_tells_the_model_what_its_sources_say(world: World) -> None:
    """What it brings is told; what is none, or has a key of ours, is left out, and harms nothing."""
    folder = world.home / ".config" / "holdfast" / "plugin"
    folder.mkdir(parents=True)
    (folder / "facts.py").write_text(
        "from holdfast.context.source import Codec, ContextSource\n"
        "async def load():\n    return 'main'\n"
        "def source(key):\n"
        "    return ContextSource(key=key, codec=Codec(str), load=load,\n"
        "        baseline=lambda now: f'The branch is {now}.', update=lambda _, now: f'Now {now}.')\n"
        "sources = [source('mine/branch'), source('core/date'), 'nonsense']\n"
    )
    async with world.open(Step(Say("a"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        (epoch,) = await epochs(hf, session)
    assert "The branch is main." in script.requests[0].system[-1]
    assert "Today's date" in script.requests[0].system[-1]
    assert "mine/branch" in epoch.snapshot


async def test_what_a_plugin_told_holds_while_it_fails(world: World) -> None:
    """Its source is unavailable, not gone: nothing is taken back, and nothing told twice."""
    folder = world.home / ".config" / "holdfast" / "plugin"
    folder.mkdir(parents=True)
    (folder / "facts.py").write_text(
        "import pathlib\n"
        "from holdfast.context.source import Codec, ContextSource\n"
        "async def load():\n"
        "    return pathlib.Path(__file__).with_name('branch').read_text()\n"
        "sources = [ContextSource(key='mine/branch', codec=Codec(str), load=load,\n"
        "    baseline=lambda now: f'The branch is {now}.', update=lambda _, now: f'Now {now}.')]\n"
    )
    (folder / "branch").write_text("main")
    async with world.open(*[Step(Say("a"))] * 3) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        (folder / "branch").unlink()
        await hf.sessions.process(session, "two")
        assert await told(hf, session) == []
        (folder / "branch").write_text("next")
        await hf.sessions.process(session, "three")
        assert await told(hf, session) == ["Now next."]
    assert extends(script.requests[0], script.requests[1])


@pytest.mark.parametrize("can_call", [True, False])
async def test_skills_are_told_to_whom_is_shown_the_tool_for_them(world: World, can_call: bool) -> None:
    """A model without tools could load none; whether the tool exists for others does not count."""
    model = {"name": "M", "tool_call": can_call, "limit": {"context": 100_000, "output": 8_000}}
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": model},
    }
    world.settings(provider={"scripted": entry})
    folder = world.home / ".config" / "holdfast" / "skills" / "x"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: x\ndescription: does x\n---\nbody")
    async with world.open(Step(Say("a"))) as (hf, script):
        hf.tools.register(Deed("skill").tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    (request,) = script.requests
    assert ("skill" in {tool.name for tool in request.tools}) is can_call
    assert ("- x: does x" in request.system[-1]) is can_call
