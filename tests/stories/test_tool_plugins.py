"""What plugins may change of a call."""

from typing import Any

import pytest

from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from tests.stories.tools import STANDARD, Deed
from tests.stories.world import World


def plugin(world: World, *methods: str) -> None:
    """A plugin of the user's own."""
    folder = world.home / ".config" / "holdfast" / "plugin"
    folder.mkdir(parents=True, exist_ok=True)
    body = "\n".join(f"    async def {method}" for method in methods)
    (folder / "team.py").write_text(f"class Team:\n{body}\n\ndef plugin(context):\n    return Team()\n")


async def test_arguments_are_changed_before_the_tool_runs_and_its_answer_afterwards(world: World) -> None:
    """The tool gets the plugin's arguments; the record keeps the model's, and the plugin's answer."""
    world.settings(permission={"*": "allow"})
    plugin(
        world,
        "tool_execute_before(self, input, output):\n        output.args['what'] += ' twice'",
        "tool_execute_after(self, input, output):\n"
        "        output.output += f' ({input.tool} {input.args[\"what\"]})'\n"
        "        output.title = 'changed'\n"
        "        output.metadata['by'] = 'team'",
    )
    deed = Deed("act", ask=False)
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c")),
        Step(Say("ok"), expect=answered("c", "did x twice (act x twice)")),
    ) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        page = await hf.sessions.messages(session)

    (part,) = [part for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, ToolCompleted)
    assert deed.done == ["x twice"]
    assert (part.state.input, part.state.title) == ({"what": "x"}, "changed")
    assert part.state.metadata["by"] == "team"


async def test_a_plugin_that_fails_changes_nothing(world: World) -> None:
    """The call is carried out as the model wrote it, and a call that failed is not the plugin's to mend."""
    world.settings(permission={"*": "allow"})
    plugin(
        world,
        "tool_execute_before(self, input, output):\n        output.args = {'what': 1 / 0}",
        "tool_execute_after(self, input, output):\n        output.output = 7",
    )
    deed = Deed("act", ask=False)
    calls = Step(Call("act", {"what": "x"}, id="a"), Call("read", {"filePath": "none"}, id="b"))
    async with world.open(calls, Step(Say("ok"), expect=answered("a", "did x"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        page = await hf.sessions.messages(session)

    states = [part.state for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
    assert deed.done == ["x"]
    assert [type(state) for state in states] == [ToolCompleted, ToolError]


async def test_a_plugin_s_tools_are_offered_in_its_workspace(world: World) -> None:
    """Beside the built-in ones; those of another directory's plugins are not."""
    folder = world.home / ".config" / "holdfast" / "plugin"
    folder.mkdir(parents=True)
    (folder / "stock.py").write_text(
        "import holdfast\n\n"
        "@holdfast.tool(repeatable=True)\n"
        "async def stock(context: holdfast.ToolContext, article: str) -> str:\n"
        "    '''Say how many pieces of an article are there.'''\n"
        "    return f'7 of {article}'\n\n"
        "tools = [stock]\n"
    )
    world.settings(permission={"*": "allow"})
    async with world.open(
        Step(Call("stock", {"article": "12"}, id="c")), Step(Say("ok"), expect=answered("c", "7 of 12"))
    ) as (hf, script):
        await hf.sessions.process(await world.session(hf), "go")

    assert [tool.name for tool in script.requests[0].tools] == sorted([*STANDARD, "stock"])


STOCK = """
import holdfast

@holdfast.tool(repeatable=True)
async def stock(context: holdfast.ToolContext, article: str) -> str:
    "Say how many pieces of an article are there."
    return f"7 of {article}"
"""


@pytest.mark.ci
async def test_a_project_s_tools_are_offered_once_it_is_trusted_and_as_long_as_they_are_what_was(
    world: World,
) -> None:
    """A file in `.holdfast/tools/` runs when it is loaded: not before it is trusted, nor when it changed."""
    world.settings(permission={"*": "allow"})
    folder = world.project / ".holdfast" / "tools"
    folder.mkdir(parents=True)
    (folder / "stock.py").write_text(STOCK)
    (folder / "none.py").write_text("x = 1\n")
    shown = []
    for changes in (None, "trust", "change"):
        async with world.open(Step(Say("ok"))) as (hf, script):
            if changes == "trust":
                await hf.trust.decide(world.project, granted=True)
            if changes == "change":
                (folder / "stock.py").write_text(STOCK.replace("7", "8"))
            await hf.sessions.process(await world.session(hf), "go")
        shown.append("stock" in {tool.name for tool in script.requests[0].tools})

    assert shown == [False, True, False]


@pytest.mark.ci
async def test_a_definition_is_changed_where_it_is_pinned_and_nowhere_else(world: World) -> None:
    """Once a tool and epoch: not in the next request, after a restart or for another agent."""
    world.settings(permission={"*": "allow"})
    calls = world.home / "calls"
    plugin(
        world,
        "tool_definition(self, input, output):\n"
        f"        with open({str(calls)!r}, 'a') as file:\n"
        "            print(input.tool_id, file=file)\n"
        "        if input.tool_id == 'act':\n"
        "            output.description += ' Gently.'\n"
        "            output.parameters['properties']['why'] = {'type': 'string'}",
        "tool_execute_before(self, input, output):\n        output.args.pop('why', None)",
    )
    deed = Deed("act", ask=False)
    act = Call("act", {"what": "x", "why": "so"}, id="c")
    requests: list[Any] = []
    for agent, steps in (
        ("build", (Step(act), Step(Say("ok")))),
        ("build", (Step(Say("ok")),)),
        ("plan", ()),
    ):
        async with world.open(*(steps or (Step(Say("ok")),))) as (hf, script):
            hf.tools.register(deed.tool)
            session = requests[0][1] if requests else await world.session(hf)
            await hf.sessions.process(session, "go", agent=agent)
        requests += [(request, session) for request in script.requests]

    assert deed.done == ["x"]
    assert sorted(calls.read_text().split()) == sorted([*STANDARD, "act"])
    shown = [tool for request, _ in requests for tool in request.tools if tool.name == "act"]
    assert [tool.description for tool in shown] == ["Do something. Gently."] * 4
    assert [sorted(tool.input["properties"]) for tool in shown] == [["what", "why"]] * 4
    assert len({str(request.tools) for request, _ in requests[:3]}) == 1


async def test_a_definition_that_no_provider_takes_is_not_changed(world: World) -> None:
    """Arguments that are no object cost the plugin its change, and the user reads why."""
    plugin(world, "tool_definition(self, input, output):\n        output.parameters = {'type': 'string'}")
    async with world.open(Step(Say("ok"))) as (hf, script):
        hf.tools.register(Deed("act").tool)
        await hf.sessions.process(await world.session(hf), "go")

    assert all(tool.input["type"] == "object" for tool in script.requests[0].tools)
