"""What a session may do is bounded by the sessions above it, also for tools that ask nobody."""

import anyio

from holdfast.schema.budget import Budget
from holdfast.schema.permission import Rule
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, Wait
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories.tools import STANDARD, Deed
from tests.stories.world import World
from tests.until import until


async def test_a_tool_denied_to_the_parent_is_not_there_for_the_child(world: World) -> None:
    """It is neither shown nor run, though it would not have asked."""
    deed = Deed("danger", ask=False)
    async with world.open(Step(Call("danger", {"what": "x"})), Step(Say("done"))) as (hf, script):
        hf.tools.register(deed.tool)
        denied = [Rule(permission="danger", pattern="*", action="deny")]
        parent = await world.session(hf, permission=denied)
        child = await world.session(hf, parent=parent)
        await hf.sessions.process(child, "go")

    assert deed.done == []
    assert [[each.name for each in request.tools] for request in script.requests] == [STANDARD] * 2


async def test_a_tool_goes_by_the_permission_that_it_declares(world: World) -> None:
    """Not by its name alone."""
    world.settings(permission={"edit": "deny"})
    done = []

    @tool(name="patcher", permission="edit")
    async def patcher(context: ToolContext) -> str:
        """Change files."""
        done.append(context.agent)
        return "changed"

    async with world.open(Step(Call("patcher", {})), Step(Say("done"))) as (hf, script):
        hf.tools.register(patcher)
        await hf.sessions.process(await world.session(hf), "go")

    assert done == []
    assert "patcher" not in [each.name for each in script.requests[0].tools]


async def test_an_agent_that_was_only_asked_for_lifts_nothing(world: World) -> None:
    """While the parent's plan runs, a prompt that queues for another agent does not free the child."""
    allow, deny = {"permission": {"act": "allow"}}, {"permission": {"act": "deny"}}
    world.settings(agent={"plan": deny, "build": allow, "sub": {"mode": "all", "prompt": "Work.", **allow}})
    deed, gate = Deed(), anyio.Event()
    async with world.open() as (hf, script):
        hf.tools.register(deed.tool)
        parent = await world.session(hf)
        child = await world.session(hf, parent=parent)
        script.add(
            Step(Wait(gate), Say("a plan"), session=parent),
            Step(Say("built"), session=parent),
            Step(Call("act", {"what": "x"}, id="c1"), session=child),
            Step(Say("could not"), session=child),
            Step(Call("act", {"what": "y"}, id="c2"), session=child),
            Step(Say("could"), session=child),
        )
        await hf.sessions.prompt(parent, "plan it", agent="plan")
        await until(lambda: script.requests)
        await hf.sessions.prompt(parent, "then build it", agent="build", delivery="queue")
        await hf.sessions.process(child, "go", agent="sub")
        assert deed.done == []
        gate.set()
        await hf.sessions.wait(parent)
        await hf.sessions.process(child, "go", agent="sub")

    assert deed.done == ["y"]


async def test_no_number_of_notes_lifts_a_ceiling(world: World) -> None:
    """The agent of the parent's latest turn counts, however much was noted for another since."""
    allow, deny = {"permission": {"act": "allow"}}, {"permission": {"act": "deny"}}
    world.settings(agent={"plan": deny, "build": allow, "sub": {"mode": "all", "prompt": "Work.", **allow}})
    deed = Deed()
    async with world.open(Step(Say("a plan")), Step(Call("act", {"what": "x"})), Step(Say("no"))) as (hf, _):
        hf.tools.register(deed.tool)
        parent = await world.session(hf)
        child = await world.session(hf, parent=parent)
        await hf.sessions.process(parent, "plan it", agent="plan")
        for number in range(25):
            await hf.sessions.prompt(parent, f"note {number}", agent="build", no_reply=True)
        await hf.sessions.process(child, "go", agent="sub")

    assert deed.done == []


async def test_a_fork_keeps_the_rules_above_its_source_and_the_budget_of_the_tree(world: World) -> None:
    """It stands in no tree, and is allowed no more for that, nor is a fork of it, or of a child of that one;
    nothing of the budget is spent yet.
    """
    deed = Deed("danger", ask=False)
    calls = [Step(Call("danger", {"what": "x"})), Step(Say("done"))]
    async with world.open(*calls, *calls, *calls) as (hf, script):
        hf.tools.register(deed.tool)
        denied = [Rule(permission="danger", pattern="*", action="deny")]
        root = await world.session(hf, permission=denied)
        await hf.sessions.set_budget(root, Budget(tokens=1_000_000))
        child = await world.session(hf, parent=root)
        fork = await hf.sessions.fork(child)
        again = await hf.sessions.fork(fork.id)
        below = await world.session(hf, parent=again.id)
        for each in (fork, again, await hf.sessions.fork(below)):
            assert (each.parent_id, each.budget, each.spent) == (None, Budget(tokens=1_000_000), None)
            await hf.sessions.process(each.id, "go")

    assert deed.done == []
    assert {each.name for request in script.requests for each in request.tools} == set(STANDARD)


async def test_rules_above_a_fork_that_cannot_be_read_allow_nothing(world: World) -> None:
    """What they forbade is not known any more."""
    deed = Deed("danger", ask=False)
    async with world.open(Step(Call("danger", {"what": "x"})), Step(Say("done"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf, metadata={"fork": {"sessionID": "ses_x", "ceilings": "none"}})
        await hf.sessions.process(session, "go")
    assert deed.done == []
